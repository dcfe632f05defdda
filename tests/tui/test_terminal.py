"""The program at a terminal: what a user types, and what the screen shows."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.tui.terminal_world import COMMAND, Terminal
from tests.whole_file import write_whole

from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.card_writer import WriteCard

READY = "? for keys"
PASS = ("go", "--model", "passthrough")
FORBIDDEN = re.compile(rb"\x1b\[[23]J|\x1bc|\x1b\[\?1049h")


def scripted(project: Path, *steps: Mapping[str, object]) -> tuple[str, ...]:
    (project / "script.yaml").write_text(json.dumps({"steps": steps}), encoding="utf-8")
    return ("go", "--model", "scripted?file=script.yaml")


def holding_tool(project: Path) -> Path:
    """A tool that waits until the test writes into a pipe; returns the pipe."""
    pipe = project / "pipe"
    os.mkfifo(pipe)
    (project / "f.py").write_text(
        f"def hold() -> str:\n    with open({str(pipe)!r}) as pipe:\n        return pipe.read()\n"
    )
    return pipe


@pytest.mark.spec("T-B4.1", "T-S2.1", "T-K0.1", "T-L2.1", "T-M3.3", "T-W5.2", "T-X2.1")
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_conversation(project: Path, columns: int) -> None:
    with Terminal(*PASS, columns=columns) as terminal:
        terminal.wait_for(READY)
        terminal.line("say **hello** to `me`")
        terminal.wait_for("say hello to me", " out")
        terminal.wait_for_screen(READY)
        terminal.wait_until(
            lambda: terminal.display[terminal.cursor[0]] == ">" and terminal.cursor[1] == 2,
            "the cursor behind the prompt",
        )
        rows = terminal.everything
        for text in ("you ─", "agent ─", "say **hello** to `me`", "say hello to me"):
            assert sum(text in row for row in rows) == 1, rows
        terminal.send("\x04")
        assert terminal.wait() == 0
        assert terminal.modes() == terminal.modes_before
        for on, off in ((b"\x1b[?2004h", b"\x1b[?2004l"), (b"\x1b[?2026h", b"\x1b[?2026l")):
            assert terminal.raw.count(on) == terminal.raw.count(off) > 0
        assert not FORBIDDEN.search(terminal.raw)


@pytest.mark.spec("T-H1.1")
def test_it_is_kept_as_a_session_from_its_first_message(project: Path, tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "home")
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.line("/help")
        terminal.wait_for("/exit: leave")
        assert store.list() == []
        terminal.line("remember me")
        terminal.wait_for(" out")
        terminal.line("/exit")
        assert terminal.wait() == 0
    (found,) = store.list()
    _, state = store.read(found.id)
    assert [one.text for one in state.history("agent") or []] == ["remember me"] * 2
    with Terminal(*PASS, "--no-session") as terminal:
        terminal.wait_for(READY)
        terminal.line("forget me")
        terminal.wait_for(" out")
        terminal.send("\x04")
        terminal.wait()
    assert len(store.list()) == 1


@pytest.mark.spec("T-S5.1")
def test_a_session_goes_on(project: Path, write_card: WriteCard) -> None:
    write_card("cards/ann.md", "default: true")
    write_card("cards/bob.md")
    cards = (*PASS, "--card", "cards")
    with Terminal(*cards) as terminal:
        terminal.wait_for(READY)
        terminal.line("@bob number one")
        terminal.wait_for(" out")
        for word in ("two", "three", "four"):
            terminal.line(f"number {word}")
            terminal.wait_until(
                lambda word=word: sum(f"number {word}" in row for row in terminal.everything) == 2,
                word,
            )
        terminal.line("/exit")
        terminal.wait()
    with Terminal(*cards, "--resume") as terminal:
        terminal.wait_for("number four", "4 turns so far")
        assert not any("number one" in row for row in terminal.everything)
        terminal.wait_for_screen("bob ·")


@pytest.mark.spec("T-B4.3")
@pytest.mark.parametrize("runner", ["asyncio.run(main())", "anyio.run(main)"])
@pytest.mark.parametrize("call", ["app", "fast"])
def test_from_python(project: Path, runner: str, call: str) -> None:
    talk = {
        "app": "    async with fast.run(model='passthrough') as app:\n"
        "        await app.interactive()\n        print('after', flush=True)\n",
        "fast": "    fast.agent('ann', model='passthrough')\n    await fast.interactive()\n"
        "    print('after', flush=True)\n",
    }[call]
    (project / "program.py").write_text(
        "import asyncio, anyio\nfrom fast_agent import FastAgent\n\n"
        f"fast = FastAgent('x')\nasync def main():\n{talk}\n{runner}\n"
    )
    with Terminal("program.py", program=(sys.executable,)) as terminal:
        terminal.wait_for(READY)
        terminal.line("hello there")
        terminal.wait_for(" out")
        terminal.send("\x04")
        assert terminal.wait() == 0
        terminal.wait_for("after")


def test_without_a_terminal_interactive_is_an_error(project: Path) -> None:
    (project / "program.py").write_text(
        "import asyncio\nfrom fast_agent import FastAgent\n"
        "asyncio.run(FastAgent('x').interactive())\n"
    )
    done = subprocess.run(
        [sys.executable, "program.py"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "there is no terminal to talk at" in done.stderr


@pytest.mark.spec("T-B4.2", "T-C5.1")
def test_cards_are_reloaded_when_their_files_change(project: Path, write_card: WriteCard) -> None:
    write_card("cards/ann.md", "default: true")
    with Terminal(*PASS, "--card", "cards", "--watch") as terminal:
        terminal.wait_for(READY)
        write_card("cards/bob.md")
        terminal.wait_for("AgentCards reloaded: +1 ~0 -0")
        terminal.line("#bob hello")
        terminal.wait_for("bob ─", " out")
        write_card("cards/bob.md", "nmae: x")
        terminal.wait_for("AgentCards not reloaded", "did you mean `name`?")
        terminal.line("#bob again")
        terminal.wait_until(lambda: sum("bob ─" in row for row in terminal.everything) == 2, "bob")


@pytest.mark.spec("TR-G4.2a", "TR-G9.1a", "TR-G9.1b", "T-B4.2")
def test_a_found_skill_that_changes_under_a_watch_waits_for_the_yes(
    project: Path, write_card: WriteCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A skill, a server and a card of a project change while the program runs: nothing acts."""
    home = tmp_path / "strangers"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("FAST_AGENT_HOME", str(home / ".fast-agent"))
    write_card("cards/ann.md", "default: true", "shell: true", "model: passthrough")
    found = ".fast-agent/agent-cards/bob.md"
    write_card(found, "model: passthrough")
    skill = project / ".claude/skills/knit/SKILL.md"
    skill.parent.mkdir(parents=True)
    text = "---\nname: knit\ndescription: Knits.\n---\nKnit {}.\n"
    write_whole(skill, text.format("socks"))
    given = ("--card", "cards")
    subprocess.run([COMMAND, "trust", "--yes", *given], check=True, capture_output=True)
    load = '***CALL_TOOL load_skill {"name": "knit"}'
    with Terminal("go", *given, "--watch", columns=200) as terminal:

        def answers(count: int) -> None:
            ends = re.compile(r" in \d+ out *$")  # and not "is left out"
            terminal.wait_until(
                lambda: sum(bool(ends.search(row)) for row in terminal.everything) >= count,
                f"answer {count}",
            )

        def shows(text: str) -> int:
            return sum(text in row for row in terminal.everything)

        terminal.wait_for(READY)
        assert shows("skill `knit`") == 0
        terminal.line(load)
        terminal.wait_for("Knit socks.")
        answers(1)
        write_whole(skill, text.format("bombs"))
        terminal.line(load)
        terminal.wait_for("skill `knit` is left out", "; `/trust` shows and allows it")
        answers(2)
        terminal.line(load)
        answers(3)
        assert shows("Knit bombs.") == 0
        assert shows("skill `knit` is left out") == 1
        write_card(found, "model: passthrough", "shell: true")
        terminal.wait_for("AgentCards not reloaded", "`bob` is left out", "/trust")
        terminal.line("#bob still here")
        answers(4)
        assert shows("any command the model chooses") == 1
        terminal.line("/trust")
        terminal.wait_for("changed since")
        assert shows("Knit bombs.") == 0
        terminal.line("/trust yes")
        terminal.wait_for("AgentCards reloaded")
        terminal.line(load)
        terminal.wait_for("Knit bombs.")


@pytest.mark.spec("T-B4.2", "T-C0.2")
def test_cards_are_reloaded_at_the_command(project: Path, write_card: WriteCard) -> None:
    write_card("cards/ann.md", "default: true")
    with Terminal(*PASS, "--card", "cards", "--reload") as terminal:
        terminal.wait_for(READY)
        write_card("cards/bob.md")
        terminal.line("/reload")
        terminal.wait_for("+1 ~0 -0")
        terminal.line("/agents")
        terminal.wait_for("bob: agent")
        terminal.line("/agent bob --dump")
        terminal.wait_for("name: bob")
        write_card("more/eve.md")
        terminal.line("/card more/eve.md --tool")
        terminal.wait_for("loaded eve")
        terminal.line("/call eve --history-source none are you there")
        terminal.wait_until(
            lambda: sum("are you there" in row for row in terminal.everything) >= 2, "eve"
        )
        terminal.line("/save_history out.json")
        terminal.wait_for("no history to save")


@pytest.mark.spec("T-Q4.1", "T-K0.3", "T-Q3.1", "T-Q1.1")
@pytest.mark.parametrize("key", ["\x1b", "\x03"])
def test_a_stop_keeps_what_was_streamed_and_parks_the_queue(project: Path, key: str) -> None:
    steps = {"text": "first line\n\nsecond"}, {"text": "never", "delay": 3600}, {"text": "later"}
    with Terminal(*scripted(project, *steps)) as terminal:
        terminal.wait_for(READY)
        terminal.line("one")
        terminal.wait_for("second", " out")
        terminal.line("two")
        terminal.wait_for_screen("stop")
        terminal.line("three")
        terminal.wait_for_screen("queued 1: three")
        terminal.send("x")
        terminal.wait_for_screen("queue, Ctrl-S steer")
        terminal.send("\x7f")
        terminal.send(key)
        terminal.wait_for("— stopped")
        terminal.wait_for_screen("parked 1: three")
        terminal.send("\r")
        terminal.wait_for("later")


@pytest.mark.spec("T-K0.2", "T-Q1.1", "T-W1.1")
def test_steering(project: Path, write_card: WriteCard) -> None:
    pipe = holding_tool(project)
    write_card("ann.md", "function_tools: [f.py:hold]")
    steps = {"text": "I look", "call": {"name": "hold"}}, {"text": "done", "expect": "in French"}
    with Terminal(*scripted(project, *steps), "--card", "ann.md") as terminal:
        terminal.wait_for(READY)
        terminal.line("go")
        terminal.wait_for("I look")
        terminal.wait_for_screen("hold")
        terminal.send("in French")
        terminal.wait_for_screen("in French")
        terminal.send("\x13")
        terminal.wait_for_screen("into this turn: in French")
        pipe.write_text("result\n")
        terminal.wait_for("you, into this turn", "✓ hold", "done", "1 tool")
        rows = [row for row in terminal.everything if row]
        places = [next(at for at, row in enumerate(rows) if text in row)
                  for text in ("I look", "✓ hold", "you, into", "done")]  # fmt: skip
        assert places == sorted(places)


@pytest.mark.spec("T-B3.2", "T-P1.1", "T-P1.2", "T-P2.1", "T-P3.1", "T-B3.1", "T-W1.3", "T-P3.3")
def test_permissions(project: Path, tmp_path: Path) -> None:
    call = '***CALL_TOOL execute {"command": "echo made > file"}'
    with Terminal(*PASS, "--shell", rows=30) as terminal:
        terminal.wait_for(READY)
        # Typed ahead of the question: it is not an answer, and not lost.
        terminal.send(call)
        terminal.wait_for_screen("made > file")
        terminal.send("\ry")
        terminal.wait_for_screen("answer with 1-5")
        assert not (project / "file").exists()
        assert any("agent `agent` asks to call `execute`" in row for row in terminal.display)
        assert any("│ echo made > file" in row for row in terminal.display)
        assert any(row == "> y" for row in terminal.display)
        terminal.send("\r")  # Enter does nothing before a choice
        terminal.send("n")
        terminal.wait_for("the user did not allow it")
        assert not (project / "file").exists()
        terminal.send("\x7f")
        terminal.line(call)
        terminal.wait_for_screen("answer with 1-5")
        terminal.send("a")
        terminal.wait_until((project / "file").exists, "the file")
        terminal.wait_for("✓ execute echo made > file")
        (project / "file").unlink()
        terminal.line(call)
        terminal.wait_until((project / "file").exists, "the file without a question")
        terminal.line("/permissions")
        terminal.wait_for("execute echo made > file: always allow")
        terminal.line("/permissions forget")
        terminal.wait_for("forgot 1")
        terminal.line(call)
        terminal.wait_for_screen("answer with 1-5")
    kept = json.loads((tmp_path / "home/permissions.json").read_text())
    assert kept == {str(project): {}}


@pytest.mark.spec("T-P4.1", "T-K0.8")
def test_permission_modes(project: Path) -> None:
    call = '***CALL_TOOL execute {"command": "echo it-ran"}'
    with Terminal(*PASS, "--shell") as terminal:
        terminal.wait_for(READY)
        terminal.send("\x1b[Z")
        terminal.wait_for_screen("reading ·")
        terminal.line(call)
        terminal.wait_for("the permission mode `reading`")
        terminal.line("/permissions trusting")
        terminal.wait_for("permission mode: trusting")
        terminal.wait_for_screen("trusting ·")
        terminal.line(call)
        terminal.wait_for("it-ran")
        assert b"\x1b[1;31mtrusting" in terminal.raw


@pytest.mark.spec("T-P6.1", "T-P6.2", "T-P6.4")
def test_a_form_is_filled_in_field_by_field(project: Path, write_card: WriteCard) -> None:
    write_card("ann.md", "human_input: true")
    schema = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "description": "how large"},
            "color": {"type": "string", "enum": ["red", "blue"]},
            "key": {"type": "string", "format": "password"},
        },
        "required": ["size", "color", "key"],
    }
    call = {"message": "which one?", "schema": schema}
    steps = {"call": {"name": "request_human_input", "arguments": call}}, {"text": "thanks"}
    with Terminal(
        *scripted(project, *steps, *steps), "--card", "ann.md", rows=30, columns=200
    ) as terminal:
        terminal.wait_for(READY)
        terminal.line("ask me")
        terminal.wait_for_screen("(1 of 3)")
        assert any("│ which one?" in row for row in terminal.display)
        terminal.line("large")
        terminal.wait_for_screen("this must be a whole number")
        terminal.send("\x7f" * 5)
        terminal.line("3")
        terminal.wait_for_screen("answer with 1-2")
        terminal.send("2")
        terminal.wait_for_screen("(3 of 3)")
        terminal.send("hunter2")
        terminal.wait_for_screen("*******")
        terminal.send("\r")
        terminal.wait_for("thanks", " out")
        shown = [row for row in terminal.everything if "hunter2" in row]
        assert all("✓" in row for row in shown)  # the agent's own result alone names it
        terminal.line("again")
        terminal.wait_for_screen("(1 of 3)")
        terminal.line("/cancel")
        terminal.wait_for("the user dismissed the question")


@pytest.mark.spec("T-K2.1", "T-K2.2")
def test_pastes(project: Path) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.send("\x1b[200~/exit\r\nsecond line\r\n\x1b[201~")
        terminal.wait_for_screen("second line")
        assert terminal.process.poll() is None
        terminal.send("\x03")
        terminal.wait_until(lambda: not any("second" in row for row in terminal.display), "clear")
        lines = "".join(f"pasted {number}\n" for number in range(312))
        terminal.send(f"look: \x1b[200~{lines}\x1b[201~")
        terminal.wait_for_screen("> look: [paste 1: 313 lines]")
        terminal.send("\r")
        terminal.wait_for("pasted 311", " out")


def test_files_that_are_pasted_are_attached(project: Path) -> None:
    (project / "my notes.txt").write_text("the secret word is plum\n")
    (project / "more.txt").write_text("and pear\n")
    pastes = {
        f"{project}/more.txt": f'> @"{project}/more.txt"',
        f"'{project}/my notes.txt' {project}/more.txt\n": f'my notes.txt" @"{project}/more.txt"',
        f"file://{project}/my%20notes.txt": f'> @"{project}/my notes.txt"',
        f"{project}/missing.txt": f"> {project}/missing.txt",
        "more.txt": "> more.txt",
        "it's": "> it's",
    }
    with Terminal(*PASS, columns=250) as terminal:
        terminal.wait_for(READY)
        for pasted, shown in pastes.items():
            terminal.send(f"\x1b[200~{pasted}\x1b[201~")
            terminal.wait_for_screen(shown)
            terminal.send("\x03")
            terminal.wait_until(lambda: ">" in terminal.display, "an empty editor")
        terminal.send("/card ")
        terminal.wait_for_screen("> /card")
        terminal.send(f"\x1b[200~{project}/more.txt\x1b[201~")
        terminal.wait_for_screen(f"> /card {project}/more.txt")
        terminal.send("\x03")
        terminal.wait_until(
            lambda: not any("> /card" in row for row in terminal.display), "cleared"
        )
        terminal.send(f"\x1b[200~'{project}/my notes.txt'\x1b[201~")
        terminal.wait_for_screen('my notes.txt"')
        terminal.send("what is it?\r")
        terminal.wait_for("+ ", "secret word is plum", " out")


@pytest.mark.spec("T-K2.2")
def test_a_paste_of_ten_megabytes(project: Path) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.send(b"\x1b[200~" + b"0123456789abcde\n" * (10 << 16) + b"\x1b[201~")
        terminal.wait_for_screen("[paste 1: 655361 lines]")
        terminal.send("\x03")
        terminal.wait_until(lambda: ">" in terminal.display, "empty")
        terminal.line("still here")
        terminal.wait_for(" out")


@pytest.mark.spec("T-M6.1", "T-X4.2")
def test_hostile_text_is_shown_and_not_obeyed(project: Path, write_card: WriteCard) -> None:
    trick = "\x1b]52;c;eA==\x07\x1b[2J\x9b31m\u202e\u200bend"
    (project / "f.py").write_text(
        f"def give(a: str) -> str:\n    print({trick!r})\n    return {trick!r}\n"
    )
    write_card("ann.md", "function_tools: [f.py:give]")
    steps = {"text": trick, "call": {"name": "give", "arguments": {"a": trick}}}, {"text": "`x`"}
    with Terminal(*scripted(project, *steps), "--card", "ann.md", columns=120) as terminal:
        terminal.wait_for(READY)
        terminal.line("go")
        terminal.wait_for(" in ", " out")
        raw = terminal.raw.decode()
        modes = r"\x1b\[\?(1004|2004|2026|25)[hl]|\x1b\[>4;[01]m"
        own = re.sub(rf"\x1b\[[0-9;]*[mABCDHJK]|{modes}", "", raw)
        assert "\x1b" not in own
        assert not re.search("[\x07\x80-\x9f\u202e\u200b]", own)
        assert not FORBIDDEN.search(terminal.raw)
        assert sum("<U+001B>" in row for row in terminal.everything) >= 3


@pytest.mark.spec("T-X4.2")
def test_what_functions_print_stands_above(project: Path, write_card: WriteCard) -> None:
    (project / "f.py").write_text(
        "import sys\ndef shout() -> str:\n    print('printed')\n"
        "    print('to the other', file=sys.stderr)\n    return 'x'\n"
    )
    write_card("ann.md", "function_tools: [f.py:shout]")
    with Terminal(*PASS, "--card", "ann.md") as terminal:
        terminal.wait_for(READY)
        terminal.line("***CALL_TOOL shout")
        terminal.wait_for("printed", "to the other", " out")
        terminal.wait_for_screen(READY)
        assert terminal.display[terminal.cursor[0]] == ">"


@pytest.mark.spec("T-X2.1", "T-X2.2")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_give_the_terminal_back(
    project: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    with Terminal(*scripted(project, {"text": "no", "delay": 3600})) as terminal:
        terminal.wait_for(READY)
        terminal.line("go")
        terminal.wait_for_screen("stop")
        terminal.process.send_signal(number)
        assert terminal.wait() == status
        assert terminal.modes() == terminal.modes_before
        assert terminal.raw.count(b"\x1b[?2004h") == terminal.raw.count(b"\x1b[?2004l")
    (found,) = SessionStore(tmp_path / "home").list()
    SessionStore(tmp_path / "home").open(found.id).close()


@pytest.mark.spec("T-C1.1", "T-C1.2", "T-K0.4")
def test_near_commands_and_literal_lines(project: Path) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.line("/hlep")
        terminal.wait_for("did you mean `/help`?")
        terminal.line("//etc is a path")
        terminal.wait_for("/etc is a path", " out")
        terminal.send("draft")
        terminal.wait_for_screen("> draft")
        terminal.send("\x03")
        terminal.wait_until(lambda: ">" in terminal.display, "cleared")
        terminal.send("\x1b[A")
        terminal.wait_for_screen("> draft")
        terminal.send("\x03\x03")
        terminal.wait_until(lambda: ">" in terminal.display, "cleared")
        terminal.send("\x03\x03")
        assert terminal.wait() == 0


@pytest.mark.spec("T-C2.1", "T-C2.2", "T-C2.6", "T-C2.3")
def test_completion_and_attached_files(project: Path, write_card: WriteCard) -> None:
    write_card("cards/ann.md", "default: true")
    write_card("cards/bob.md", "description: the second")
    (project / "notes.txt").write_text("the secret word is plum\n")
    (project / "card.txt").write_text("no card\n")
    with Terminal(*PASS, "--card", "cards") as terminal:
        terminal.wait_for(READY)
        terminal.send("/card ca")
        terminal.wait_for_screen("cards/")
        assert not any("card.txt" in row for row in terminal.display)
        terminal.send("\x1b")
        terminal.wait_until(lambda: not any("cards/" in row for row in terminal.display), "closed")
        terminal.send("\x03")
        terminal.send("@b")
        terminal.wait_for_screen("the second")
        terminal.send("\t")
        terminal.wait_for_screen("> @bob")
        terminal.send("\r")
        terminal.wait_until(lambda: not any("the second" in r for r in terminal.display), "taken")
        terminal.send("\r")
        terminal.wait_for("talking to bob")
        terminal.send("read @notes.txt and @absent.txt")
        terminal.wait_for_screen("  + notes.txt 0.0 KiB")
        assert not any("+ absent.txt" in row for row in terminal.display)
        terminal.send("\x15")
        terminal.line("read @notes.txt now")
        terminal.wait_for("+ ", "the secret word is plum")


@pytest.mark.spec("T-C2.1", "T-C2.2")
def test_a_path_with_spaces_is_completed_and_attached(project: Path) -> None:
    (project / "my dir").mkdir()
    (project / "my dir/plan one.txt").write_text("the secret word is plum\n")
    (project / "my dir/other.txt").write_text("no\n")
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.send("read\x1b\r@my")  # in the second line of a message
        terminal.wait_for_screen('  @"my dir/')
        terminal.send("\t")
        terminal.wait_for_screen('  @"my dir/')
        terminal.send("pl")
        terminal.wait_for_screen('  @"my dir/plan one.txt"')
        terminal.send("\t")
        terminal.wait_for_screen("  + plan one.txt 0.0 KiB")
        terminal.send(" now\r")
        terminal.wait_for("the secret word is plum")


@pytest.mark.spec("T-C3.1")
def test_a_shell_command_is_shown_to_the_agent(project: Path) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.line("!echo plum; exit 3")
        terminal.wait_for("plum", "exit status 3")
        terminal.line("what was it?")
        terminal.wait_for("Output of commands I ran:")
        terminal.line("!!echo pear")
        terminal.wait_until(lambda: "pear" in terminal.everything, "pear")
        terminal.line("and now?")
        terminal.wait_until(lambda: "and now?" in terminal.everything, "answer")
        terminal.line("/history show")
        terminal.wait_for("assistant: and now?")
        assert sum("Output of commands" in row for row in terminal.everything) <= 3


@pytest.mark.spec("T-Q2.1", "T-Q2.2", "T-K0.9", "T-B5.1")
def test_the_queue(project: Path, write_card: WriteCard) -> None:
    pipe = holding_tool(project)
    write_card("ann.md", "function_tools: [f.py:hold]")
    steps = {"text": "wait", "call": {"name": "hold"}}, {"text": "first"}, {"text": "second"}
    with Terminal(*scripted(project, *steps), "--card", "ann.md", rows=30) as terminal:
        terminal.wait_for(READY)
        terminal.line("go")
        terminal.wait_for_screen("hold")
        for number, text in enumerate(("alpha", "beta", "/nonsense", "gamma"), 1):
            terminal.line(text)
            terminal.wait_for_screen(f"queued {number}: {text}" if number < 4 else "1 more")
        terminal.line("/queue move 2 1")
        terminal.wait_for_screen("queued 1: beta")
        terminal.line("/queue drop 2")
        terminal.wait_for_screen("queued 2: /nonsense")
        terminal.send("\x1b[A")
        terminal.wait_for_screen("> gamma")
        terminal.send("\x7f" * 5)
        terminal.line("/card x.md")
        terminal.wait_for_screen("has to wait for the turn")
        terminal.send("\x7f" * 10)
        terminal.line("/usage")
        terminal.wait_for("the conversation:")
        pipe.write_text("x")
        terminal.wait_for("first", "second", "there is no command `/nonsense`")


@pytest.mark.spec("T-K4.1")
def test_typing_while_text_streams_is_kept(project: Path) -> None:
    pieces = [f"word{number} " + ("\n\n" if number % 9 == 0 else "") for number in range(2_000)]
    with Terminal(*scripted(project, {"pieces": pieces}, {"text": "next"})) as terminal:
        terminal.send("typed early")
        terminal.wait_for(READY)
        terminal.wait_for_screen("> typed early")
        terminal.send("\r")
        terminal.wait_for("you ─")
        typed = "the quick brown fox jumps over the lazy dog"
        for letter in typed:
            terminal.send(letter)
        terminal.wait_for_screen(f"> {typed}")
        terminal.wait_for("word1999", " out")
        words = re.findall(r"word(\d+)", " ".join(terminal.everything))
        assert words == [str(number) for number in range(2_000)]


@pytest.mark.spec("T-K0.7")
def test_new_lines(project: Path) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.send("one\x1b\rtwo\\\rthree\x0afour")
        terminal.wait_for_screen("  four")
        terminal.send("\r")
        terminal.wait_for(" out")
        rows = terminal.everything
        start = rows.index("one")
        assert rows[start : start + 4] == ["one", "two", "three", "four"]


@pytest.mark.spec("T-K0.10")
def test_history_search(project: Path) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        for text in ("alpha centauri", "beta"):
            terminal.line(text)
            terminal.wait_until(
                lambda text=text: sum(text in row for row in terminal.everything) >= 2, text
            )
        terminal.send("\x12")
        terminal.wait_for_screen("search here:")
        terminal.send("cent")
        terminal.wait_for_screen("> alpha centauri")
        terminal.send("\r")
        terminal.wait_for_screen("> alpha centauri")
        terminal.wait_until(
            lambda: not any("search here" in row for row in terminal.display), "search closed"
        )


@pytest.mark.spec("T-K0.6")
def test_suspend_and_continue(project: Path) -> None:
    shell = f"set -m; {COMMAND} go --model passthrough; echo it is suspended; fg"
    with Terminal("-c", shell, program=("/bin/bash",)) as terminal:
        terminal.wait_for(READY)
        terminal.send("half a line")
        terminal.wait_for_screen("> half a line")
        terminal.send("\x1a")
        terminal.wait_for("it is suspended")
        terminal.send(" more")
        terminal.wait_for_screen("> half a line more")


@pytest.mark.spec("T-A2.1")
def test_colours_are_left_out(project: Path) -> None:
    with Terminal(*PASS, environ={"NO_COLOR": "1"}) as terminal:
        terminal.wait_for(READY)
        terminal.line("# Title `code` **b**")
        terminal.wait_for(" out")
        assert not re.search(rb"\x1b\[[0-9;]*(3[0-7]|9[0-7])m", terminal.raw)
