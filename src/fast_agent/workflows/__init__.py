"""Workflows: agents that have other agents do the work, one file a type."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.cards.card import Card
    from fast_agent.runtime.blueprint import Blueprint, Builder
    from fast_agent.runtime.context import RuntimeContext


def _chain(card: Card, context: RuntimeContext) -> Blueprint:
    from fast_agent.workflows.chain import chain_blueprint

    return chain_blueprint(card, context)


def _parallel(card: Card, context: RuntimeContext) -> Blueprint:
    from fast_agent.workflows.parallel import parallel_blueprint

    return parallel_blueprint(card, context)


def _router(card: Card, context: RuntimeContext) -> Blueprint:
    from fast_agent.workflows.router import router_blueprint

    return router_blueprint(card, context)


def _evaluator_optimizer(card: Card, context: RuntimeContext) -> Blueprint:
    from fast_agent.workflows.evaluator_optimizer import evaluator_optimizer_blueprint

    return evaluator_optimizer_blueprint(card, context)


def _orchestrator(card: Card, context: RuntimeContext) -> Blueprint:
    from fast_agent.workflows.planning import orchestrator_blueprint

    return orchestrator_blueprint(card, context)


def _iterative_planner(card: Card, context: RuntimeContext) -> Blueprint:
    from fast_agent.workflows.planning import iterative_planner_blueprint

    return iterative_planner_blueprint(card, context)


def _maker(card: Card, context: RuntimeContext) -> Blueprint:
    from fast_agent.workflows.maker.maker import maker_blueprint

    return maker_blueprint(card, context)


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
