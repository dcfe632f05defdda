"""What of a runtime goes through a tape besides models and tools: servers, pages, clock and ids."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, cast

from fast_agent.agents.taped_tools import TapedToolset
from fast_agent.messages.json_message import message_from_wire, message_to_wire
from fast_agent.messages.message import Message
from fast_agent.models.tape import Codec
from fast_agent.prompt.instruction import host_platform, python_version
from fast_agent.prompt.url_text import UrlTexts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fast_agent.agents.surroundings import Surroundings
    from fast_agent.messages.content import EmbeddedResource
    from fast_agent.models.selection import Selection
    from fast_agent.models.tape import Tape
    from fast_agent.prompt.url_text import Fetch
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.skill_tools import OfferedSkills
    from fast_agent.tools.tool import Tool


class TapedSkills:
    """The skills of a card with servers: what is listed of them goes through a tape.

    Args:
        agent: The card's name.
        skills: The skills.
        tape: The tape.
    """

    def __init__(self, agent: str, skills: OfferedSkills, tape: Tape) -> None:
        self._skills = skills
        self._tape = tape
        self._name = f"skills of {agent}"
        self._listed = TapedToolset(f"tools for {self._name}", skills, tape)
        self._block = ""

    async def tools(self) -> Sequence[Tool]:
        """Give the tools now."""
        tools = await self._listed.tools()

        async def look() -> str:
            return self._skills.block()

        form: Codec[str] = Codec(
            self._tape.parts.digest, lambda value: str(self._tape.part(str(value)))
        )
        self._block = await self._tape.ask("read", self._name, None, look, form)
        return tools

    def block(self) -> str:
        """Give the block of a prompt as of the last look at the tools."""
        return self._block


class TapedUrls(UrlTexts):
    """Fetched pages, each read of one through a tape.

    Args:
        fetch: Gets a text.
        monotonic: A clock that only goes forward, in seconds.
        tape: The tape.
    """

    def __init__(self, fetch: Fetch, monotonic: Callable[[], float], tape: Tape) -> None:
        super().__init__(fetch, monotonic)
        self._tape = tape

    def kept(self, url: str) -> str | None:
        """Give nothing, so that every turn's reading is on the tape."""
        del url

    async def get(self, url: str, check: Callable[[str], None] | None = None) -> str:
        """Give the text of a URL; see `UrlTexts.get`."""
        fetched = super().get
        tape = self._tape

        async def work() -> str:
            return await fetched(url, check)

        form: Codec[str] = Codec(tape.parts.digest, lambda value: str(tape.part(str(value))))
        return await tape.ask("read", url, None, work, form)


def taped_surroundings(around: Surroundings, tape: Tape) -> Surroundings:
    """Have the clock and new ids go through a tape; the machine is the recorded one.

    Args:
        around: What the program gives.
        tape: The tape.
    """
    now, new_turn_id = around.now, around.new_turn_id

    def read_clock() -> datetime:
        return datetime.fromisoformat(tape.note("clock", "", lambda: now().isoformat()))

    with tape.places.outside():
        platform = tape.note("fact", "platform", lambda: around.platform or host_platform())
        python = tape.note("fact", "python", lambda: around.python or python_version())

    def new_id() -> str:
        turn_id = tape.note("id", "turn", new_turn_id)
        tape.places.turn_ids.add(turn_id)
        return turn_id

    return replace(
        around,
        now=read_clock,
        new_turn_id=new_id,
        platform=platform,
        python=python,
    )


async def ask_instructions(
    agent: str, look: Callable[[], Awaitable[dict[str, str]]], tape: Tape
) -> dict[str, str]:
    """Give what the servers of a card say about their use, whichever turn opens them.

    Args:
        agent: The card's name.
        look: Opens the servers and asks them.
        tape: The tape.

    Raises:
        ToolError: A server cannot be used.
    """
    form: Codec[dict[str, str]] = Codec(_plain, lambda value: cast("dict[str, str]", value))
    with tape.places.outside():
        return await tape.ask("read", f"servers of {agent}", None, look, form)


async def ask_contents(
    name: str, read: Callable[[], Awaitable[tuple[EmbeddedResource, ...]]], tape: Tape
) -> tuple[EmbeddedResource, ...]:
    """Read a resource.

    Args:
        name: The server and the URI.
        read: Reads it from the server.
        tape: The tape.

    Raises:
        ToolError: It cannot be read.
    """
    return await tape.ask("read", name, None, read, _CONTENTS)


def taped_selection(agent: str, selection: Selection, tape: Tape) -> Selection:
    """Keep a model that the machine chose, not the card: the same in every replay.

    Args:
        agent: The agent's name.
        selection: The choice here.
        tape: The tape.
    """
    with tape.places.outside():
        return replace(
            selection, text=tape.note("fact", f"model of {agent}", lambda: selection.text)
        )


def _plain(value: dict[str, str]) -> JsonValue:
    return value


_CONTENTS: Final[Codec[tuple[EmbeddedResource, ...]]] = Codec(
    lambda blocks: message_to_wire(Message("user", blocks)),
    lambda value: cast("tuple[EmbeddedResource, ...]", message_from_wire(value).content),
)
