"""Effects: what a found set would do beyond talking, each with the place that asks for it."""

from __future__ import annotations

from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from fast_agent.schema.kinds import EffectKind
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

EFFECT_KINDS: Final[tuple[EffectKind, ...]] = get_args(EffectKind)
"""The kinds, in the order they are shown to people:

- `run` starts a program, imports code, or hands the model a shell.
- `connect` opens a connection to an address the set names.
- `send` sends a variable, key or header somewhere.
- `read` reads outside the root, or reads what is hidden or looks secret inside it.
- `write` writes a file.
- `use` reaches something given, such as a server of the home.
- `ease` weakens a bound or a question.
"""

ANY_COMMAND: Final = "any command the model chooses"
"""The subject of an agent that has a shell."""

ANY_FILE: Final = "any file of the workspace"
"""The subject of an agent that has file tools."""

ANY_PAGE: Final = "any public web page the model chooses"
"""The subject of an agent that may fetch."""

MODEL_FILE: Final = "model file "
"""Prefix of the subject of a model file, which native code reads."""

EASING_FIELDS: Final = ("allowed-tools", "context", "model")
"""Fields of a skill that say how an agent works while it uses the skill; those of a found one have
no effect until they are approved."""

HolderKind: TypeAlias = Literal["card", "server", "setting", "skill", "guide", "test"]
"""What is left out where an effect is not allowed."""


_NO_FILES: Final[Mapping[str, str]] = MappingProxyType({})


def no_files() -> Mapping[str, str]:
    """Return the digests of an effect without files."""
    return _NO_FILES


@frozen
class Holder:
    """The part of a set that brings an effect, and is left out where the effect is not allowed.

    Args:
        kind: What it is.
        name: Its name: an agent, a server, the dotted path of a setting (`openai.base_url`),
            a skill, a guide, a test file.
    """

    kind: HolderKind
    name: str

    def __str__(self) -> str:
        """Return the name as messages show it."""
        return f"`{self.name}`" if self.kind == "card" else f"{self.kind} `{self.name}`"


@frozen
class Effect:
    """One effect.

    Two effects are the same for an approval where `kind`, `subject`, `holder`, `path` and `files`
    agree; lines may move.

    Args:
        kind: What it does.
        subject: What the approval names, in canonical spelling: a command line with its directory
            and environment, `https://host`, `NAME to https://host`, a resolved path, both names.
        holder: What brings it.
        path: The file that asks for it, relative to the root, with `/`.
        line: The line in that file, from 1; None where it has none.
        files: Digests of the files that would be run or read, by path: relative to the root where
            they are inside, else absolute.
        terms: The subject in parts, for policies: the words of a command line as written, with
            `NAME=value` of its variables first; scheme, host and port of a connection; the
            variable and the host of something sent. Empty where no policy may allow it: a shell,
            a write, a use, a provider's key for another host.
        notes: Lines for people below it, such as what a launcher downloads.
        refusal: Why it cannot be approved; None if it can.
        keys: The value that asks for it, in its file.
        instead: Of `ease`, the value that holds where it is not approved.
    """

    kind: EffectKind
    subject: str
    holder: Holder
    path: str
    line: int | None = field(default=None, compare=False)
    files: Mapping[str, str] = field(default_factory=no_files, hash=False)
    terms: tuple[str, ...] = field(default=(), compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    refusal: str | None = field(default=None, compare=False)
    keys: tuple[str | int, ...] = field(default=(), compare=False)
    instead: object = field(default=None, compare=False)

    def __hash__(self) -> int:
        """Return a hash of what differs most: approvals compare thousands."""
        return hash(self.subject) ^ hash(self.path)  # texts know theirs

    @property
    def place(self) -> str:
        """Where it is asked for, as `file:line`."""
        return self.path if self.line is None else f"{self.path}:{self.line}"
