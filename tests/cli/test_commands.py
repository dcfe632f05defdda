"""The other commands: schema, explain, models, new, version, and none at all."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click
import pytest
from jsonschema import Draft202012Validator

from fast_agent import __version__
from fast_agent.cards.fields import CARD_TYPES, FIELDS_OF
from fast_agent.cli.command_table import COMMANDS, cli
from fast_agent.cli.commands.new import SETS
from fast_agent.diagnostics.rulebook import rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Ran

    Run: TypeAlias = Callable[..., Ran]


@pytest.mark.spec("CHECK-4")
def test_schema(run: Run) -> None:
    whole = run("schema").json
    Draft202012Validator.check_schema(whole)
    assert whole["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for kind in CARD_TYPES:
        schema = run("schema", kind).json
        assert set(schema["properties"]) == set(FIELDS_OF[kind])
    assert run("schema", "Evaluator-Optimizer").out == run("schema", "evaluator_optimizer").out
    assert "mcp" in run("schema", "config").json["properties"]
    wrong = run("schema", "agnet")
    assert (wrong.code, wrong.out) == (2, "")
    assert "did you mean `agent`?" in wrong.err


@pytest.mark.spec("CHECK-5")
def test_explain(run: Run) -> None:
    page = run("explain", "FA101")
    assert page.code == 0
    assert page.out.startswith("# FA101 unknown-field\n")
    assert run("explain", "unknown-field").out == page.out
    listed = run("explain").out.splitlines()
    assert [line.split()[0] for line in listed] == list(rules())
    wrong = run("explain", "FA1O1")
    assert (wrong.code, wrong.out) == (1, "")
    assert "FA1O1" in wrong.err


def _leaves(group: click.Group, *words: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from _leaves(found, *words, name)
        else:
            yield " ".join((*words, name)), found


@pytest.mark.spec("OUT-3")
def test_every_command_that_prints_facts_takes_format_json() -> None:
    facts = {"check", "diff", "graph", "list", "plan", "search", "show", "tail", "test", "version"}
    found = {name: one for name, one in _leaves(cli) if name.split()[-1] in facts}
    assert len(found) > 12
    for name, command in found.items():
        formats = [one for one in command.params if "--format" in one.opts]
        assert formats, name
        assert "json" in getattr(formats[0].type, "choices", ()), name


@pytest.mark.spec("OUT-3")
def test_models(run: Run, monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    monkeypatch.setattr("fast_agent.models.check._INSTALLED", set[str]())
    monkeypatch.setattr("fast_agent.models.check.find_spec", {"openai": 1, "pydantic_ai": 1}.get)
    (project / "fastagent.config.yaml").write_text(
        "model_aliases: {mine: openai.gpt-5}\n"
        "endpoints: {lab: {base_url: 'https://me:password@lab.example/v1?key=k'}}\n"
    )
    reported = run("models").out
    assert reported == run("models", "list").out
    assert "OpenAI: ready" in reported
    fetched = "fetch it with `fast-agent models pull smollm2`"
    assert f"{fetched}; run `pip install 'fast-agent[local]'`\n" in reported
    assert "Anthropic: set `ANTHROPIC_API_KEY`, or `anthropic.api_key` in" in reported
    assert "; run `pip install 'fast-agent[anthropic]'`\n" in reported
    assert "Azure OpenAI: set `AZURE_OPENAI_ENDPOINT`, or" in reported
    assert "Ollama: no key needed, at http://localhost:11434/v1\n" in reported
    assert "lab            an endpoint of the configuration: no key needed" in reported
    assert "at https://lab.example/v1\n" in reported
    facts = run("models", "list", "--format", "json").json
    assert facts["aliases"]["mine"] == "openai.gpt-5"
    keys = {provider["name"]: provider["key"] for provider in facts["providers"]}
    assert keys["openai"] is True
    assert keys["anthropic"] is False
    assert "passthrough" in facts["offline"]


def test_pulling_and_removing_weights(run: Run, project: Path) -> None:
    weights = project / "tiny.gguf"
    weights.write_bytes(b"GGUF" + bytes(64))
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    wrong = run("models", "pull", weights, "--sha256", "0" * 64)
    assert (wrong.code, wrong.out) == (1, "")
    assert digest[:8] in wrong.err
    done = run("models", "pull", weights, "--sha256", digest, "--name", "mine")
    assert done.code == 0, done.err
    local = run("models", "list", "--format", "json").json["local"]
    assert {one["name"]: one["present"] for one in local}["mine"] is True
    assert run("models", "pull", weights, "--name", "mine", "--quiet").out == ""
    removed = run("models", "remove", "mine")
    assert (removed.code, removed.out) == (0, "removed mine (0 MiB)\n")
    gone = run("models", "remove", "mine")
    assert (gone.code, gone.out) == (1, "")
    assert "mine" in gone.err


@pytest.mark.parametrize("source", ["nope.gguf", "smolm2", "http://127.0.0.1:9/x.gguf"])
def test_weights_there_are_not(run: Run, source: str) -> None:
    done = run("models", "pull", source)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error")
    assert "hint: " in done.err


def test_new_writes_cards_that_are_right_and_run(run: Run) -> None:
    done = run("new")
    assert done.code == 0
    assert sorted(path.name for path in Path("cards").iterdir()) == [
        "assistant.md",
        "card.schema.json",
        "summarizer.md",
        "tools.py",
    ]
    assert "fast-agent go --card cards --message 'hello'" in done.out
    checked = run("check", "cards")
    assert (checked.code, checked.err) == (0, "no problems\n")
    call = '***CALL_TOOL word_count {"text": "a b c"}'
    assert run("go", "--card", "cards", "--model", "passthrough", "-m", call).out == "3\n"


@pytest.mark.spec("NEW-1")
@pytest.mark.parametrize("name", [*SETS])
def test_each_starter_set_is_right_and_runs(run: Run, name: str) -> None:
    done = run("new", "mine", "--set", name)
    assert done.code == 0
    # The small local model was tried on each: only the assistant's answers are of use.
    assert ("wants a model" in done.out) == (name != "assistant")
    checked = run("check", "mine")
    assert (checked.code, checked.err) == (0, "no problems\n")
    for card in Path("mine").glob("*.md"):
        assert card.read_text().split("\n")[1] == (
            "# yaml-language-server: $schema=card.schema.json"
        )
    if name in {"assistant", "researcher", "extractor"}:
        gone = run("go", "--card", "mine", "--model", "passthrough", "-m", "hi")
        assert (gone.code, gone.out) == (0, "hi\n")
    assert run("fmt", "mine", "--check").code == 0
    listed = run("new", "--list").out
    assert f"{name:<12}{SETS[name].about}\n" in listed


@pytest.mark.spec("NEW-2")
def test_new_offers_agents_of_other_tools(run: Run) -> None:
    Path(".claude/agents").mkdir(parents=True)
    assert "fast-agent import .claude/agents" in run("new").out


@pytest.mark.spec("FMT-17")
def test_fmt_orders_fields_and_keeps_the_rest(run: Run) -> None:
    card = Path("a.md")
    card.write_bytes(
        b"---\r\n# for all\r\n\r\n# the model\r\nmodel: sonnet   \r\nname: a\r\n"
        b"# who\r\ntype: agent\r\nskills:\r\n  - b\r\n---\r\nHi  \r\n\r\nyou\r\n\r\n"
    )
    assert run("fmt", "a.md", "--check").code == 1
    done = run("fmt", "a.md")
    assert (done.code, done.out) == (0, "formatted a.md\n")
    assert card.read_text() == (
        "---\n# for all\n\n# who\ntype: agent\nname: a\n# the model\nmodel: sonnet\n"
        "skills:\n  - b\n---\nHi  \n\nyou\n"
    )
    assert run("fmt", "a.md").out == ""
    Path("b.yaml").write_text("instruction: |\n  # no comment\n\n  x\nmodel: sonnet\ntype: agent\n")
    run("fmt", "b.yaml")
    assert Path("b.yaml").read_text() == (
        "type: agent\nmodel: sonnet\ninstruction: |\n  # no comment\n\n  x\n"
    )
    Path("c.md").write_text("---\ntype: agent\ntype: agent\n---\nx\n")
    broken = run("fmt", "c.md")
    assert (broken.code, "stays as it is" in broken.err) == (1, True)
    assert run("fmt", "nowhere.md").codes == ["FA131"]


def test_fmt_reports_what_it_cannot_read_and_formats_the_rest(run: Run) -> None:
    Path("cards").mkdir()
    Path("cards/a.md").write_text("---\nmodel: sonnet\ntype: agent\n---\nx\n")
    Path("cards/b.md").write_text("---\nname: [b\n---\nx\n")
    os.mkfifo("cards/c.yaml")
    done = run("fmt", "cards")
    assert (done.code, done.out) == (1, "formatted cards/a.md\n")
    assert "cards/b.md:" in done.err
    assert "it is a pipe" in done.err
    assert run("fmt", "cards", "--check").code == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run: Run, shell: str) -> None:
    done = run("completion", shell)
    assert (done.code, "_FAST_AGENT_COMPLETE" in done.out) == (0, True)


def test_new_leaves_what_is_there(run: Run) -> None:
    Path("mine").mkdir()
    Path("mine/tools.py").write_text("mine")
    done = run("new", "mine")
    assert (done.code, done.out) == (1, "")
    assert "`mine/tools.py` already exists" in done.err
    assert [path.name for path in Path("mine").iterdir()] == ["tools.py"]
    Path("file").touch()
    assert run("new", "file").code == 1


@pytest.mark.spec("OUT-3")
def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "fast_agent", "explain", "FA101"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "unknown-field" in done.stdout


def test_version(run: Run) -> None:
    assert run("version").out.startswith(f"fast-agent {__version__} (Python 3.")
    assert run("version", "--format", "json").json["fast_agent"] == __version__
    assert run("--version").out == f"{__version__}\n"


def test_an_unknown_command(run: Run) -> None:
    done = run("chekc")
    assert (done.code, done.out) == (2, "")
    assert "there is no command `chekc`; did you mean `check`?" in done.err
    other = run("xyzzy")
    assert "`fast-agent --help` lists the commands" in other.err
    assert "did you mean" in run("go", "--mesage", "hi").err.lower()


def test_help(run: Run, spawn: Run) -> None:
    whole = spawn("--help")
    assert whole.code == 0
    for name, summary in COMMANDS.items():
        assert re.search(rf"^  {name} +{summary.split()[0]}", whole.out, re.MULTILINE)
        own = run(name, "--help")
        assert own.code == 0
        assert own.out.startswith(f"Usage: fast-agent {name}")
    assert run("--help").out == run("-h").out


def test_help_imports_nothing_heavy(spawn: Run) -> None:
    import subprocess
    import sys

    heavy = ("mcp", "pydantic", "pydantic_ai", "httpx2", "anyio", "asyncio", "jsonschema", "rich")
    code = (
        "import sys\nfrom fast_agent.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    for arguments in (["--help"], ["version"], ["check"], ["explain", "FA101"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
        )
        assert done.stderr.splitlines()[-1] == "[]", arguments


def test_one_message_without_cards_loads_no_card_files_and_weighs_no_effects(
    tmp_path: Path,
) -> None:
    rooms = ("cards.load", "mcp.web_page", "trust.card_effects", "trust.config_effects")
    code = (
        "import sys\nfrom fast_agent.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nfinally:\n"
        f"    print([one for one in {rooms!r} if f'fast_agent.{{one}}' in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "go", "--model", "passthrough", "--message", "hi"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "FAST_AGENT_HOME": str(tmp_path)},
    )
    assert done.stdout.splitlines() == ["hi", "[]"]


def test_a_full_disk_is_reported_in_one_line(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("fast-agent")
    (project := tmp_path / "project").mkdir()
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [program, "go", "--model", "passthrough", "-m", "hi"],
            cwd=project, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "error: no space left on device\n")
