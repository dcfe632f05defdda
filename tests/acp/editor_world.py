"""An editor: the reference client, with a person in front of it, connected to `fast-agent acp`."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
from acp import RequestError, connect_to_agent, spawn_agent_process, text_block
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    CreateTerminalResponse,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    ElicitationUrlCapabilities,
    FileSystemCapabilities,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestPermissionResponse,
    SessionNotification,
    TerminalExitStatus,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)
from pydantic import ValidationError
from tests.patience import until
from tests.whole_file import write_whole

from fast_agent import FastAgent
from fast_agent.acp.opening import SessionOpening
from fast_agent.acp.remembered import RememberedPermissions
from fast_agent.acp.server import serve
from fast_agent.errors import SessionError
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from acp.client import ClientSideConnection

    from fast_agent.cards.agent_config import FileAccess

PROGRAM = Path(sys.executable).with_name("fast-agent")

EVERYTHING = ClientCapabilities(
    fs=FileSystemCapabilities(read_text_file=True, write_text_file=True),
    terminal=True,
    elicitation=ElicitationCapabilities(
        form=ElicitationFormCapabilities(), url=ElicitationUrlCapabilities()
    ),
)
"""What an editor may offer."""


@dataclass
class Terminal:
    """A command that runs in the editor."""

    process: asyncio.subprocess.Process
    output: asyncio.Task[bytes]


@dataclass
class Editor:
    """What the editor does when it is asked, and what was reported to it.

    Attributes:
        choose: The option the person takes, by kind; None dismisses the question.
        answers: What the person fills into forms.
        updates: Every update, as it came over the wire.
    """

    choose: str | None = "allow_once"
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    updates: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    forms: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    written: dict[str, str] = field(default_factory=dict[str, str])
    unsaved: dict[str, str] = field(default_factory=dict[str, str])
    terminals: dict[str, Terminal] = field(default_factory=dict[str, Terminal])
    released: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])
    came: anyio.Event = field(default_factory=anyio.Event)

    def observe(self, event: Any) -> None:
        """Hold a message of the agent to the schema."""
        message = event.message
        if event.direction != "incoming" or message.get("method") != "session/update":
            return
        try:
            SessionNotification.model_validate(message["params"])
        except ValidationError as error:
            self.wrong.append(f"{message}: {error}")

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        wire = update.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.updates.append({"sessionId": session_id, **wire})
        self.came.set()
        self.came = anyio.Event()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_: Any
    ) -> RequestPermissionResponse:
        shown = tool_call.model_dump(mode="json", by_alias=True, exclude_none=True)
        offered = {option.kind: option for option in options}
        names = [option.name for option in options]
        self.asked.append({"sessionId": session_id, "toolCall": shown, "options": names})
        self.came.set()
        if self.choose == "wait":
            await asyncio.sleep(3600)
        chosen = offered.get(self.choose or "")
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        )

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.forms.append((message, mode))
        return AcceptElicitationResponse(action="accept", content=self.answers or None)

    async def read_text_file(
        self,
        session_id: str,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **_: Any,
    ) -> ReadTextFileResponse:
        if path in self.unsaved:
            text = self.unsaved[path]
        else:
            try:
                text = await anyio.Path(path).read_text("utf-8")
            except OSError as error:
                raise RequestError.resource_not_found(path) from error
        lines = text.splitlines(keepends=True)
        first = (line or 1) - 1
        return ReadTextFileResponse(content="".join(lines[first:][: limit or len(lines)]))

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> WriteTextFileResponse:
        self.written[path] = content
        return WriteTextFileResponse()

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        cwd: str | None = None,
        **_: Any,
    ) -> CreateTerminalResponse:
        process = await asyncio.create_subprocess_exec(
            command,
            *(args or []),
            cwd=cwd,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert process.stdout is not None
        name = f"terminal-{len(self.terminals) + 1}"
        reading = asyncio.create_task(process.stdout.read())
        self.terminals[name] = Terminal(process, reading)
        return CreateTerminalResponse(terminal_id=name)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> WaitForTerminalExitResponse:
        code = await self.terminals[terminal_id].process.wait()
        return WaitForTerminalExitResponse(exit_code=code if code >= 0 else None)

    async def terminal_output(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> TerminalOutputResponse:
        terminal = self.terminals[terminal_id]
        output = (await terminal.output).decode()
        code = await terminal.process.wait()
        ended = TerminalExitStatus(exit_code=code if code >= 0 else None)
        return TerminalOutputResponse(output=output, truncated=False, exit_status=ended)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        self.terminals[terminal_id].process.kill()

    async def release_terminal(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> ReleaseTerminalResponse:
        self.released.append(terminal_id)
        process = self.terminals[terminal_id].process
        if process.returncode is None:
            process.kill()
        await process.wait()
        return ReleaseTerminalResponse()

    def on_connect(self, conn: Any) -> None: ...

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The updates of a kind."""
        return [one for one in self.updates if one["sessionUpdate"] == kind]

    def said(self, kind: str = "agent_message_chunk") -> str:
        """The text of all chunks of a kind."""
        return "".join(one["content"].get("text", "") for one in self.of(kind))

    async def until(self, kind: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until there are so many updates of a kind."""
        with anyio.fail_after(60):
            while len(self.of(kind)) < count:
                await self.came.wait()
        return self.of(kind)


@dataclass
class Connected:
    """An editor with its agent."""

    editor: Editor
    agent: ClientSideConnection
    cwd: Path
    home: Path

    async def open(self, **more: Any) -> Any:
        """Open a session in the directory."""
        return await self.agent.new_session(cwd=str(self.cwd), **more)

    async def prompt(self, session_id: str, text: str) -> Any:
        """Send a text and wait for the end of the turn."""
        return await self.agent.prompt(session_id=session_id, prompt=[text_block(text)])

    async def begun(self, *session_ids: str) -> None:
        """Wait until the first turns of sessions have begun, as their logs show."""

        def is_recorded() -> bool:
            try:
                states = [SessionStore(self.home).read(one)[1] for one in session_ids]
            except SessionError:
                return False
            return all(state.history("agent") for state in states)

        await until(is_recorded)


@asynccontextmanager
async def connected(
    place: Path,
    *cards: str,
    editor: Editor | None = None,
    capabilities: ClientCapabilities | None = None,
    model: str | None = "passthrough",
    shell: bool = False,
    files: FileAccess | None = None,
    watch: bool = False,
    kept: bool = True,
) -> AsyncGenerator[Connected]:
    """Connect the reference client to an agent in this process, over pipes.

    Every message the agent sends is held to the schema of the reference library.
    """
    program = loaded(place, *cards)
    home = place / "home"
    opening = SessionOpening(
        program=program,
        remembered=RememberedPermissions(home / "permissions.json"),
        new_id=lambda: f"memory-{os.urandom(4).hex()}",
        model=model,
        shell=shell,
        files=files,
        store=partial(SessionStore, home) if kept else None,
    )
    there, here = os.pipe(), os.pipe()
    reader, writer = await streams(here[0], there[1])
    editor = editor or Editor()
    try:
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                await serve(opening, there[0], here[1], watch=watch)

            tasks.start_soon(run)
            agent = connect_to_agent(
                cast("Any", editor),
                writer,
                reader,
                use_unstable_protocol=True,
                observers=[editor.observe],
            )
            await agent.initialize(protocol_version=1, client_capabilities=capabilities)
            yield Connected(editor, agent, work(place), home)
            assert editor.wrong == []
            await agent.close()
            writer.close()
    finally:
        os.close(there[0])
        os.close(here[1])


@asynccontextmanager
async def started(
    place: Path, *options: str, editor: Editor | None = None
) -> AsyncGenerator[Connected]:
    """Connect the reference client to `fast-agent acp`, a process of its own."""
    editor = editor or Editor()
    home = place / "home"
    environ = {**os.environ, "FAST_AGENT_HOME": str(home), "HOME": str(home)}
    spawned = spawn_agent_process(
        cast("Any", editor),
        str(PROGRAM),
        "acp",
        *options,
        cwd=work(place),
        env=environ,
        use_unstable_protocol=True,
    )
    async with spawned as (agent, _):
        await agent.initialize(protocol_version=1, client_capabilities=EVERYTHING)
        yield Connected(editor, agent, work(place), home)


async def streams(
    input_fd: int, output_fd: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return the ends of two pipes as streams."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=64 << 20)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(input_fd, "rb", 0)
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(output_fd, "wb", 0)
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


def work(place: Path) -> Path:
    """The directory an editor works in."""
    path = place / "work"
    path.mkdir(exist_ok=True)
    return path


def loaded(place: Path, *cards: str) -> FastAgent:
    """A program with some cards of its directory."""
    home = str(place / "home")
    program = FastAgent(
        "test",
        cwd=work(place),
        environ={"PATH": os.environ["PATH"], "HOME": home, "FAST_AGENT_HOME": home},
        ignore_config=True,
    )
    if cards:
        program.load_agents(*cards)
    else:
        program.agent("agent", default=True)
    return program


def write_card(place: Path, name: str, *fields: str, body: str = "Be brief.") -> str:
    """Write a card beside the working directory, and give its path."""
    path = place / "cards" / name
    path.parent.mkdir(exist_ok=True)
    write_whole(path, "\n".join(("---", *fields, "---", body)))
    return str(path)
