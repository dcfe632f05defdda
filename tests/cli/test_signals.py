"""Every command that runs others ends them, whatever signal ends it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.patience import PATIENCE, wait_until
from tests.processes import children_of, lives
from tests.tui.terminal_world import Terminal

if TYPE_CHECKING:
    from collections.abc import Generator

PROGRAM = str(Path(sys.executable).with_name("fast-agent"))
SERVER = Path(__file__).parents[1] / "mcp/servers/tiny.py"
# A second process in the background of the shell, which nothing but its group leads to.
COMMAND = "sleep 1000 & echo $$ $! > pids.new; mv pids.new pids; sleep 1000"
CALL = f"***CALL_TOOL execute {json.dumps({'command': COMMAND})}"
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGKILL: -9}


@pytest.fixture(name="place")
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAST_AGENT_HOME", str(tmp_path / "home"))
    card = "---\ntype: agent\nname: lead\nmodel: passthrough\nshell: true\nservers: [every]\n---\n"
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards/lead.md").write_text(f"{card}Lead.\n")
    server = {"command": sys.executable, "args": [str(SERVER), "once"]}
    settings = {"mcp": {"servers": {"every": server}}}
    (tmp_path / "settings.yaml").write_text(json.dumps(settings))
    return tmp_path


# The command, which says at SIGUSR1 where each of its tasks stands.
EXPLAINED = """
import asyncio, faulthandler, signal, sys

def explain(*_):
    faulthandler.dump_traceback(file=sys.__stderr__)
    for task in asyncio.all_tasks():
        task.print_stack(file=sys.__stderr__)

signal.signal(signal.SIGUSR1, explain)
from fast_agent.cli.main import main
main()
"""


@contextmanager
def running(place: Path, command: str, *prefix: str) -> Generator[subprocess.Popen[bytes]]:
    arguments = [*prefix, sys.executable, "-c", EXPLAINED, *shlex.split(command)]
    process = subprocess.Popen(
        [*arguments, "--card", "cards", "--config-path", "settings.yaml"],
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        if (place / "pids").exists():
            for pid in shell_of(place):
                if lives(pid):
                    os.kill(pid, signal.SIGKILL)


def shell_of(place: Path) -> list[int]:
    return [int(pid) for pid in (place / "pids").read_text().split()]


def all_begun(place: Path, process: subprocess.Popen[bytes]) -> set[int]:
    """Wait for the shell's command, and name what the program started and what those did."""
    wait_until(lambda: (place / "pids").exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    children = children_of(process.pid)
    assert len(children) == 2  # the shell and the server
    return children | set(shell_of(place))


def ends(process: subprocess.Popen[bytes], number: int, begun: set[int]) -> str:
    process.send_signal(number)
    try:
        _, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGUSR1)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=5)
        process.kill()
        left = [pid for pid in begun if lives(pid)]
        pytest.fail(f"it did not end; {left} live: {process.communicate()[1].decode()}")
    wait_until(lambda: not any(lives(pid) for pid in begun))
    said = err.decode()
    assert "Traceback" not in said, said
    return said


def closes(program: str, number: signal.Signals, printed: str) -> None:
    """Run a program that a signal ends, and that closes what it holds."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout == printed, done.stderr
    assert done.returncode == STATUS[number]


@pytest.mark.spec("SIGNAL-1", "SIGNAL-3")
@pytest.mark.parametrize("number", STATUS, ids=lambda number: number.name)
def test_go(place: Path, number: signal.Signals) -> None:
    with running(place, f"go --message {shlex.quote(CALL)}") as process:
        ends(process, number, all_begun(place, process))
        assert process.returncode == STATUS[number]


@pytest.mark.spec("T-J1.3")
def test_an_interrupted_run_has_written_its_events_whole(place: Path) -> None:
    command = f"go --format events --message {shlex.quote(CALL)}"
    with running(place, command) as process:
        begun = all_begun(place, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        wait_until(lambda: not any(lives(pid) for pid in begun))
    assert process.returncode == 130, err
    assert out.endswith(b"\n")
    events = [json.loads(line)["event"] for line in out.splitlines()]
    assert "tool.started" in events


@pytest.mark.spec("T-J1.3")
@pytest.mark.parametrize(("key", "status"), [("\x03", 130), ("\x04", 1)], ids=["Ctrl-C", "Ctrl-D"])
def test_ctrl_c_at_a_question(tmp_path: Path, key: str, status: int) -> None:
    agents = tmp_path / ".claude/agents"
    agents.mkdir(parents=True)
    (agents / "ann.md").write_text("---\nname: ann\ndescription: helps\n---\nHelp.\n")
    with Terminal("import", ".", columns=160, cwd=tmp_path) as terminal:
        terminal.wait_for("Give them here")
        terminal.wait_until(lambda: terminal.cursor[1] > 0, "the question")
        terminal.send(key)
        assert terminal.wait() == status
        terminal.wait_for("Aborted!")


@pytest.mark.spec("T-J1.3")
@pytest.mark.parametrize(
    ("options", "status"), [("-m hi", 0), ("-m hi --agent nobody", 1), ("-m hi --nonsense", 2)]
)
def test_the_exit_status_of_a_run(tmp_path: Path, options: str, status: int) -> None:
    command = [PROGRAM, "go", "--model", "passthrough", *options.split()]
    environ = {**os.environ, "FAST_AGENT_HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, check=False)
    assert done.returncode == status, done.stderr
    assert done.stdout == (b"hi\n" if status == 0 else b"")


@pytest.mark.spec("SIGNAL-1")
def test_go_in_the_background_of_a_script_which_interrupts_do_not_reach(place: Path) -> None:
    ignoring = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN);"
    ignoring += "os.execv(sys.argv[1], sys.argv[1:])"
    prefix = (sys.executable, "-c", ignoring)
    with running(place, f"go --message {shlex.quote(CALL)}", *prefix) as process:
        begun = all_begun(place, process)
        process.send_signal(signal.SIGINT)
        ends(process, signal.SIGTERM, begun)
        assert process.returncode == 143


_STEPS = """
import asyncio, os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from fast_agent.cli.main import ended_by_signals

async def main():
    try:
        os.kill(os.getpid(), signal.{name})
        print("the step was finished")
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0)
        print("closed")

with ended_by_signals():
    {run}
"""


@pytest.mark.spec("SIGNAL-1")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("run", ["asyncio.run(main())", "import anyio; anyio.run(main)"])
def test_a_step_is_finished_where_interrupts_are_ignored(number: signal.Signals, run: str) -> None:
    program = _STEPS.format(name=number.name, run=run)
    closes(program, number, "the step was finished\nclosed\n")


# As where a signal comes just before the loop waits: nothing interrupts its waiting.
_ELSEWHERE = """
import asyncio, signal, threading, time
from fast_agent.cli import process as event_loop
from fast_agent.cli.main import ended_by_signals

async def main():
    other = threading.Thread(target=time.sleep, args=(3600,), daemon=True)
    other.start()

    def send():
        time.sleep(0.5)
        signal.pthread_kill(other.ident, signal.{name})

    threading.Thread(target=send, daemon=True).start()
    try:
        await asyncio.sleep(3600)
    finally:
        print("closed")

with ended_by_signals():
    event_loop.run(main)
"""


@pytest.mark.spec("SIGNAL-1")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_wakes_a_loop_that_waits(number: signal.Signals) -> None:
    closes(_ELSEWHERE.format(name=number.name), number, "closed\n")


# The second signal comes before a line of the handler of the first.
_TWICE = """
import asyncio, os, signal, sys
from fast_agent.cli import process as event_loop
from fast_agent.cli.main import ended_by_signals

lines = 0

def trace(frame, event, _):
    return trace_line if frame.f_code.co_name == "interrupt" else None

def trace_line(frame, event, _):
    global lines
    if event == "line":
        lines += 1
        if lines == {line}:
            os.kill(os.getpid(), signal.SIGHUP)
    return trace_line

async def main():
    sys.settrace(trace)
    try:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(3600)
    finally:
        sys.settrace(None)
        await asyncio.sleep(0)
        print("closed")

with ended_by_signals():
    event_loop.run(main)
"""


@pytest.mark.spec("SIGNAL-1")
@pytest.mark.parametrize("line", range(1, 6))
def test_a_second_signal_may_come_anywhere_in_the_handler_of_the_first(line: int) -> None:
    closes(_TWICE.format(line=line), signal.SIGHUP, "closed\n")


@pytest.mark.spec("SIGNAL-2")
def test_go_under_nohup_goes_on(place: Path) -> None:
    with running(place, f"go --message {shlex.quote(CALL)}", "nohup") as process:
        begun = all_begun(place, process)
        process.send_signal(signal.SIGHUP)
        ends(process, signal.SIGTERM, begun)
        assert process.returncode == 143  # and not that of the first


@pytest.mark.spec("SIGNAL-1")
def test_a_second_signal_does_not_keep_it_from_closing(place: Path) -> None:
    with running(place, f"go --message {shlex.quote(CALL)}") as process:
        begun = all_begun(place, process)
        process.send_signal(signal.SIGHUP)
        ends(process, signal.SIGHUP, begun)
        assert process.returncode == 129


@pytest.mark.spec("SIGNAL-1", "SIGNAL-3")
@pytest.mark.parametrize("number", STATUS, ids=lambda number: number.name)
def test_acp(place: Path, number: signal.Signals) -> None:
    with running(place, "acp") as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def send(**message: object) -> None:
            assert process.stdin is not None
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()

        hello: dict[str, object] = {"protocolVersion": 1, "clientCapabilities": {}}
        send(id=0, method="initialize", params=hello)
        process.stdout.readline()
        send(id=1, method="session/new", params={"cwd": str(place), "mcpServers": []})
        while (message := json.loads(process.stdout.readline())).get("id") != 1:
            pass
        assert "result" in message, message
        session = message["result"]["sessionId"]
        prompt = [{"type": "text", "text": CALL}]
        send(id=2, method="session/prompt", params={"sessionId": session, "prompt": prompt})
        while (message := json.loads(process.stdout.readline())).get("method") != (
            "session/request_permission"
        ):
            assert message.get("id") != 2, message
        outcome = {"outcome": "selected", "optionId": "allow_once"}
        send(id=message["id"], result={"outcome": outcome})
        ends(process, number, all_begun(place, process))
        assert process.returncode == (-9 if number == signal.SIGKILL else 0)


@pytest.mark.spec("SIGNAL-1", "SIGNAL-3")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL], ids=lambda one: one.name)
def test_serve_over_stdio(place: Path, number: signal.Signals) -> None:
    with running(place, "serve --transport stdio") as process:
        assert process.stdin is not None
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        call = {"name": "lead", "arguments": {"message": CALL}}
        for message in (
            {"id": 0, "method": "initialize", "params": params},
            {"method": "notifications/initialized"},
            {"id": 1, "method": "tools/call", "params": call},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        begun = all_begun(place, process)
        if number != signal.SIGKILL:
            process.send_signal(number)  # the first lets the call go on for a while
            number = signal.SIGINT
        ends(process, number, begun)
