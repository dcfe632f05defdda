"""What `make audit` makes of the answers of `pip-audit`, and that it distinguishes its cases."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest
from requirements.audit import (
    Findings,
    Pin,
    SourceError,
    Vulnerability,
    audit,
    pins_of,
    read_answer,
    sheets_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

LOCKS = Path(__file__).parents[2] / "requirements"
A, A2, B = Pin("a", "1"), Pin("a", "2"), Pin("b", "1.0")
BAD = (Vulnerability("PYSEC-1", ("1.1", "2")), Vulnerability("GHSA-2"))

Answers: TypeAlias = dict[str, Findings | str]


def outcome(pins: Sequence[Pin], answers: Answers) -> tuple[int, str, list[tuple[str, int]]]:
    """Audit pins with sources that know what they are given; a text is why one cannot be asked."""
    asked: list[tuple[str, int]] = []

    def ask(source: str, sheet: Sequence[Pin]) -> Findings:
        asked.append((source, len(sheet)))
        known = answers[source]
        if isinstance(known, str):
            raise SourceError(known)
        return {pin: known[pin] for pin in sheet if pin in known}

    done = audit(pins, ask)
    return done.status, done.report(), asked


@pytest.mark.parametrize(
    ("answers", "status", "said"),
    [
        ({"pypi": {A: (), B: ()}, "osv": {}}, 0, ["2 of 2 pins checked, no known"]),
        (
            {"pypi": {A: BAD, B: ()}, "osv": {}},
            1,
            [
                "found  a 1: PYSEC-1, fixed in 1.1, 2",
                "found  a 1: GHSA-2, no fix is known",
                "1 of 2 pins have known vulnerabilities",
            ],
        ),
        (
            {"pypi": {A: BAD}, "osv": "cannot be reached"},
            1,
            ["not checked: 1 of 2 pins (b 1.0)", "OSV cannot be reached"],
        ),
        (
            {"pypi": {A: ()}, "osv": "cannot be reached"},
            3,
            ["not checked: 1 of 2 pins (b 1.0)", "1 of 2 pins checked, no known"],
        ),
        (
            {"pypi": {}, "osv": "cannot be reached"},
            3,
            [
                "the package index serves no advisories here",
                "not checked: 2 of 2 pins (a 1, b 1.0)",
            ],
        ),
        ({"pypi": {}, "osv": {A: (), B: BAD}}, 1, ["found  b 1.0: PYSEC-1"]),
        ({"pypi": {A: ()}, "osv": {B: ()}}, 0, ["2 of 2 pins checked, no known"]),
    ],
)
def test_outcomes_are_reported_apart(answers: Answers, status: int, said: list[str]) -> None:
    code, report, _ = outcome([A, B], answers)
    assert code == status
    assert [line for line in said if line not in report] == []
    if status == 3:
        assert "not checked" in report


def test_an_index_without_advisories_is_asked_once() -> None:
    pins = [Pin(f"p{number}", "1") for number in range(50)]
    _, _, asked = outcome(pins, {"pypi": {}, "osv": "no"})
    assert asked == [("pypi", 1), ("osv", 1)]


def test_a_package_at_two_versions_is_on_two_sheets() -> None:
    assert sheets_of([A2, B, A]) == [[A, B], [A2]]
    assert sheets_of([]) == []


def test_answers_are_read_and_skipped_packages_are_not_clean() -> None:
    skipped = {"name": "c", "skip_reason": "Dependency not found on PyPI: c (1)"}
    found = {"id": "PYSEC-1", "fix_versions": ["1.1", "2"], "aliases": [], "description": "x"}
    answer: dict[str, object] = {
        "dependencies": [
            {"name": "a", "version": "1", "vulns": []},
            {"name": "b", "version": "1.0", "vulns": [found]},
            skipped,
        ],
        "fixes": [],
    }
    assert read_answer(json.dumps(answer)) == {A: (), B: BAD[:1]}


def test_every_pin_of_every_lock_file_is_read() -> None:
    texts = [file.read_text("utf-8") for file in LOCKS.glob("*.txt")]
    written = [line for text in texts for line in text.splitlines() if "==" in line]
    assert any("[" in line for line in written)
    lines = {re.sub(r"\[[^]]*\]", "", line).split(" ")[0] for line in written}
    pins = pins_of(texts)
    assert {f"{pin.name}=={pin.version}" for pin in pins} == {
        line for line in lines if not line.startswith("--hash")
    }
    assert {"pip-audit", "anyio", "hatchling"} <= {pin.name for pin in pins}


def test_lock_files_hold_no_address() -> None:
    assert [file.name for file in LOCKS.glob("*.txt") if "://" in file.read_text("utf-8")] == []
