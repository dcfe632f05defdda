"""What a document says of itself in its frontmatter: title, description, audience and priority."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.resources.meta_key import KIND, TAGS, WHY

if TYPE_CHECKING:
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.text.source import Source
    from fast_agent.text.span import Span
    from fast_agent.text.yaml_document import YamlDocument

AUDIENCES = ("user", "assistant")

_LONGEST = 65_536
_HEADING = re.compile(r"\s*#[ \t]+(\S[^\r\n]*)")
_CLOSING = re.compile(r"[ \t]+#+[ \t]*$")
_FENCE = re.compile(r"\ufeff?---[ \t]*\r?\n")


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a document says of itself.

    Args:
        title: Its title, or the heading it begins with, or None.
        description: What it holds, or None.
        audience: Whom it is for, of `user` and `assistant`.
        priority: How important it is, from 0 to 1, or None.
        meta: `why`, `type` and `tags`, those that are given, as `_meta` has them.
        problems: What is wrong with the frontmatter.
    """

    title: str | None = None
    description: str | None = None
    audience: tuple[str, ...] = ()
    priority: float | None = None
    meta: tuple[tuple[str, JsonValue], ...] = ()
    problems: tuple[Diagnostic, ...] = ()


def read_metadata(data: bytes, shown: str) -> Metadata:
    """Read what a document says of itself.

    Args:
        data: The document's bytes.
        shown: What diagnostics call it.

    Returns:
        Its metadata; without fields, but with problems, where the frontmatter cannot be read.
    """
    head = data[:_LONGEST].decode(errors="replace")
    if _FENCE.match(head) is None:
        return Metadata(title=_heading(head.removeprefix("\ufeff")))
    return _frontmatter(head, shown)


def _frontmatter(head: str, shown: str) -> Metadata:
    from fast_agent.text.frontmatter import FrontmatterError, split_frontmatter
    from fast_agent.text.source import Source
    from fast_agent.text.yaml_document import YamlError, parse_yaml

    source = Source.of(shown, head)
    try:
        parts = split_frontmatter(source)
    except FrontmatterError as error:
        return Metadata(problems=(_broken(source, error.message, error.span, error.hint),))
    if parts is None:
        return Metadata(title=_heading(source.text))
    title = _heading(parts.body)
    try:
        document = parse_yaml(parts.text, first_line=parts.first_line)
    except YamlError as error:
        problems = tuple(_broken(source, one.message, one.span, one.hint) for one in error.problems)
        return Metadata(title=title, problems=problems)
    if document.value is None:
        return Metadata(title=title)
    if not isinstance(document.value, Mapping):
        message = "it is no mapping of fields"
        problem = _broken(source, message, document.span_of(()), "write `title: …` lines")
        return Metadata(title=title, problems=(problem,))
    return _Fields(source, document, document.value).metadata(title)


def _broken(source: Source, reason: str, span: Span, hint: str | None) -> Diagnostic:
    from fast_agent.diagnostics.rules import BROKEN_GUIDE_FRONTMATTER

    message = f"the frontmatter cannot be read: {reason}"
    return _diagnostic(source, BROKEN_GUIDE_FRONTMATTER, message, span, hint)


def _diagnostic(
    source: Source, rule: Rule, message: str, span: Span, hint: str | None
) -> Diagnostic:
    line = source.line(span.start.line)
    return Diagnostic(rule.code, message, source.path, span, rule.severity, hint, source_line=line)


class _Fields:
    """The fields of one frontmatter, under way."""

    def __init__(self, source: Source, document: YamlDocument, fields: JsonObject) -> None:
        self._source = source
        self._document = document
        self._fields = fields
        self._problems: list[Diagnostic] = []

    def metadata(self, heading: str | None) -> Metadata:
        meta: dict[str, JsonValue] = {WHY: self._text("why"), KIND: self._text("type")}
        meta[TAGS] = self._texts("tags")
        return Metadata(
            self._text("title") or heading,
            self._text("description"),
            self._audience(),
            self._priority(),
            tuple((key, value) for key, value in meta.items() if value),
            tuple(self._problems),
        )

    def _text(self, key: str) -> str | None:
        value = self._fields.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            return value.strip() or None
        self._wrong(f"`{key}` is no text", key, "put it in quotes if it is meant as text")
        return None

    def _texts(self, key: str) -> tuple[str, ...]:
        value = self._fields.get(key)
        if value is None:
            return ()
        given = (value,) if isinstance(value, str) else value
        if isinstance(given, Sequence):
            texts = tuple(one for one in given if isinstance(one, str))
            if len(texts) == len(given):
                return texts
        self._wrong(f"`{key}` is no list of texts", key, f"write `{key}: [one, another]`")
        return ()

    def _audience(self) -> tuple[str, ...]:
        named = self._texts("audience")
        wrong = [one for one in named if one not in AUDIENCES]
        if wrong:
            message = f"`audience` holds `{wrong[0][:60]}`, which clients do not know"
            self._wrong(message, "audience", "write `user`, `assistant`, or both in a list")
        return tuple(one for one in AUDIENCES if one in named)

    def _priority(self) -> float | None:
        value = self._fields.get("priority")
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
            return value
        message = "`priority` is no number from 0 to 1"
        self._wrong(
            message, "priority", "write 1 for the most important documents, 0 for the least"
        )
        return None

    def _wrong(self, message: str, key: str, hint: str) -> None:
        from fast_agent.diagnostics.rules import WRONG_GUIDE_METADATA

        span = self._document.span_of((key,))
        self._problems.append(_diagnostic(self._source, WRONG_GUIDE_METADATA, message, span, hint))


def _heading(body: str) -> str | None:
    """Give the heading a document begins with, if it begins with one."""
    found = _HEADING.match(body)
    return None if found is None else _CLOSING.sub("", found[1]).strip() or None
