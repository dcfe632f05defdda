"""Run the benchmark and print its table: `python -m bench [--peers] [--only NAME…] [--quick]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from bench.peers import PACKAGE, install_peer
from bench.process import BenchError
from bench.setup import Setup
from bench.table import render_table, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.figure import Figure

FAMILIES = (
    "startup",
    "loading",
    "trust",
    "reload",
    "turn",
    "context",
    "accounting",
    "provider",
    "streams",
    "prompt_cache",
    "answers",
    "maker",
    "tool",
    "file_search",
    "peer_files",
    "workflows",
    "history_routing",
    "many_messages",
    "replay",
    "sessions",
    "session_log",
    "durable",
    "postgres",
    "temporal",
    "cluster",
    "install",
    "resources",
    "resources_changes",
    "resources_http",
    "resources_guide",
    "smart_prompt",
    "serve",
    "network",
    "acp",
    "tui",
    "pairs",
)
"""The modules of this package that measure, in the order of the table."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status is 1 where something could not be measured."""
    options = _parser().parse_args(arguments)
    facts = _facts()
    peer, note = None, ""
    if options.peers:
        _tell(f"installing {PACKAGE}, unless it is there")
        try:
            peer = install_peer()
            facts["peer"] = f"{PACKAGE} {peer.version}"
        except BenchError as error:
            note = str(error)
            facts["peer"] = f"{PACKAGE} {note}"
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        setup = Setup(Path(work).resolve(), options.quick, peer, note)
        figures = list(_measure(setup, options.only or FAMILIES, failures))
    facts["load after"] = _load()
    print("".join(f"{name}: {fact}\n" for name, fact in facts.items()))
    if figures:
        print(render_table(figures, peers=options.peers), end="")
    for failure in failures:
        print(f"not measured: {failure}")
    if options.json is not None:
        text = json.dumps(to_json(figures, facts), indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 1 if failures else 0


def _measure(setup: Setup, families: Sequence[str], failures: list[str]) -> Iterator[Figure]:
    for family in families:
        _tell(f"measuring {family}")
        own = replace(setup, work=setup.work / family)
        own.work.mkdir()
        try:
            yield from import_module(f"bench.{family}").figures(own)
        except BenchError as error:
            failures.append(f"{family}: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the figures.")
    parser.add_argument("--peers", action="store_true", help=f"measure {PACKAGE} too")
    parser.add_argument("--only", nargs="+", choices=FAMILIES, help="measure these families only")
    parser.add_argument("--quick", action="store_true", help="measure less, and less surely")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file too")
    return parser


def _facts() -> dict[str, str]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "load before": _load(),
    }


def _load() -> str:
    """Return how busy the machine was over the last minute, in waiting processes."""
    return f"{os.getloadavg()[0]:.1f}"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
