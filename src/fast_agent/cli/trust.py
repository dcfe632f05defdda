"""Cards that load by themselves do not run code unless the person says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.trust_rules import UNTRUSTED_CODE
from fast_agent.errors import CardError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from fast_agent.app import FastAgent
    from fast_agent.cards.card import Card

_FIELDS = ("function_tools", "tool_hooks", "shell", "mcp_connect")


def refuse_untrusted(program: FastAgent, directories: Iterable[Path]) -> None:
    """Refuse the code of cards that were found and not named.

    Args:
        program: The loaded program.
        directories: The directories that loaded by themselves.

    Raises:
        CardError: With every card that brings code.
    """
    found: list[Diagnostic] = []
    for directory in directories:
        root = str((program.workspace / directory).resolve())
        cards = program.snapshot.roots.get(root, ())
        found += [_refusal(card) for card in cards if card.config.brings_code]
    if found:
        raise CardError(found[0].message, hint=found[0].hint, diagnostics=found)


def _refusal(card: Card) -> Diagnostic:
    field = next(name for name in _FIELDS if getattr(card.config, name))
    span = card.span_of(field, key=True)
    return Diagnostic(
        UNTRUSTED_CODE,
        f"`{card.config.name}` was found, not named, and brings code by `{field}`",
        card.path,
        span,
        hint=f"read it, then name it with `--card {card.path}` or run with `--trust`",
        source_line=None if span is None else card.source_line(span.start.line),
    )
