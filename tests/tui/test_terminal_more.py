"""Keys, layout and status of the program at a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine.batch_world import ModelServer, text_reply
from tests.patience import wait_until
from tests.tui.terminal_world import COMMAND, Terminal
from tests.tui.test_terminal import PASS, READY, holding_tool, scripted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tests.card_writer import WriteCard

TUI = Path(__file__).parents[2] / "src/fast_agent/tui"


@pytest.mark.spec("T-L1.1")
def test_the_live_area_takes_at_most_half_of_the_rows(project: Path) -> None:
    with Terminal(*PASS, rows=12) as terminal:
        terminal.wait_for(READY)
        for number in range(20):
            terminal.send(f"line{number}")
            terminal.wait_for_screen(f"line{number}")
            terminal.send("\x0a")
        terminal.send("end")
        terminal.wait_for_screen("  end")
        rows = [at for at, row in enumerate(terminal.display) if "line" in row or "end" in row]
        assert len(rows) + 1 <= 6
        assert READY in terminal.display[rows[-1] + 1]


@pytest.mark.spec("T-L1.2")
@pytest.mark.parametrize(("columns", "rows"), [(18, 24), (80, 5)])
def test_on_a_tiny_terminal_there_is_only_the_prompt(
    project: Path, columns: int, rows: int
) -> None:
    with Terminal(*PASS, columns=columns, rows=rows) as terminal:
        terminal.wait_for(">")
        terminal.line("hello")
        terminal.wait_until(
            lambda: sum(row.strip() == "hello" for row in terminal.everything) == 2, "the answer"
        )
        assert not any("ask" in row for row in terminal.everything)


@pytest.mark.spec("T-U1.1")
@pytest.mark.parametrize(("columns", "fields"), [(60, 4), (30, 3), (22, 2)])
def test_the_status_row_drops_fields_from_the_right(
    project: Path, write_card: WriteCard, columns: int, fields: int
) -> None:
    write_card("clerk.md", "model: passthrough")
    with Terminal("go", "--card", "clerk.md", columns=columns) as terminal:
        terminal.wait_for_screen("clerk ·")
        row = next(row for row in terminal.display if row.startswith("  clerk"))
        assert [one for one in ("clerk", "passthrough", "ask", READY) if one in row] == [
            "clerk", "passthrough", "ask", READY
        ][:fields] or fields == 2  # fmt: skip
        assert "clerk" in row
        assert "ask" in row


def test_servers_start_while_the_user_writes(project: Path, write_card: WriteCard) -> None:
    server = Path(__file__).parents[1] / "mcp/servers/tiny.py"
    command = f"touch began; exec {sys.executable} {server} once"
    servers = {"tiny": {"command": "/bin/sh", "args": ["-c", command]}}
    (project / "fastagent.config.yaml").write_text(json.dumps({"mcp": {"servers": servers}}))
    write_card("clerk.md", "model: passthrough", "servers: [tiny]")
    with Terminal("go", "--card", "clerk.md", "--trust") as terminal:
        terminal.wait_for(READY)
        assert not (project / "began").exists()
        terminal.send("h")
        wait_until((project / "began").exists)


@pytest.mark.spec("T-K0.5")
def test_ctrl_d_asks_once_while_a_turn_works(project: Path) -> None:
    steps = {"text": "ready"}, {"text": "never", "delay": 3600}
    with Terminal(*scripted(project, *steps)) as terminal:
        terminal.wait_for(READY)
        terminal.line("hello")  # the first turn waits for the import of its model
        terminal.wait_for("ready", " out")
        terminal.line("go")
        terminal.wait_for_screen("stop")
        terminal.send("\x04")
        terminal.wait_for_screen("Ctrl-D again stops it and leaves")
        assert terminal.process.poll() is None
        terminal.send("\x04")
        assert terminal.wait() == 0


@pytest.mark.spec("T-K0.8")
def test_tab_and_shift_tab(project: Path, write_card: WriteCard) -> None:
    for name in ("ann", "anton", "bob"):
        write_card(f"cards/{name}.md", "default: true" if name == "bob" else "")
    with Terminal(*PASS, "--card", "cards") as terminal:
        terminal.wait_for(READY)
        terminal.send("/agent an")
        terminal.wait_for_screen("  anton")
        for keys, chosen in (("\t", "ann"), ("\t", "anton"), ("\x1b[Z", "ann")):
            terminal.send(keys)
            terminal.wait_until(
                lambda chosen=chosen: f"> /agent {chosen}" in terminal.display, chosen
            )
        assert any("· ask ·" in row for row in terminal.display)  # the menu took Shift-Tab
        terminal.send("\x1b\x03")
        terminal.wait_until(lambda: ">" in terminal.display, "an empty editor")
        for mode in ("reading", "trusting", "ask"):
            terminal.send("\x1b[Z")
            terminal.wait_for_screen(f"· {mode} ·")
        terminal.send("tex")
        terminal.wait_for_screen("> tex")
        terminal.send("\x1b[Zt")
        terminal.wait_for_screen("> text")
        terminal.wait_for_screen("· reading ·")


@pytest.mark.spec("T-P4.2")
@pytest.mark.parametrize("command", ["/reload", "/session resume"])
def test_trusting_ends_where_agents_or_session_change(project: Path, command: str) -> None:
    subprocess.run([COMMAND, *PASS, "--session", "-m", "before"], capture_output=True, check=True)
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.line("/permissions trusting")
        terminal.wait_for_screen("· trusting ·")
        assert b"\x1b[1;31mtrusting" in terminal.raw
        terminal.line(command)
        terminal.wait_for("calls are asked about again")
        terminal.wait_for_screen("· ask ·")
    with Terminal(*PASS, "--resume") as terminal:
        terminal.wait_for_screen("· ask ·")


@pytest.mark.spec("TR-G8.1")
@pytest.mark.parametrize("plain", [False, True])
def test_resuming_a_session_asks_where_its_agents_may_do_more(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    """The question of `go --resume`, in the conversation that is under way."""
    home = tmp_path / "strangers"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("FAST_AGENT_HOME", str(home / ".fast-agent"))
    folder = project / ".fast-agent/agent-cards"
    folder.mkdir(parents=True)
    (folder / "lead.md").write_text("---\ntype: agent\nmodel: passthrough\n---\nLead.\n")
    talk = (COMMAND, "go", "-q", "-m")
    subprocess.run([*talk, "before", "--session"], capture_output=True, check=True)
    (kept,) = json.loads(subprocess.check_output([COMMAND, "session", "list", "--format", "json"]))
    (folder / "lead.md").write_text(
        "---\ntype: agent\nmodel: passthrough\nshell: true\n---\nLead.\n"
    )
    subprocess.run([COMMAND, "trust", "--yes"], capture_output=True, check=True)
    # Lines of plain mode stay on the screen, so only one question can be waited for.
    answers = [("n", "nothing was sent"), ("y", f"session {kept['id']} continues")]
    answers = [("y", "continues")] if plain else answers
    with Terminal("go", *(["--plain"] if plain else [])) as terminal:
        terminal.wait_for("/help")
        for answer, shown in answers:
            terminal.line(f"/session resume {kept['id']}")
            terminal.wait_for_screen("Go on with this session?")
            terminal.wait_for_screen("any command the model chooses")
            if plain:
                terminal.line("1" if answer == "y" else "2")
            else:
                terminal.wait_for_screen("answer with 1-2")
                terminal.send(answer)
            terminal.wait_for_screen(shown)
    listed = subprocess.check_output([*talk, "after", "--resume", kept["id"]], text=True)
    assert listed == "after\n", "it is not asked about again"


@pytest.mark.spec("T-U2.1")
def test_the_status_row_shows_how_full_the_context_is(project: Path) -> None:
    spec = "scripted?file=script.yaml"
    (project / "fastagent.config.yaml").write_text(
        f"model_facts: {{'{spec}': {{context_window: 10000}}}}\ncompaction: false\n"
    )
    steps = [
        {"text": f"answer {used}", "usage": {"input_tokens": used - 100, "output_tokens": 100}}
        for used in (1_200, 7_000, 9_500)
    ]
    with Terminal(*scripted(project, *steps), columns=120) as terminal:
        terminal.wait_for(READY)
        shown = "1.2k/10.0k 12% ·", "7.0k/10.0k 70% ! ·", "9.5k/10.0k 95% !! /compact ·"
        for text in shown:
            terminal.line("go")
            terminal.wait_for_screen(text)
        assert b"\x1b[33m7.0k" in terminal.raw
        assert b"\x1b[31m9.5k" in terminal.raw


@pytest.mark.spec("T-K0.13")
def test_ctrl_l_clears_the_screen_and_keeps_the_scrollback(project: Path) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.line("remember me")
        terminal.wait_for(" out")
        terminal.send("\x0c")
        terminal.wait_until(lambda: terminal.display[0] == ">", "the prompt at the top")
        assert not any("remember me" in row for row in terminal.display)
        assert sum("remember me" in row for row in terminal.everything) == 2
        assert b"\x1b[2J" not in terminal.raw
        assert b"\x1b[3J" not in terminal.raw


@pytest.mark.spec("T-K0.15")
def test_ctrl_x_copies_and_picks(project: Path, write_card: WriteCard) -> None:
    write_card("cards/ann.md", "default: true")
    write_card("cards/bob.md")
    step = {"text": "look:\n\n```sh\nls -l\n```\n"}
    with Terminal(*scripted(project, step), "--card", "cards") as terminal:
        terminal.wait_for(READY)
        terminal.line("go")
        terminal.wait_for(" out")
        terminal.send("\x18c")
        terminal.wait_for("gave 23 characters")
        terminal.send("\x18k")
        terminal.wait_for("gave 6 characters")
        assert b"\x1b]52;c;bHMgLWwK\x07" in terminal.raw
        terminal.send("\x18a")
        terminal.wait_until(lambda: "> /agent" in terminal.display, "the start of a command")
        terminal.wait_for_screen("  bob")
        terminal.send("\x1b\x03")
        terminal.wait_until(lambda: ">" in terminal.display, "an empty editor")
        terminal.send("\x18m")
        terminal.wait_for_screen("> /model")


@pytest.mark.spec("T-K0.16")
@pytest.mark.parametrize("key", ["?", "\x1bOP"])
def test_help_at_a_key(project: Path, key: str) -> None:
    with Terminal(*PASS, rows=50) as terminal:
        terminal.wait_for(READY)
        terminal.send(key)
        terminal.wait_for("Ctrl-R: search history")
        terminal.send("why?")
        terminal.wait_for_screen("> why?")


@pytest.mark.spec("T-K2.3")
def test_a_paste_without_marks_sends_nothing(project: Path) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.send("first line\rsecond line\rthird")
        terminal.wait_for_screen("  third")
        assert "> first line" in terminal.display
        assert "  second line" in terminal.display
        assert not any("you ─" in row for row in terminal.everything)


def test_a_burst_of_keys_is_sent_where_the_terminal_marks_its_pastes(project: Path) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.send("\x1b[200~pasted\x1b[201~")
        terminal.wait_for_screen("> pasted")
        terminal.send(" and typed\rnext line")
        terminal.wait_for(" out")
        terminal.wait_for_screen("> next line")


@pytest.mark.spec("T-W1.4")
def test_the_last_lines_of_a_command_are_shown_while_it_runs(project: Path) -> None:
    pipe = project / "pipe"
    os.mkfifo(pipe)
    command = "for i in 1 2 3 4 5 6 7 8 9; do echo out $i; done; cat pipe"
    call = f"***CALL_TOOL execute {json.dumps({'command': command})}"
    with Terminal(*PASS, "--shell", columns=120) as terminal:
        terminal.wait_for(READY)
        terminal.line("/permissions trusting")
        terminal.wait_for_screen("· trusting ·")
        terminal.line(call)
        terminal.wait_for_screen("… 9 lines, Ctrl-O")
        shown = [row.strip("│ ") for row in terminal.display if "│ out" in row]
        assert shown == [f"out {number}" for number in range(5, 10)]
        pipe.write_text("out 10\n")
        terminal.wait_for("✓ execute for i", " out")
        terminal.wait_for_screen(READY)
        assert not any("│ out" in row for row in terminal.display)


@pytest.mark.spec("T-W4.2")
def test_a_plan_is_a_checklist_until_the_turn_ends(project: Path, write_card: WriteCard) -> None:
    pipe = holding_tool(project)
    tasks = [{"agent": "ann", "description": text} for text in ("read it", "write it")]
    steps = [{"description": "step", "tasks": [task]} for task in tasks]
    plan = json.dumps({"steps": steps})
    read = ({"call": {"name": "hold"}}, {"text": "read"}, {"text": "written"})
    scripts = {"lead": ({"text": plan}, {"text": "the answer"}), "ann": read}
    for name, said in scripts.items():
        (project / f"{name}.yaml").write_text(json.dumps({"steps": said}))
    model = "model: scripted?file=../"
    kind = "type: orchestrator\nagents: [ann]\ndefault: true"
    write_card("cards/lead.md", f"{kind}\n{model}lead.yaml")
    write_card("cards/ann.md", f"function_tools: ['../f.py:hold']\n{model}ann.yaml")
    with Terminal("go", "--card", "cards") as terminal:
        terminal.wait_for(READY)
        terminal.line("go")
        terminal.wait_for_screen(" ◐ ann read it")
        terminal.wait_for_screen(" ○ ann write it")
        pipe.write_text("x")
        terminal.wait_for("the answer", " out")
        rows = terminal.everything
        for text in (" ✓ ann read it", " ✓ ann write it"):
            assert rows.count(text) == 1, rows
        assert not any("○" in row for row in rows)


@pytest.mark.spec("T-W5.1")
def test_an_agent_at_work_is_watched(project: Path, write_card: WriteCard) -> None:
    pipe = holding_tool(project)
    call = {"name": "agent__critic", "arguments": {"message": "look"}}
    words = "the first line\nI read\x1b[2J the draft"
    scripts = {
        "lead": ({"text": "I ask", "call": call}, {"text": "the end"}),
        "critic": ({"text": words, "call": {"name": "hold"}}, {"text": "it is fine"}),
    }
    for name, said in scripts.items():
        (project / f"{name}.yaml").write_text(json.dumps({"steps": said}))
    model = "model: scripted?file=../"
    write_card("cards/lead.md", f"agents: [critic]\ndefault: true\n{model}lead.yaml")
    write_card("cards/critic.md", f"function_tools: ['../f.py:hold']\n{model}critic.yaml")
    with Terminal("go", "--card", "cards", columns=120, rows=40) as terminal:
        terminal.wait_for(READY)
        terminal.line("/watch critic")
        terminal.wait_for("no other agent is at work")
        terminal.line("go")
        terminal.wait_for_screen("hold")
        terminal.line("/watch")
        terminal.wait_for("• critic")
        terminal.line("/watch writer")
        terminal.wait_for("no agent `writer` is at work")
        terminal.line("/watch critic")
        terminal.wait_for_screen("┆ watching critic, Esc goes back")
        shown = [row for row in terminal.display if row.startswith("┆ ")]
        assert shown[1:] == ["┆ the first line", "┆ I read<U+001B>[2J the draft"]
        terminal.send("\x1b")
        terminal.wait_until(
            lambda: not any("watching" in row for row in terminal.display), "not watched any more"
        )
        assert any("critic" in row for row in terminal.display)
        terminal.line("/watch critic")
        terminal.wait_for_screen("┆ watching critic, Esc goes back")
        pipe.write_text("x")
        terminal.wait_for("the end", " out")
        terminal.wait_for_screen(READY)
        assert not any("watching" in row for row in terminal.display)
        assert not any("the first line" in row for row in terminal.everything)


@pytest.mark.spec("T-K3.2")
def test_suspend_by_command(project: Path) -> None:
    shell = f"set -m; {COMMAND} go --model passthrough; echo it is suspended; fg"
    with Terminal("-c", shell, program=("/bin/bash",)) as terminal:
        terminal.wait_for(READY)
        terminal.line("/suspend")
        terminal.wait_for("it is suspended")
        terminal.send("and on")
        terminal.wait_for_screen("> and on")


@pytest.mark.spec("T-M5.1")
def test_a_finished_thought_is_one_line(project: Path) -> None:
    step = {"thinking": "first this\nthen that", "text": "done"}
    with Terminal(*scripted(project, step)) as terminal:
        terminal.wait_for(READY)
        terminal.line("go")
        terminal.wait_for("done", " out")
        rows = terminal.everything
        assert sum(row.startswith(" thought ") for row in rows) == 1
        assert not any("then that" in row for row in rows)


@pytest.mark.spec("T-M7.1")
def test_the_last_answer_as_source(project: Path) -> None:
    with Terminal(
        *scripted(project, {"text": "a **bold** [word](https://example.org)"})
    ) as terminal:
        terminal.wait_for(READY)
        terminal.line("go")
        terminal.wait_for(" out")
        assert not any("**" in row for row in terminal.everything)
        terminal.line("/markdown")
        terminal.wait_for("a **bold** [word](https://example.org)")


@pytest.mark.spec("T-S1.3")
def test_a_conversation_starts_with_five_warnings_at_most(
    project: Path, write_card: WriteCard
) -> None:
    for number in range(17):
        write_card(f"my cards/agent{number:02}.md", "history_mode: fork")
    with Terminal(*PASS, "--card", "my cards", columns=120) as terminal:
        terminal.wait_for("… 12 more: fast-agent check 'my cards'", READY)
        warnings = [row for row in terminal.everything if row.startswith("warning[")]
        assert len(warnings) == 5, terminal.everything
    once = subprocess.run(
        [COMMAND, *PASS, "--card", "my cards", "-m", "hi"], capture_output=True, text=True
    )
    assert once.stderr.count("warning[") == 17


@pytest.mark.spec("T-L4.2")
@pytest.mark.parametrize("within", ["", "/tmp/tmux"])
def test_links_of_an_answer(project: Path, within: str) -> None:
    step = {"text": "see [the page](https://example.org/x)"}
    environ = {"TERM_PROGRAM": "WezTerm", "TMUX": within, "STY": "", "ZELLIJ": ""}
    with Terminal(*scripted(project, step), environ=environ) as terminal:
        terminal.wait_for(READY)
        terminal.line("go")
        terminal.wait_for(" out")
        shown = "see the page (https://example.org/x)" if within else "see the page"
        assert shown in terminal.everything
        opened = b"\x1b]8;;https://example.org/x\x1b\\" in terminal.raw
        assert opened is not bool(within)


@pytest.mark.spec("T-P5.1")
def test_several_requests_are_shown_one_at_a_time(project: Path) -> None:
    def call(name: str) -> dict[str, object]:
        return {"name": "execute", "arguments": {"command": f"echo {name} > {name}"}}

    steps = {"calls": [call("one"), call("two")]}, {"text": "both done"}
    with Terminal(*scripted(project, *steps), "--shell", rows=30) as terminal:
        terminal.wait_for(READY)
        terminal.line("go")
        terminal.wait_for_screen("1 of 2")
        terminal.wait_for_screen("answer with 1-5")
        seen = "one" if any("│ echo one" in row for row in terminal.display) else "two"
        terminal.send("y")
        terminal.wait_until((project / seen).exists, seen)
        terminal.wait_until(lambda: not any("1 of 2" in row for row in terminal.display), "one")
        terminal.wait_for_screen("answer with 1-5")
        other = "two" if seen == "one" else "one"
        assert not (project / other).exists()
        terminal.send("n")
        terminal.wait_for("both done")
        assert not (project / other).exists()


@pytest.mark.spec("T-P3.2")
def test_always_can_mean_the_first_words_of_a_command(project: Path, tmp_path: Path) -> None:
    def call(command: str) -> str:
        return f"***CALL_TOOL execute {json.dumps({'command': command})}"

    with Terminal(*PASS, "--shell", rows=30, columns=120) as terminal:
        terminal.wait_for(READY)
        terminal.line(call("echo one"))
        terminal.wait_for_screen("answer with 1-5")
        terminal.send("a")
        terminal.wait_for_screen("What is always allowed here?")
        terminal.wait_for_screen("answer with 1-3")
        assert any(row.endswith("3 execute(echo *)") for row in terminal.display)
        terminal.send("3")
        terminal.wait_for("✓ execute echo one", " out")
        terminal.line(call("echo two && echo three"))
        terminal.wait_for("✓ execute echo two && echo three")
        terminal.line(call("echo four; touch made"))
        terminal.wait_for_screen("answer with 1-5")
        terminal.send("n")
        terminal.wait_for("the user did not allow it")
        assert not (project / "made").exists()
        terminal.line("/permissions")
        terminal.wait_for("execute(echo *): always allow")
    kept = json.loads((tmp_path / "home/permissions.json").read_text())
    assert kept == {str(project): {"execute(echo *)": "allow"}}


@pytest.mark.spec("T-H1.2", "T-B5.2")
def test_sessions_are_picked_by_what_was_said_in_them(project: Path) -> None:
    for text in ("about apples", "about pears"):
        subprocess.run([COMMAND, *PASS, "--session", "-m", text], capture_output=True, check=True)
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.line("/session")
        terminal.wait_for_screen("1 turn: about apples")
        terminal.wait_for_screen("1 turn: about pears")
        terminal.send("apls")
        terminal.wait_until(
            lambda: not any("about pears" in row for row in terminal.display), "what fits"
        )
        terminal.send("\t")
        terminal.wait_until(
            lambda: not any("apls" in row for row in terminal.display), "the one that fits"
        )
        terminal.send("\r\r")
        terminal.wait_for(" continues")


def test_the_answer_to_a_call_is_shown_once(project: Path) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.line("/call agent --history-source none hi there")
        terminal.wait_until(lambda: "hi there" in terminal.everything, "the answer")
        terminal.line("/keys")
        terminal.wait_for("Ctrl-R: search history")
        assert terminal.everything.count("hi there") == 1


@pytest.mark.spec("T-A2.3")
def test_signs_are_ascii_where_the_encoding_is(project: Path) -> None:
    environ = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with Terminal(*PASS, environ=environ) as terminal:
        terminal.wait_for(READY)
        terminal.line("hello")
        terminal.wait_for(" out", "you ---")
        assert terminal.raw.isascii()


@pytest.mark.spec("T-J1.1")
def test_without_a_terminal_it_runs_once(project: Path) -> None:
    command = [COMMAND, *PASS]
    once = subprocess.run([*command, "-m", "hello"], input=b"", capture_output=True, check=False)
    assert (once.returncode, once.stdout) == (0, b"hello\n")
    nothing = subprocess.run(command, input=b"hello\n", capture_output=True, check=False)
    assert nothing.returncode == 2
    assert b"nothing to send" in nothing.stderr
    with Terminal(*PASS, "-m", "at a terminal") as terminal:
        assert terminal.wait() == 0
        terminal.wait_for("at a terminal")
        assert b"\x1b[?2004h" not in terminal.raw


@pytest.mark.spec("T-X1.1")
def test_every_module_is_imported_without_posix() -> None:
    names = sorted(f"fast_agent.tui.{path.stem}" for path in TUI.glob("[!_]*.py"))
    code = (
        "import sys, importlib\n"
        "import asyncio, anyio._backends._asyncio, subprocess, prompt_toolkit\n"
        "for name in ('fcntl', 'termios', 'tty', 'pty', 'resource'):\n"
        "    sys.modules[name] = None\n"
        "for name in sys.argv[1:]:\n    importlib.import_module(name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *names], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.spec("T-Q4.1")
def test_a_stop_in_the_middle_of_a_text(project: Path) -> None:
    server = [
        sys.executable,
        Path(__file__).parents[2] / "bench/ours/model_server.py",
        "20",
        "2000",
    ]
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        address = f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        environ = {"GENERIC_BASE_URL": address, "GENERIC_API_KEY": "none"}
        with Terminal("go", "--model", "generic.m", environ=environ) as terminal:
            terminal.wait_for(READY)
            terminal.line("tell me")
            terminal.wait_for("The card names an agent")
            terminal.send("\x1b")
            terminal.wait_for("— stopped")
            rows = terminal.everything
            assert sum("Part 1 of the answer" in row for row in rows) == 1
            assert any(
                row.startswith("The card names an agent") for row in rows
            )  # in the scrollback
            assert not any(row.startswith("┆") for row in terminal.display)
            history = project / "kept.json"
            terminal.line(f"/history save {history.name}")
            terminal.wait_until(history.exists, "the history")
            terminal.wait_for("kept.json")
        process.kill()
    messages = json.loads(history.read_text("utf-8"))["messages"]
    said = [(one["role"], one["content"][0]["text"]) for one in messages]
    assert said == [("user", "tell me"), ("assistant", "[cancelled before an answer]")]


HELD_IMPORT = """\
import importlib.util, sys, threading, time
from pathlib import Path

HERE = Path(__file__).parent


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "pydantic_ai" or threading.current_thread() is threading.main_thread():
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def held(module):  # here only the lock of this module is held, not that of all imports
            (HERE / "began").touch()
            while not (HERE / "go").exists():
                time.sleep(0.01)
            execute(module)

        spec.loader.exec_module = held
        return spec


sys.meta_path.insert(0, Finder())
"""


@pytest.mark.usefixtures("project")
def test_keys_are_shown_while_the_library_of_a_model_is_imported(tmp_path: Path) -> None:
    """A loop that imports it too would stand still until the other thread has the module."""
    place = tmp_path / "held"
    place.mkdir()
    (place / "sitecustomize.py").write_text(HELD_IMPORT)
    with ModelServer(lambda _: text_reply("here I am")) as models:
        environ = {
            "GENERIC_BASE_URL": models.url,
            "GENERIC_API_KEY": "none",
            "PYTHONPATH": str(place),
        }
        with Terminal("go", "--model", "generic.m", environ=environ) as terminal:
            terminal.wait_for(READY)
            terminal.line("tell me")
            terminal.wait_until((place / "began").exists, "the import")
            try:
                for word in ("and", "then", "more"):
                    terminal.send(f"{word} ")
                    terminal.wait_for_screen(word)
            finally:
                (place / "go").touch()
            terminal.wait_for("here I am")


@pytest.mark.spec("T-Q4.1")
def test_what_was_streamed_stays_after_a_stop(project: Path, write_card: WriteCard) -> None:
    pipe = holding_tool(project)
    write_card("ann.md", "function_tools: [f.py:hold]")
    steps = {"text": "I look first", "call": {"name": "hold"}}, {"text": "as before"}
    with Terminal(*scripted(project, *steps), "--card", "ann.md") as terminal:
        terminal.wait_for(READY)
        terminal.line("one")
        terminal.wait_for("I look first")
        terminal.wait_for_screen("hold")
        terminal.send("\x1b")
        terminal.wait_until(lambda: b"stopping" in terminal.raw, "stopping")
        pipe.write_text("x")
        terminal.wait_for("— stopped")
        assert sum("I look first" in row for row in terminal.everything) == 1
        terminal.line("/history show")
        terminal.wait_for("> /history show")
        terminal.line("two")
        terminal.wait_for("as before")
        history = project / "kept.json"
        terminal.line(f"/history save {history.name}")
        terminal.wait_until(history.exists, "the history")
        terminal.wait_for("kept.json")
    messages = json.loads(history.read_text("utf-8"))["messages"]
    calls = [name for one in messages for name in one.get("tool_calls", ())]
    results = [name for one in messages for name in one.get("tool_results", ())]
    assert calls == results  # no call is left open
    assert messages[-1]["content"][0]["text"] == "as before"


@pytest.mark.spec("T-H4.3")
@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_second_terminal_shows_the_session_and_offers_a_copy(project: Path, answer: str) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.line("say something")
        terminal.wait_for(" out")
        with Terminal(*PASS, "--resume", columns=120) as second:
            second.wait_for("is in use by process", "say something", "Continue in a copy")
            second.wait_for_reader()
            second.send(f"{answer}\r")
            if answer == "y":
                second.wait_for("continues; 1 turn so far")
                second.wait_for_screen("⑂ agent")
                second.line("and more")
                second.wait_for(" out")
            else:
                second.wait_for("error: session")
                assert second.wait() == 1
        terminal.line("still mine")
        terminal.wait_until(
            lambda: sum(row == "still mine" for row in terminal.everything) == 2, "the answer"
        )
