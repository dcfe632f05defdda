"""Rules: what a code identifies. Each family of codes is one module next to this one.

The page of a rule is Markdown in `pages/CODE.md`: what the rule means, an example that is wrong,
and the same example put right.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fast_agent.diagnostics.diagnostic import Severity

PAGES: Final = Path(__file__).with_name("pages")
"""The directory of the pages."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One code.

    Args:
        code: Such as `FA101`.
        name: Short name in lower-case words joined by hyphens, such as `unknown-field`.
        severity: The severity its diagnostics have.
    """

    code: str
    name: str
    severity: Severity

    @property
    def page(self) -> str:
        """The page without a heading, as `fast-agent explain` and the docs show it; a file read."""
        return (PAGES / f"{self.code}.md").read_text("utf-8")
