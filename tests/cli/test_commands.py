"""The other commands: schema, explain, models, new, version, and none at all."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest
from jsonschema import Draft202012Validator

from fast_agent import __version__
from fast_agent.cards.fields import CARD_TYPES, FIELDS_OF
from fast_agent.cli.command_table import COMMANDS
from fast_agent.diagnostics.rulebook import rules

if TYPE_CHECKING:
    from collections.abc import Callable

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


@pytest.mark.spec("OUT-3")
def test_models(run: Run, monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (project / "fastagent.config.yaml").write_text("model_aliases: {mine: openai.gpt-5}")
    told = run("models").out
    assert told == run("models", "list").out
    assert "OpenAI: ready" in told
    assert "Anthropic: set ANTHROPIC_API_KEY" in told
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
        "summarizer.md",
        "tools.py",
    ]
    assert "fast-agent go --card cards --message 'hello'" in done.out
    checked = run("check", "cards")
    assert (checked.code, checked.err) == (0, "no problems\n")
    call = '***CALL_TOOL word_count {"text": "a b c"}'
    assert run("go", "--card", "cards", "--model", "passthrough", "-m", call).out == "3\n"


def test_new_leaves_what_is_there(run: Run) -> None:
    Path("mine").mkdir()
    Path("mine/tools.py").write_text("mine")
    done = run("new", "mine")
    assert (done.code, done.out) == (1, "")
    assert "`mine/tools.py` exists already" in done.err
    assert [path.name for path in Path("mine").iterdir()] == ["tools.py"]
    Path("file").touch()
    assert run("new", "file").code == 1


@pytest.mark.spec("OUT-3")
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


def test_a_full_disk_is_told_in_one_line(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("fast-agent")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [program, "go", "--model", "passthrough", "-m", "hi"],
            cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "error: no space left on device\n")
