"""One located problem, and the change that would fix it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from fast_agent.text.frozen import frozen
from fast_agent.text.visible import visible_lines

if TYPE_CHECKING:
    from fast_agent.text.span import Span


Severity: TypeAlias = Literal["error", "warning", "info"]


@frozen
class Fix:
    """A change a machine may make: the text at `span` becomes `replacement`."""

    span: Span
    replacement: str


@frozen
class RelatedPlace:
    """Another place that belongs to a problem, such as the first of two duplicates."""

    message: str
    path: str
    span: Span | None = None


@frozen
class Diagnostic:
    """One problem, with its place and its remedy.

    Args:
        code: Stable code of the rule, such as `FA101`; `fast-agent explain` prints its page.
        message: What is wrong; lower-case start, the thing in backticks, no trailing period.
        path: The file, as the user named it; empty where there is none (an argument).
        span: The key or value that is wrong; None where the whole file is.
        severity: `error` stops a load; `warning` and `info` do not.
        hint: What to do, or None.
        fix: A change that would fix it, or None.
        related: Other places that belong to it.
        source_line: The text of the line at `span.start`, for the caret; None where unknown.
    """

    code: str
    message: str
    path: str = ""
    span: Span | None = None
    severity: Severity = "error"
    hint: str | None = None
    fix: Fix | None = None
    related: tuple[RelatedPlace, ...] = ()
    source_line: str | None = None

    def __str__(self) -> str:
        """Return it as text: `path:line:column: error[FA101]: message`, and its hint below."""
        place = self.path
        if place and self.span is not None:
            place = f"{place}:{self.span.start.line}:{self.span.start.column}"
        lines = [f"{place}: " if place else ""]
        lines[0] += f"{self.severity}[{self.code}]: {self.message}"
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return visible_lines("\n".join(lines))


@frozen
class CardFact:
    """One card of a load-set.

    Args:
        name: The agent's name.
        type: Its type, as the field table spells it.
        path: The file, as the user named it; empty for an agent made in Python.
        default: Whether it is the default agent of the set.
        tool_only: Whether it is offered as a tool only.
    """

    name: str
    type: str
    path: str
    default: bool
    tool_only: bool
