"""Whatever is wrong, a user is shown all of it, where it is and what to do; nothing runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ran
    from tests.card_writer import WriteCard

    Run: TypeAlias = Callable[..., Ran]

GO = ("go", "--model", "passthrough", "-m", "hi")
SHOWN = re.compile(
    r"^error\[(FA\d{3})\]: .+\n  --> (\S+?):(\d+):(\d+)\n\d+ \|(.*)\n +\| +\^", re.MULTILINE
)


def wrong(done: Ran, *places: str) -> None:
    """Check that a command failed with these problems, each as `CODE path:line:column`."""
    assert (done.code, done.out) == (1, ""), done.err
    found = [f"{code} {path}:{line}:{column}" for code, path, line, column, _ in
             SHOWN.findall(done.err)]  # fmt: skip
    assert found == list(places), done.err


@pytest.mark.spec("CARDS-2", "CARDS-3", "CARDS-4")
@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("---\nmodle: x\nmax_parallel: two\nuse_history: 'no'\n---\nHi.",
         ["FA101 x.md:2:1", "FA102 x.md:3:15", "FA102 x.md:4:14"]),
        ("---\ntype: agnet\n---\nHi.", ["FA107 x.md:2:7"]),
        ("---\nmodel: slow\nmodel: b\n---\nHi.", ["FA111 x.md:3:1"]),
        ("---\nmodel: a\n", ["FA112 x.md:1:1"]),
        ("+++\nmodel = 'a'\n+++\nHi.", ["FA113 x.md:1:1"]),
        ("---\n- a\n- b\n---\nHi.", ["FA115 x.md:2:1"]),
        ("---\nmodel: [a\n---\nHi.", ["FA110 x.md:3:1"]),
        ("---\ninstruction: a\n---\nHi.", ["FA106 x.md:2:1"]),
        ("---\nschema_version: 9\n---\nHi.", ["FA109 x.md:2:17"]),
        ("---\nname: a/b\n---\nHi.", ["FA108 x.md:2:7"]),
        ("---\nmodel: ${NOT_SET_ANYWHERE}\n---\nHi.", ["FA122 x.md:2:8"]),
        ("---\nname: x\n---\nHi.\n---USER\nHo.", ["FA121 x.md:5:1"]),
        ("---\nrequest_params: {max_tokns: 5}\n---\nHi.", ["FA101 x.md:2:18"]),
    ],
)  # fmt: skip
def test_cards(run: Run, text: str, places: list[str]) -> None:
    Path("x.md").write_text(text)
    wrong(run(*GO, "--card", "x.md"), *places)


def test_a_wrong_option_of_a_model(run: Run) -> None:
    Path("x.md").write_text("---\nmodel: openai.gpt-5?reasonin=low\n---\nHi.")
    done = run("check", "x.md")
    assert done.code == 1
    assert "error[FA503]" in done.err
    assert "x.md:2:8" in done.err


@pytest.mark.spec("FILE-2")
@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_encodings(run: Run, encoding: str) -> None:
    Path("x.md").write_text("---\nname: x\n---\nGröße", encoding=encoding)
    done = run(*GO, "--card", "x.md")
    assert (done.code, done.codes) == (1, ["FA118"])
    assert "UTF-" in done.err
    assert "frontmatter" not in done.err


@pytest.mark.spec("FILE-5")
def test_no_frontmatter(run: Run) -> None:
    Path("x.md").write_text("# Just text\n")
    done = run(*GO, "--card", "x.md")
    assert (done.code, done.out, done.codes) == (1, "", ["FA116"])
    assert "hint: start the file with a line `---`" in done.err


@pytest.mark.spec("CONF-3")
@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("mpc: {}\ndefault_modle: x\n", ["FA303 {f}:1:1", "FA303 {f}:2:1"]),
        ("mcp:\n  servers:\n    a: {comand: x}\n    b: {url: 3}\n    c: {}\n",
         ["FA303 {f}:3:9", "FA304 {f}:4:14", "FA306 {f}:5:5"]),
        ("mcp: [\n", ["FA302 {f}:2:1"]),
        ("default_model: a\ndefault_model: b\n", ["FA302 {f}:2:1"]),
        ("default_model: sonet\n", ["FA501 {f}:1:16"]),
        ("model_aliases: {quick: sonet}\n", ["FA501 {f}:1:24"]),
        ("mcp: {servers: {a__b: {command: x}}}\n", ["FA305 {f}:1:17"]),
        ("default_model: ${NOT_SET_ANYWHERE}\n", ["FA307 {f}:1:16"]),
    ],
)  # fmt: skip
def test_configurations(run: Run, text: str, places: list[str]) -> None:
    Path("fastagent.config.yaml").write_text(text)
    expected = [place.format(f="fastagent.config.yaml") for place in places]
    wrong(run(*GO), *expected)


def test_a_variable_for_the_configuration(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL_TOOL__TIMEOUT_SECONDZ", "3")
    monkeypatch.setenv("MCP__SERVERS__X__COMAND", "x")
    done = run(*GO)
    assert (done.code, done.out) == (1, "")
    assert "`MCP__SERVERS__X__COMAND`" in done.err


@pytest.mark.spec("MODEL-2", "MODEL-3")
@pytest.mark.parametrize(
    ("model", "code", "hint"),
    [
        ("passthrogh", "FA501", "did you mean `passthrough`?"),
        ("sonet", "FA501", "did you mean `sonnet`?"),
        ("opnai.gpt-5", "FA501", "did you mean `openai.gpt-5`?"),
        ("openai.gpt-5?reasonin=low", "FA503", "reasoning"),
        ("openai.gpt-5?reasoning=lots", "FA504", "low"),
        ("openai.gpt-5", "FA506", "`OPENAI_API_KEY`, or `openai.api_key`"),
        ("generic.", "FA502", "`generic.` and the model's name"),
        ("slow?seconds=-1", "FA504", "0"),
        ("scripted?file=nope.yaml", "FA509", ""),
        ("playback?file=nope.json", "FA509", "nope.json"),
    ],
)
def test_models(run: Run, model: str, code: str, hint: str) -> None:
    done = run("go", "--model", model, "-m", "hi")
    assert (done.code, done.out, done.codes) == (1, "", [code]), done.err
    assert hint in done.err


@pytest.mark.spec("HIST-4")
@pytest.mark.parametrize(
    ("name", "text", "places"),
    [
        ("h.md", "---USER\nhi\n---RESOURCE\n{broken\n---SYSTEM\nlate\n",
         ["FA402 h.md:4:2", "FA406 h.md:5:1"]),
        ("h.json", '{"messages": [{"role": "usr", "content": []},\n{"role": "user"}]}',
         ["FA404 h.json:1:24"]),
        ("h.json", """{"messages": [\n{"role": "user", "content": [{"type": "text"}]},
{"role": "assistant", "content": [], "tool_calls": 3}]}""",
         ["FA404 h.json:2:30", "FA404 h.json:3:52"]),
        ("h.json", '{"messages": [,]}', ["FA402 h.json:1:15"]),
        ("h.json", '{"messages": [],\n"messages": []}', ["FA403 h.json:2:1"]),
    ],
)  # fmt: skip
def test_histories(run: Run, name: str, text: str, places: list[str]) -> None:
    Path(name).write_text(text)
    wrong(run(*GO, "--prompt-file", name), *places)


@pytest.mark.spec("CARD-15", "CARD-49", "HIST-4")
def test_a_history_of_a_card_is_shown_in_the_file_that_is_wrong(
    run: Run, write_card: WriteCard
) -> None:
    write_card("cards/x.md", "messages: [h.json, nope.md]")
    Path("cards/h.json").write_text('{"messages": [\n  {"role": "usr", "content": []}]}')
    done = run(*GO, "--card", "cards/x.md")
    wrong(done, "FA404 cards/h.json:2:12", "FA401 cards/x.md:2:20")


@pytest.mark.spec("TOOL-3")
@pytest.mark.parametrize(
    ("code", "field", "expected"),
    [
        (None, "function_tools: [tools.py:f]", "FA602 x.md:2:18"),
        ("def g(): ...", "function_tools: [tools.py:f]", "FA606 x.md:2:18"),
        ("f = 3", "function_tools: [tools.py:f]", "FA607 x.md:2:18"),
        ("def f(:\n", "function_tools: [tools.py:f]", "FA604 tools.py:1:7"),
        ("1 / 0\ndef f(): ...", "function_tools: [tools.py:f]", "FA605 tools.py:1:1"),
        ("import nope\ndef f(): ...", "function_tools: [tools.py:f]", "FA605 tools.py:1:1"),
        ("def f(*args): ...", "function_tools: [tools.py:f]", "FA608 x.md:2:18"),
        ("def f(ctx): ...", "tool_hooks: [tools.py:f]", "FA609 x.md:2:14"),
        ("", "function_tools: [tools.py]", "FA103 x.md:2:18"),
        ("", "function_tools: [../tools.py:f]", "FA603 x.md:2:18"),
    ],
)
def test_functions(
    run: Run, write_card: WriteCard, code: str | None, field: str, expected: str
) -> None:
    write_card("x.md", field)
    if code is not None:
        Path("tools.py").write_text(code)
    done = run(*GO, "--card", "x.md")
    assert (done.code, done.out) == (1, ""), done.err
    found = re.findall(r"error\[(FA\d{3})\]: .+\n  --> (\S+)", done.err)
    assert [" ".join(one) for one in found] == [expected], done.err


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"type": "objec"}', "FA901 s.json:1:10"),
        ('{"type": "object", "properties": {"a": {"type": "numbr"}}}', "FA901 s.json:1:49"),
        ('{"type": "object",}', "FA901 s.json:1:18"),
        ("[]", "FA901 s.json:1:1"),
        ('{"minimum": "low"}', "FA901 s.json:1:13"),
    ],
)
def test_schemas(run: Run, text: str, place: str) -> None:
    Path("s.json").write_text(text)
    wrong(run(*GO, "--json-schema", "s.json"), place)


def test_a_schema_there_is_not(run: Run) -> None:
    done = run(*GO, "--json-schema", "nope.json")
    assert (done.code, done.out, done.codes) == (1, "", ["FA901"])


@pytest.mark.spec("CARDS-2")
def test_everything_that_is_wrong_is_reported_in_one_go(run: Run, write_card: WriteCard) -> None:
    write_card("x.md", "modle: y", "function_tools: [nope.py:f]", "messages: nope.md")
    Path("fastagent.config.yaml").write_text("mpc: {}\n")
    Path("s.json").write_text('{"type": "objec"}')
    Path("h.json").write_text(json.dumps({"messages": [{"role": "usr", "content": []}]}))
    done = run("go", "--card", "x.md", "--model", "passthrough", "--json-schema", "s.json",
               "--prompt-file", "h.json", "--results", "nope/out.json")  # fmt: skip
    assert (done.code, done.out) == (1, "")
    assert sorted(done.codes) == ["FA101", "FA303", "FA401", "FA404", "FA602", "FA901"]
    assert "there is no directory" in done.err
    assert done.err.count("FA303") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("go",),
        ("go", "-m", "  "),
        ("go", "--message"),
        ("go", "-m", "hi", "--format", "yaml"),
        ("go", "-m", "hi", "stray"),
        ("check", "--format"),
        ("models", "pull"),
        ("models", "nope"),
        ("nope",),
    ],
)
def test_wrong_usage_is_status_2(run: Run, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Error: " in done.err


def test_wrong_usage_does_not_hide_what_else_is_wrong(run: Run, write_card: WriteCard) -> None:
    write_card("x.md", "modle: y")
    done = run("go", "--card", "x.md", "--model", "passthrough", "-m", "  ")
    assert (done.code, done.out, done.codes) == (1, "", ["FA101"])


@pytest.mark.parametrize("path", [".", "nope/deeper", "x" * 300 + ".md"])
def test_paths_that_cannot_be(run: Run, path: str) -> None:
    for option in ("--card", "--prompt-file", "--config-path", "--json-schema", "--results"):
        done = run(*GO, option, path)
        assert done.code in {0, 1, 2}
        if done.code:
            assert done.err
            assert done.out == ""


def test_control_characters_do_not_reach_the_terminal(run: Run) -> None:
    Path("x.md").write_text('---\n"\\e[31mmodel": x\n---\nHi.')
    done = run(*GO, "--card", "x.md", "--agent", "\x1b[31mred")
    assert "\x1b" not in done.err
    again = run(*GO, "--agent", "\x1b[31mred")
    assert again.code == 1
    assert "\x1b" not in again.err


@pytest.mark.parametrize("command", [("go", "-m", "hi"), ("check",), ("models",)])
def test_a_directory_that_is_gone(run: Run, project: Path, command: tuple[str, ...]) -> None:
    project.rmdir()
    done = run(*command)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: the working directory no longer exists\nhint: change to one that does\n"
    )


def test_interrupting_a_run_ends_it_quietly(project: Path) -> None:
    import signal
    import subprocess
    import sys
    import time

    command = [Path(sys.executable).with_name("fast-agent"), "go", "--model", "passthrough"]
    call = '***CALL_TOOL execute {"command": "touch started; sleep 600"}'
    process = subprocess.Popen(
        [*command, "--shell", "-m", call], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not (project / "started").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert out == ""
    assert "Traceback" not in err
