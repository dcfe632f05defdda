"""Found sets: what one directory brings that no user named, and what it would do."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING

from fast_agent.text.frozen import frozen
from fast_agent.trust.origin import address_of_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from fast_agent.trust.effect import Effect
    from fast_agent.trust.origin import Root


def _empty() -> Mapping[str, str]:
    return MappingProxyType({})


def _no_effects() -> Mapping[str, Effect]:
    return MappingProxyType({})


@frozen
class Provenance:
    """The found sets that take part in a run, which its sessions remember.

    Args:
        root: The root the run belongs to: that of the set around its directory, else the directory.
        digest: Of all sets together; empty where there is none.
        effects: What they are allowed to do, as `kind subject holder` digests, with the effects.
    """

    root: Path
    digest: str = ""
    effects: Mapping[str, Effect] = field(default_factory=_no_effects, hash=False)

    @classmethod
    def of(cls, directory: Path, sets: Sequence[FoundSet], allowed: Iterable[Effect]) -> Provenance:
        """Describe the sets of a run.

        Args:
            directory: The directory the run works in, absolute and without links.
            sets: The sets.
            allowed: Those of their effects that are allowed.
        """
        around = [one.root for one in sets if directory.is_relative_to(one.root)]
        root = max(around, key=lambda one: len(one.parts), default=directory)
        digests = sorted(one.digest for one in sets)
        whole = digests[0] if len(digests) == 1 else ""
        if len(digests) > 1:
            whole = f"sha256:{sha256(' '.join(digests).encode()).hexdigest()}"
        return cls(root, whole, {_mark(one): one for one in allowed})


def _mark(effect: Effect) -> str:
    """Return what distinguishes an effect, whatever became of the files it runs or reads."""
    whole = json.dumps((effect.kind, effect.subject, effect.holder.kind, effect.holder.name))
    return sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class FoundSet:
    """What one directory brings: cards, configuration, secrets, skills, guides, tests.

    Args:
        root: The directory, absolute and without links.
        files: Digests of the files it consists of, by path relative to the root, with `/`.
        effects: What it would do, in the order it is shown to people.
        texts: Texts of those files, kept with an approval to show what changed later.
        models: The models its cards talk to with the user's keys, by agent.
        owner: The user its files belong to, by name, where that is another one; else None.
        is_open: Whether everyone may write to it. With an owner, or if it is open, the set provides
            nothing until it is approved, not even plain cards.
        place: What counts as inside the root; None for all below it.
        agents: The names of its cards.
    """

    root: Path
    files: Mapping[str, str] = field(default_factory=_empty, hash=False)
    effects: tuple[Effect, ...] = ()
    texts: Mapping[str, str] = field(default_factory=_empty, repr=False, hash=False)
    models: Mapping[str, str] = field(default_factory=_empty, hash=False)
    owner: str | None = None
    is_open: bool = False
    place: Root | None = field(default=None, repr=False, compare=False)
    agents: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def is_remote(self) -> bool:
        """Whether it is a card from an address, which `--trust` does not cover (TR-Q5)."""
        return address_of_root(self.root) is not None

    @property
    def is_strange(self) -> bool:
        """Whether it is ignored until it is approved, even plain cards (TR-F4)."""
        return self.owner is not None or self.is_open

    @cached_property
    def digest(self) -> str:
        """Return the digest of the set as it lies there, the same on every machine.

        It covers the files of the set and, of what its effects run or read, the files inside the
        root: no absolute path, no time, no size.
        """
        files = dict(self.files)
        for effect in self.effects:
            files.update({name: one for name, one in effect.files.items() if name[:1] != "/"})
        whole = json.dumps(sorted(files.items()))
        return f"sha256:{sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()}"
