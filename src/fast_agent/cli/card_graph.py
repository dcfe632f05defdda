"""Card graphs: who asks whom in a card set, and what it may cost, for people and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Self

from fast_agent.cards.set_check import references
from fast_agent.text.frozen import frozen
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fast_agent.app import FastAgent
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.text.json_value import JsonValue
    from fast_agent.workflows.cost import Bound, Cost

_ORDERED: Final = frozenset({"sequence"})
"""Fields whose order is the order of work."""

_SHAPES: Final = {"agent": '["{}"]', "smart": '["{}"]'}
_WORKFLOW_SHAPE: Final = '{{{{"{}"}}}}'


@frozen
class Edge:
    """One agent asks another.

    Args:
        source: Who asks.
        target: Who is asked.
        field: The field of the card that says so.
        place: Its place where the order matters, from 1; else None.
    """

    source: str
    target: str
    field: str
    place: int | None = None

    @property
    def label(self) -> str:
        """What stands on the arrow."""
        return self.field if self.place is None else f"{self.field} {self.place}"


@frozen
class Node:
    """One agent.

    Args:
        config: Its card.
        default: Whether it is the one a user talks to first.
        cost: What one turn of it can set off, or None where it was not asked for.
    """

    config: AgentConfig
    default: bool
    cost: Cost | None

    @property
    def facts(self) -> list[str]:
        """The lines below the name of the agent in a picture."""
        lines: list[str] = [self.config.type]
        if self.cost is not None:
            requests, calls = _format_bound(self.cost.requests), _format_bound(self.cost.calls)
            lines.append(f"{requests} requests, {calls} calls")
        return lines


@frozen
class CardGraph:
    """The agents of a card set, and who asks whom."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @classmethod
    def of(cls, program: FastAgent, *, cost: bool) -> Self:
        """Make the graph of the cards of a program.

        Args:
            program: The program; its cards are loaded.
            cost: Whether to find the worst case of each agent.
        """
        load_set = program.load_set
        plan = None
        if cost:
            from fast_agent.workflows.cost import CostPlan

            plan = CostPlan(load_set.cards, program.settings, program.workspace)
        nodes = [
            Node(card.config, name == load_set.default, None if plan is None else plan.of(name))
            for name, card in load_set.cards.items()
        ]
        edges = [edge for node in nodes for edge in _edges(node.config)]
        return cls(tuple(nodes), tuple(edges))

    @classmethod
    def joined(cls, before: Iterable[Card], after: Iterable[Card]) -> Self:
        """Make one graph of two versions of a card set.

        An agent of both is drawn as the second version has it. A reference that only the first
        version has is left out where it would close a cycle.

        Args:
            before: The cards of the first version.
            after: The cards of the second version.
        """
        old = {card.config.name: card.config for card in before}
        configs = {**old, **{card.config.name: card.config for card in after}}
        edges = [
            edge for config in configs.values() for edge in _edges(config) if edge.target in configs
        ]
        kept = list(dict.fromkeys(edges))
        for edge in (one for config in old.values() for one in _edges(config)):
            if edge not in kept and not _reaches(kept, edge.target, edge.source):
                kept.append(edge)
        nodes = [Node(config, default=False, cost=None) for config in configs.values()]
        return cls(tuple(nodes), tuple(kept))


def render_graph(graph: CardGraph, output: str) -> str:
    """Write a graph.

    Args:
        graph: The graph.
        output: `mermaid`, `table` or `json`.
    """
    match output:
        case "json":
            return _json(graph)
        case "table":
            return _table(graph)
        case _:
            return "\n".join(_mermaid(graph)) + "\n"


def _edges(config: AgentConfig) -> Iterator[Edge]:
    for one in references(config):
        place = one.at + 1 if one.field in _ORDERED and one.at is not None else None
        yield Edge(config.name, one.name, one.field, place)


def _reaches(edges: Sequence[Edge], start: str, end: str) -> bool:
    """Return whether edges lead from one agent to another, or they are the same."""
    seen, left = {start}, [start]
    while left:
        name = left.pop()
        found = {edge.target for edge in edges if edge.source == name} - seen
        seen |= found
        left += found
    return end in seen


def _mermaid(graph: CardGraph) -> Iterator[str]:
    yield "flowchart LR"
    ids = {node.config.name: f"a{number}" for number, node in enumerate(graph.nodes, 1)}
    servers = dict.fromkeys(name for node in graph.nodes for name in node.config.servers)
    server_ids = {name: f"s{number}" for number, name in enumerate(servers, 1)}
    for node in graph.nodes:
        config = node.config
        text = "<br/>".join([_escaped(config.name), *node.facts])
        shape = _SHAPES.get(config.type, _WORKFLOW_SHAPE)
        yield f"    {ids[config.name]}{shape.format(text)}"
    for name, node_id in server_ids.items():
        yield f'    {node_id}[("{_escaped(name)}")]'
    for edge in graph.edges:
        yield f"    {ids[edge.source]} -->|{edge.label}| {ids[edge.target]}"
    for node in graph.nodes:
        for name in node.config.servers:
            yield f"    {ids[node.config.name]} -.-> {server_ids[name]}"
    for node in graph.nodes:
        if node.default:
            yield f"    style {ids[node.config.name]} stroke-width:3px"


def _escaped(text: str) -> str:
    """Escape a string so that nothing in it is Mermaid."""
    return "".join(
        letter if letter.isalnum() or letter in " _-.,:" else f"#{ord(letter)};" for letter in text
    )


def _format_bound(bound: Bound) -> str:
    return "∞" if bound.most is None else f"≤ {bound.most:,}"


def _table(graph: CardGraph) -> str:
    """Write one line an agent, and below them what is unbounded and what would bound it."""
    rows: list[tuple[str, ...]] = [("agent", "type", "asks", "requests", "tool calls")]
    reasons: dict[str, None] = {}
    for node in graph.nodes:
        config = node.config
        asked = dict.fromkeys([one.name for one in references(config)])
        names = visible(", ".join(asked)) or "-"
        cost = ("-", "-")
        if node.cost is not None:
            cost = (_counted(node.cost.requests), _counted(node.cost.calls))
            reasons.update(dict.fromkeys(node.cost.requests.reasons + node.cost.calls.reasons))
        mark = " (default)" if node.default else ""
        rows.append((f"{visible(config.name)}{mark}", config.type, names, *cost))
    if all(node.cost is None for node in graph.nodes):
        rows = [row[:3] for row in rows]
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    if reasons:
        lines += ["", "unbounded because"]
        lines += [f"- {visible(reason)}" for reason in reasons]
    return "\n".join(lines) + "\n"


def _counted(bound: Bound) -> str:
    return "unbounded" if bound.most is None else f"{bound.most:,}"


def _json(graph: CardGraph) -> str:
    agents: list[JsonValue] = []
    for node in graph.nodes:
        facts: dict[str, JsonValue] = {
            "name": node.config.name,
            "type": node.config.type,
            "default": node.default,
            "servers": list(node.config.servers),
        }
        if node.cost is not None:
            facts["cost"] = {
                "requests": _bound_facts(node.cost.requests),
                "tool_calls": _bound_facts(node.cost.calls),
            }
        agents.append(facts)
    edges: list[JsonValue] = [
        {"from": one.source, "to": one.target, "field": one.field} for one in graph.edges
    ]
    return json.dumps({"agents": agents, "edges": edges}, indent=2, ensure_ascii=False) + "\n"


def _bound_facts(bound: Bound) -> JsonValue:
    return {"most": bound.most, "unbounded_because": list(bound.reasons)}
