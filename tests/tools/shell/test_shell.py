from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from contextlib import suppress
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.patience import PATIENCE, pass_seconds, until
from tests.processes import ended, lives

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.config.providers import PROVIDERS
from fast_agent.messages.message import ToolCall, ToolResult
from fast_agent.tools.shell.shell import (
    BoundedOutput,
    ShellLimits,
    ShellTool,
    shell_environment,
    shell_tool,
)
from fast_agent.tools.tool import ToolContext

if TYPE_CHECKING:
    from collections.abc import Mapping


pytestmark = pytest.mark.anyio

QUICK = ShellLimits(grace_seconds=0.3)


async def execute(
    directory: Path,
    command: Any,
    *,
    environment: Mapping[str, str] | None = None,
    limits: ShellLimits = QUICK,
    context: ToolContext | None = None,
    **arguments: Any,
) -> ToolResult:
    tool = ShellTool(directory, environment or dict(os.environ), limits=limits)
    context = context or ToolContext(agent_name="a", turn_id="t", call_id="c", correlation_id="r")
    return await tool.call(ToolCall("c", "execute", {"command": command, **arguments}), context)


@pytest.mark.spec("RUN-15")
async def test_a_command_finds_the_idempotency_key_of_its_call(tmp_path: Path) -> None:
    context = ToolContext(agent_name="a", turn_id="t", call_id="c\0d", correlation_id="r")
    # One that the program was started with is not that of the call.
    environment = {**os.environ, "FAST_AGENT_IDEMPOTENCY_KEY": "older"}
    result = await execute(
        tmp_path, "printf $FAST_AGENT_IDEMPOTENCY_KEY", environment=environment, context=context
    )
    assert result.text == f"{context.idempotency_key}\n[exit code 0]"


def running(mark: str) -> list[int]:
    """Find the processes whose command holds `mark`."""
    found: list[int] = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in file.read_bytes():
                found.append(int(file.parent.name))
        except OSError:
            continue
    return found


def written(file: Path) -> str:
    return file.read_text("utf-8") if file.exists() else ""


async def read_pid(file: Path) -> int:
    with anyio.fail_after(60):
        while not written(file).endswith("\n"):  # noqa: ASYNC110
            await anyio.sleep(0.01)
    return int(written(file))


async def test_output_errors_and_exit_code_come_in_order(tmp_path: Path) -> None:
    result = await execute(tmp_path, "echo one; echo two >&2; echo three; exit 3")
    assert result.text == "one\ntwo\nthree\n[exit code 3]"
    assert result.is_error
    assert result.structured == {
        "exit_code": 3,
        "timed_out": False,
        "output_bytes": 14,
        "omitted_bytes": 0,
    }


async def test_a_command_that_succeeds_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("x")
    result = await execute(tmp_path, "ls")
    assert result.text == "file.txt\n[exit code 0]"
    assert not result.is_error
    assert (await execute(tmp_path, "true")).text == "[exit code 0, no output]"
    assert (await execute(tmp_path, "printf x")).text == "x\n[exit code 0]"


async def test_there_is_no_input(tmp_path: Path) -> None:
    assert (await execute(tmp_path, "cat; read line || echo none")).text == "none\n[exit code 0]"


@pytest.mark.spec("TOOL-6")
async def test_a_command_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    # The grandchild ignores being asked, and its parent is gone: only killing the group finds it.
    command = "(trap '' TERM; (echo $BASHPID >pid; sleep 600) & sleep 600) & "
    command += "echo begun; touch said; sleep 600"
    command = command.replace("$BASHPID", "$(exec sh -c 'echo $PPID')")
    results: list[ToolResult] = []
    pid = 0

    async def run() -> None:
        results.append(await execute(tmp_path, command, timeout_seconds=30))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await until((tmp_path / "said").exists)
        pid = await read_pid(tmp_path / "pid")
        while not results:  # the time may begin a moment after the command
            pass_seconds(30)
            await anyio.sleep(0.05)
    (result,) = results
    assert result.is_error
    assert result.text == "begun\n[ended: it ran longer than 30 s]"
    assert isinstance(result.structured, dict)
    assert result.structured["timed_out"] is True
    await ended(pid)


@pytest.mark.spec("TOOL-6")
async def test_cancelling_ends_all_it_started(tmp_path: Path) -> None:
    pid = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(execute, tmp_path, "sh -c 'sleep 600 & echo $! >pid; wait'")
        pid = await read_pid(tmp_path / "pid")
        assert lives(pid)
        tasks.cancel_scope.cancel()
    await ended(pid)


async def stopped(tmp_path: Path, command: str, limits: ShellLimits) -> list[str]:
    """Cancel a command once it has written its pid; return what it wrote about signals."""
    pid = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(execute, tmp_path, command, limits=limits))
        pid = await read_pid(tmp_path / "pid")
        tasks.cancel_scope.cancel()
    await ended(pid)
    return (tmp_path / "log").read_text().split()


# A shell may miss the trap of a signal that ends the program it waits for.
_LOGGING = f"""exec {sys.executable} -c '
import os, signal, sys
def log(number, frame):
    print(signal.Signals(number).name, file=open("log", "a"))
    if signal.Signals(number).name in sys.argv:
        sys.exit()
signal.signal(signal.SIGINT, log)
signal.signal(signal.SIGTERM, log)
print(os.getpid(), file=open("pid", "w"))
while True:
    signal.pause()
' """


@pytest.mark.spec("T-Q4.2")
async def test_a_stopped_command_can_clean_up(tmp_path: Path) -> None:
    patient = ShellLimits(grace_seconds=PATIENCE)
    assert await stopped(tmp_path, f"{_LOGGING} SIGINT", patient) == ["SIGINT"]


@pytest.mark.spec("T-Q4.2")
async def test_a_command_that_does_not_stop_is_asked_twice_and_killed(tmp_path: Path) -> None:
    pass_seconds(0)  # nothing runs yet where time cannot pass
    limits, log = ShellLimits(grace_seconds=PATIENCE), tmp_path / "log"
    task = asyncio.ensure_future(execute(tmp_path, _LOGGING, limits=limits))
    pid = await read_pid(tmp_path / "pid")
    task.cancel()
    for name in ("SIGINT", "SIGTERM"):
        while name not in written(log):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.005)
        pass_seconds(2 * PATIENCE)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not lives(pid)
    assert written(log).split() == ["SIGINT", "SIGTERM"]


@pytest.mark.parametrize("by_scope", [True, False])
@pytest.mark.parametrize("steps", range(12))
async def test_cancelling_while_the_command_starts_leaves_nothing(
    tmp_path: Path, steps: int, by_scope: bool
) -> None:
    # Each step is one round of the event loop, so that every place it waits at is cancelled once.
    command = f": {tmp_path}; sleep 600; :"
    if by_scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(execute, tmp_path, command)
            for _ in range(steps):
                await asyncio.sleep(0)
            tasks.cancel_scope.cancel()
    else:
        task = asyncio.ensure_future(execute(tmp_path, command))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    for pid in running(str(tmp_path)):
        await ended(pid)


async def test_what_runs_in_the_background_ends_with_the_command(tmp_path: Path) -> None:
    result = await execute(tmp_path, "sleep 600 & echo $! >pid; echo done")
    assert result.text == "done\n[exit code 0]"
    silent = await execute(tmp_path, "sleep 600 >/dev/null 2>&1 & echo $! >quiet")
    assert not silent.is_error
    for name in ("pid", "quiet"):
        await ended(await read_pid(tmp_path / name))


async def test_a_process_that_left_the_group_is_not_waited_for(tmp_path: Path) -> None:
    command = (
        "setsid sh -c 'echo $$ >pid; while :; do echo on; sleep 0.01; done' & "
        "until [ -s pid ]; do sleep 0.01; done; echo x"
    )
    result = await execute(tmp_path, command)
    assert result.text.endswith("[exit code 0]")
    with suppress(ProcessLookupError):  # it ends by itself once nobody hears it
        os.kill(await read_pid(tmp_path / "pid"), signal.SIGKILL)


_KILLED_AT_THE_START = """
import os, signal
from pathlib import Path
import anyio
from fast_agent.tools.shell import process_group

def killed(group):
    print(group, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    command = ["/bin/sh", "-c", "touch ran; exec sleep 1000"]
    await process_group.ProcessGroup.start(command, cwd=Path.cwd(), env={}, grace_seconds=1)

process_group.guard_group = killed
anyio.run(main)
"""


@pytest.mark.spec("SIGNAL-3")
async def test_no_command_begins_before_it_is_guarded(tmp_path: Path) -> None:
    program = [sys.executable, "-c", _KILLED_AT_THE_START]
    done = await anyio.run_process(program, cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    try:
        await ended(int(done.stdout))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(int(done.stdout), signal.SIGKILL)
    assert not (tmp_path / "ran").exists()


@pytest.mark.spec("TOOL-6")
async def test_a_huge_output_is_cut_and_does_not_grow_memory(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await execute(tmp_path, "echo first; yes | head -c 100000000; echo last")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20_000, f"{grown} KiB"
    assert len(result.text) < 33_000
    assert result.text.startswith("first\ny\n")
    assert result.text.endswith("y\nlast\n[exit code 0]")
    omitted = 100_000_011 - 2 * 16 * 1024
    assert f"[… {omitted:,} bytes left out …]" in result.text
    assert isinstance(result.structured, dict)
    assert result.structured["omitted_bytes"] == omitted


async def test_output_that_is_no_text_is_shown_as_far_as_it_is(tmp_path: Path) -> None:
    result = await execute(tmp_path, r"printf 'a\377\000b'")
    assert result.text == "a\ufffd\ufffdb\n[exit code 0]"


async def test_a_command_killed_by_a_signal_says_so(tmp_path: Path) -> None:
    result = await execute(tmp_path, "kill -9 $$")
    assert result.text == "[killed by SIGKILL]"
    assert result.is_error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"command": ""}, "`command` must be a shell command"),
        ({"command": ["ls"]}, "`command` must be a shell command"),
        ({"command": "ls", "timeout_seconds": 0}, "above 0 and at most 3600"),
        ({"command": "ls", "timeout_seconds": True}, "above 0 and at most 3600"),
        ({"command": "ls", "timeout_seconds": 9999}, "above 0 and at most 3600"),
        ({"command": "ls", "timeout": 3}, "`timeout` is not an argument"),
        ({"command": "echo \0"}, "could not be started"),
        ({"command": "true " + "x" * 3_000_000}, "could not be started"),
    ],
)
async def test_wrong_arguments(tmp_path: Path, arguments: dict[str, Any], words: str) -> None:
    result = await execute(tmp_path, **arguments)
    assert result.is_error
    assert words in result.text


async def test_the_usual_time_may_be_longer_than_the_longest_that_can_be_asked_for(
    tmp_path: Path,
) -> None:
    limits = ShellLimits(timeout_seconds=7200)
    tool = ShellTool(tmp_path, {}, limits=limits)
    properties: Any = tool.spec.input_schema["properties"]
    assert properties["timeout_seconds"]["maximum"] == 7200
    assert not (await execute(tmp_path, "true", limits=limits, timeout_seconds=7200)).is_error


async def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    result = await execute(tmp_path / "none", "ls")
    assert result.is_error
    assert "does not exist" in result.text


@pytest.mark.parametrize("step", [0, 1])
async def test_the_last_lines_are_reported_now_and_then(tmp_path: Path, step: int) -> None:
    reported: list[tuple[float, str | None]] = []

    def progress(done: float, total: float | None, message: str | None) -> None:
        reported.append((done, message))

    context = ToolContext(
        agent_name="a", turn_id="t", call_id="c", correlation_id="r", progress=progress
    )
    clock = partial(next, count(step=step))
    tool = ShellTool(tmp_path, dict(os.environ), limits=QUICK, clock=clock)
    command = r"for i in 1 2 3 4; do printf 'line %s\033[2J\n' $i; done"
    await tool.call(ToolCall("c", "execute", {"command": command}), context)
    if step:
        assert 1 <= len(reported) <= 4
        shown = "\n".join(f"line {number}<U+001B>[2J" for number in range(1, 5))
        assert reported[-1] == (4, shown)
    else:
        assert reported == [], "no time has passed"


@pytest.mark.spec("CARD-6", "TOOL-6", "TR-S1.2")
async def test_commands_of_a_card_run_where_it_says_without_secrets(
    tmp_path: Path, context: ToolContext
) -> None:
    (tmp_path / "cards" / "work").mkdir(parents=True)
    secrets = {"X_API_KEY": "k", "EXTRA": "sk-" + "e" * 20, "X_GIVEN_KEY": "g"}
    environ = {"PATH": os.environ["PATH"], "PLAIN": "p", **secrets}
    source = tmp_path / "cards" / "a.md"
    call = ToolCall("c", "execute", {"command": "pwd; echo $X_API_KEY$EXTRA$PLAIN$X_GIVEN_KEY"})
    for cwd, place in ((None, tmp_path), ("work", source.parent / "work")):
        config = AgentConfig(name="a", shell=True, cwd=cwd, source=source)
        tool = shell_tool(config, tmp_path, environ, given=["X_GIVEN_KEY"])
        assert str(place) in tool.spec.description
        assert (await tool.call(call, context)).text == f"{place}\npg\n[exit code 0]"
        assert (tool.spec.name, tool.source, tool.server_name, tool.repeatable) == (
            "execute",
            "runtime",
            None,
            False,
        )


def filled(head: int, tail: int, *pieces: bytes) -> BoundedOutput:
    output = BoundedOutput(head, tail)
    for piece in pieces:
        output.add(piece)
    return output


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ((), ""),
        ((b"abc",), "abc"),
        ((b"abcdef", b"gh"), "abcdefgh"),
        ((b"abcdef", b"ghi"), "abcd\n[… 1 byte left out …]\nfghi"),
        ((b"abcdefghij",), "abcd\n[… 2 bytes left out …]\nghij"),
        ((b"a",) * 12, "aaaa\n[… 4 bytes left out …]\naaaa"),
        ((b"\xff\0",), "\ufffd\ufffd"),
        ((b"abc\xc3\xa9fghi\xe2\x82\xac",), "abc\n[… 4 bytes left out …]\ni€"),
        ((b"abcdef\xe2\x82\xacghi",), "abcd\n[… 4 bytes left out …]\nghi"),
    ],
)
def test_ends_are_kept_and_the_rest_is_counted(pieces: tuple[bytes, ...], text: str) -> None:
    assert filled(4, 4, *pieces).text() == text


@given(
    st.text(alphabet="aé€😀\n", max_size=60),
    st.integers(0, 12),
    st.integers(0, 12),
    st.lists(st.integers(0, 200), max_size=5),
)
def test_what_is_kept_is_the_beginning_and_the_end(
    text: str, head: int, tail: int, cuts: list[int]
) -> None:
    data = text.encode()
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    pieces = [data[start:end] for start, end in pairwise(places)]
    output = filled(head, tail, *pieces)
    assert output.total == len(data)
    assert output.omitted == max(0, len(data) - head - tail)
    if output.omitted:
        first, _, rest = output.text().partition("\n[… ")
        count, _, rest = rest.partition(" byte")
        last = rest.partition("\n")[2]
        assert int(count.replace(",", "")) == output.omitted
        assert text.startswith(first)
        assert text.endswith(last)
        assert head - 4 < len(first.encode()) <= head or not first
        assert tail - 4 < len(last.encode()) <= tail or not last
    else:
        assert output.text() == text


def test_memory_does_not_grow_with_the_output() -> None:
    output = BoundedOutput(1000, 1000)
    for _ in range(2000):
        output.add(b"x" * 50_000)
    assert output.total == 100_000_000
    assert sys.getsizeof(output._head) + sys.getsizeof(output._tail) < 200_000


def test_secrets_are_left_out_by_name_and_by_value() -> None:
    environ = {
        "GH_PAT": "x",
        "DB_PASS": "x",
        "DATABASE_URL": "x",
        "CACHE": "redis://:hunter2@cache:6379",
        "PLAIN": "x",
        "PATH": "/bin",
    }
    assert shell_environment(environ) == {"PLAIN": "x", "PATH": "/bin"}


def test_what_is_given_stays() -> None:
    environ = {"GH_PAT": "x", "GL_PAT": "y"}
    assert shell_environment(environ, given=["GH_PAT"]) == {"GH_PAT": "x"}


def test_the_keys_of_every_known_provider_are_left_out() -> None:
    names = [name for provider in PROVIDERS.values() for name in provider.key_variables]
    assert len(names) > 5
    assert shell_environment(dict.fromkeys(names, "x")) == {}
