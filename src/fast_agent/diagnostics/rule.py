"""Rules: what a code stands for. Each family of codes is one module beside this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_agent.diagnostics.diagnostic import Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """The page of one code, printed by `fast-agent explain` and in the docs.

    Args:
        code: Such as `FA101`.
        name: Short name in lower-case words joined by hyphens, such as `unknown-field`.
        severity: The severity its diagnostics have.
        page: Markdown: what it means, an example that is wrong, the same example put right.
    """

    code: str
    name: str
    severity: Severity
    page: str
