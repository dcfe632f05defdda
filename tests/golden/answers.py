"""Answers: as they were recorded, and those that were changed on purpose since."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

import yaml
from tests.golden.stage import HERE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tests.golden.stage import Answers

RECORDED = HERE / "recorded"
CHANGED = HERE / "changed.yaml"
_NONE: Final = object()
_MAX_SHOWN: Final = 1_000
_HEAD = """\
# Answers that differ from those of the recorded commit, on purpose: see README.md.
# `python -m tests.golden.accept --reason "…" STAGE EXCHANGE` writes an entry.
"""


@dataclass(frozen=True, slots=True)
class Change:
    """One step that is answered in another way than it was.

    Args:
        stage: The stage.
        exchange: The exchange in it.
        step: The step, from 1.
        reason: Why.
        answer: What comes now.
    """

    stage: str
    exchange: str
    step: int
    reason: str
    answer: list[Any]


def read_recorded(stage: str) -> Answers:
    """Read what was recorded of a stage; nothing where nothing was."""
    path = _path_of(stage)
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def write_recorded(stage: str, answers: Answers) -> None:
    """Write what was recorded of a stage, a message a line."""
    exchanges = [
        f"{json.dumps(title)}: [\n" + ",\n".join(map(_step_text, steps)) + "\n]"
        for title, steps in answers.items()
    ]
    _path_of(stage).write_text("{\n" + ",\n".join(exchanges) + "\n}\n", "utf-8")


def _step_text(step: list[Any]) -> str:
    if not step:
        return " []"
    return " [\n" + ",\n".join(f"  {json.dumps(one, ensure_ascii=False)}" for one in step) + "\n ]"


def _path_of(stage: str) -> Path:
    return RECORDED / f"{stage}.json"


@cache
def read_changes() -> Sequence[Change]:
    """Read the answers that were changed on purpose, once: they are half a megabyte."""
    found: list[dict[str, Any]] = yaml.load(CHANGED.read_text("utf-8"), yaml.CSafeLoader) or []
    return [Change(**one) for one in found]


def write_changes(changes: Iterable[Change]) -> None:
    """Write the answers that were changed on purpose, in order."""
    ordered = sorted(changes, key=lambda one: (one.stage, one.exchange, one.step))
    text = "".join(map(_entry_text, ordered)) or "[]\n"
    CHANGED.write_text(_HEAD + text, "utf-8")


def _entry_text(change: Change) -> str:
    """Write an entry: YAML, with a line of JSON for each message."""
    place = {"stage": change.stage, "exchange": change.exchange, "step": change.step}
    head = "\n  ".join(f"{key}: {value}" for key, value in place.items())
    reason = json.dumps(change.reason, ensure_ascii=False)
    answer = "".join(f"\n  - {json.dumps(one, ensure_ascii=False)}" for one in change.answer)
    return f"- {head}\n  reason: {reason}\n  answer:{answer or ' []'}\n"


def problems_of(
    stage: str, played: Answers, recorded: Answers, changes: Iterable[Change]
) -> list[str]:
    """Compare what came with what was recorded and what was changed on purpose.

    Returns:
        Each difference in words; and each change that is none.
    """
    expected = {(one.exchange, one.step): one for one in changes if one.stage == stage}
    problems: list[str] = []
    if played.keys() != recorded.keys():
        odd = sorted(played.keys() ^ recorded.keys())
        problems.append(f"{stage}: exchanges {odd} are not both scripted and recorded")
    for title in played.keys() & recorded.keys():
        if len(played[title]) != len(recorded[title]):
            problems.append(f"{stage}: {title}: its steps are not those that were recorded")
            continue
        steps = zip(played[title], recorded[title], strict=True)
        for number, (now, before) in enumerate(steps, 1):
            change = expected.pop((title, number), None)
            problems += _problems_of_step(f"{stage}: {title}: step {number}", now, before, change)
    problems += [
        f"{stage}: {title}: step {number}: changed.yaml names a step that there is not"
        for title, number in expected
    ]
    return sorted(problems)


def _problems_of_step(
    place: str, now: list[Any], before: list[Any], change: Change | None
) -> list[str]:
    if change is None:
        return [] if same(now, before) else [f"{place}:\n{difference(before, now)}"]
    if same(change.answer, before):
        return [f"{place}: changed.yaml gives the recorded answer; delete the entry"]
    if same(now, before):
        return [f"{place}: the recorded answer is given again; delete the entry of changed.yaml"]
    if not same(now, change.answer):
        return [f"{place}: not as changed.yaml says:\n{difference(change.answer, now)}"]
    return []


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: 1 is neither 1.0 nor true."""
    return _text(one) == _text(other)


def _text(value: Any) -> str:
    return "(nothing)" if value is _NONE else json.dumps(value, sort_keys=True)


def difference(before: list[Any], now: list[Any]) -> str:
    """Show where messages differ: the path, what was there with `-`, what is there with `+`."""
    lines: list[str] = []
    for path, old, new in _differences(before, now, ""):
        lines.append(f"  {path or 'all'}")
        lines += [f"    {sign} {_shown(one)}" for sign, one in (("-", old), ("+", new))]
    return "\n".join(lines)


def _differences(before: Any, now: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if same(before, now):
        return
    if isinstance(before, dict) and isinstance(now, dict):
        old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", now)
        for key in dict.fromkeys([*old, *new]):
            yield from _differences(old.get(key, _NONE), new.get(key, _NONE), f"{path}/{key}")
    elif isinstance(before, list) and isinstance(now, list):
        olds, news = cast("list[Any]", before), cast("list[Any]", now)
        if len(olds) != len(news):
            yield path, olds, news
            return
        for place, (one, other) in enumerate(zip(olds, news, strict=True), 1):
            yield from _differences(one, other, f"{path}/{place}")
    else:
        yield path, before, now


def _shown(value: Any) -> str:
    text = "(nothing)" if value is _NONE else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
