"""Hostile text of every source, printed by every command on a real terminal and into a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.terminal import COMMAND, asked_at_terminal, at_terminal
from tests.patience import PATIENCE

from fast_agent.messages.message import Message
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from tests.card_writer import WriteCard
    from tests.cli.terminal import Shown

TRICKS = {
    "clipboard": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "title": "\x1b]0;all is well\x1b\\",
    "clear": "\x1b[2J\x1b[H\x1bc",
    "colour": "\x1b[8mhidden\x1b[0m",
    "one byte": "\x9b2J\x9d52;c;eA==\x9c",
    "overwrite": "bad\rgood\x08\x08\x7f",
    "order": "\u202etxt.exe\u2066",
    "nothing": "pass\u200bword\u200d\ufeff\u2060",
    "smuggled": "a\U000e0041\ufe00\ufe01\U000e0101\u3164",
    "line ends": "one\u2028two\x0bthree\x85",
}
GALLERY = "".join(TRICKS.values())
OWN_COLOUR = re.compile(r"\x1b\[(?:1;3[1-6]|0)m")
HERE = Path(__file__).parent


def is_safe(data: bytes) -> bool:
    """Whether a terminal only moves on and down by what it was sent."""
    text = OWN_COLOUR.sub("", data.decode("utf-8"))
    return not [
        one
        for one in text
        if one not in "\n\t"
        and (
            unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
            or one in "\ufe00\ufe01\u3164\U000e0101"
        )
    ]


def check(shown: Shown, *expected: str) -> None:
    """Nothing on either terminal is obeyed, and the text was there: its escapes are shown."""
    assert is_safe(shown.out), shown.out
    assert is_safe(shown.err), shown.err
    seen = (shown.out + shown.err).decode()
    for text in expected or ("<U+001B>]52;c;", "<U+202E>", "<U+009B>"):
        assert text in seen, seen


def in_yaml(text: str) -> str:
    return '"' + "".join(f"\\U{ord(one):08X}" for one in text) + '"'


def scripted(project: Path, *steps: dict[str, object]) -> str:
    text = json.dumps({"steps": steps}, ensure_ascii=False)
    # JSON may hold these as they are; YAML may not.
    hidden = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)} | {0xFEFF: "\\ufeff"}
    (project / "script.yaml").write_text(text.translate(hidden))
    return "scripted?file=script.yaml"


@pytest.mark.spec("TR-T1.1")
@pytest.mark.parametrize("trick", TRICKS)
def test_an_answer(project: Path, trick: str) -> None:
    shown = at_terminal("go", "--model", "passthrough", "-m", "-", stdin=TRICKS[trick].encode())
    check(shown, "<U+")
    assert shown.code == 0


@pytest.mark.spec("TR-T1.1")
def test_an_answer_in_pieces_cut_inside_of_every_escape(project: Path) -> None:
    model = scripted(project, {"pieces": list(GALLERY)})
    shown = at_terminal("go", "--model", model, "-m", "hi")
    check(shown)
    assert "one<U+2028>two<U+000B>three<U+0085>" in shown.out.decode()


@pytest.mark.spec("TR-T1.1")
def test_what_a_person_reads_is_left_alone(project: Path) -> None:
    words = "naïve 漢字 👩‍👩‍👧 ❤️ 1️⃣ می‌خواهم\tand\nmore"
    shown = at_terminal("go", "--model", "passthrough", "-m", words)
    assert shown.out.decode() == f"{words}\n"


@pytest.mark.spec("TR-T1.2")
@pytest.mark.parametrize("error_terminal", [False, True])
def test_a_pipe_gets_the_bytes_of_an_answer(project: Path, *, error_terminal: bool) -> None:
    shown = at_terminal(
        "go", "--model", "passthrough", "-m", "-", out=False, err=error_terminal,
        stdin=GALLERY.encode(),
    )  # fmt: skip
    assert shown.out.decode() == f"{GALLERY}\n"


def test_each_stream_is_judged_by_itself(project: Path, write_card: WriteCard) -> None:
    (project / "f.py").write_text(f"def shout() -> str:\n    print({GALLERY!r})\n    return 'x'\n")
    write_card("ann.md", "function_tools: [f.py:shout]")
    command = ("go", "--card", "ann.md", "--model", "passthrough", "-m", "***CALL_TOOL shout")
    check(at_terminal(*command))
    check(at_terminal(*command, out=False))
    assert GALLERY.encode() in at_terminal(*command, err=False).err


@pytest.mark.spec("TR-T1.1")
def test_tools_that_answer_fail_and_write(project: Path, write_card: WriteCard) -> None:
    (project / "f.py").write_text(
        f"def fail() -> str:\n    raise RuntimeError({GALLERY!r})\n"
        f"def give() -> str:\n    return {GALLERY!r}\n"
    )
    write_card("ann.md", "function_tools: [f.py:fail, f.py:give]")
    command = ("go", "--card", "ann.md", "--model", "passthrough", "-m")
    for tool in ("fail", "give"):
        check(at_terminal(*command, f"***CALL_TOOL {tool}"))
    arguments = json.dumps({TRICKS["order"]: TRICKS["one byte"]}, ensure_ascii=False)
    check(at_terminal(*command, f"***CALL_TOOL give {arguments}"), "<U+202E>", "<U+009B>")


@pytest.mark.spec("TR-T1.1")
@pytest.mark.parametrize("log", ["", "debug"])
def test_output_of_a_shell(project: Path, log: str) -> None:
    (project / "said").write_text(GALLERY)
    call = "***CALL_TOOL execute " + json.dumps({"command": "cat said; cat said >&2; exit 3"})
    model = ("--model", "passthrough", "--shell")
    check(at_terminal("go", *model, "-m", call, environ={"FAST_AGENT_LOG": log}))


@pytest.mark.spec("TR-T1.1")
@pytest.mark.parametrize("log", ["", "debug"])
def test_a_server(project: Path, log: str) -> None:
    server = f"{sys.executable} {HERE / 'rude_server.py'}"
    for tool in ("give", "fail", "log"):
        shown = at_terminal(
            "go", "--model", "passthrough", "--stdio", server, "-m",
            f"***CALL_TOOL rude-server__{tool}",
            stdin=b"", environ={"FAST_AGENT_LOG": log, "RUDE": GALLERY},
        )  # fmt: skip
        check(shown, "<U+001B>" if tool != "log" else "")
    gone = at_terminal(
        "go", "--model", "passthrough", "--stdio", f"{server} leave", "-m", "hi",
        environ={"FAST_AGENT_LOG": log, "RUDE": GALLERY},
    )  # fmt: skip
    check(gone, "")
    assert gone.code == 1


@pytest.mark.spec("TR-T1.1")
def test_sessions(project: Path, tmp_path: Path) -> None:
    session = at_terminal("go", "--session", "--model", "passthrough", "-m", GALLERY)
    check(session)
    (found,) = SessionStore(tmp_path / "home").list()
    check(at_terminal("session", "list"), "<U+001B>]52;c;")
    for command in ("show", "export"):
        check(at_terminal("session", command, found.id), "<U+001B>]52;c;")
        check(at_terminal("session", command, found.id, "--format", "json"), "")
    out = at_terminal("session", "export", found.id, out=False).out.decode()
    assert TRICKS["clipboard"] in out


@pytest.mark.spec("TR-T1.1")
def test_resources(project: Path) -> None:
    skill = project / "skills/x"
    skill.mkdir(parents=True)
    text = GALLERY.replace("\x85", "").replace("\u2028", "").replace("\x0b", "")
    head = "---\nname: x\ndescription: Rude words.\n---\n# Heading\n"
    (skill / "SKILL.md").write_text(f"{head}{text} findable", newline="")
    (skill / "picture.png").write_bytes(bytes(range(256)))
    roots = ("--skills", "skills", "--list-files")
    check(at_terminal("resources", "read", "skill://x/SKILL.md", *roots))
    check(at_terminal("resources", "read", "skill://x/picture.png", *roots), "<U+001B>")
    piped = at_terminal("resources", "read", "skill://x/picture.png", *roots, out=False)
    assert piped.out == bytes(range(256))
    check(at_terminal("resources", "list", *roots), "")
    check(at_terminal("resources", "search", "findable", *roots), "<U+")
    check(at_terminal("resources", "read", f"skill://x/{GALLERY}", *roots), "<U+001B>")
    check(at_terminal("resources", "check", "skills"), "")
    for command in (("list",), ("search", "findable"), ("read", "skill://x/SKILL.md")):
        check(at_terminal("resources", *command, *roots, "--format", "json"), "")


@pytest.mark.spec("TR-T1.1")
def test_commands_that_read_cards(project: Path) -> None:
    quoted = in_yaml(GALLERY)
    (project / "ann.yaml").write_text(
        f"name: ann\nmodel: passthrough\ndescription: {quoted}\ninstruction: {quoted}\n"
        f"servers: [{quoted}]\nagents: [{quoted}]\n"
    )
    (project / "bob.yaml").write_text(
        f"name: {quoted}\n{in_yaml(TRICKS['order'])}: 1\nmodel: {quoted}\n"
    )
    for command in (
        ("check", "ann.yaml"),
        ("check", "bob.yaml"),
        ("graph", "ann.yaml"),
        ("go", "--card", "ann.yaml", "-m", "hi"),
        ("serve", "--card", "ann.yaml", "--transport", "stdio"),
        ("acp", "--card", "ann.yaml"),
        ("go", "--card", "bob.yaml", "--dump", "out"),
        ("go", "--card", GALLERY, "-m", "hi"),
        ("go", "--model", GALLERY, "-m", "hi"),
        ("check", GALLERY),
    ):
        check(at_terminal(*command), "<U+")
    for output in ("json", "sarif"):
        check(at_terminal("check", "ann.yaml", "--format", output), "")


@pytest.mark.spec("TR-T1.1")
@pytest.mark.parametrize("output", ["mermaid", "svg", "table", "json"])
def test_graphs(project: Path, output: str) -> None:
    (project / "ann.yaml").write_text(
        f"model: passthrough\ninstruction: hi\ndescription: {in_yaml(GALLERY)}\n"
    )
    check(at_terminal("graph", "ann.yaml", "--format", output), "ann")


@pytest.mark.spec("TR-T1.1")
def test_models_tests_rules_and_wrong_words(project: Path) -> None:
    quoted = in_yaml(GALLERY)
    (project / "fastagent.config.yaml").write_text(f"model_aliases:\n  rude: {quoted}\n")
    check(at_terminal("models", "list"), "")
    check(at_terminal("models", "pull", GALLERY), "<U+")
    check(at_terminal("models", "remove", GALLERY), "<U+")
    (project / "a.test.yaml").write_text(
        f"cards: {quoted}\ncases:\n- name: {quoted}\n  messages: hi\n"
    )
    check(at_terminal("test"), "<U+")
    check(at_terminal("maker", "plan", GALLERY, "-m", "hi"), "<U+")
    for command in ("explain", "schema", "session", "trust", GALLERY):
        check(at_terminal(command, GALLERY), "<U+")
    check(at_terminal("session", "show", GALLERY), "<U+")
    check(at_terminal("trust", "--list"), "")


@pytest.mark.spec("TR-T1.1")
def test_a_traceback(project: Path) -> None:
    (project / "f.py").write_text(f"def fail() -> str:\n    raise RuntimeError({GALLERY!r})\n")
    (project / "ann.md").write_text("---\nfunction_tools: [f.py:fail]\n---\nHi.\n")
    shown = at_terminal(
        "go", "--card", "ann.md", "--model", "passthrough", "-m", "***CALL_TOOL fail",
        environ={"FAST_AGENT_LOG": "debug"},
    )  # fmt: skip
    check(shown)
    assert b"Traceback" in shown.err


@pytest.mark.spec("TR-T1.1", "TR-T1.3")
def test_a_question_and_a_permission(project: Path, write_card: WriteCard) -> None:
    write_card("cards/ann.md", "human_input: true", "shell: true", "confirm: [execute]")
    command = ("go", "--card", "cards/ann.md", "--model", "passthrough", "-m")
    for tool, arguments in (
        ("request_human_input", {"message": GALLERY}),
        ("execute", {"command": f"echo '{GALLERY}'"}),
    ):
        call = f"***CALL_TOOL {tool} {json.dumps(arguments)}"
        shown = asked_at_terminal(*command, call, typed=b"no\n")
        assert shown.code == 0
        text = shown.out.decode().replace("\r\n", "\n")
        assert is_safe(text.encode())
        assert "agent `ann` (cards/ann.md) asks" in text
        assert "cm0gLXJmIH4=" in text


def test_colours_are_those_of_this_program(project: Path) -> None:
    (project / "bad.md").write_text("---\nnmae: x\n---\n\x1b[31mHi.\n")
    assert b"\x1b[1;31m" in at_terminal("check", "bad.md").err
    assert b"\x1b" not in at_terminal("check", "bad.md", environ={"NO_COLOR": "1"}).err


def test_messages_are_unchanged_in_memory(project: Path) -> None:
    """What is shown otherwise is kept as it was."""
    at_terminal("go", "--model", "passthrough", "-m", GALLERY, "--results", "kept.json")
    from fast_agent.messages.file import read_history

    assert read_history(project / "kept.json").messages[-1].text == Message.user(GALLERY).text


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("serve", "--transport", "stdio", "--card", "ann.md"), "an MCP client is expected"),
        (("resources", "serve"), "an MCP client is expected"),
        (("resources", "serve", "--transport", "stdio", "--internal"), "an MCP client is expected"),
        (("acp", "--card", "ann.md", "--no-session"), "an editor is expected"),
        (("go", "--card", "ann.md", "-m", "-"), "read from the terminal until Ctrl-D"),
    ],
)
def test_a_user_at_a_terminal_learns_what_is_expected_there(
    write_card: WriteCard, command: tuple[str, ...], expected: str
) -> None:
    write_card("ann.md", "model: passthrough")
    master, slave = pty.openpty()
    try:
        process = subprocess.Popen(
            [COMMAND, *command], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            assert process.stderr is not None
            assert expected in process.stderr.readline().decode()
            os.write(master, b"hi\n\x04" if command[0] == "go" else b"\x04")
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
            process.wait()
        assert (process.returncode, out, err) == (0, b"hi\n" if command[0] == "go" else b"", b"")
    finally:
        os.close(master)
        os.close(slave)
