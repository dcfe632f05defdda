"""Remote cards: what a card from a web address may not do on this machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fast_agent.cards.fields import FIELDS
from fast_agent.diagnostics import card_rules as rules
from fast_agent.text.span import Position, Span

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.cards.agent_config import McpConnect
    from fast_agent.cards.findings import Findings

_LOCAL_ONLY = tuple(field.name for field in FIELDS if not field.remote)
_FILE = re.compile(r"\{\{\s*file(?:_silent)?\s*:[^{}\n]*(?:\}\})?")
_HINT = "save the card on this machine to use it"


def check_remote(arguments: Mapping[str, Any], findings: Findings) -> None:
    """Report fields and placeholders that would reach into this machine.

    Args:
        arguments: The card's fields, converted.
        findings: Where to report.
    """
    for name in _LOCAL_ONLY:
        if arguments.get(name):
            message = f"a card from a web address may not use `{name}`"
            findings.add(rules.FORBIDDEN_REMOTE, message, (name,), key=True, hint=_HINT)
    servers: tuple[McpConnect, ...] = arguments.get("mcp_connect", ())
    for index, server in enumerate(servers):
        if not server.target.startswith(("http://", "https://")):
            message = "a card from a web address may not start a command"
            path = ("mcp_connect", index)
            findings.add(rules.FORBIDDEN_REMOTE, message, path, hint=_HINT)
    if _FILE.search(arguments.get("instruction") or ""):
        _report_files(findings)


def _report_files(findings: Findings) -> None:
    document = findings.document
    message = "a card from a web address may not include files"
    found = False
    for match in _FILE.finditer(document.body or ""):
        before = (document.body or "")[: match.start()]
        start = Position(
            document.body_line + before.count("\n"), match.start() - before.rfind("\n")
        )
        span = Span.at(start.line, start.column, len(match[0]))
        findings.put(rules.FORBIDDEN_REMOTE, message, span, hint=_HINT)
        found = True
    if not found:
        findings.add(rules.FORBIDDEN_REMOTE, message, ("instruction",), hint=_HINT)
