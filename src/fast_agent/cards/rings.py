"""Rings in a graph: the edges that lead back to where a walk came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SHOWN = 8


class Ring(NamedTuple):
    """One ring.

    Args:
        node: The node the closing edge leaves from.
        edge: Which of that node's edges it is, from 0.
        begin: The first nodes of the ring, from the one the closing edge leads to.
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
    """Walk a graph depth first and give each edge that closes a ring.

    Without these edges the graph has no ring. The time is linear in nodes and edges, and the
    order is that of the mapping.

    Args:
        edges: For each node the nodes it leads to. A node that is no key leads nowhere, and an
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
