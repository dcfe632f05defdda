"""The shell tool: `execute` runs a command and returns its output and exit code.

It is offered only to agents whose card, or whose user, asks for it.
"""

from __future__ import annotations

import signal
from pathlib import Path
from shutil import which
from time import monotonic
from typing import TYPE_CHECKING

from fast_agent.config.settings import SHELL_OUTPUT_BYTES, SHELL_TIMEOUT_SECONDS
from fast_agent.errors import ToolError
from fast_agent.messages.message import TextContent, ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.text.frozen import frozen
from fast_agent.text.redaction import is_secret_name, is_secret_value
from fast_agent.text.visible import visible
from fast_agent.text.wording import plural
from fast_agent.tools.shell.process_group import ProcessGroup, make_private, warn_under_root
from fast_agent.tools.tool import RuntimeTool
from fast_agent.trust.policy import marked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.messages.message import ToolCall
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.tool import Progress, ToolContext


NAME = "execute"

KEY_VARIABLE = "FAST_AGENT_IDEMPOTENCY_KEY"
"""The variable of a command that holds the idempotency key of its call."""

_DRAIN_SECONDS = 0.1
_PROGRESS_SECONDS = 0.1
_PROGRESS_LINES = 5
_PROGRESS_LENGTH = 200
_PROGRESS_BYTES = 4096
_CHUNK = 64 * 1024


@frozen(kw_only=True)
class ShellLimits:
    """Bounds of one command.

    Args:
        timeout_seconds: Longest run of a command that asks for no other.
        max_timeout_seconds: Longest run a command may ask for.
        head_bytes: Output kept from its start, in bytes.
        tail_bytes: Output kept from its end.
        grace_seconds: How long processes have to end when they are asked to.
    """

    timeout_seconds: float = SHELL_TIMEOUT_SECONDS
    max_timeout_seconds: float = 3600.0
    head_bytes: int = SHELL_OUTPUT_BYTES // 2
    tail_bytes: int = SHELL_OUTPUT_BYTES // 2
    grace_seconds: float = 2.0

    @property
    def longest_seconds(self) -> float:
        """Longest run of any command."""
        return max(self.timeout_seconds, self.max_timeout_seconds)


DEFAULT_LIMITS = ShellLimits()


class ShellTool(RuntimeTool):
    """Runs shell commands.

    Each command runs in a new session without input. When it ends, runs out of time or is
    cancelled, every process it started that has not left its group is ended too. A cancelled one
    is asked by SIGINT, then by SIGTERM, and is killed then.

    Args:
        directory: Where commands run.
        environment: Their whole environment.
        shell: The program that takes `-c` and a command.
        limits: Bounds of one command.
        clock: Seconds, for the pace of progress reports.
    """

    __slots__ = ("_clock", "_directory", "_environment", "_limits", "_shell", "_spec")

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str],
        *,
        shell: str = "/bin/sh",
        limits: ShellLimits = DEFAULT_LIMITS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._directory = directory
        self._environment = environment
        self._shell = shell
        self._limits = limits
        self._clock = clock
        self._spec = _spec(Path(shell).name, directory, limits)

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        return self._spec

    @property
    def repeatable(self) -> bool:
        """Always False: the effect of a command is unknown."""
        return False

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run the command of a call.

        Args:
            call: The call, with `command` and perhaps `timeout_seconds`.
            context: Where to report the last lines of output now and then; the command finds its
                idempotency key in `FAST_AGENT_IDEMPOTENCY_KEY`.

        Returns:
            Its output and exit code; an error result when it failed, ran out of time or could not
            be started.
        """
        make_private()
        warn_under_root()
        try:
            command, timeout = self._arguments(call)
            if not self._directory.is_dir():
                raise ToolError(f"the directory `{self._directory}` does not exist")
            group = await ProcessGroup.start(
                [self._shell, "-c", command],
                cwd=self._directory,
                env={**self._environment, KEY_VARIABLE: context.idempotency_key},
                grace_seconds=self._limits.grace_seconds,
            )
        except ToolError as problem:
            return ToolResult.error(call.id, problem.message)
        except (OSError, ValueError) as problem:
            return ToolResult.error(call.id, f"the command could not be started: {problem}")
        output = BoundedOutput(self._limits.head_bytes, self._limits.tail_bytes)
        try:
            timed_out = await self._watch(group, output, timeout, context.progress)
        finally:
            # Where the group still runs, the turn was stopped.
            await group.close(interrupt=True)
        limit = timeout if timed_out else None
        return _result(call.id, output, group.process.returncode or 0, limit)

    def _arguments(self, call: ToolCall) -> tuple[str, float]:
        known = ("command", "timeout_seconds")
        further = [name for name in call.arguments if name not in known]
        if further:
            raise ToolError(
                f"`{further[0]}` is not an argument; there are {known[0]} and {known[1]}"
            )
        command = call.arguments.get("command")
        if not isinstance(command, str) or not command.strip():
            raise ToolError("`command` must be a shell command, as a string")
        timeout = call.arguments.get("timeout_seconds")
        if timeout is None:
            return command, self._limits.timeout_seconds
        most = self._limits.longest_seconds
        if (
            not isinstance(timeout, int | float)
            or isinstance(timeout, bool)
            or not 0 < timeout <= most
        ):
            raise ToolError(f"`timeout_seconds` must be a number above 0 and at most {most:g}")
        return command, float(timeout)

    async def _watch(
        self, group: ProcessGroup, output: BoundedOutput, timeout: float, progress: Progress
    ) -> bool:
        """Read until the command ends or its time is over; return whether it was the latter."""
        from anyio import Event, create_task_group, move_on_after

        drained = Event()
        timed_out = True

        async def read() -> None:
            await self._read(group, output, progress)
            drained.set()

        async with create_task_group() as tasks:
            tasks.start_soon(read)
            with move_on_after(timeout):
                await group.process.wait()
                timed_out = False
            if not timed_out:
                with move_on_after(_DRAIN_SECONDS):
                    await drained.wait()
            await group.end()
            # A process that left the group may hold the stream open: what it writes is not awaited.
            silent_at = -1
            with move_on_after(self._limits.grace_seconds):
                while not drained.is_set() and output.total != silent_at:
                    silent_at = output.total
                    with move_on_after(_DRAIN_SECONDS):
                        await drained.wait()
            tasks.cancel_scope.cancel()
        return timed_out

    async def _read(self, group: ProcessGroup, output: BoundedOutput, progress: Progress) -> None:
        from anyio import EndOfStream, move_on_after

        stream = group.process.stdout
        if stream is None:
            return
        lines, reported, end, is_due = 0, self._clock(), b"", False
        while True:
            # What came since the last report is reported also where nothing comes after it.
            with move_on_after(_PROGRESS_SECONDS if is_due else None):
                try:
                    data = await stream.receive(_CHUNK)
                except EndOfStream:
                    return
                output.add(data)
                lines += data.count(b"\n")
                end, is_due = (end + data)[-_PROGRESS_BYTES:], True
            now = self._clock()
            if now - reported >= _PROGRESS_SECONDS:
                reported, is_due = now, False
                progress(lines, None, _last_lines(end))


def shell_tool(
    config: AgentConfig,
    workspace: Path,
    environ: Mapping[str, str],
    *,
    given: Collection[str] = (),
    limits: ShellLimits = DEFAULT_LIMITS,
) -> ShellTool:
    """Make the shell tool of a card.

    Args:
        config: The card. Its `cwd` is relative to its own directory; without one, commands run in
            the workspace.
        workspace: The directory the program works in.
        environ: The environment of the program.
        given: Names of variables that commands get although they look like secrets.
        limits: Bounds of one command.

    Returns:
        The tool. It uses `bash` where there is one.
    """
    directory = workspace
    if config.cwd is not None:
        directory = (config.directory or workspace) / config.cwd
    environment = marked(shell_environment(environ, given))
    shell = which("bash", path=environ.get("PATH")) or "/bin/sh"
    return ShellTool(directory, environment, shell=shell, limits=limits)


def _spec(shell: str, directory: Path, limits: ShellLimits) -> ToolSpec:
    description = (
        f"Run a command with `{shell}` in `{directory}`. Gives the output (errors included) and the"
        " exit code. There is no input, and processes left running in the background end with the"
        f" command. Of a long output the first {limits.head_bytes:,} and the last"
        f" {limits.tail_bytes:,} bytes are shown."
    )
    most = limits.longest_seconds
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command."},
            "timeout_seconds": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": most,
                "default": limits.timeout_seconds,
                "description": "End the command after this many seconds.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    }
    return ToolSpec(NAME, description, schema)


def _result(call_id: str, output: BoundedOutput, code: int, limit: float | None) -> ToolResult:
    text = output.text()
    if limit is not None:
        ending = f"[ended: it ran longer than {limit:g} s]"
    elif code < 0:
        ending = f"[killed by {_signal_name(-code)}]"
    else:
        ending = f"[exit code {code}]" if text else f"[exit code {code}, no output]"
    newline = "" if not text or text.endswith("\n") else "\n"
    return ToolResult(
        call_id,
        (TextContent(f"{text}{newline}{ending}"),),
        is_error=limit is not None or code != 0,
        structured={
            "exit_code": code,
            "timed_out": limit is not None,
            "output_bytes": output.total,
            "omitted_bytes": output.omitted,
        },
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_lines(data: bytes) -> str | None:
    lines = data.decode("utf-8", "replace").splitlines()
    shown = [visible(line)[:_PROGRESS_LENGTH] for line in lines if line.strip()]
    return "\n".join(shown[-_PROGRESS_LINES:]) or None


class BoundedOutput:
    """Takes any number of bytes and holds no more than twice `head` and `tail` together.

    Args:
        head: Bytes kept from the start.
        tail: Bytes kept from the end.
    """

    __slots__ = ("_head", "_head_limit", "_tail", "_tail_limit", "_total")

    def __init__(self, head: int, tail: int) -> None:
        self._head_limit = head
        self._tail_limit = tail
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    @property
    def total(self) -> int:
        """Bytes that were added."""
        return self._total

    @property
    def omitted(self) -> int:
        """Bytes that `text` leaves out."""
        return max(0, self._total - len(self._head) - self._tail_limit)

    def add(self, data: bytes) -> None:
        """Add what came."""
        self._total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room else data
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: len(self._tail) - self._tail_limit]

    def text(self) -> str:
        """Return the text: whole, or its ends with a note between them.

        Returns:
            UTF-8 text; wrong bytes and NUL characters are shown as U+FFFD. A character cut in two
            by the note is left out.
        """
        if not self.omitted:
            return _decode(bytes(self._head + self._tail))
        head = bytes(self._head)
        tail = bytes(self._tail[len(self._tail) - self._tail_limit :])
        note = f"\n[… {plural(self.omitted, 'byte')} left out …]\n"
        return _decode(_without_cut_end(head)) + note + _decode(_without_cut_start(tail))


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")


def _without_cut_end(data: bytes) -> bytes:
    """Drop the first bytes of a character whose last ones are missing."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if needed > back else data
        if byte < 0x80:
            break
    return data


def _without_cut_start(data: bytes) -> bytes:
    """Drop the last bytes of a character whose first ones are missing."""
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]


def shell_environment(environ: Mapping[str, str], given: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that commands may see.

    Args:
        environ: The environment of the program.
        given: Names that commands get although they look like secrets.

    Returns:
        The variables in `given`, and those that look like a secret neither by their name nor by
        their value.
    """
    return {
        name: value
        for name, value in environ.items()
        if name in given or not (is_secret_name(name) or is_secret_value(value))
    }
