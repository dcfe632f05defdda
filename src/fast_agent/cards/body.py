"""Bodies: what may not stand in the text below a card's frontmatter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics import card_rules as rules
from fast_agent.text.fences import unfenced_lines
from fast_agent.text.span import Span

if TYPE_CHECKING:
    from fast_agent.cards.document import CardDocument
    from fast_agent.cards.findings import Findings

_MARKERS = ("---USER", "---ASSISTANT", "---RESOURCE")


def check_body(document: CardDocument, findings: Findings) -> None:
    """Report lines of a body that would begin a history message.

    Args:
        document: The card's text.
        findings: Where to report.
    """
    body = document.body or ""
    if not any(marker in body for marker in _MARKERS):
        return
    for number, line in unfenced_lines(body):
        marker = line.rstrip()
        if marker in _MARKERS:
            findings.put(
                rules.HISTORY_IN_BODY,
                f"`{marker}` begins a history message, and a card holds no history",
                Span.at(document.body_line + number - 1, 1, len(marker)),
                hint="move the messages to a file and name it in `messages`",
            )
