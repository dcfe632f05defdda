"""Test files: `name.test.yaml` next to cards, and their cases."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from fast_agent.cards.card_files import TEST_SUFFIXES
from fast_agent.config.case_fields import CASE_FILE, RECORDINGS
from fast_agent.config.layer import FileLayer, LayerReader, Place
from fast_agent.diagnostics.rules import UNKNOWN_TEST_KEY, UNREADABLE_TEST_FILE, WRONG_TEST_VALUE
from fast_agent.errors import ConfigError, RunError
from fast_agent.schema.explanation import ReadingRules
from fast_agent.schema.reader import built
from fast_agent.text.frozen import frozen
from fast_agent.text.source import SourceError, read_source
from fast_agent.text.yaml_document import YamlError, parse_yaml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.config.case_fields import Case, Expectation
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.text.json_value import JsonValue, Keys


@frozen(kw_only=True)
class CaseFile:
    """A test file.

    Args:
        path: The file.
        shown: Its path as messages show it.
        cards: What is loaded, from the file's directory.
        cases: Its cases.
        layer: Its text and values.
        model: The model of every agent over their cards, or None.
        recordings: The directory of recordings, from the file's directory.
        multi_card: Whether a card file may hold several cards.
    """

    path: Path
    shown: str
    cards: tuple[str, ...]
    cases: tuple[Case, ...]
    layer: FileLayer = field(repr=False)
    model: str | None = None
    recordings: str = RECORDINGS
    multi_card: bool = False

    @property
    def stem(self) -> str:
        """Its name without the suffix: that of the card it tests, where there is one."""
        suffix = next(one for one in TEST_SUFFIXES if self.path.name.lower().endswith(one))
        return self.path.name[: -len(suffix)]

    def recording_of(self, case: Case) -> Path:
        """Return the path of a case's recording."""
        directory = self.path.parent
        if case.recording is not None:
            return directory / case.recording
        slug = re.sub(r"[^\w.-]+", "-", case.name).strip("-.") or "case"
        return directory / self.recordings / self.stem / f"{slug}.jsonl"


_EMPTY: Final = "write `cases:` and below it a list, each with a `name` and a `message`"

_RULES: Final = ReadingRules(
    whole="the test file",
    unknown_key=UNKNOWN_TEST_KEY,
    wrong_type=WRONG_TEST_VALUE,
    wrong_value=WRONG_TEST_VALUE,
    missing=WRONG_TEST_VALUE,
)


def read_case_file(path: Path, shown: str) -> CaseFile:
    """Read a test file.

    Args:
        path: The file.
        shown: How messages show it.

    Raises:
        ConfigError: It cannot be read, or something in it is wrong; with every problem.
    """
    layer = _open(path, shown)
    if layer.document.value is None:
        raise _refusal(
            [layer.place(()).problem(WRONG_TEST_VALUE, "the test file is empty", _EMPTY)]
        )
    reader = LayerReader(layer, path.parent, None, _RULES)
    tree = reader.tree(CASE_FILE, layer.document.value)
    if reader.problems:
        raise _refusal(reader.problems)
    values: dict[str, Any] = built(CASE_FILE, tree)
    cases: tuple[Case, ...] = values.pop("cases")
    problems = list(_problems(layer, cases))
    if problems:
        raise _refusal(problems)
    cards: tuple[str, ...] = values.pop("cards", ()) or (".",)
    return CaseFile(path=path, shown=shown, cards=cards, cases=cases, layer=layer, **values)


_FIELD: Final = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")
_MAX_ROWS: Final = 10_000
_MAX_DATA_BYTES: Final = 16 << 20


def cases_of(file: CaseFile, case: Case, check_read: Callable[[Path], None] | None) -> list[Case]:
    """Return the cases a case expands to: one for each line of its data, else itself.

    `{{name}}` in messages, expected texts and criteria is replaced by the field of the line.

    Args:
        file: The file of the case.
        case: The case.
        check_read: Raises `TrustError` for data that may not be read; None allows it.

    Raises:
        ConfigError: The data cannot be read, or lacks a field that is used.
        TrustError: The data may not be read.
    """
    if case.data is None:
        return [case]
    path = file.path.parent / case.data
    if check_read is not None:
        check_read(path)
    try:
        with path.open(encoding="utf-8") as data:
            lines = data.read(_MAX_DATA_BYTES).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the data `{case.data}` of the case `{case.name}` cannot be read",
            hint="name a file of JSON lines in UTF-8, from the directory of the test file",
        ) from error
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows or len(rows) > _MAX_ROWS:
        raise ConfigError(f"the data `{case.data}` has {len(rows)} lines, not 1 to {_MAX_ROWS:,}")
    return [_filled(case, line, f"line {number} of `{case.data}`") for number, line in rows]


def _filled(case: Case, line: str, place: str) -> Case:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{place} is not JSON: {error}") from error
    if not isinstance(row, dict):
        raise ConfigError(f"{place} is not a JSON object")
    values = cast("dict[str, JsonValue]", row)

    def fill(text: str) -> str:
        def value(found: re.Match[str]) -> str:
            if found[1] not in values:
                raise ConfigError(
                    f"{place} has no `{found[1]}`, which the case `{case.name}` uses",
                    hint=f"its fields are {', '.join(f'`{name}`' for name in values)}",
                )
            held = values[found[1]]
            return held if isinstance(held, str) else json.dumps(held, ensure_ascii=False)

        return _FIELD.sub(value, text)

    expect = case.expect
    judge = expect.judge
    return replace(
        case,
        name=f"{case.name} [{place.split()[1]}]",
        data=None,
        messages=tuple(map(fill, case.messages)),
        expect=replace(
            expect,
            text=None if expect.text is None else fill(expect.text),
            contains=tuple(map(fill, expect.contains)),
            lacks=tuple(map(fill, expect.lacks)),
            judge=None if judge is None else replace(judge, criteria=fill(judge.criteria)),
        ),
    )


def _open(path: Path, shown: str) -> FileLayer:
    try:
        source = read_source(path, shown=shown)
        return FileLayer(source, parse_yaml(source.text), path.absolute().parent)
    except SourceError as error:
        message = f"the test file `{shown}` cannot be read: {error.message}"
        problem = Place(shown, error.span).problem(UNREADABLE_TEST_FILE, message, error.hint)
        raise _refusal([problem]) from error
    except YamlError as error:
        problems = [
            Place(shown, one.span).problem(UNREADABLE_TEST_FILE, one.message, one.hint)
            for one in error.problems
        ]
        raise _refusal(problems) from error


def _problems(layer: FileLayer, cases: Sequence[Case]) -> list[Diagnostic]:
    """Find what is wrong with values that are of the right kind."""
    problems: list[Diagnostic] = []

    def found(at: Keys, message: str, hint: str | None = None) -> None:
        problems.append(layer.place(at).problem(WRONG_TEST_VALUE, message, hint))

    if not cases:
        found(("cases",), "the test file has no cases")
    seen: dict[str, int] = {}
    for index, case in enumerate(cases):
        at: Keys = ("cases", index)
        if seen.setdefault(case.name, index) != index:
            found((*at, "name"), f"there are two cases `{case.name}`", "rename one of them")
        if not case.messages:
            found(at, "the case sends no message")
        if case.live and case.recording is not None:
            found((*at, "recording"), "a live case has no recording", "leave out one of the two")
        if case.repeats > 1 and not case.live:
            hint = "a replay is the same every time; add `live: true`"
            found((*at, "repeats"), "only a live case is repeated", hint)
        if case.network and not case.live:
            found((*at, "network"), "a replay never uses the network", "only a `live` case may")
        _check_expectation(case.expect, (*at, "expect"), found)
    return problems


def _check_expectation(expect: Expectation, at: Keys, found: Any) -> None:
    for number, pattern in enumerate(expect.matches):
        try:
            re.compile(pattern)
        except re.error as error:
            found(
                (*at, "matches", number), f"`{pattern}` is not a valid regular expression: {error}"
            )
    if expect.json_schema is not None:
        from fast_agent.agents.output import JsonSchema

        try:
            JsonSchema(expect.json_schema, "`json_schema`")
        except RunError as error:
            found((*at, "json_schema"), error.message)
    answered = (expect.text, expect.contains, expect.lacks, expect.matches, expect.json_schema)
    if expect.error is not None and any(one not in (None, ()) for one in answered):
        found((*at, "error"), "a case that ends with an error has no answer to check")


def _refusal(problems: Sequence[Diagnostic]) -> ConfigError:
    first = problems[0]
    return ConfigError(first.message, hint=first.hint, diagnostics=problems)


def holds(whole: JsonValue, part: JsonValue) -> bool:
    """Whether a JSON value holds a part: the same, or of an object some members."""
    if isinstance(part, Mapping) and isinstance(whole, Mapping):
        return all(key in whole and holds(whole[key], part[key]) for key in part)
    if isinstance(part, str) or isinstance(whole, str):
        return whole == part
    if isinstance(part, Sequence) and isinstance(whole, Sequence):
        return len(part) == len(whole) and all(map(holds, whole, part))
    return whole == part
