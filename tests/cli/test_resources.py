"""`fast-agent resources`: list, read, search, complete, check, and the arguments of serve."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from fast_agent.cli.resource_options import ROOTS, SERVE, read_plainly, roots_of
from fast_agent.resources.roots import ResourceRoots

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ran

    from fast_agent.text.json_value import JsonValue

    Run: TypeAlias = Callable[..., Ran]


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def skills(project: Path) -> Path:
    root = project / "skills"
    write(
        root / "refunds/SKILL.md",
        "---\nname: refunds\ndescription: Decides on refunds.\n---\n# Refunds\n",
    )
    write(root / "refunds/logo.png", bytes(range(256)))
    write(root / "tables/SKILL.md", "---\nname: tables\ndescription: Reads tables.\n---\nRead.\n")
    return root


@pytest.fixture
def guide(project: Path) -> Path:
    root = project / "guide"
    write(root / "setup/linux.md", "# Linux\n\n## Packages\n\nInstall the zebra package.\n")
    write(root / "setup/mac.md", "# Mac\n\nOpen the window.\n")
    return root


def test_list(run: Run, skills: Path, guide: Path) -> None:
    ran = run("resources", "list", "--skills", skills, "--guide", guide, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    uris = [one["uri"] for one in ran.json["resources"]]
    assert "skill://refunds/SKILL.md" in uris
    assert "guide://help" in uris
    assert uris == sorted(uris)
    templates = [one["uriTemplate"] for one in ran.json["resourceTemplates"]]
    assert "guide://document/{context}/{+docId}" in templates
    lines = run("resources", "list", "--skills", skills).out.splitlines()
    assert "skill://tables/SKILL.md  Reads tables." in lines
    assert "templates:" in lines


@pytest.mark.spec("T-15")
def test_untrusted_text_cannot_steer_a_terminal(run: Run, project: Path) -> None:
    head = '---\nname: evil\ndescription: "a\\x1b[2Jb\\u202ec"\n---\n'
    write(project / "s/evil/SKILL.md", head)
    for command in (["list"], ["list", "--format", "json"], ["search", "evil"], ["check"]):
        ran = run("resources", *command, "--skills", "s")
        assert "\x1b" not in ran.out + ran.err
        assert "\u202e" not in ran.out + ran.err


def test_read_writes_the_bytes(run: Run, spawn: Run, skills: Path, project: Path) -> None:
    program = Path(sys.executable).with_name("fast-agent")
    command = [program, "resources", "read", "skill://refunds/logo.png", "--skills", skills]
    assert subprocess.run(command, capture_output=True, check=True).stdout == bytes(range(256))
    ran = run("resources", "read", "skill://tables/SKILL.md", "--skills", skills)
    assert ran.out == (skills / "tables/SKILL.md").read_text("utf-8")
    ran = run(
        "resources", "read", "skill://tables/SKILL.md", "--skills", skills, "--format", "json"
    )
    (content,) = ran.json["contents"]
    assert (content["uri"], content["mimeType"]) == ("skill://tables/SKILL.md", "text/markdown")


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("skill://tabels/SKILL.md", "there is no"),
        ("skill://tables/../../etc/passwd", "is not a resource URI"),
        ("file://etc/passwd", "there is no"),
        ("tables", "is not a resource URI"),
    ],
)
def test_read_of_nothing(run: Run, skills: Path, uri: str, message: str) -> None:
    ran = run("resources", "read", uri, "--skills", skills)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: ")
    assert message in ran.err
    assert str(skills) not in ran.err


def test_search(run: Run, guide: Path) -> None:
    ran = run("resources", "search", "zebra", "package", "--guide", guide, "--format", "json")
    (hit,) = ran.json["hits"]
    assert hit["uri"] == "guide://document/setup/linux.md"
    assert hit["heading"].endswith("Packages")
    assert hit["tokens"] > 0
    ran = run("resources", "search", "zebra", "--guide", guide)
    assert ran.out.startswith("guide://document/setup/linux.md  § ")
    nothing = run("resources", "search", "giraffe", "--guide", guide)
    assert (nothing.code, nothing.out) == (1, "")


def test_complete(run: Run, guide: Path) -> None:
    template = "guide://document/{context}/{+docId}"
    ran = run("resources", "complete", template, "context", "se", "--guide", guide)
    assert ran.out == "setup\n"
    given = ("--given", "context=setup")
    ran = run("resources", "complete", template, "docId", "li", "--guide", guide, *given)
    assert ran.out == "linux.md\n"
    form = ("--format", "json")
    ran = run("resources", "complete", template, "docId", "--guide", guide, *given, *form)
    assert ran.json == {"values": ["linux.md", "mac.md"], "total": 2, "hasMore": False}
    wrong = run("resources", "complete", template, "docId", "--guide", guide, "--given", "x")
    assert (wrong.code, "NAME=VALUE" in wrong.err) == (2, True)
    wrong = run("resources", "complete", "guide://no/{x}", "x", "--guide", guide)
    assert (wrong.code, "there is no template" in wrong.err) == (1, True)


def test_check_of_skills(run: Run, skills: Path) -> None:
    ran = run("resources", "check", skills / "tables")
    assert (ran.code, ran.out) == (0, "")
    write(skills / "Bad/SKILL.md", "---\nname: Bad Name\ndescription: x\n---\n")
    write(skills / "broken/SKILL.md", "---\nname: [\n---\n")
    ran = run("resources", "check", "--skills", skills)
    assert ran.code == 1
    assert f"{skills}/Bad/SKILL.md:2" in ran.err
    assert f"{skills}/broken/SKILL.md:" in ran.err
    assert "hint: " in ran.err
    found = run("resources", "check", skills, "--format", "json").json["diagnostics"]
    places = {(one["path"], one["start"]["line"]) for one in found if one["severity"] == "error"}
    assert (f"{skills}/Bad/SKILL.md", 2) in places
    sarif = run("resources", "check", skills, "--format", "sarif").json
    assert sarif["runs"][0]["results"]


def test_check_of_guides(run: Run, guide: Path) -> None:
    assert run("resources", "check", "--guide", guide).code == 0
    write(
        guide / ".guide.yaml",
        "categories:\n  a:\n    dir: setup\ncollections:\n  c:\n    members: [b]\n",
    )
    ran = run("resources", "check", guide)
    assert ran.code == 1
    assert f"{guide}/.guide.yaml:6" in ran.err
    missing = run("resources", "check", "--guide", "nowhere")
    assert missing.code == 1
    assert "nowhere" in missing.err


def test_the_guide_of_the_configuration(run: Run, spawn: Run, project: Path) -> None:
    write(project / "texts/notes/one.md", "# One of the notes\n")
    write(project / "own/a.md", "# A\n")
    write(project / ".guide.yaml", "categories: { own: {} }\n")

    def uris() -> set[str]:
        listed = run("resources", "list", "--format", "json").json["resources"]
        return {one["uri"] for one in listed if str(one["uri"]).startswith("guide://d")}

    assert uris() == {"guide://document/own/a.md"}
    config = write(project / "fast-agent.yaml", "guide: { docroot: texts }\n")
    assert uris() == {"guide://document/notes/one.md"}
    found = run("resources", "search", "notes")
    assert "guide://document/notes/one.md" in found.out
    one = "guide://document/notes/one.md"
    assert run("resources", "read", one).out == "# One of the notes\n"
    assert spawn("resources", "read", one).out == "# One of the notes\n"
    template = "guide://document/{context}/{+docId}"
    assert run("resources", "complete", template, "context", "no").out == "notes\n"
    request = {"jsonrpc": "2.0", "id": 1, "method": "resources/read"}
    meta: dict[str, JsonValue] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    served = subprocess.run(
        [Path(sys.executable).with_name("fast-agent"), "resources", "serve"],
        input=json.dumps({**request, "params": {"uri": one, "_meta": meta}}) + "\n",
        capture_output=True,
        text=True,
        cwd=project,
        check=True,
    )
    assert json.loads(served.stdout)["result"]["contents"][0]["text"] == "# One of the notes\n"
    assert run("resources", "check").code == 0
    write(project / "texts/notes/broken.md", '---\npriority: "9"\n---\n')
    assert "texts/notes/broken.md" in run("resources", "check").err
    # Naming something leaves the configuration's guide out.
    only = run("resources", "list", "--internal", "--format", "json").json["resources"]
    assert all(str(entry["uri"]).startswith("internal://") for entry in only)
    write(config, "guide: { docroot: nowhere }\n")
    wrong = run("resources", "list")
    assert wrong.code == 1
    assert "`nowhere`" in wrong.err


def test_what_belongs_to_a_directory(run: Run, project: Path, skills: Path) -> None:
    (project / ".claude").mkdir()
    skills.rename(project / ".claude/skills")
    uris = [one["uri"] for one in run("resources", "list", "--format", "json").json["resources"]]
    assert "skill://tables/SKILL.md" in uris
    assert any(uri.startswith("internal://") for uri in uris)
    assert not any(uri.startswith("guide://") for uri in uris)
    write(project / ".guide.yaml", "categories:\n  notes:\n    dir: notes\n")
    write(project / "notes/a.md", "# A\n")
    uris = [one["uri"] for one in run("resources", "list", "--format", "json").json["resources"]]
    assert "guide://document/notes/a.md" in uris


PLAIN: list[list[str]] = [
    [],
    ["--skills", "a"],
    ["--skills=a", "--skills", "b", "--internal"],
    ["--guide", "g", "--list-files", "--no-load-skill", "--no-embed-catalog"],
    ["--name-policy", "lenient", "--transport", "stdio"],
    ["--name-policy=strict", "--host", "h", "--port=5", "--token-file", "t"],
    ["--skills", "--internal"],
    ["--guide="],
]


@pytest.mark.parametrize("arguments", PLAIN)
def test_both_ways_to_read_arguments_agree(arguments: list[str]) -> None:
    from fast_agent.cli.commands.resources import serve

    names = ["-h", "--help"]  # click keeps them with the command
    with serve.make_context("serve", list(arguments), help_option_names=names) as context:
        assert read_plainly(SERVE, arguments) == context.params


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--skils", "x"],
        ["--guide"],
        ["x"],
        ["--internal=yes"],
        ["--transport", "carrier-pigeon"],
        ["--name-policy", "STRICT"],
        ["-h"],
    ],
)
def test_what_is_not_plain_is_left_to_the_full_reader(run: Run, arguments: list[str]) -> None:
    assert read_plainly(SERVE, arguments) is None
    ran = run("resources", "serve", *arguments)
    assert ran.code == (0 if arguments[0] in {"--help", "-h"} else 2)
    assert ran.out.startswith("Usage:") or "rror: " in ran.err


def test_roots_of_values() -> None:
    values = read_plainly(SERVE, ["--skills", "a", "--no-load-skill", "--name-policy", "strict"])
    assert values is not None
    expected = ResourceRoots(("a",), name_policy="strict", load_skill=False)
    assert roots_of(values) == expected
    values = read_plainly(ROOTS, ["--internal"])
    assert values is not None
    assert roots_of(values) == ResourceRoots(internal=True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--port", "99999"], 2, "`--port 99999` is not a number from 0 to 65535"),
        (["--port", "x"], 2, "`--port x` is not a number"),
        (["--host", "0.0.0.0"], 1, "accepts connections from other machines"),
        (["--token-file", "none"], 1, "the token file `none` cannot be read"),
        (["--guide", "none"], 1, "none"),
    ],
)
def test_wrong_settings_of_http(run: Run, arguments: list[str], code: int, message: str) -> None:
    ran = run("resources", "serve", "--internal", "--transport", "http", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--token-file", "t"),
        ("--allow-host", "a"),
        ("--allow-origin", "https://a"),
        ("--trusted-proxy", "10.0.0.1"),
    ],
)
def test_options_of_http_are_refused_over_stdio(run: Run, option: str, value: str) -> None:
    ran = run("resources", "serve", "--internal", option, value)
    assert (ran.code, ran.out) == (2, "")
    assert f"{option} applies only to --transport http" in ran.err


def test_serve_over_stdio(spawn: Run, skills: Path) -> None:
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    asked = "".join(json.dumps(line) + "\n" for line in lines)
    ran = spawn("resources", "serve", "--skills", skills, "--no-load-skill", stdin=asked)
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 0
    assert "tools" not in answers[0]["result"]["capabilities"]
    wrong = spawn("resources", "serve", "--guide", "none", stdin=asked)
    assert (wrong.code, wrong.out) == (1, "")
    assert "error" in wrong.err


@pytest.mark.spec("SKILLS-HERE-1")
def test_skills_of_the_user_and_of_directories_above_are_offered(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = "---\nname: {0}\ndescription: Does {0}.\n---\nDo it.\n"
    home = tmp_path / "home"
    write(home / ".agents/skills/mine/SKILL.md", head.format("mine"))
    write(project / ".git/HEAD", "")
    write(project / ".claude/skills/above/SKILL.md", head.format("above"))
    write(project / "sub/.claude/skills/near/SKILL.md", head.format("near"))
    write(project / ".claude/skills/mine/SKILL.md", head.format("mine"))
    write(tmp_path / ".claude/skills/outside/SKILL.md", head.format("outside"))
    monkeypatch.chdir(project / "sub")
    found = run("resources", "list").out
    for name in ("mine", "above", "near"):
        assert f"skill://{name}/SKILL.md" in found
    assert "outside" not in found
    # A skill of a home cannot fail the check of a project.
    write(home / ".agents/skills/broken/SKILL.md", "---\nname: [\n---\n")
    assert run("resources", "check").code == 0
    write(project / ".claude/skills/worse/SKILL.md", "---\nname: [\n---\n")
    assert run("resources", "check").code == 1
