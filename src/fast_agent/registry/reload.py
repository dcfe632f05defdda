"""Reload: read changed cards, and those whose files changed, and take in all of them or none."""

from __future__ import annotations

from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.cards.load_set import changed_cards
from fast_agent.errors import CardError
from fast_agent.text.frozen import frozen
from fast_agent.text.source import signature_at
from fast_agent.text.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card, CardLoad
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.registry.admission import Admission
    from fast_agent.registry.card_root import CardRoot
    from fast_agent.registry.registry import Registry, Snapshot
    from fast_agent.text.source import Signature


InputsOf: TypeAlias = "Callable[[AgentConfig], Iterable[str]]"
"""Names the files an agent is made from in addition to its card, absolute; they may be missing."""


@frozen
class Reload:
    """The result of a pass over the roots.

    Args:
        version: The registry's version after it.
        added: Agents that are new.
        updated: Agents whose card, or a file it stands on, changed.
        removed: Agents that are gone.
        refused: Whether the current cards have errors, so that the last
            good set was kept whole.
        problems: What is wrong or worth a warning, in load order.
    """

    version: int
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: bool = False
    problems: tuple[Diagnostic, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the set of agents is another one now."""
        return bool(self.added or self.updated or self.removed)

    @property
    def line(self) -> str | None:
        """The line a user sees; None if nothing happened."""
        if self.refused:
            errors = sum(problem.severity == "error" for problem in self.problems)
            count = plural(errors, "error")
            return f"AgentCards not reloaded: {count}; the previous version keeps running"
        if not self.changed:
            return None
        counts = f"+{len(self.added)} ~{len(self.updated)} -{len(self.removed)}"
        return f"AgentCards reloaded: {counts}"


class Reloader:
    """Loads roots into a registry, and brings them up to date.

    A pass and a load never overlap, whatever threads they are called from.

    Args:
        registry: Where the agents go.
        inputs_of: Names the files an agent is made from in addition to its card.
        admission: What of found sets gets in; what was refused is tried again when it moved. None
            lets all in as it was read.
    """

    def __init__(
        self, registry: Registry, inputs_of: InputsOf, admission: Admission | None = None
    ) -> None:
        self._registry = registry
        self._admission = admission
        self._inputs = CardInputs(inputs_of)
        self._roots: dict[str, CardRoot] = {}
        self._taken: dict[str, CardLoad] = {}
        self._waiting: set[str] = set()
        self._refused = False
        self._deferred: list[tuple[str | None, Callable[[Mapping[str, CardLoad]], object]]] = []
        """Tools and servers for agents that are left out, and where they came from."""
        self._lock = RLock()

    @property
    def roots(self) -> tuple[CardRoot, ...]:
        """The roots there are, in load order."""
        return tuple(self._roots.values())

    @property
    def inputs(self) -> tuple[str, ...]:
        """The files that decide what agents are, in addition to their cards."""
        paths = self._inputs.paths
        return paths if self._admission is None else (*paths, *self._admission.decisions.places)

    def load(
        self,
        roots: Mapping[str, CardRoot],
        *,
        tools: Collection[str] = (),
        servers: Collection[str] = (),
        receiver: str | None = None,
        both: Collection[str] = (),
        found: Collection[str] = (),
    ) -> tuple[str, ...]:
        """Take roots in, and keep them up to date from now on.

        Args:
            roots: The roots, by what they are known by; see `CardReader.key`.
            tools: Those of them whose agents become tools of another agent.
            servers: MCP servers another agent gets.
            receiver: The agent that gets these tools and servers; None is the default agent.
            both: Those of the tool roots whose agents may be the default one all the same.
            found: Those of the roots that no user named; see `Registry.load`.

        Returns:
            The names of the agents loaded, in load order.

        Raises:
            CardError: With every problem there is; nothing is taken in.
        """
        with self._lock:
            admitted = self._admitted(roots)
            load = partial(
                self._registry.load,
                tools=tools,
                servers=servers,
                receiver=receiver,
                both=both,
                found=found,
            )
            if (tools or servers) and self._is_left_out(receiver):
                self._deferred.append((receiver, load))
                load = self._registry.load
            names = load(admitted)
            self._roots.update(roots)
            self._taken.update({key: root.load for key, root in roots.items()})
            self._inputs.take(self._registry.snapshot.load_set.cards.values())
            return names

    def run(self, *, anew: bool = False, retry: bool = False) -> Reload:
        """Look at every root once, and take in what changed.

        Errors are reported once, and again when something else changes; the last good set then
        stays whole. Nothing is raised for wrong cards.

        Args:
            anew: Whether all roots are loaded again, as after a decision about found files.
            retry: Whether the errors of the last pass are reported again although nothing changed.
        """
        with self._lock:
            before = self._registry.snapshot
            moved = [root.scan() for root in self._roots.values()]
            touched = self._inputs.touched()
            again = anew or (self._admission is not None and self._admission.moved())
            if not any(moved) and not touched and not again and not (retry and self._refused):
                return Reload(before.version)
            self._waiting |= touched
            changed = {
                key: root
                for key, root in self._roots.items()
                if root.load is not self._taken.get(key) or again
            }
            if again and not changed and not self._waiting:
                return Reload(before.version)
            try:
                self._registry.update(self._admitted(changed, again=True), self._waiting)
                self._attach_deferred()
            except CardError as error:
                self._refused = True
                return Reload(before.version, refused=True, problems=error.diagnostics)
            self._refused = False
            after = self._registry.snapshot
            self._taken.update({key: root.load for key, root in changed.items()})
            self._waiting.clear()
            self._inputs.take(after.load_set.cards.values())
            return _difference(before, after)

    def _is_left_out(self, receiver: str | None) -> bool:
        return self._admission is not None and self._admission.lacks(receiver)

    def _attach_deferred(self) -> None:
        """Pass tools and servers to the agents meant for them that may act now."""
        for one in tuple(self._deferred):
            receiver, load = one
            if not self._is_left_out(receiver):
                load({})
                self._deferred.remove(one)

    def _admitted(
        self, roots: Mapping[str, CardRoot], *, again: bool = False
    ) -> Mapping[str, CardLoad]:
        if self._admission is None:
            return {key: root.load for key, root in roots.items()}
        return self._admission.admit(roots, again=again)


def _difference(before: Snapshot, after: Snapshot) -> Reload:
    old, new = before.load_set.cards, after.load_set.cards
    changed = after.changed_after(before.version)
    return Reload(
        after.version,
        tuple(name for name in changed if name not in old),
        tuple(name for name in changed if name in old),
        tuple([name for name in old if name not in new]),
        problems=_new_warnings(before.notes, after.notes),
    )


def _new_warnings(
    before: tuple[Diagnostic, ...], after: tuple[Diagnostic, ...]
) -> tuple[Diagnostic, ...]:
    if before == after:
        return ()
    known = set(before)
    return tuple(note for note in after if note.severity == "warning" and note not in known)


class CardInputs:
    """The state of the files that cards stand on.

    Args:
        inputs_of: Names the files of one card.
    """

    def __init__(self, inputs_of: InputsOf) -> None:
        self._inputs_of = inputs_of
        self._taken: tuple[Card, ...] = ()
        self._cards: dict[str, tuple[AgentConfig, tuple[str, ...]]] = {}
        self._signatures: dict[str, Signature | None] = {}

    def take(self, cards: Iterable[Card]) -> None:
        """Note the cards there are; what changes from now on is noticed."""
        before, self._taken = self._taken, tuple(cards)
        if not self._have_same_inputs(before, self._taken):
            self._take_all(self._taken)

    def _have_same_inputs(self, before: tuple[Card, ...], cards: tuple[Card, ...]) -> bool:
        """Note the cards that changed, if each stands on the files it stood on before."""
        if len(before) != len(cards):
            return False
        for old, new in changed_cards(before, cards):
            name, config = new.config.name, new.config
            paths = tuple(self._inputs_of(config))
            if name != old.config.name or paths != self._cards[name][1]:
                return False
            self._cards[name] = config, paths
        return True

    def _take_all(self, cards: Iterable[Card]) -> None:
        before = self._cards
        now: dict[str, tuple[AgentConfig, tuple[str, ...]]] = {}
        paths: dict[str, None] = {}
        for card in cards:
            config = card.config
            name = config.name
            known = before.get(name)
            if known is None or known[0] is not config:
                known = config, tuple(self._inputs_of(config))
            now[name] = known
            if known[1]:
                paths.update(dict.fromkeys(known[1]))
        self._cards = now
        old = self._signatures
        self._signatures = {
            path: old[path] if path in old else signature_at(path) for path in paths
        }

    def touched(self) -> frozenset[str]:
        """Name the agents a file of which changed since this was last asked."""
        changed: set[str] = set()
        for path, before in self._signatures.items():
            now = signature_at(path)
            if now != before:
                self._signatures[path] = now
                changed.add(path)
        if not changed:
            return frozenset()
        names: set[str] = set()
        for name, (config, paths) in self._cards.items():
            if not changed.isdisjoint(paths):
                names.add(name)
                # Files next to it may have come or gone.
                self._cards[name] = config, tuple(self._inputs_of(config))
        for _, paths in self._cards.values():
            for path in paths:
                self._signatures.setdefault(path, signature_at(path))
        return frozenset(names)

    @property
    def paths(self) -> tuple[str, ...]:
        """All files, to be watched."""
        return tuple(self._signatures)
