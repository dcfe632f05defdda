"""History files in steps: what children start with, and what is merged into a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fast_agent.agents.conversation import Conversation
from fast_agent.messages.json_message import message_from_wire
from fast_agent.steps.steps import Codec, Step, here

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.agents.call_site import CallSite
    from fast_agent.agents.history_places import Source, Target
    from fast_agent.messages.message import Message
    from fast_agent.text.json_value import JsonValue


class StepSource:
    """The history files of a child, each reading a step.

    Args:
        child: The child's name.
        source: Reads the files.
    """

    def __init__(self, child: str, source: Source) -> None:
        self._name = f"history files of {child}"
        self._source = source

    async def __call__(self, site: CallSite) -> Iterable[Message]:
        """Return what the files hold, or held."""
        place = here()
        if place.silent:
            return await self._source(site)
        steps = place.steps

        async def work() -> Iterable[Message]:
            return await self._source(site)

        def write(messages: Iterable[Message]) -> JsonValue:
            parts = steps.parts
            return parts.digest([parts.digest_of_message(message) for message in messages])

        def read(value: JsonValue) -> Iterable[Message]:
            digests = steps.part(str(value))
            if not isinstance(digests, Sequence):
                return ()
            return [message_from_wire(steps.part(str(digest))) for digest in digests]

        return Conversation(await steps.ask(Step("read", self._name), work, Codec(write, read)))


class StepTarget:
    """A history file that children's messages are merged into, as a step.

    Args:
        child: The child's name.
        target: Merges them.
    """

    def __init__(self, child: str, target: Target) -> None:
        self._name = f"history file of {child}"
        self._target = target

    async def __call__(self, site: CallSite, messages: Sequence[Message]) -> None:
        """Merge them, or check that they are the recorded ones."""
        place = here()
        if place.silent:
            await self._target(site, messages)
            return

        async def work() -> None:
            await self._target(site, messages)

        asked = {"messages": place.steps.parts.digest_of_conversation(messages)}
        await place.steps.ask(Step("write", self._name, asked), work, _NOTHING)


_NOTHING: Final[Codec[None]] = Codec(lambda _: None, lambda _: None)
