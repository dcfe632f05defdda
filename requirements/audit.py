"""Look up known vulnerabilities of every pinned package, with `pip-audit`.

Run by `make audit`, which installs `pip-audit` from its own lock file. All lock files are audited,
for every platform. Two sources are asked, one after the other: the advisories of the package index,
then OSV. Not every index and network serves them, and `pip-audit` itself then reports that it found
nothing; this script tells the cases apart.

Exit status: 0 every pin was checked and none has a known vulnerability, 1 some have, 3 none has
but some pins could not be checked.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

HERE = Path(__file__).parent
SOURCES = {"pypi": "the package index", "osv": "OSV"}
FOUND, UNCHECKED = 1, 3
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*])?==([^\s;\\]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, order=True)
class Pin:
    """A package at a version."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Vulnerability:
    """A known vulnerability, and the versions it is fixed in."""

    name: str
    fixed_in: tuple[str, ...] = ()


Findings: TypeAlias = Mapping[Pin, tuple[Vulnerability, ...]]
"""Vulnerabilities of the pins that a source knows; those it does not know are missing."""

Ask: TypeAlias = Callable[[str, Sequence[Pin]], Findings]
"""Asks a source about pins of different packages. Raises `SourceError`."""


class SourceError(Exception):
    """A source cannot be asked."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What is known of the pins.

    Args:
        found: The pins with vulnerabilities.
        clean: The pins that were checked and have none.
        unchecked: The pins no source knows.
        refusals: Why a source could not be asked, by source.
    """

    found: Findings
    clean: frozenset[Pin]
    unchecked: frozenset[Pin]
    refusals: Mapping[str, str]

    @property
    def status(self) -> int:
        """The exit status."""
        if self.found:
            return FOUND
        return UNCHECKED if self.unchecked else 0

    def report(self) -> str:
        """Write it for people."""
        lines = [
            f"found  {pin}: {one.name}, "
            + (f"fixed in {', '.join(one.fixed_in)}" if one.fixed_in else "no fix is known")
            for pin, ones in sorted(self.found.items())
            for one in ones
        ]
        lines += [f"note: {SOURCES[name]} {why}" for name, why in self.refusals.items()]
        total = len(self.found) + len(self.clean) + len(self.unchecked)
        if self.unchecked:
            some = ", ".join(map(str, sorted(self.unchecked)[:5]))
            more = ", …" if len(self.unchecked) > 5 else ""
            lines.append(f"not checked: {len(self.unchecked)} of {total} pins ({some}{more})")
        if self.found:
            lines.append(f"{len(self.found)} of {total} pins have known vulnerabilities")
        elif self.clean:
            lines.append(f"{len(self.clean)} of {total} pins checked, no known vulnerabilities")
        return "\n".join(lines)


def pins_of(texts: Iterable[str]) -> frozenset[Pin]:
    """Read the pins of lock files."""
    return frozenset(Pin(*found) for text in texts for found in _PIN.findall(text))


def sheets_of(pins: Iterable[Pin]) -> list[list[Pin]]:
    """Split pins into as few lists as hold every package once, as `pip-audit` reads them."""
    sheets: list[list[Pin]] = []
    names: list[set[str]] = []
    for pin in sorted(pins):
        for sheet, taken in zip(sheets, names, strict=True):
            if pin.name not in taken:
                sheet.append(pin)
                taken.add(pin.name)
                break
        else:
            sheets.append([pin])
            names.append({pin.name})
    return sheets


def read_answer(text: str) -> Findings:
    """Read what `pip-audit --format json` printed; packages that it skipped are left out."""
    answer = cast("dict[str, list[dict[str, object]]]", json.loads(text))
    findings: dict[Pin, tuple[Vulnerability, ...]] = {}
    for one in answer["dependencies"]:
        if "skip_reason" in one:
            continue
        vulnerabilities = cast("list[dict[str, object]]", one["vulns"])
        findings[Pin(str(one["name"]), str(one["version"]))] = tuple(
            Vulnerability(str(found["id"]), tuple(cast("list[str]", found["fix_versions"])))
            for found in vulnerabilities
        )
    return findings


def audit(pins: Iterable[Pin], ask: Ask) -> Audit:
    """Ask the sources about pins, each about those that the ones before it did not know.

    Args:
        pins: What is asked about.
        ask: Asks a source.
    """
    known: dict[Pin, tuple[Vulnerability, ...]] = {}
    waiting = frozenset(pins)
    refusals: dict[str, str] = {}
    for source in SOURCES:
        if not waiting:
            break
        try:
            # An index without advisories knows none of the packages: one question shows that.
            if not ask(source, sorted(waiting)[:1]):
                refusals[source] = "serves no advisories here"
                continue
            for sheet in sheets_of(waiting):
                known.update(ask(source, sheet))
        except SourceError as error:
            refusals[source] = str(error)
        waiting -= known.keys()
    found = {pin: ones for pin, ones in known.items() if ones}
    return Audit(found, frozenset(known.keys() - found.keys()), waiting, refusals)


def ask_pip_audit(source: str, pins: Sequence[Pin]) -> Findings:
    """Ask a source with `pip-audit`, which is installed beside this interpreter."""
    with tempfile.TemporaryDirectory() as directory:
        sheet = Path(directory) / "pins.txt"
        sheet.write_text("".join(f"{pin.name}=={pin.version}\n" for pin in pins), "utf-8")
        options = ("--format", "json", "--disable-pip", "--no-deps", "--progress-spinner", "off")
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pip_audit",
                *options,
                "--vulnerability-service",
                source,
                "-r",
                sheet,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        return read_answer(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["pip-audit printed nothing"])[-1]
        why = "cannot be reached" if "ConnectionError" in last else f"cannot be asked: {last}"
        raise SourceError(why) from None


def main() -> None:
    """Audit the lock files beside this script."""
    files = sorted(HERE.glob("*.txt"))
    pins = pins_of(file.read_text("utf-8") for file in files)
    print(f"{len(pins)} pins of {len(files)} lock files")
    outcome = audit(pins, ask_pip_audit)
    print(outcome.report())
    sys.exit(outcome.status)


if __name__ == "__main__":
    main()
