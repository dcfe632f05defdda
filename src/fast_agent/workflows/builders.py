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


def _evaluator_optimizer(card: Card, workshop: Workshop) -> Blueprint:
    from fast_agent.workflows.evaluator_optimizer import evaluator_optimizer_blueprint

    return evaluator_optimizer_blueprint(card, workshop)


def _orchestrator(card: Card, workshop: Workshop) -> Blueprint:
    from fast_agent.workflows.planning import orchestrator_blueprint

    return orchestrator_blueprint(card, workshop)


def _iterative_planner(card: Card, workshop: Workshop) -> Blueprint:
    from fast_agent.workflows.planning import iterative_planner_blueprint

    return iterative_planner_blueprint(card, workshop)


def _maker(card: Card, workshop: Workshop) -> Blueprint:
    from fast_agent.workflows.maker.maker import maker_blueprint

    return maker_blueprint(card, workshop)


WORKFLOWS: Mapping[str, Builder] = MappingProxyType(
    {
        "chain": _chain,
        "parallel": _parallel,
        "router": _router,
        "evaluator_optimizer": _evaluator_optimizer,
        "orchestrator": _orchestrator,
        "iterative_planner": _iterative_planner,
        "MAKER": _maker,
    }
)
"""How cards of the workflows' types are built, by type."""
