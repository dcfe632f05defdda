"""How cards of the workflows' types are built; a type's file is read when a card needs it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.cards.card import Card
    from fast_agent.runtime.blueprint import Blueprint, Builder, Workshop


def _chain(card: Card, workshop: Workshop) -> Blueprint:
    from fast_agent.workflows.chain import chain_blueprint

    return chain_blueprint(card, workshop)


def _parallel(card: Card, workshop: Workshop) -> Blueprint:
    from fast_agent.workflows.parallel import parallel_blueprint

    return parallel_blueprint(card, workshop)


def _router(card: Card, workshop: Workshop) -> Blueprint:
    from fast_agent.workflows.router import router_blueprint

    return router_blueprint(card, workshop)


WORKFLOWS: Mapping[str, Builder] = MappingProxyType(
    {"chain": _chain, "parallel": _parallel, "router": _router}
)
"""How cards of the workflows' types are built, by type."""
