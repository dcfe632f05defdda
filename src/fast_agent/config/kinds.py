"""Kinds of texts only a configuration has; all others are those of cards."""

from __future__ import annotations

from dataclasses import dataclass

from fast_agent.cards.kinds import Text


@dataclass(frozen=True, slots=True)
class SecretText(Text):
    """A text that may be a secret: an unset variable in it leaves it unset."""


@dataclass(frozen=True, slots=True)
class PathText(Text):
    """A path, relative to the file it is written in; a URI stays as it is.

    Args:
        program: A bare name stays too, to be looked up on the `PATH`.
    """

    program: bool = False
