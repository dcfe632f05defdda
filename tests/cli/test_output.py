"""The one door to standard output and standard error."""

from __future__ import annotations

import ast
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import fast_agent
from fast_agent.cli.output import GuardedText, Output

SOURCE = Path(fast_agent.__file__).parent
DOORS = {
    "cli/output.py",  # the door itself
    "commands/controller.py",  # flushes both before the program is replaced
    "cli/main.py",  # flushes both before a program with foreign threads ends
    "cli/commands/go.py",  # passes the terminal to the first prompt, which draws it itself
    "acp/server.py",  # standard output carries messages
    "app.py",  # the command of a Python program, which makes its text visible itself
    "trust/question.py",  # asks on standard error, which is guarded
}
WRITERS = {"echo", "secho", "prompt", "confirm", "echo_via_pager", "pause", "print"}


def ways_out(tree: ast.AST) -> list[str]:
    """What in a module writes to a standard stream, or takes hold of one."""
    found: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name("sys"), attr="stdout" | "stderr" | "__stdout__"
                               | "__stderr__"):  # fmt: skip
                found.append(f"sys.{node.attr}")
            case ast.Attribute(value=ast.Name("click"), attr=name) if name in WRITERS:
                found.append(f"click.{name}")
            case ast.ImportFrom(module="click", names=names):
                found += [one.name for one in names if one.name in WRITERS]
            case ast.ImportFrom(module="sys", names=names):
                found += [one.name for one in names if one.name.startswith("std")]
            case ast.Call(func=ast.Name("print")):
                found.append("print")
            case ast.Call(
                func=ast.Attribute(value=ast.Name("os"), attr="write"),
                args=[ast.Constant(1 | 2), *_],
            ):
                found.append("os.write")
            case ast.Call(func=ast.Attribute(attr="write_painted" | "error_stream")):
                found.append("write_painted")
            case _:
                pass
    return found


@pytest.mark.spec("TR-T1.1")
def test_nothing_but_the_door_writes_to_a_standard_stream() -> None:
    painted: list[str] = []
    for file in sorted(SOURCE.rglob("*.py")):
        name = str(file.relative_to(SOURCE))
        found = ways_out(ast.parse(file.read_text("utf-8")))
        if "write_painted" in found:
            painted.append(name)
        if name not in DOORS:
            assert [one for one in found if one != "write_painted"] == [], name
    # What these paint was made visible by the renderer of diagnostics, piece by piece.
    assert painted == [
        "cli/commands/check.py", "cli/commands/diff.py", "cli/commands/resources.py",
        "cli/output.py",
    ]  # fmt: skip


def test_the_scan_finds_every_way() -> None:
    text = (
        "import sys, click, os\nfrom click import echo\nfrom sys import stdout\n"
        "print(1)\nsys.stderr.write('')\nclick.confirm('')\nos.write(1, b'')\n"
    )
    assert sorted(ways_out(ast.parse(text))) == [
        "click.confirm", "echo", "os.write", "print", "stdout", "sys.stderr",
    ]  # fmt: skip


class Screen(io.StringIO):
    """A terminal that keeps what it is sent."""

    def isatty(self) -> bool:
        return True


def test_pieces_are_judged_with_the_one_before() -> None:
    stream = Screen()
    terminal = GuardedText(stream)
    for piece in ("👩", "\u200d", "👩", "", "x", "\u200d", "\x1b", "[2J"):
        terminal.write(piece)
    assert stream.getvalue() == "👩\u200d👩x<U+200D><U+001B>[2J"


def test_bytes_for_a_terminal_are_decoded_across_pieces() -> None:
    stream = Screen()
    terminal = GuardedText(stream)
    for byte in "ü\x9b".encode() + b"\xff\x1b":
        terminal.buffer.write(bytes([byte]))
    assert stream.getvalue() == "ü<U+009B>\ufffd<U+001B>"


def test_an_encoding_without_a_character_does_not_fail() -> None:
    for encoding in ("ascii", "utf-8"):
        binary = io.BytesIO()
        stream = io.TextIOWrapper(binary, encoding=encoding)
        Output(stream).line("a\ud800b")
        assert binary.getvalue() == b"a?b\n"


def test_a_terminal_says_what_it_is() -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        terminal = GuardedText(stream)
        assert terminal.isatty()
        assert terminal.fileno() == slave
        assert terminal.encoding == "utf-8"
        assert Output(terminal).is_terminal
    os.close(master)


NOTE = '''\
import os, subprocess

def note() -> str:
    """Write down what the standard streams are, and print something."""
    subprocess.run("echo said", shell=True)
    with open("streams", "w") as file:
        file.writelines(os.path.realpath(f"/proc/self/fd/{number}") + "\\n" for number in range(3))
    return "noted"
'''


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_no_file_takes_the_place_of_a_stream_the_parent_closed(
    closed: tuple[int, ...], tmp_path: Path
) -> None:
    (tmp_path / "tools.py").write_text(NOTE)
    card = "---\nname: a\nmodel: passthrough\nfunction_tools: [tools.py:note]\n---\nNote.\n"
    (tmp_path / "a.md").write_text(card)
    program = Path(sys.executable).with_name("fast-agent")
    closing = " ".join(f"{number}>&-" for number in closed)
    message = "***CALL_TOOL note {}"
    command = f'exec "$0" go --card a.md --session --message "$1" {closing}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, program, message],
        cwd=tmp_path,
        env={**os.environ, "FAST_AGENT_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0)
    assert done.stdout == ("" if 1 in closed else "said\nnoted\n")
    streams = (tmp_path / "streams").read_text().splitlines()
    assert [streams[number] for number in closed] == [os.devnull] * len(closed)
