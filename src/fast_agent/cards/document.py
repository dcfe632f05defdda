"""Card documents: the text of one card, split into its fields and its body.

A `DiagnosticCollector` holds the problems of a card, each with its place and its remedy.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fast_agent.diagnostics import rules
from fast_agent.diagnostics.diagnostic import Diagnostic, Fix, RelatedPlace
from fast_agent.schema.explanation import ReadingRules
from fast_agent.text.frozen import frozen
from fast_agent.text.json_value import value_at
from fast_agent.text.span import Span
from fast_agent.text.yaml_document import YamlDocument, YamlError, parse_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.diagnostics.diagnostic import Severity
    from fast_agent.text.frontmatter import Frontmatter
    from fast_agent.text.json_value import JsonValue, Keys
    from fast_agent.text.source import Source

_DOCUMENT_START = re.compile(r"^---(?=[ \t]|$)", re.MULTILINE)
_NOTHING_YET = re.compile(r"(?:---[ \t]*)?(?:[ \t]*(?:[#%].*)?\n)*[ \t]*(?:[#%].*)?")
_BLANK_HEAD = re.compile(r"(?:[ \t]*\n)*")
_BLANK_TAIL = re.compile(r"(?:\n[ \t]*)*\Z")
_SYSTEM = re.compile(r"---SYSTEM[ \t]*(?:\n|\Z)")


@frozen
class CardDocument:
    """The text of one card.

    Args:
        source: The file it is in.
        yaml: Its fields.
        body: What follows the frontmatter, as it is; None for a YAML card.
        body_line: Line number of the body's first line.
        several: Whether other cards are in the same file.
        flawed: Whether its YAML has an error, such as a key given twice.
    """

    source: Source
    yaml: YamlDocument
    body: str | None = None
    body_line: int = 1
    several: bool = False
    flawed: bool = False

    def instruction(self) -> str | None:
        """Read the instruction out of the body.

        Blank lines around it and a first line `---SYSTEM` are not part of it.

        Returns:
            The instruction; None where there is no body or nothing in it.
        """
        body = self.body
        if not body or body.isspace():
            return None
        body = _without_blank_head(body)
        marked = _SYSTEM.match(body)
        if marked:
            body = _without_blank_head(body[marked.end() :])
        tail = _BLANK_TAIL.search(body, len(body.rstrip(" \t\n")))
        return (body[: tail.start()] if tail else body) or None

    def body_span(self) -> Span:
        """Find the first line of the body that is not blank."""
        lines = (self.body or "").split("\n")
        index = next((i for i, line in enumerate(lines) if line.strip()), 0)
        return Span.at(self.body_line + index, 1, max(1, len(lines[index])))

    def span_of(self, path: tuple[str | int, ...], *, key: bool = False) -> Span | None:
        """Find where a field, or something in it, is written.

        Args:
            path: The field, then keys and indexes in its value.
            key: Whether to return the place of the last key instead of its value.

        Returns:
            Its span; None if the document does not set the field.
        """
        value = self.yaml.value
        if isinstance(value, dict) and path[0] in value:
            return self.yaml.span_of(path, key=key)
        if path[0] == "instruction" and self.body and not self.body.isspace():
            return self.body_span()
        return None

    def start(self) -> Span:
        """Find the place that represents the whole card: its fence or its first line."""
        line = self.yaml.first_line - (0 if self.body is None else 1)
        return Span.at(line, 1, max(1, len(self.source.line(line))))


@frozen
class FileContent:
    """What a file holds.

    Args:
        documents: The cards whose fields could be read, in file order.
        diagnostics: What is wrong with the text.
        bare: Whether a Markdown file has no frontmatter at all.
    """

    documents: tuple[CardDocument, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    bare: bool = False


def read_markdown(source: Source, *, multi_card: bool) -> FileContent:
    """Read the cards of a Markdown file.

    Args:
        source: The file.
        multi_card: Whether it may hold several.

    Returns:
        The cards, or what is wrong.
    """
    from fast_agent.text.frontmatter import FrontmatterError, split_frontmatter

    try:
        parts = split_frontmatter(source)
    except FrontmatterError as error:
        code = {
            "toml": rules.TOML_FRONTMATTER,
            "fence": rules.LOOSE_FENCE,
            "unclosed": rules.UNCLOSED_FRONTMATTER,
        }[error.reason]
        fix = None if error.replacement is None else Fix(error.span, error.replacement)
        found = diagnostic(source, code, error.message, error.span, hint=error.hint, fix=fix)
        return FileContent(diagnostics=(found,))
    if parts is None:
        return FileContent(bare=True)
    sections = _sections(parts)
    problems: list[Diagnostic] = []
    if len(sections) > 1 and not multi_card:
        problems.append(_several(source, sections[1].first_line - 1))
        sections = sections[:1]
    documents: list[CardDocument] = []
    for section in sections:
        known = len(problems)
        yaml = _fields(source, section.text, section.first_line, problems, "the frontmatter")
        if yaml is not None:
            several, flawed = len(sections) > 1, len(problems) > known
            documents.append(
                CardDocument(source, yaml, section.body, section.body_line, several, flawed)
            )
    return FileContent(tuple(documents), tuple(problems))


def read_yaml(source: Source, *, multi_card: bool) -> FileContent:
    """Read the cards of a YAML file.

    Args:
        source: The file.
        multi_card: Whether it may hold several.

    Returns:
        The cards, or what is wrong.
    """
    pieces = _pieces(source.text)
    problems: list[Diagnostic] = []
    if len(pieces) > 1 and not multi_card:
        problems.append(_several(source, pieces[1][0]))
        pieces = pieces[:1]
    documents: list[CardDocument] = []
    for first_line, text in pieces:
        known = len(problems)
        yaml = _fields(source, text, first_line, problems, "a YAML card")
        if yaml is not None:
            several, flawed = len(pieces) > 1, len(problems) > known
            documents.append(CardDocument(source, yaml, several=several, flawed=flawed))
    return FileContent(tuple(documents), tuple(problems))


def _fields(
    source: Source, text: str, first_line: int, problems: list[Diagnostic], what: str
) -> YamlDocument | None:
    try:
        yaml = parse_yaml(text, first_line=first_line)
    except YamlError as error:
        for problem in error.problems:
            duplicate = problem.kind == "duplicate-key"
            code = rules.DUPLICATE_KEY if duplicate else rules.BAD_YAML
            related: tuple[RelatedPlace, ...] = ()
            if problem.first is not None:
                related = (RelatedPlace("the first one", source.path, problem.first),)
            found = diagnostic(
                source, code, problem.message, problem.span, hint=problem.hint, related=related
            )
            problems.append(found)
        yaml = error.document
        return yaml if yaml is not None and isinstance(yaml.value, dict) else None
    if yaml.value is None:
        return YamlDocument(text, first_line, {})
    if isinstance(yaml.value, dict):
        return yaml
    kind = "a single value" if isinstance(yaml.value, str | int | float) else "a list"
    span = yaml.span_of(())
    span = Span.at(span.start.line, span.start.column)
    message = f"{what} must be a mapping of fields, not {kind}"
    hint = "write lines of the form `field: value`"
    problems.append(diagnostic(source, rules.NOT_A_MAPPING, message, span, hint=hint))
    return None


def _several(source: Source, line: int) -> Diagnostic:
    span = Span.at(line, 1, max(1, len(source.line(line))))
    return diagnostic(
        source,
        rules.SEVERAL_CARDS,
        "a second card starts here; a file holds one card",
        span,
        hint="put it in a separate file, or load with `--multi-card` (`multi_card=True`)",
    )


def _sections(parts: Frontmatter) -> list[Frontmatter]:
    """Split a body at the lines where further cards start."""
    if "\n---\n" not in f"\n{parts.body}":
        return [parts]
    from fast_agent.text.frontmatter import Frontmatter, unfenced_lines

    lines = parts.body.split("\n")
    fences = [number for number, line in unfenced_lines(parts.body) if line == "---"]
    starts: list[tuple[int, int]] = []
    at = 0
    while at + 1 < len(fences):
        opened, closed = fences[at], fences[at + 1]
        if _begins_card("\n".join(lines[opened : closed - 1])):
            starts.append((opened, closed))
            at += 1
        at += 1
    # Each body ends where the next card's fence opens.
    ends = [opened for opened, _ in starts] + [len(lines) + 1]
    sections = [Frontmatter(parts.text, parts.first_line, parts.body, parts.body_line)]
    if starts:
        first = _joined(lines[: ends[0] - 1])
        sections[0] = Frontmatter(parts.text, parts.first_line, first, parts.body_line)
    for (opened, closed), end in zip(starts, ends[1:], strict=True):
        offset = parts.body_line - 1
        text = _joined(lines[opened : closed - 1])
        body = "\n".join(lines[closed : end - 1])
        sections.append(Frontmatter(text, opened + 1 + offset, body, closed + 1 + offset))
    return sections


def _begins_card(text: str) -> bool:
    if "type" not in text:
        return False
    try:
        value = parse_yaml(text).value
    except YamlError as error:
        # A duplicate key makes an invalid card; the text is still a card.
        only_duplicates = all(problem.kind == "duplicate-key" for problem in error.problems)
        return only_duplicates and re.search(r"^type\s*:", text, re.MULTILINE) is not None
    return isinstance(value, dict) and "type" in value


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _pieces(text: str) -> list[tuple[int, str]]:
    """Split a YAML stream into documents with their first lines; empty ones are left out."""
    if "\n---" not in text:
        return [(1, text)]
    starts = [match.start() for match in _DOCUMENT_START.finditer(text)]
    if not starts or starts[0] > 0:
        starts.insert(0, 0)
    pieces: list[tuple[int, str]] = []
    begin = 0
    for end in [*starts[1:], len(text)]:
        piece = text[begin:end]
        if _NOTHING_YET.fullmatch(piece.rstrip("\n")) is None:
            pieces.append((text.count("\n", 0, begin) + 1, piece))
        elif end < len(text):
            continue  # directives and comments belong to the document after them
        begin = end
    return pieces or [(1, text)]


def _without_blank_head(text: str) -> str:
    head = _BLANK_HEAD.match(text)
    return text[head.end() :] if head else text


def diagnostic(
    source: Source,
    code: str,
    message: str,
    span: Span | None,
    *,
    hint: str | None = None,
    fix: Fix | None = None,
    related: tuple[RelatedPlace, ...] = (),
    severity: Severity = "error",
) -> Diagnostic:
    """Make a diagnostic of a file, with its source line."""
    return Diagnostic(
        code=code,
        message=message,
        path=source.path,
        span=span,
        severity=severity,
        hint=hint,
        fix=fix,
        related=related,
        source_line=None if span is None else source.line(span.start.line),
    )


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
        if replacement is not None and (key or self._is_replaceable(path)):
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

    def _is_replaceable(self, path: Keys) -> bool:
        written = self.written(path)
        return "${" not in written and _REPLACEABLE.fullmatch(written) is not None
