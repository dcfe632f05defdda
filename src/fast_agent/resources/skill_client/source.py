"""Where an agent's skills come from, and one of them under the name the agent calls it by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.resources.skill_client.entry import SkillEntry, SkillResource


class SkillSource(Protocol):
    """Where skills come from: the directories of this machine, or one server."""

    @property
    def label(self) -> str:
        """Its name, given by this side: the server's name in the configuration."""
        ...

    @property
    def local(self) -> bool:
        """Whether it is a directory of this machine."""
        ...

    async def skills(self) -> Sequence[SkillEntry]:
        """List the skills; the same sequence while nothing changed. Reads none of them."""
        ...

    async def complete(self, listed: SkillEntry, *, fresh: bool) -> SkillEntry:
        """Return an entry with its inventory.

        Args:
            listed: From `skills`.
            fresh: Whether to ask the source again, whatever it said before.

        Raises:
            SkillError: There is no such skill any more, or what is said of it is not valid.
            ToolError: The server cannot be reached.
        """
        ...

    async def has_unlisted(self) -> bool:
        """Return whether there may be skills that it does not list."""
        ...

    async def unlisted(self, uri: str) -> SkillEntry | None:
        """Ask for a skill by its URI; None where there is none."""
        ...

    async def read(self, file: SkillResource) -> bytes:
        """Read a file.

        Raises:
            SkillError: It cannot be had, or is larger than listed.
            ToolError: The server cannot be reached.
        """
        ...


@frozen
class NamedSkill:
    """A skill under the name an agent calls it by.

    Args:
        name: Not the name of any other skill of the agent.
        entry: What its source says of it.
        source: Where it comes from.
    """

    name: str
    entry: SkillEntry
    source: SkillSource

    @property
    def label(self) -> str:
        """The name of its source."""
        return self.source.label

    @property
    def local(self) -> bool:
        """Whether it is from a directory of this machine."""
        return self.source.local

    @property
    def key(self) -> tuple[bool, str, str]:
        """What distinguishes it from every other skill."""
        return self.local, self.label, self.entry.uri
