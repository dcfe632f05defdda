"""History files on a tape: what children start with is recorded, and a replay writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fast_agent.agents.conversation import Conversation
from fast_agent.messages.json_message import message_from_wire
from fast_agent.models.tape import Codec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.agents.call_site import CallSite
    from fast_agent.agents.history_places import Source, Target
    from fast_agent.messages.message import Message
    from fast_agent.models.tape import Tape
    from fast_agent.text.json_value import JsonValue


class TapedSource:
    """The history files of a child, each reading through a tape.

    Args:
        child: The child's name.
        source: Reads the files.
        tape: The tape.
    """

    def __init__(self, child: str, source: Source, tape: Tape) -> None:
        self._name = f"history files of {child}"
        self._source = source
        self._tape = tape

    async def __call__(self, site: CallSite) -> Conversation:
        """Give what the files hold, or held."""

        async def work() -> Iterable[Message]:
            return await self._source(site)

        form: Codec[Iterable[Message]] = Codec(self._written, self._read)
        return Conversation(await self._tape.ask("read", self._name, None, work, form))

    def _written(self, messages: Iterable[Message]) -> JsonValue:
        parts = self._tape.parts
        return parts.digest([parts.digest_of_message(message) for message in messages])

    def _read(self, value: JsonValue) -> Iterable[Message]:
        digests = self._tape.part(str(value))
        if not isinstance(digests, Sequence):
            return ()
        return [message_from_wire(self._tape.part(str(digest))) for digest in digests]


class TapedTarget:
    """A history file that children's messages are merged into, except in a replay.

    Args:
        child: The child's name.
        target: Merges them.
        tape: The tape.
    """

    def __init__(self, child: str, target: Target, tape: Tape) -> None:
        self._name = f"history file of {child}"
        self._target = target
        self._tape = tape

    async def __call__(self, site: CallSite, messages: Sequence[Message]) -> None:
        """Merge them, or see that they are the recorded ones."""

        async def work() -> None:
            await self._target(site, messages)

        asked = {"messages": self._tape.parts.digest_of_conversation(messages)}
        await self._tape.ask("write", self._name, asked, work, _NOTHING)


_NOTHING: Codec[None] = Codec(lambda _: None, lambda _: None)
