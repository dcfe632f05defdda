"""What `check` reports of each card, beside its problems."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CardFact:
    """One card of a load-set.

    Args:
        name: The agent's name.
        type: Its type, as the field table spells it.
        path: The file, as the user named it; empty for an agent made in Python.
        default: Whether it is the default agent of the set.
        tool_only: Whether it is offered as a tool only.
    """

    name: str
    type: str
    path: str
    default: bool
    tool_only: bool
