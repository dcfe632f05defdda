"""Programs: where they are looked up, which files an approval of them covers, what is said."""

from __future__ import annotations

import os
from py_compile import PycInvalidationMode
from py_compile import compile as compile_file
from typing import TYPE_CHECKING

import pytest

from fast_agent.trust import programs
from fast_agent.trust.digest import ABSENT, PRESENT
from fast_agent.trust.launchers import downloads_package, is_launcher_file
from fast_agent.trust.programs import (
    DOWNLOADS,
    ONLY_LINE,
    Program,
    command_line,
    examine_program,
    find_program,
    is_launcher,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A directory of programs outside the project."""
    folder = tmp_path.resolve() / "bin"
    folder.mkdir()
    for name in ("python3", "npx", "docker", "uv", "uvx", "bash", "env", "make", "node", "tool"):
        plant(folder / name)
    return folder


def plant(file: Path, text: str = "#!/bin/sh\n") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def examine(root: Path, path: str, *words: str, env: Mapping[str, str] | None = None) -> Program:
    command, *args = words
    return examine_program(command, args, cwd=root, root=root, env=env or {}, path=path)


def changed(before: Program, now: Program) -> list[str]:
    """The files an approval would name as different."""
    return [name for name, digest in before.files.items() if now.files.get(name) != digest]


@pytest.mark.spec("TR-P5.1")
@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("npx -y @acme/tickets@1.2.3", True),
        ("/usr/local/bin/npx tickets", True),
        ("npm --yes exec tickets", True),
        ("npm run serve", False),
        ("npm start", False),
        ("uvx mcp-server-time==1.0", True),
        ("uv --quiet tool run time", True),
        ("uv run server.py", False),
        ("pipx run time", True),
        ("bunx time", True),
        ("docker --context far run --rm time@sha256:00", True),
        ("docker ps", False),
        ("deno run -A jsr:@acme/time", True),
        ("deno run ./server.ts", False),
        ("go run ./cmd/server", False),
        ("go run example.com/server@latest", True),
        ("python -m http.server", True),
        ("python3.12 -u -m time", True),
        ("python -um time", True),
        ("python -X utf8 -mtime", True),
        ("python server.py -m time", False),
        ("python -c pass -m time", False),
        ("python", False),
        ("./serve.sh", False),
        ("node server.js", False),
    ],
)
def test_a_launcher_is_distinguished_from_a_program_of_its_own(line: str, is_one: bool) -> None:
    program, *args = line.split()
    assert is_launcher(program, args) is is_one


@pytest.mark.spec("TR-P1.1")
def test_a_program_is_not_looked_up_where_the_project_could_have_put_it(
    root: Path, tools: Path
) -> None:
    plant(root / "tool")
    plant(root / "bin" / "tool")
    link = root.parent / "innocent"
    link.symlink_to(root / "bin")
    planted = ["", ".", "bin", str(root), str(root / "bin"), str(link)]
    for entry in planted:
        assert find_program("tool", cwd=root, root=root, path=entry) is None
        path = os.pathsep.join((entry, str(tools)))
        assert find_program("tool", cwd=root, root=root, path=path) == str(tools / "tool")
    outside = root.parent / "elsewhere"
    outside.mkdir()
    (outside / "tool").symlink_to(root / "tool")
    assert find_program("tool", cwd=root, root=root, path=str(outside)) is None


@pytest.mark.spec("TR-P1.2")
def test_an_approval_names_the_absolute_path(root: Path, tools: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    plant(other / "tool")
    one, two = (examine(root, str(place), "tool", "x") for place in (tools, other))
    assert one.path == str(tools / "tool")
    assert one.line != two.line
    assert one.line.startswith(f"{tools / 'tool'} x")


def test_a_program_that_is_missing_cannot_be_approved(root: Path, tools: Path) -> None:
    for command in ("nothing", "./nothing", "nothing/there"):
        missing = examine(root, str(tools), command)
        assert missing.path is None
        assert missing.refusal is not None
    (root / "plain").write_text("not executable")
    assert examine(root, str(tools), "./plain").refusal is not None


@pytest.mark.spec("TR-P2.1", "TR-P2.2", "TR-P2.3")
@pytest.mark.parametrize(
    ("words", "files", "covered"),
    [
        (["./run.sh"], ["run.sh"], ["run.sh"]),
        (["bash", "deep/run.sh"], ["deep/run.sh"], ["deep/run.sh"]),
        (["tool", "--config=conf.ini"], ["conf.ini"], ["conf.ini"]),
        (
            ["python3", "src/serve.py"],
            ["src/serve.py", "src/beside.py", "src/pack/__init__.py", "src/pack/deep.py",
             "src/plain/not_imported.py"],
            ["src/serve.py", "src/beside.py", "src/pack/__init__.py", "src/pack/deep.py",
             "sitecustomize.py", "src/sitecustomize.py", "src/pyproject.toml"],
        ),
        (["python3", "-um", "served"], ["served.py"], ["served.py"]),
        (["python3", "-m", "served"], ["served/__init__.py", "served/__main__.py"],
         ["served/__init__.py", "served/__main__.py", "served.py"]),
        (["python3", "-mserved.deep"], ["served.py", "beside.py"], ["served.py", "beside.py"]),
        (["python3", "-mserved"], ["served/__init__.py", "served/more.py"],
         ["served/__init__.py", "served/more.py", "served.py"]),
        (["python3", "-m", "served"], ["src/served/__main__.py", "src/served/more.py"],
         ["src/served/__main__.py", "src/served/more.py", "src/served.py"]),
        (["python3", "-u", "-m", "elsewhere"], [], ["elsewhere.py", "elsewhere/__init__.py"]),
        (["python3", "app"], ["app/__main__.py", "app/a.py"], ["app/__main__.py", "app/a.py"]),
        (["node", "server.mjs"], ["server.mjs", "lib/part.js"],
         ["server.mjs", "lib/part.js", "package.json", ".npmrc"]),
        (["npx", "tickets"], ["node_modules/.bin/tickets"],
         ["node_modules/.bin/tickets", "package.json", ".npmrc"]),
        (["uv", "--directory", "deep", "run", "serve.py"], ["deep/serve.py", "deep/beside.py"],
         ["deep/serve.py", "deep/beside.py", "deep/pyproject.toml"]),
        (["env", "--chdir=deep", "python3", "-m", "served"], ["deep/served/__init__.py"],
         ["deep/served/__init__.py", "deep/served.py"]),
        (["uv", "run", "-m", "served.deep"], ["served/__init__.py", "served/deep.py"],
         ["served/__init__.py", "served/deep.py"]),
        (["uv", "run", "fastmcp", "run", "serve.py:app"], ["serve.py", "beside.py"],
         ["serve.py", "beside.py"]),
        (["python3", "-m", "uvicorn", "served.web:app"], ["served/web.py", "served/__init__.py"],
         ["served/web.py", "served/__init__.py", "uvicorn.py"]),
        (["bash", "-c", "cd deep && exec python3 'serve.py'"], ["deep/serve.py", "deep/beside.py"],
         ["deep/serve.py", "deep/beside.py"]),
        (["python3", "-c", "import deep.serve; deep.serve.run()"], ["deep/serve.py"],
         ["deep/serve.py"]),
        (["python3", "bin/serve"], ["bin/serve", "bin/beside.py"], ["bin/serve", "bin/beside.py"]),
        (["python3", "src/serve.py"], ["src/serve.py", "src/json.pyc", "src/fast.so"],
         ["src/serve.py", "src/json.pyc", "src/fast.so"]),
        (["tool", "serve.rb"], ["serve.rb", "lib/part.rb"], ["serve.rb", "lib/part.rb"]),
        (["node", "server.js"], ["server.js", "fast.node"], ["server.js", "fast.node"]),
        (["uvx", "thing"], [], ["pyproject.toml", "uv.toml", "sitecustomize.py"]),
        (["uv", "run", "thing"], ["uv.lock"], ["uv.lock"]),
        (["docker", "compose", "up"], ["compose.override.yaml"], ["compose.override.yaml"]),
        (["./gradlew", "serve"], ["gradlew"],
         ["gradlew", "gradle/wrapper/gradle-wrapper.properties"]),
        (["make", "serve"], ["Makefile"], ["Makefile", "GNUmakefile"]),
    ],
)  # fmt: skip
def test_digests_cover_what_the_command_line_would_load(
    root: Path, tools: Path, words: list[str], files: list[str], covered: list[str]
) -> None:
    for name in files:
        plant(root / name)
    program = examine(root, str(tools), *words)
    assert set(covered) <= set(program.files)
    assert not any("not_imported" in name for name in program.files)
    for name in covered:
        held = program.files[name]
        assert (held == ABSENT) == (not (root / name).exists())
        plant(root / name, "changed\n")
        assert changed(program, examine(root, str(tools), *words)) == [name]
        if held == ABSENT:
            (root / name).unlink()
        else:
            plant(root / name)
        assert changed(program, examine(root, str(tools), *words)) == []


@pytest.mark.spec("TR-P2.1")
def test_a_directory_without_init_counts_where_a_module_names_it(root: Path, tools: Path) -> None:
    plant(root / "src/serve.py", "data = 1  # import data\nfrom plain import (\n  part,\n)\n")
    plant(root / "src/plain/part.py", "import os, round\nx = __import__('far.more')\n")
    plant(root / "src/plain/far/more.py")
    plant(root / "src/data/sample.py")
    (root / "src/plain/round").symlink_to(root / "src/plain")
    program = examine(root, str(tools), "python3", "src/serve.py")
    assert {"src/plain/part.py", "src/plain/far/more.py"} <= set(program.files)
    assert "src/data/sample.py" not in program.files
    package = plant(root / "src/served/__init__.py", "from common import part\n").parent
    for name in ("common.py", "other.py"):
        plant(package.parent / name)
    program = examine(root, str(tools), "python3", "-m", "served")
    assert program.files["src/common.py"] != PRESENT
    assert "src/other.py" not in program.files


@pytest.mark.spec("TR-P2.1")
def test_the_environment_of_a_linked_python_counts(root: Path, tools: Path) -> None:
    plant(root / "env/pyvenv.cfg", "home = /usr/bin\n")
    (root / "env/bin").mkdir()
    (root / "env/bin/python").symlink_to(tools / "python3")
    program = examine(root, str(tools), "./env/bin/python", "-m", "elsewhere")
    assert program.files["env/pyvenv.cfg"] != ABSENT


@pytest.mark.spec("TR-P2.1")
@pytest.mark.parametrize("name", ["PATH", "PYTHONPATH", "LD_LIBRARY_PATH"])
def test_the_directories_a_variable_names_count(root: Path, tools: Path, name: str) -> None:
    for file in ("lib/env", "lib/libc.so.6", "lib/served/__init__.py", "bin/other"):
        plant(root / file)
    env = {name: f"/usr/bin:./lib:{root}/none:", "NODE_ENV": "bin"}
    program = examine(root, str(tools), "python3", "-m", "served", env=env)
    assert {"lib/env", "lib/libc.so.6", "lib/served/__init__.py"} <= set(program.files)
    assert "bin/other" not in program.files


@pytest.mark.spec("TR-P2.1", "TR-P4.1b")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NODE_OPTIONS", "--inspect --require ./hook.js"),
        ("BASH_ENV", "hook.js"),
        ("LD_PRELOAD", "/usr/lib/a.so:./hook.js"),
        ("RUBYOPT", "-r./hook.js"),
        ("JAVA_TOOL_OPTIONS", "-javaagent:./hook.js=x"),
    ],
)
def test_the_files_a_variable_loads_count(root: Path, tools: Path, name: str, value: str) -> None:
    for file in ("hook.js", "data.db"):
        plant(root / file)
    program = examine(root, str(tools), "tool", env={name: value, "DATA": "./data.db"})
    assert "hook.js" in program.files
    assert "data.db" not in program.files
    assert program.line.startswith(f"{name}=")


@pytest.mark.spec("TR-P2.1")
def test_compiled_code_that_python_never_checks_counts(root: Path, tools: Path) -> None:
    plant(root / "serve.py")
    plant(root / "beside.py", "x = 1\n")
    compiled: dict[PycInvalidationMode, str] = {}
    for mode in PycInvalidationMode:
        place = root / f"__pycache__/beside.{mode.name.lower()}.pyc"
        compile_file(str(root / "beside.py"), cfile=str(place), invalidation_mode=mode)
        compiled[mode] = str(place.relative_to(root))
    program = examine(root, str(tools), "python3", "serve.py")
    counted = {mode for mode, place in compiled.items() if place in program.files}
    assert counted == {PycInvalidationMode.UNCHECKED_HASH}


@pytest.mark.spec("TR-P2.1")
@pytest.mark.parametrize("way", [("python3", "-m"), ("env", "A=1", "python3", "-um")])
def test_what_takes_the_name_of_a_library_counts(
    root: Path, tools: Path, way: tuple[str, ...]
) -> None:
    plant(root / "main.py")
    plant(root / "pack/__init__.py")
    plant(root / "data/main.py")
    program = examine(root, str(tools), *way, "elsewhere")
    there = {name for name, digest in program.files.items() if digest == PRESENT}
    assert there == {"main.py", "pack/__init__.py"}
    plant(root / "main.py", "changed\n")
    assert examine(root, str(tools), *way, "elsewhere").files == program.files
    plant(root / "sitecustomize.py")
    now = examine(root, str(tools), *way, "elsewhere")
    assert now.files["sitecustomize.py"].startswith("sha256:")  # its launcher reads it
    (root / "sitecustomize.py").unlink()
    for name in ("anyio.py", "httpx/__init__.py", "ssl.abi3.so", "re.pyc"):
        plant(root / name)
        now = examine(root, str(tools), *way, "elsewhere")
        assert now.files.keys() - program.files.keys() == {name}
        (root / name).unlink()


@pytest.mark.spec("TR-P2.2")
def test_a_missing_launcher_file_counts_as_absent(root: Path, tools: Path) -> None:
    program = examine(root, str(tools), "npx", "-y", "@acme/tickets@1.0.0")
    assert program.files["package.json"] == ABSENT
    (root / "package.json").write_text("{}")
    again = examine(root, str(tools), "npx", "-y", "@acme/tickets@1.0.0")
    assert changed(program, again) == ["package.json"]


@pytest.mark.spec("TR-P2.3")
def test_contents_count_never_size_and_time(root: Path, tools: Path) -> None:
    file = plant(root / "run.sh", "one\n")
    program = examine(root, str(tools), "./run.sh")
    before = file.stat()
    file.write_text("two\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert changed(program, examine(root, str(tools), "./run.sh")) == ["run.sh"]
    file.write_text("one\n")
    os.utime(file, (1, 1))
    assert changed(program, examine(root, str(tools), "./run.sh")) == []


@pytest.mark.spec("TR-P2.3")
def test_more_than_anybody_could_read_cannot_be_approved(
    root: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "MAX_FILES", 8)
    for at in range(5):
        plant(root / f"m{at}.py")
    assert examine(root, str(tools), "python3", "m0.py").refusal is not None
    monkeypatch.undo()
    assert examine(root, str(tools), "python3", "m0.py").refusal is None
    monkeypatch.setattr(programs, "MAX_BYTES", 100)
    plant(root / "big.py", "#" * 101)
    refusal = examine(root, str(tools), "python3", "m0.py").refusal
    assert refusal is not None
    assert "cannot have been reviewed" in refusal


@pytest.mark.spec("TR-P3.2")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bash", "-c", "echo hi"], True),
        (["python3", "-m", "json.tool"], True),
        (["make", "serve"], True),
        (["uvx", "thing==1.0"], True),
        (["bash", "run.sh"], False),
        (["./run.sh"], False),
        (["python3", "-m", "served"], False),
    ],
)
def test_a_line_that_names_no_file_says_so(
    root: Path, tools: Path, words: list[str], said: bool
) -> None:
    plant(root / "run.sh")
    plant(root / "served" / "__init__.py")
    assert (ONLY_LINE in examine(root, str(tools), *words).notes) is said


@pytest.mark.spec("TR-P3.2")
@pytest.mark.parametrize(
    ("line", "newest"),
    [
        ("npx -y @acme/tickets", True),
        ("npx -y @acme/tickets@latest", True),
        ("npx -y @acme/tickets@^1.2.3", True),
        ("npx -y @acme/tickets@1.2.3", False),
        ("npx --package=@acme/tickets@1.2.3 tickets", False),
        ("npx -p @acme/tickets -p other@1.0.0 tickets", True),
        ("npx ./local", False),
        ("uvx mcp-server-time==2026.1.1", False),
        ("uvx mcp-server-time@2026.1.1", False),
        ("uvx mcp-server-time", True),
        ("uvx --from thing>=1 tool", True),
        ("uvx --from thing==1 tool", False),
        ("uv tool run thing", True),
        ("uv run serve.py", False),
        ("uv run --directory . serve", False),
        ("pipx run thing", True),
        ("pipx run --spec thing==2.0 thing", False),
        ("pipx install thing", False),
        ("bunx thing", True),
        ("bun x thing@1.0.0", False),
        ("npm exec thing", True),
        ("npm start", False),
        ("docker run -i --rm image", True),
        ("docker run -i --rm image:1.2", True),
        ("docker run -i --rm -e A=b image@sha256:00ff", False),
        ("deno run server.ts", False),
        ("deno run https://host/server.ts", True),
        ("go run ./cmd", False),
        ("python3 -m thing", False),
        ("npx", False),
    ],
)
def test_a_launcher_without_a_fixed_version_is_distinguished(line: str, newest: bool) -> None:
    program, *args = line.split()
    assert downloads_package(program, args) is newest


@pytest.mark.spec("TR-P3.2")
def test_what_a_launcher_downloads_is_said(root: Path, tools: Path) -> None:
    assert DOWNLOADS in examine(root, str(tools), "npx", "-y", "thing").notes
    assert DOWNLOADS not in examine(root, str(tools), "npx", "-y", "thing@1.0.0").notes


@pytest.mark.spec("TR-P4.1a", "TR-P4.1b")
def test_variables_are_part_of_the_line_and_those_that_change_code_come_first(
    root: Path, tools: Path
) -> None:
    env = {
        "ALPHA": "two words",
        "TOKEN": "${SECRET}",
        "PATH": "/evil",
        "LD_PRELOAD": "x.so",
        "DYLD_INSERT_LIBRARIES": "y",
        "PYTHONPATH": "z",
        "NODE_OPTIONS": "-r x",
        "BASH_ENV": "b",
        "GIT_SSH": "g",
        "https_proxy": "p",
    }
    line = examine(root, str(tools), "tool", env=env).line
    names = [word.partition("=")[0] for word in line.split() if "=" in word]
    assert names[-2:] == ["ALPHA", "TOKEN"]
    assert set(names) == set(env)
    assert "${SECRET}" in line
    for name in env:
        other = {**env, name: "other"}
        assert examine(root, str(tools), "tool", env=other).line != line


def test_the_directory_is_part_of_the_line(root: Path) -> None:
    inside = root / "deep"
    lines = {
        command_line("/bin/tool", [], cwd=cwd, root=root, env={})
        for cwd in (root, inside, root.parent)
    }
    assert lines == {"/bin/tool", "/bin/tool   in ./deep", f"/bin/tool   in {root.parent}"}


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("package.json", True),
        ("deep/Package.JSON", True),
        ("Makefile", True),
        (".cargo/config.toml", True),
        ("x/.cargo/config", True),
        ("config", False),
        ("config.toml", False),
        ("node_modules/.bin/tickets", True),
        ("node_modules/x/index.js", False),
        ("pyproject.toml", True),
        ("main.py", False),
        ("", False),
    ],
)
def test_launcher_files_are_known_by_name(name: str, is_one: bool) -> None:
    assert is_launcher_file(name) is is_one
