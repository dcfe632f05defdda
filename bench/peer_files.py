"""The example configurations and cards of the peer's source distribution, loaded as they are."""

from __future__ import annotations

import os
import re
import tarfile
from typing import TYPE_CHECKING

from bench.figure import Figure, Goal
from bench.peers import PACKAGE, find_python
from bench.process import BenchError, run_process
from bench.samples import Samples
from fast_agent.cards.load import load_cards
from fast_agent.config.load import load_settings
from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sized
    from pathlib import Path

    from bench.setup import Setup
    from fast_agent.diagnostics.diagnostic import Diagnostic

LEAST = 95.0
_CONFIGS = ("fastagent", "fast-agent")
_CARD = re.compile(
    r"^---\n(?:.*\n)*?type: *[\"']?"
    r"(?:agent|basic|chain|parallel|router|orchestrator|iterative_planner|evaluator_optimizer"
    r"|maker|smart|a2a)\b",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"\$\{(\w+)")


def figures(setup: Setup) -> Iterator[Figure]:
    """Load each file by itself; nothing without the peer, whose package holds them."""
    if setup.peer is None:
        return
    root = _sources(setup.work / "sources")
    errors = {path: _errors(path) for path in _wanted(root)}
    if not errors:
        raise BenchError("its source distribution holds no configuration and no card")
    loaded = sum(not one for one in errors.values())
    explained = sum(not one or any(problem.hint for problem in one) for one in errors.values())
    many = f"{len(errors)} example configurations and cards of the peer"
    yield Figure(name=f"{many}: loaded as they are", unit="%", ours=_share(loaded, errors))
    yield Figure(
        name="loaded, or refused with a hint that says what to write",
        unit="%",
        ours=_share(explained, errors),
        goal=Goal(LEAST, at_least=True),
    )


def _share(count: int, all_: Sized) -> Samples:
    return Samples.of([100 * count / len(all_)])


def _sources(place: Path) -> Path:
    python = find_python()
    if python is None:
        raise BenchError("there is no Python for the peer")
    place.mkdir()
    fetch = ("download", "--quiet", "--no-deps", "--no-binary", PACKAGE, PACKAGE)
    run_process(
        (python, "-m", "pip", "--disable-pip-version-check", *fetch), cwd=place, environ=os.environ
    )
    with tarfile.open(next(place.glob("*.tar.gz"))) as archive:
        archive.extractall(place, filter="data")
    return place


def _wanted(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        if not path.is_file():
            continue
        is_config = path.name.startswith(_CONFIGS) and ".yaml" in path.suffixes
        is_text = path.suffix in {".md", ".yaml", ".yml"}
        if is_config or (is_text and _CARD.match(_start(path))):
            yield path


def _start(path: Path) -> str:
    text = path.read_text("utf-8", "replace")[:4000]
    head = text if path.suffix == ".md" else f"---\n{text}"
    return head.partition("\n---")[0]


def _errors(path: Path) -> list[Diagnostic]:
    if path.name.startswith(_CONFIGS):
        names = set(_VARIABLE.findall(path.read_text("utf-8", "replace")))
        try:
            load_settings(
                cwd=path.parent,
                environ=dict.fromkeys(names, "x"),
                home=path.parent / "no-home",
                config_path=path,
            )
        except ConfigError as error:
            return list(error.diagnostics)
        return []
    found = load_cards([path], environ={}).diagnostics
    return [one for one in found if one.severity == "error"]
