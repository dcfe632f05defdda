"""The problems of one card, each with its place, its remedy and its source line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fast_agent.diagnostics import rules
from fast_agent.diagnostics.diagnostic import Fix
from fast_agent.diagnostics.render_human import diagnostic
from fast_agent.schema.explanation import ReadingRules
from fast_agent.text.json_value import value_at

if TYPE_CHECKING:
    from fast_agent.cards.document import CardDocument
    from fast_agent.diagnostics.diagnostic import Diagnostic, Severity
    from fast_agent.text.json_value import JsonValue, Keys
    from fast_agent.text.span import Span

_RULES: Final = ReadingRules(
    whole="the card",
    key="field",
    reveals=True,
    unknown_key=rules.UNKNOWN_FIELD,
    wrong_type=rules.WRONG_TYPE,
    wrong_value=rules.BAD_VALUE,
    missing=rules.MISSING_FIELD,
)

_REPLACEABLE = re.compile(r"""[^|>&*!\s\n][^\n]*""")


class DiagnosticCollector:
    """Collects what is wrong with one card.

    Args:
        document: The card's text.
    """

    __slots__ = ("_lost", "diagnostics", "document", "errors")
    rules = _RULES

    def __init__(self, document: CardDocument) -> None:
        self.document = document
        self.diagnostics: list[Diagnostic] = []
        self.errors = 0
        self._lost: set[str] = set()

    def add(
        self,
        code: str,
        message: str,
        path: Keys,
        *,
        key: bool = False,
        hint: str | None = None,
        replacement: str | None = None,
    ) -> None:
        """Report an error at a value, or at its key.

        Args:
            code: The rule.
            message: What is wrong.
            path: The way to the value.
            key: Whether the key is what is wrong.
            hint: What to do, or None.
            replacement: What to write instead of the value or key, or None.
        """
        span = self.document.span_of(path, key=key) or self.document.start()
        fix = None
        if replacement is not None and (key or self._replaceable(path)):
            fix = Fix(span, replacement)
        self.put(code, message, span, hint=hint, fix=fix)

    def put(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        hint: str | None = None,
        fix: Fix | None = None,
        severity: Severity = "error",
    ) -> None:
        """Report a problem at a place that is known already."""
        self.errors += severity == "error"
        self.diagnostics.append(
            diagnostic(
                self.document.source, code, message, span, hint=hint, fix=fix, severity=severity
            )
        )

    def lose(self, name: str) -> None:
        """Note that a field is given, but what it says is not known."""
        self._lost.add(name)

    def lost(self, name: str) -> bool:
        """Whether a field is given, but what it says is not known."""
        return name in self._lost

    def written(self, path: Keys) -> str:
        """Return a value as it is written in the file, or as Python has it where none is."""
        return self.document.yaml.written(path) or str(self.value_at(path))

    def value_at(self, path: Keys) -> JsonValue:
        """Return a value as the file has it; None if there is none."""
        return value_at(self.document.yaml.value, path)

    def _replaceable(self, path: Keys) -> bool:
        written = self.written(path)
        return "${" not in written and _REPLACEABLE.fullmatch(written) is not None
