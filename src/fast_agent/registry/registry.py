"""The registry: which agents there are now, and where each came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.cards.card import Card
from fast_agent.cards.fields import FIELDS_OF
from fast_agent.cards.load_set import LoadSet, changed_cards, check_set, default_card
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import ATTACHED_AGENT_GONE, CALLS_NO_AGENTS
from fast_agent.errors import CardError
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.load import CardLoad
    from fast_agent.cards.load_set import Probe

Roots: TypeAlias = Mapping[str, tuple[Card, ...]]
"""Cards by the root they were loaded from: an absolute path or an address, in load order."""


@frozen
class AttachedTools:
    """What an agent was given at run time, over its card.

    Args:
        agents: Agents it may call as tools.
        servers: MCP servers it uses.
        roots: Roots all of whose agents it may call, those that come later too.
    """

    agents: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()

    def with_more(self, roots: Iterable[str], servers: Iterable[str]) -> AttachedTools:
        """Return these and more; nothing is held twice."""
        return replace(
            self,
            roots=tuple(dict.fromkeys((*self.roots, *roots))),
            servers=tuple(dict.fromkeys((*self.servers, *servers))),
        )

    def over(self, config: AgentConfig, agents: Iterable[str]) -> AgentConfig:
        """Return a configuration with these additions; what it already has is not added again.

        Args:
            config: The configuration of its card.
            agents: Those of the agents given to it that there are.
        """
        more = tuple(name for name in dict.fromkeys(agents) if name not in config.agents)
        servers = tuple(name for name in self.servers if name not in config.servers)
        if not more and not servers:
            return config
        return replace(config, agents=(*config.agents, *more), servers=(*config.servers, *servers))


def with_additions(
    roots: Roots, added: Mapping[str, AttachedTools], before: Mapping[str, Card]
) -> tuple[tuple[Card, ...], list[Diagnostic]]:
    """Return all cards with their additions.

    Args:
        roots: The cards as they were loaded.
        added: The additions, by agent.
        before: The cards of the last snapshot; one that comes out the same is used again.

    Returns:
        The cards in load order, and a warning for each agent that was given to another and is not
        there now; it is given again when it comes back.
    """
    groups = tuple(roots.values())
    # One root is the common case; its cards are given on as they are, not copied.
    every = groups[0] if len(groups) == 1 else tuple(chain.from_iterable(groups))
    if not added:
        return every, []
    cards = list(every)
    names = {card.config.name for card in cards}
    lost: list[Diagnostic] = []
    for number, card in enumerate(cards):
        name = card.config.name
        own = added.get(name)
        if own is None:
            continue
        lost.extend(_gone(card, own, names))
        given = [one for one in _agents_of(own, roots) if one in names and one != name]
        if given and not calls_agents(card.config):
            lost.append(_unused_agents_problem(card))
            given = []
        config = own.over(card.config, given)
        if config is not card.config:
            known = before.get(name)
            same = known is not None and known.config == config and known.document is card.document
            cards[number] = known if known and same else replace(card, config=config)
    return tuple(cards), lost


def _agents_of(own: AttachedTools, roots: Roots) -> Iterable[str]:
    yield from own.agents
    for root in own.roots:
        yield from (card.config.name for card in roots.get(root, ()))


def calls_agents(config: AgentConfig) -> bool:
    """Whether an agent of this type can be given others to call."""
    return "agents" in FIELDS_OF[config.type]


def _unused_agents_problem(card: Card) -> Diagnostic:
    config = card.config
    return Diagnostic(
        CALLS_NO_AGENTS,
        f"`{config.name}` is of type `{config.type}`, and calls none of the agents given to it",
        card.path,
        severity="warning",
        hint="attach them to another agent with `--agent NAME`",
    )


def _gone(card: Card, own: AttachedTools, names: Collection[str]) -> Iterable[Diagnostic]:
    for name in own.agents:
        if name not in names:
            yield Diagnostic(
                ATTACHED_AGENT_GONE,
                f"`{name}`, given to `{card.config.name}` as a tool, no longer exists",
                card.path,
                severity="warning",
                hint="it becomes a tool again when its card comes back",
            )


Remarks: TypeAlias = "Mapping[str, tuple[Diagnostic, ...]]"

CODE = "<code>"
"""The root of agents that decorators made."""


@frozen
class Snapshot:
    """The agents at one moment; replaced as a whole, never changed.

    Args:
        version: Rises by one whenever something changed; 0 is the empty registry.
        load_set: The agents, checked together.
        roots: The cards as they were loaded, by root.
        added: What agents were given at run time, by their names.
        remarks: Warnings and notes of the files of each root, by root.
        notes: Those of all roots, and those of the checks that let this set pass.
        changed_at: By agent, the version with which it, or a file it stands on, last changed.
    """

    version: int
    load_set: LoadSet
    roots: Roots
    added: Mapping[str, AttachedTools]
    remarks: Remarks = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[Diagnostic, ...] = ()
    changed_at: MappingProxyType[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def changed_after(self, version: int) -> tuple[str, ...]:
        """Name the agents that changed after a version, in load order."""
        return tuple([name for name, at in self.changed_at.items() if at > version])

    def changed_since(self, version: int) -> frozenset[str]:
        """Name the agents that changed after a version, and all that depend on one of them."""
        changed = self.changed_after(version)
        return frozenset(changed) | self.load_set.dependents(changed)


_EMPTY = Snapshot(0, LoadSet.of(()), MappingProxyType({}), MappingProxyType({}))


class Registry:
    """Holds the current snapshot. A change happens whole or not at all.

    Args:
        servers: Names of the configured MCP servers.
        probes: Checks of each card by the rooms above the cards.
        permit: Checks the cards of a whole set at every change; None lets every set pass.
    """

    def __init__(
        self,
        servers: Collection[str],
        probes: Iterable[Probe] = (),
        permit: Callable[[Sequence[Card]], Iterable[Diagnostic]] | None = None,
    ) -> None:
        self._permit = permit
        self._snapshot = _EMPTY
        self._checks = SetChecks(servers, probes)

    @property
    def snapshot(self) -> Snapshot:
        """The agents now."""
        return self._snapshot

    def expect(self, servers: Collection[str], probes: Iterable[Probe]) -> None:
        """Check cards by another configuration from the next change on; see the arguments."""
        self._checks = SetChecks(servers, probes)

    def load(
        self,
        loads: Mapping[str, CardLoad],
        *,
        tools: Collection[str] = (),
        servers: Collection[str] = (),
        receiver: str | None = None,
        both: Collection[str] = (),
        found: Collection[str] = (),
    ) -> tuple[str, ...]:
        """Take in what was loaded; agents that are gone from a root are removed.

        Args:
            loads: What each root gave.
            tools: Those of the roots whose agents become tools of another agent.
            servers: MCP servers another agent gets.
            receiver: The agent that gets these tools and servers; None is the default agent.
            both: Those of the tool roots whose agents may be the default one all the same.
            found: Those of the roots that no user named: a receiver that calls no agents goes
                without their tools, as the default agent does.

        Returns:
            The names of the agents loaded, in load order.

        Raises:
            CardError: With every problem there is; the registry is as it was.
        """
        roots = self._roots_with(loads)
        added = dict(self._snapshot.added)
        sound = not any(load.failed for load in loads.values())
        if sound and (tools or servers):
            if receiver is not None:
                _check_receiver(receiver, roots, set(tools).difference(found))
            name = receiver or _receiver(roots, tools, both)
            added[name] = added.get(name, AttachedTools()).with_more(tools, servers)
        self._swap(roots, added, loads)
        names = [card.config.name for load in loads.values() for card in load.cards]
        return tuple(dict.fromkeys(names))

    def update(self, loads: Mapping[str, CardLoad], touched: Collection[str] = ()) -> None:
        """Take in what was loaded again; it is `load`, quick where little changed.

        Args:
            loads: What each root that changed gave.
            touched: Agents whose cards stand on files that changed, such as function files.

        Raises:
            CardError: With every problem there is; the registry is as it was.
        """
        self._swap(self._roots_with(loads), self._snapshot.added, loads, touched)

    def add(self, card: Card) -> None:
        """Take in an agent a decorator made; `check` speaks of what it refers to.

        Raises:
            CardError: Another agent has its name.
        """
        roots = dict(self._snapshot.roots)
        roots[CODE] = (*roots.get(CODE, ()), card)
        # A decorator further down may make what this one refers to.
        taken = self._snapshot.load_set.cards.get(card.config.name)
        if taken is not None:
            raise CardError(
                f"there are two agents called `{card.config.name}`",
                hint=f"the other is {f'in {taken.path}' if taken.path else 'made in code too'}",
            )
        before = self._snapshot
        load_set = LoadSet.of(_cards(roots))
        after = replace(before, load_set=load_set, roots=MappingProxyType(roots))
        self._snapshot = _next(before, after, ())

    def add_functions(
        self, functions: Iterable[Callable[..., object]], agent: str | None = None
    ) -> None:
        """Add function tools to agents that decorators made, where they were skipped.

        Args:
            functions: The functions.
            agent: The agent; None is each whose type has function tools.

        Raises:
            CardError: The agent was not made in Python, or its type has no function tools.
        """
        wanted = tuple(functions)
        roots = dict(self._snapshot.roots)
        cards = list(roots.get(CODE, ()))
        found = False
        for index, card in enumerate(cards):
            config = card.config
            if agent not in (None, config.name) or "function_tools" not in FIELDS_OF[config.type]:
                continue
            found = True
            new = [one for one in wanted if one not in config.function_tools]
            if new:
                tools = (*config.function_tools, *new)
                cards[index] = replace(card, config=replace(config, function_tools=tools))
        if agent is not None and not found:
            raise CardError(f"agent `{agent}` takes no function tools", hint="its type has none")
        if roots.get(CODE, ()) != tuple(cards):
            roots[CODE] = tuple(cards)
            before = self._snapshot
            load_set = LoadSet.of(_cards(roots))
            after = replace(before, load_set=load_set, roots=MappingProxyType(roots))
            self._snapshot = _next(before, after, ())

    def attach(self, receiver: str, agents: Iterable[str]) -> tuple[str, ...]:
        """Attach others to an agent as tools, permanently: a reload keeps them.

        Args:
            receiver: The agent that gets them.
            agents: The agents it gets; itself, and those it has, are skipped.

        Returns:
            The names of those that are new to it.

        Raises:
            CardError: There is no such agent, or they would call each other in a ring; nothing
                is changed.
        """
        before = self._snapshot
        wanted = tuple(dict.fromkeys(agents))
        for name in wanted:
            _check_exists(name, before.roots)
        _check_receiver(receiver, before.roots, wanted)
        has = before.load_set.cards[receiver].config.agents
        new = tuple(name for name in wanted if name != receiver and name not in has)
        if new:
            added = dict(before.added)
            own = added.get(receiver, AttachedTools())
            added[receiver] = replace(own, agents=(*own.agents, *new))
            self._swap(before.roots, added)
        return new

    def check(self) -> None:
        """Check all agents together.

        Raises:
            CardError: With every problem there is.
        """
        self._swap(self._snapshot.roots, self._snapshot.added)

    def _roots_with(self, loads: Mapping[str, CardLoad]) -> Roots:
        roots = {**self._snapshot.roots, **{root: load.cards for root, load in loads.items()}}
        return _without_repeats(_refreshed(roots, loads)) if len(roots) > 1 else roots

    def _swap(
        self,
        roots: Roots,
        added: Mapping[str, AttachedTools],
        loads: Mapping[str, CardLoad] = MappingProxyType({}),
        touched: Collection[str] = (),
    ) -> None:
        before = self._snapshot
        cards, of_set = with_additions(roots, added, before.load_set.cards)
        unread = [name for load in loads.values() for name in load.unread]
        of_set += self._checks.find(cards, touched=touched, unread=unread)
        if self._permit is not None:
            of_set += self._permit(cards)
        remarks = {root: load.diagnostics for root, load in loads.items()}
        problems = [*chain.from_iterable(remarks.values()), *of_set]
        errors = [problem for problem in problems if problem.severity == "error"]
        if errors:
            raise CardError(_headline(errors), hint=errors[0].hint, diagnostics=problems)
        remarks = {**before.remarks, **remarks}
        after = replace(
            before,
            load_set=before.load_set.after(cards),
            roots=MappingProxyType(dict(roots)),
            added=MappingProxyType(dict(added)),
            remarks=MappingProxyType(remarks),
            notes=(*chain.from_iterable(remarks.values()), *of_set),
        )
        self._snapshot = _next(before, after, touched)


def _next(before: Snapshot, after: Snapshot, touched: Collection[str]) -> Snapshot:
    """Assign a snapshot a higher version than the previous one, if something changed."""
    old, new = before.load_set.cards, after.load_set.cards
    same_names = list(old) == list(new)
    if same_names:
        pairs = changed_cards(old.values(), new.values())
        changed = {card.config.name for was, card in pairs if _differ(was, card)}
    else:
        changed = {name for name, card in new.items() if _differ(old.get(name), card)}
    changed.update(name for name in touched if name in new)
    if not changed and same_names:
        return after
    version, earlier = before.version + 1, before.changed_at
    if same_names:
        changed_at = earlier | dict.fromkeys(changed, version)
    else:
        # What was removed concerns those that referred to it; they had to change to pass the check.
        changed_at = {name: version if name in changed else earlier[name] for name in new}
    return replace(after, version=version, changed_at=MappingProxyType(changed_at))


def _differ(old: Card | None, new: Card) -> bool:
    if old is None:
        return True
    return old.config is not new.config and old.config != new.config


def _refreshed(
    roots: Mapping[str, tuple[Card, ...]], loads: Mapping[str, CardLoad]
) -> dict[str, tuple[Card, ...]]:
    """Update cards in roots that contain a file which another root just read."""
    fresh: dict[object, tuple[Card, ...]] = {}
    for load in loads.values():
        for card in load.cards:
            if card.config.source is not None:
                fresh[card.config.source] = (*fresh.get(card.config.source, ()), card)
    kept: dict[str, tuple[Card, ...]] = {}
    for root, cards in roots.items():
        if root in loads:
            kept[root] = cards
            continue
        taken: dict[object, tuple[Card, ...]] = {}
        for card in cards:
            source = card.config.source
            key = card.config.name if source is None else source
            taken[key] = fresh.get(source) or (*taken.get(key, ()), card)
        kept[root] = tuple(card for group in taken.values() for card in group)
    return kept


def _without_repeats(roots: Roots) -> dict[str, tuple[Card, ...]]:
    """Keep a file that two roots hold, such as a directory and a file in it, once."""
    seen: set[object] = set()
    kept: dict[str, tuple[Card, ...]] = {}
    for root, cards in roots.items():
        files = {card.config.source for card in cards if card.config.source is not None}
        kept[root] = tuple(card for card in cards if card.config.source not in seen)
        seen |= files
    return kept


def _check_exists(name: str, roots: Roots) -> None:
    names = [card.config.name for cards in roots.values() for card in cards]
    if name not in names:
        near = closest(name, names)
        hint = did_you_mean(near, "load a card with this name, or correct the reference")
        raise CardError(f"no agent is named `{name}`", hint=hint)


def _check_receiver(name: str, roots: Roots, tools: Collection[str]) -> None:
    _check_exists(name, roots)
    config = next(card.config for card in _cards(roots) if card.config.name == name)
    if tools and not calls_agents(config):
        raise CardError(
            f"agent `{name}` is of type `{config.type}`, which has no tools of its own",
            hint="attach them to an agent that calls others",
        )


def _receiver(roots: Roots, tools: Collection[str], both: Collection[str]) -> str:
    """Name the default agent, which is none of those that are only tools."""
    default = default_card(
        [
            card
            for root, cards in roots.items()
            if root not in tools or root in both
            for card in cards
        ]
    )
    if default is None:
        raise CardError(
            "there is no agent to attach the tools to",
            hint="load an agent with `--card`, or name one with `--agent`",
        )
    return default.config.name


def _cards(roots: Roots) -> list[Card]:
    return list(chain.from_iterable(roots.values()))


def _headline(errors: Sequence[Diagnostic]) -> str:
    if len(errors) == 1:
        return f"{errors[0].path}: {errors[0].message}" if errors[0].path else errors[0].message
    return f"{len(errors)} problems in the cards; the first: {errors[0].message}"


class SetChecks:
    """What `check_set` finds, remembered from one set of cards to the next.

    Args:
        servers: Names of the configured MCP servers.
        probes: Checks of each card by the rooms above the cards.
    """

    def __init__(self, servers: Collection[str], probes: Iterable[Probe]) -> None:
        self._servers = servers
        self._probes = tuple(probes)
        self._probed: dict[int, tuple[Card, tuple[Diagnostic, ...]]] = {}
        self._cards: tuple[Card, ...] = ()
        self._found: tuple[Diagnostic, ...] = ()
        self._whole = False

    def find(
        self, cards: Sequence[Card], *, touched: Collection[str], unread: Collection[str]
    ) -> tuple[Diagnostic, ...]:
        """Check cards; see `check_set`.

        Args:
            cards: The cards in load order.
            touched: Agents whose cards stand on files that changed.
            unread: Names of cards that could not be read.
        """
        if not unread and self._whole and self._is_still_valid(cards, touched):
            self._cards = tuple(cards)
            return self._found
        probe = self._probe_again(cards, touched)
        self._found = check_set(cards, servers=self._servers, probes=(probe,), unread=unread)
        self._cards, self._whole = tuple(cards), not unread
        return self._found

    def _is_still_valid(self, cards: Sequence[Card], touched: Collection[str]) -> bool:
        """Whether the cards differ from the previous ones only in what no other card depends on."""
        if len(cards) != len(self._cards):
            return False
        if touched:
            pairs = zip(self._cards, cards, strict=True)
            changed = [
                (old, new) for old, new in pairs if old is not new or new.config.name in touched
            ]
        else:
            changed = changed_cards(self._cards, cards)
        if not all(_is_alike(old, new) for old, new in changed):
            return False
        paths = {new.path for _, new in changed}
        if any(_concerns(problem, paths) for problem in self._found):
            return False
        for old, new in changed:
            found = self._ask(new)
            self._probed.pop(id(old), None)
            self._probed[id(new)] = new, found
            if found:
                return False
        return True

    def _probe_again(self, cards: Sequence[Card], touched: Collection[str]) -> Probe:
        """Probe the cards that are new, or whose files changed; the others were probed before."""
        before = self._probed
        now: dict[int, tuple[Card, tuple[Diagnostic, ...]]] = {}
        for card in cards:
            known = before.get(id(card))
            if known is None or known[0] is not card or card.config.name in touched:
                known = card, self._ask(card)
            now[id(card)] = known
        self._probed = now
        return lambda card: now[id(card)][1]

    def _ask(self, card: Card) -> tuple[Diagnostic, ...]:
        found = [one for probe in self._probes for one in probe(card)]
        if not card.path:
            found = [replace(one, message=card.locate(one.message)) for one in found]
        return tuple(found)


def _is_alike(old: Card, new: Card) -> bool:
    """Whether all but the words of two cards is the same; every other field is taken to matter."""
    if old.path != new.path:
        return False
    one, other = old.config, new.config
    if one is other:
        return True
    return one == replace(other, instruction=one.instruction, description=one.description)


def _concerns(problem: Diagnostic, paths: Collection[str]) -> bool:
    return problem.path in paths or any(one.path in paths for one in problem.related)
