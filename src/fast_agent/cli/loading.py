"""Loading the cards of a command: those it is told, and those that load by themselves."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fast_agent.cli.card_paths import AGENT_CARDS, TOOL_CARDS, auto_loaded
from fast_agent.cli.output import confirm, standard_error
from fast_agent.diagnostics.trust_rules import CHANGED_CODE, UNTRUSTED_CODE
from fast_agent.errors import CardError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.app import FastAgent

_TRUST = frozenset({UNTRUSTED_CODE, CHANGED_CODE})


def load_cards(
    program: FastAgent,
    *,
    cards: Sequence[str],
    tools: Sequence[str] = (),
    servers: Sequence[str] = (),
    receiver: str | None = None,
    multi_card: bool = False,
    trust: bool = False,
) -> None:
    """Load the cards of a command; without any there is one plain assistant.

    Cards that load by themselves run the code they bring once the person approved it. Where one is
    at the terminal, they are asked.

    Args:
        program: The program.
        cards: The cards that were named.
        tools: Those that were named as tools.
        servers: MCP servers the receiver gets.
        receiver: The agent that gets tools and servers; None is the default one.
        multi_card: Whether a file may hold several cards.
        trust: Whether the code of all cards is run.

    Raises:
        CardError: With every problem of every card.
        ConfigError: With every problem of the configuration.
    """
    found_agents = auto_loaded(AGENT_CARDS, program.workspace)
    found_tools = auto_loaded(TOOL_CARDS, program.workspace)
    named = {program.workspace / path for path in (*cards, *tools) if "://" not in path}
    found = [
        path for path in (*found_agents, *found_tools) if program.workspace / path not in named
    ]
    if not cards and not found_agents:
        program.agent("agent", default=True)

    def load() -> None:
        program.load(
            cards=(*cards, *found_agents),
            tools=(*tools, *found_tools),
            servers=servers,
            receiver=receiver,
            multi_card=multi_card,
            found=() if trust else found,
            optional=found,
        )

    try:
        load()
    except CardError as error:
        errors = [one for one in error.diagnostics if one.severity == "error"]
        only_trust = bool(errors) and all(one.code in _TRUST for one in errors)
        if not only_trust or not _approved(program, found, multi_card=multi_card):
            raise
        load()


def _approved(program: FastAgent, found: Sequence[object], *, multi_card: bool) -> bool:
    """Ask the person at the terminal whether what was found may run; what was shown is approved."""
    out = standard_error()
    if not sys.stdin.isatty() or not out.is_terminal:
        return False
    from fast_agent.cli.trust_list import described

    codes = program.code_in(*map(str, found), multi_card=multi_card)
    waiting = [one for one in codes if program.approvals.standing(one) != "approved"]
    out.line("these cards were found here, and bring code:")
    for code in waiting:
        out.line(f"  {described(code, program.approvals.standing(code))}")
    if not waiting or not confirm("have you read them, and may they run it?"):
        return False
    program.approvals.approve(waiting)
    return True
