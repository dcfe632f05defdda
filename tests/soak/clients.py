"""Clients: what programs do with a server at random, and what each of them checks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

import anyio
from mcp.shared.exceptions import MCPError
from tests.soak.raw_client import RawSession, garbage

if TYPE_CHECKING:
    from random import Random

    import mcp_types as types
    from mcp.client import Client
    from tests.soak.editors import PairEditor, ServerEditor, TalkerEditor, ToolEditor
    from tests.soak.findings import Findings
    from tests.soak.served_agents import HttpAgents, ServedAgents

STAMP_CALL = "***CALL_TOOL stamp {}"
WHO_CALL = "***CALL_TOOL box__who {}"
VALUE_CALL = "***CALL_TOOL value {}"
_WHO = re.compile(r"(\d+) \d+")
_STAMPS = re.compile(r"(\d+) (\d+)")

MODES = ("legacy", "auto")


class Visitor(Protocol):
    """A client that comes, does a few things and leaves."""

    async def visit(self, draw: Random) -> None:
        """Do them."""
        ...


async def ask(client: Client, agent: str, message: str) -> types.CallToolResult:
    return await client.call_tool(agent, {"message": message})


def text_of(result: types.CallToolResult) -> str:
    return "".join([getattr(block, "text", "") for block in result.content])


def check_tools(tools: list[types.Tool], findings: Findings, where: str) -> dict[str, str]:
    """Check that a list is of one set of cards; gives its descriptions by name."""
    found = {tool.name: tool.description or "" for tool in tools}
    stamps = {found.get(name, "?").rpartition(" ")[2] for name in ("left", "right", "both")}
    findings.expect(len(stamps) == 1, f"{where}: torn list of tools: {sorted(stamps)}")
    findings.expect(len(found) == len(tools), f"{where}: a tool is listed twice")
    return found


class PairCaller:
    """Calls the chain of agents that must bear the same number."""

    def __init__(self, served: ServedAgents, findings: Findings, pair: PairEditor) -> None:
        self._served = served
        self._findings = findings
        self._pair = pair

    async def visit(self, draw: Random) -> None:
        mode = draw.choice(MODES)
        where = f"{self._served.name}, {mode}"
        async with self._served.client(mode) as client:
            last = 0
            for _ in range(draw.randint(1, 6)):
                if draw.random() < 0.4:
                    check_tools((await client.list_tools()).tools, self._findings, where)
                    self._findings.count("lists")
                last = await self._call(client, last, where)
                await anyio.sleep(draw.random() * 0.1)

    async def _call(self, client: Client, last: int, where: str) -> int:
        result = await ask(client, "both", STAMP_CALL)
        text = text_of(result)
        found = _STAMPS.fullmatch(text)
        self._findings.count("calls of the pair")
        if result.is_error or found is None:
            self._findings.wrong(f"{where}: the pair answered {text!r}")
            return last
        one, other = int(found[1]), int(found[2])
        self._findings.expect(one == other, f"{where}: torn set of cards: {one} and {other}")
        self._findings.expect(one >= last, f"{where}: stale set of cards: {one} after {last}")
        self._findings.expect(one <= self._pair.number, f"{where}: {one} was never written")
        if last and self._served.scope == "connection" and where.endswith("legacy"):
            self._findings.expect(one == last, f"{where}: a connection's cards changed")
        return one


class TellerCaller:
    """Calls the agent whose function changes."""

    def __init__(self, served: ServedAgents, findings: Findings, tool: ToolEditor) -> None:
        self._served = served
        self._findings = findings
        self._tool = tool

    async def visit(self, draw: Random) -> None:
        async with self._served.client(draw.choice(MODES)) as client:
            for _ in range(draw.randint(1, 5)):
                text = text_of(await ask(client, "teller", VALUE_CALL))
                self._findings.count("calls of functions")
                if text.isdigit():
                    held = 0 < int(text) <= self._tool.number
                    self._findings.expect(held, f"{self._served.name}: a function gave {text}")
                elif self._served.scope == "shared" or "`tools.py`" not in text:
                    # Other agents may be made from the file when it is wrong.
                    self._findings.wrong(f"{self._served.name}: the teller answered {text!r}")
                await anyio.sleep(draw.random() * 0.05)


class KeeperCaller:
    """Calls the agent whose MCP server changes."""

    def __init__(self, served: ServedAgents, findings: Findings, server: ServerEditor) -> None:
        self._served = served
        self._findings = findings
        self._server = server

    async def visit(self, draw: Random) -> None:
        async with self._served.client(draw.choice(MODES)) as client:
            last = 0
            for _ in range(draw.randint(1, 4)):
                text = text_of(await ask(client, "keeper", WHO_CALL))
                self._findings.count("calls of servers that cards bring")
                found = _WHO.fullmatch(text)
                number = -1 if found is None else int(found[1])
                held = last <= number <= self._server.number
                self._findings.expect(held, f"{self._served.name}: the server said {text!r}")
                last = max(last, number)
                await anyio.sleep(draw.random() * 0.1)


class Talker:
    """Says numbered things to one agent; what was answered may never be lost.

    Args:
        served: The server.
        findings: Where violations go.
        agent: The agent.
        said: Where everything that was answered is entered, in order.
        name: Distinguishes it from others.
    """

    def __init__(
        self,
        served: ServedAgents,
        findings: Findings,
        agent: TalkerEditor,
        said: dict[str, list[str]],
        name: str,
    ) -> None:
        self._served = served
        self._findings = findings
        self._agent = agent
        self._said = said
        self._name = name
        self._number = 0

    async def visit(self, draw: Random) -> None:
        agent = self._agent.name
        mode = "legacy" if self._served.scope == "connection" else draw.choice(MODES)
        own: list[str] = []
        async with self._served.client(mode) as client:
            for _ in range(draw.randint(1, 8)):
                self._number += 1
                text = f"{self._name}-{self._number}"
                result = await ask(client, agent, text)
                answer = text_of(result)
                held = not result.is_error and answer == text
                self._findings.expect(held, f"{self._served.name}: {text} was answered {answer!r}")
                if held:
                    own.append(text)
                    self._said.setdefault(self._name, []).append(text)
                    self._findings.count("messages")
                await anyio.sleep(draw.random() * 0.1)
            if self._served.scope == "connection":
                heard = (await history(client, agent))[::2]
                self._findings.expect(
                    heard == own, f"{self._served.name}: said {own}, remembered {heard}"
                )


async def history(client: Client, agent: str) -> list[str]:
    """Return what the history prompt of an agent says, message by message."""
    found = await client.get_prompt(f"{agent}_history")
    return [getattr(one.content, "text", "") for one in found.messages]


class Crowd:
    """Many calls and connections at once."""

    def __init__(self, served: ServedAgents, findings: Findings) -> None:
        self._served = served
        self._findings = findings

    async def visit(self, draw: Random) -> None:
        mode = draw.choice(MODES)
        async with self._served.client(mode) as client, anyio.create_task_group() as tasks:
            for number in range(draw.randint(2, 12)):
                agent = draw.choice(("burst", "left", "right"))
                tasks.start_soon(self._echo, client, agent, f"{number}-{draw.random()}")

    async def _echo(self, client: Client, agent: str, text: str) -> None:
        result = await ask(client, agent, text)
        self._findings.count("concurrent calls")
        held = text_of(result) == text
        self._findings.expect(held, f"{self._served.name}: `{agent}` said {text_of(result)!r}")


class Canceller:
    """Gives up on calls that take long, with the SDK's client."""

    def __init__(self, served: ServedAgents, findings: Findings) -> None:
        self._served = served
        self._findings = findings

    async def visit(self, draw: Random) -> None:
        async with self._served.client(draw.choice(MODES)) as client:
            for _ in range(draw.randint(1, 3)):
                with anyio.move_on_after(draw.random() * 0.3):
                    await ask(client, "sleeper", "never mind")
                self._findings.count("calls given up")
            await client.list_tools()


class SeekerOfAgents:
    """Calls agents that come and go: each answers, or is not there; nothing else."""

    def __init__(self, served: ServedAgents, findings: Findings) -> None:
        self._served = served
        self._findings = findings

    async def visit(self, draw: Random) -> None:
        async with self._served.client(draw.choice(MODES)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            extras = [name for name in names if name.startswith("extra-")]
            for name in draw.sample(extras, min(4, len(extras))):
                try:
                    text = text_of(await ask(client, name, "here?"))
                except MCPError as problem:
                    text = str(problem)
                gone = any(part in text for part in ("unknown tool", "no agent", "is closed"))
                self._findings.count("calls of agents that come and go")
                held = text == "here?" or gone
                self._findings.expect(held, f"{self._served.name}: `{name}` said {text!r}")


class Vandal:
    """Sends nonsense, and leaves in the middle of calls."""

    def __init__(self, served: HttpAgents, findings: Findings) -> None:
        self._served = served
        self._findings = findings

    async def visit(self, draw: Random) -> None:
        if draw.random() < 0.5:
            status = await garbage(self._served.port, draw)
            self._findings.count("garbage")
            wrong = status is not None and status >= 500
            self._findings.expect(not wrong, f"{self._served.name}: garbage got {status}")
            return
        session = RawSession(self._served.port)
        await session.begin()
        for _ in range(draw.randint(1, 3)):
            await session.leave_during("sleeper", 0.02 + draw.random() * 0.2)
            self._findings.count("clients that left during a call")
        await session.end()
