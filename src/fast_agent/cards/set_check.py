"""What cards of one set must agree on: names, references to each other, servers, the default."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.cards.agent_config import Compaction
from fast_agent.diagnostics import rules
from fast_agent.diagnostics.diagnostic import Diagnostic, Fix, RelatedPlace
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.diagnostics.diagnostic import Severity

_COMPARISONS = 200_000
"""Most comparisons spent on suggestions: a broken large set must not take seconds."""

_OUTSIDE_TOOL_NAMES = re.compile(r"[^A-Za-z0-9_-]")

_SHOWN = 8


class Reference(NamedTuple):
    """One mention of another agent.

    Args:
        name: The agent referred to.
        field: The field it stands in.
        at: Its index in the field's list, from 0; None if the field is not a list.
    """

    name: str
    field: str
    at: int | None


def referred_names(config: AgentConfig) -> tuple[str, ...]:
    """List the names of the agents an agent refers to, in the order of `references`."""
    names = config.agents + config.sequence + config.fan_out
    single = config.fan_in, config.generator, config.evaluator, config.worker, _summarizer(config)
    if single == (None, None, None, None, None):
        return names
    return names + tuple(name for name in single if name is not None)


def references(config: AgentConfig) -> list[Reference]:
    """List the agents an agent refers to, in the order of its fields; repeats stay.

    Args:
        config: The agent.

    Returns:
        Every mention.
    """
    found: list[Reference] = []
    for field in ("agents", "sequence", "fan_out"):
        names: tuple[str, ...] = getattr(config, field)
        if names:
            found.extend([Reference(name, field, index) for index, name in enumerate(names)])
    for field in ("fan_in", "generator", "evaluator", "worker"):
        name: str | None = getattr(config, field)
        if name is not None:
            found.append(Reference(name, field, None))
    summarizer = _summarizer(config)
    if summarizer is not None:
        found.append(Reference(summarizer, "compaction", None))
    return found


def _summarizer(config: AgentConfig) -> str | None:
    return config.compaction.agent if isinstance(config.compaction, Compaction) else None


class Suggestions:
    """The closest of some names, each word asked for once, within a budget.

    Args:
        names: The names there are.
    """

    __slots__ = ("_known", "_left", "_names")

    def __init__(self, names: Collection[str]) -> None:
        self._names = tuple(names)
        self._known: dict[str, str | None] = {}
        self._left = _COMPARISONS // max(1, len(self._names))

    def find(self, word: str) -> str | None:
        """Return the closest name, or None if no name is close or the budget is spent."""
        if word not in self._known:
            if self._left <= 0:
                return None
            self._left -= 1
            self._known[word] = closest(word, self._names)
        return self._known[word]


@frozen
class SetNames:
    """What the cards of a set are called.

    Args:
        first: For each name the first card that has it.
        known: These names, and those of cards that could not be read.
        suggestions: The closest of the names.
    """

    first: dict[str, Card]
    known: frozenset[str]
    suggestions: Suggestions

    @classmethod
    def of(cls, cards: Sequence[Card], unread: Collection[str] = ()) -> SetNames:
        """Collect the names of cards in load order."""
        first: dict[str, Card] = {}
        for card in cards:
            first.setdefault(card.config.name, card)
        return cls(first, frozenset((*first, *unread)), Suggestions(first))


def check_names(cards: Sequence[Card], names: SetNames) -> Iterator[Diagnostic]:
    """Find cards that share a name, or that a model would mix up."""
    for card in cards:
        first = names.first[card.config.name]
        if first is not card:
            yield _found(
                card,
                rules.DUPLICATE_NAME,
                f"the name `{card.config.name}` is taken by {_place(first, 'name')}",
                "name",
                hint="give one of the two another `name`",
                related=(_related(first, "the first card of this name", "name"),),
            )
    seen: dict[str, Card] = {}
    for name, card in names.first.items():
        spelled = _OUTSIDE_TOOL_NAMES.sub("_", name)
        first = seen.setdefault(spelled, card)
        if first is not card:
            yield _found(
                card,
                rules.SIMILAR_NAMES,
                f"`{name}` and `{first.config.name}` have the same tool name"
                f" `agent__{spelled}`, except for a hash",
                "name",
                severity="warning",
                hint="use names that differ in letters or digits",
                related=(_related(first, "the other", "name"),),
            )


def check_references(cards: Sequence[Card], names: SetNames) -> Iterator[Diagnostic]:
    """Find references to agents that are not there, to oneself, and in a ring."""
    first = names.first
    edges: dict[str, tuple[str, ...]] = {}
    for card in cards:
        config = card.config
        name = config.name
        mentioned = referred_names(config)
        if name in mentioned or not names.known.issuperset(mentioned):
            yield from _wrong_references(card, names)
        if first[name] is card:
            edges[name] = mentioned
        if len(config.agents) > 1 and len(set(config.agents)) < len(config.agents):
            yield from _repeated(card, "agents", config.agents)
        if config.child_history:
            yield from _child_history(card, config, names)
        if config.history_merge_target == "messages" or config.child_history:
            yield from _without_file(card, config, names)
    for ring in find_rings(edges):
        card = first[ring.node]
        reference = references(card.config)[ring.edge]
        yield _found(
            card,
            rules.REFERENCE_CYCLE,
            f"agents refer to each other in a cycle: `{ring.drawn}`",
            reference.field,
            reference.at,
            hint=f"remove `{reference.name}` here, or break the cycle elsewhere",
        )


def check_servers(cards: Sequence[Card], servers: Collection[str] | None) -> Iterator[Diagnostic]:
    """Find servers that are not configured, and filters of servers a card does not use."""
    known = None if servers is None else frozenset(servers)
    suggestions = Suggestions(sorted(known or ()))
    for card in cards:
        config = card.config
        if not (config.servers or config.tools or config.resources or config.prompts):
            continue
        brought = [server.name for server in config.mcp_connect]
        meant: set[str | None] = set()
        for index, server in enumerate(config.servers):
            if known is not None and server not in known and server not in brought:
                near = suggestions.find(server)
                meant.add(near)
                yield _found(
                    card,
                    rules.UNKNOWN_SERVER,
                    f"the configuration defines no MCP server `{server}`",
                    "servers",
                    index,
                    hint=_did_you_mean(near)
                    or f"define it under `mcp.servers.{server}` in `fastagent.config.yaml`",
                    fix=_replacement(card, server, near, "servers", index),
                )
        if len(config.servers) > 1 and len(set(config.servers)) < len(config.servers):
            yield from _repeated(card, "servers", config.servers)
        if config.tools or config.resources or config.prompts:
            yield from _filters(card, (*config.servers, *brought), meant, known)


def check_default(cards: Sequence[Card]) -> Iterator[Diagnostic]:
    """Find cards that want to be the default and cannot."""
    first: Card | None = None
    for card in cards:
        if not card.config.default:
            continue
        if card.config.tool_only:
            yield _found(
                card,
                rules.TOOL_ONLY_DEFAULT,
                f"`{card.config.name}` is `tool_only`, so it cannot be the default agent",
                "default",
                key=True,
                hint="keep `tool_only` or `default`, not both",
            )
        if first is None:
            first = card
            continue
        yield _found(
            card,
            rules.SEVERAL_DEFAULTS,
            f"`{card.config.name}` and `{first.config.name}` both say `default: true`",
            "default",
            key=True,
            hint="keep `default` on one card of the set",
            related=(_related(first, "the first default", "default"),),
        )


def _wrong_references(card: Card, names: SetNames) -> Iterator[Diagnostic]:
    for reference in references(card.config):
        if reference.name == card.config.name:
            yield _self_reference(card, reference)
        elif reference.name not in names.known:
            yield _unknown_agent(card, reference, names.suggestions)


def _self_reference(card: Card, reference: Reference) -> Diagnostic:
    name = reference.name
    return _found(
        card,
        rules.SELF_REFERENCE,
        f"`{name}` refers to itself: `{name} -> {name}`",
        reference.field,
        reference.at,
        hint=f"remove `{name}` from `{reference.field}`",
    )


def _unknown_agent(card: Card, reference: Reference, suggestions: Suggestions) -> Diagnostic:
    near = suggestions.find(reference.name)
    if near == card.config.name:
        near = None
    return _found(
        card,
        rules.UNKNOWN_AGENT,
        f"no agent is named `{reference.name}`",
        reference.field,
        reference.at,
        hint=_did_you_mean(near) or "load a card with this name, or correct the reference",
        fix=_replacement(card, reference.name, near, reference.field, reference.at),
    )


def _child_history(card: Card, config: AgentConfig, names: SetNames) -> Iterator[Diagnostic]:
    # A child that is misspelled among `agents` is reported there, not here as well.
    meant = {names.suggestions.find(name) for name in config.agents if name not in names.known}
    for child in config.child_history or ():
        if child not in config.agents and child not in meant:
            near = closest(child, config.agents)
            yield _found(
                card,
                rules.HISTORY_WITHOUT_CHILD,
                f"`child_history` names `{child}`, which is not among `agents`",
                "child_history",
                child,
                key=True,
                hint=_did_you_mean(near) or "add it to `agents`, or remove it",
                fix=_key_replacement(card, near, "child_history", child),
            )


def _without_file(card: Card, config: AgentConfig, names: SetNames) -> Iterator[Diagnostic]:
    for child in dict.fromkeys(config.agents):
        own = (config.child_history or {}).get(child)
        target = own.merge_target if own is not None else None
        known = names.first.get(child)
        if (target or config.history_merge_target) != "messages" or known is None:
            continue
        if not known.config.messages:
            field = "history_merge_target" if target is None else "child_history"
            yield _found(
                card,
                rules.HISTORY_WITHOUT_FILE,
                f"`{child}` is merged into its `messages`, and has none",
                field,
                None if target is None else child,
                hint=f"name a file in the `messages` of `{child}`, or choose another target",
            )


def _filters(
    card: Card,
    used: tuple[str | None, ...],
    meant: Collection[str | None],
    known: Collection[str] | None,
) -> Iterator[Diagnostic]:
    if None in used:  # a server whose name is derived later
        return
    config = card.config
    names = [name for name in used if name is not None]
    for field, narrowed in (
        ("tools", config.tools),
        ("resources", config.resources),
        ("prompts", config.prompts),
    ):
        for server in narrowed or ():
            # A server that is misspelled in `servers` is reported there, not here as well.
            if server not in names and server not in meant:
                near = closest(server, names)
                yield _found(
                    card,
                    rules.FILTER_WITHOUT_SERVER,
                    f"`{field}` narrows the server `{server}`, which the card does not use",
                    field,
                    server,
                    key=True,
                    hint=_did_you_mean(near) or f"add `{server}` to `servers`, or remove it",
                    # Without the configuration it is unknown which of the two is misspelt.
                    fix=None if known is None else _key_replacement(card, near, field, server),
                )


def _repeated(card: Card, field: str, names: Sequence[str]) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield _found(
                card,
                rules.REPEATED_NAME,
                f"`{field}` names `{name}` twice",
                field,
                index,
                severity="warning",
                hint="take one out",
            )
        seen.add(name)


def _did_you_mean(near: str | None) -> str | None:
    return did_you_mean(near)


def _replacement(card: Card, name: str, near: str | None, field: str, at: int | None) -> Fix | None:
    """Replace a name where it stands in the file as itself, quoted or not."""
    document = card.document
    span = card.span_of(field, *_keys(at))
    if near is None or document is None or span is None:
        return None
    written = document.yaml.written((field, *_keys(at)))
    if written not in {name, f"'{name}'", f'"{name}"'}:
        return None  # an alias, a variable, a string of several lines
    return Fix(span, _written(near))


def _key_replacement(card: Card, near: str | None, field: str, key: str) -> Fix | None:
    span = card.span_of(field, key, key=True)
    return None if near is None or span is None else Fix(span, _written(near))


def _written(name: str) -> str:
    # Only a wrong card needs the writer, and its patterns take milliseconds to compile.
    from fast_agent.text.yaml_writer import write_scalar

    return write_scalar(name)


def _keys(key: str | int | None) -> tuple[str | int, ...]:
    return () if key is None else (key,)


def _related(card: Card, message: str, field: str) -> RelatedPlace:
    return RelatedPlace(message, card.path, card.span_of(field))


def _place(card: Card, field: str) -> str:
    span = card.span_of(field)
    return f"{card.path}:{span.start.line}:{span.start.column}" if span else f"`{card.path}`"


def _found(
    card: Card,
    code: str,
    message: str,
    field: str,
    item: str | int | None = None,
    *,
    key: bool = False,
    severity: Severity = "error",
    hint: str,
    fix: Fix | None = None,
    related: tuple[RelatedPlace, ...] = (),
) -> Diagnostic:
    problem = Diagnostic(
        code, card.locate(message), severity=severity, hint=hint, fix=fix, related=related
    )
    return card.placed(problem, card.span_of(field, *_keys(item), key=key))


class Ring(NamedTuple):
    """One ring.

    Args:
        node: The node the closing edge leaves from.
        edge: Which of that node's edges it is, from 0.
        begin: The first nodes of the cycle, from the one the closing edge leads to.
        length: How many nodes the ring has.
    """

    node: str
    edge: int
    begin: tuple[str, ...]
    length: int

    @property
    def drawn(self) -> str:
        """The way round: `a -> b -> a`; the middle of a long one is left out."""
        names = list(self.begin)
        if self.length > len(names):
            hidden = self.length - len(names) - (names[-1] != self.node)
            if hidden:
                names.append(f"… ({hidden} more)")
            names.append(self.node)
        return " -> ".join([*names, names[0]])


def find_rings(edges: Mapping[str, Sequence[str]]) -> Iterator[Ring]:
    """Walk a graph depth first and yield each edge that closes a cycle.

    Without these edges the graph has no ring. The time is linear in nodes and edges, and the
    order is that of the mapping.

    Args:
        edges: For each node, the nodes it leads to. A node that is not a key leads nowhere, and an
            edge from a node to itself is left out.

    Yields:
        One ring for each closing edge.
    """
    # A node that leads nowhere is in no ring; most cards are such nodes.
    done = {node for node, targets in edges.items() if not targets}
    for root in edges:
        if root not in done:
            yield from _walk(root, edges, done)


def _walk(root: str, edges: Mapping[str, Sequence[str]], done: set[str]) -> Iterator[Ring]:
    path = [root]
    at = {root: 0}
    todo = [iter(enumerate(edges[root]))]
    while todo:
        node = path[-1]
        for index, target in todo[-1]:
            if target in at:
                if target != node:
                    start = at[target]
                    begin = tuple(path[start : start + _SHOWN])
                    yield Ring(node, index, begin, len(path) - start)
            elif target not in done and target in edges:
                at[target] = len(path)
                path.append(target)
                todo.append(iter(enumerate(edges[target])))
                break
        else:
            todo.pop()
            done.add(path.pop())
            del at[node]
