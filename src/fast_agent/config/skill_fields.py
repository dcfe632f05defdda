"""The table of skills: every field of the frontmatter of a `SKILL.md`, with its effects."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.cards.kinds import Effects

SKILL_FIELDS: Final[Mapping[str, Effects]] = MappingProxyType(
    {
        "name": (),
        "description": (),
        "license": (),
        "compatibility": (),
        "metadata": (),
        # It names tools, but gives the skill none of them.
        "allowed-tools": (),
    }
)
"""What each field can make a found skill do; a field that is missing here is unknown."""
