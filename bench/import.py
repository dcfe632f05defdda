# ruff: noqa: N999 - it is called as `python -m bench.import`
"""How well agents of other tools are imported: `python -m bench.import [DIR]`.

Without DIR it is forty files of each format, written for this project. For each format it prints
the files, how many were read, how many of their fields were mapped or reported, how many of the
cards `fast-agent check` finds no error in, and milliseconds a file for reading and mapping.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from bench.foreign_samples import write_samples
from fast_agent.cli.commands.check import CardCheck
from fast_agent.formats.assembly import ImportTarget, assemble
from fast_agent.formats.detection import foreign_files
from fast_agent.formats.foreign import unaccounted
from fast_agent.formats.importing import plan_import, write_import
from fast_agent.formats.reading import read_foreign
from fast_agent.text.source import read_source

if TYPE_CHECKING:
    from fast_agent.formats.importing import Import


def main() -> None:
    """Print the figures of a directory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?")
    given: Path | None = parser.parse_args().directory
    with tempfile.TemporaryDirectory() as scratch:
        root = given or Path(scratch) / "project"
        if given is None:
            write_samples(root)
        output = Path(scratch) / "out" / ".fast-agent" / "agent-cards"
        plan = plan_import([root], output, choice="files", cwd=Path(scratch) / "out")
        write_import(plan, force=True)
        print_figures(plan, root, output)


def print_figures(plan: Import, root: Path, output: Path) -> None:
    """Print a line a format, and the time a file took."""
    report = CardCheck([str(output)], multi_card=False, config_path=plan.config_path).run()
    wrong = {Path(one.path).name for one in report.diagnostics if one.severity == "error"}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in plan.files:
        count = counts[one.file.format]
        count["files"] += 1
        count["unread"] += any(note.rule == "FA835" for note in one.file.notes)
        count["mapped"] += len(one.file.mapped)
        count["reported"] += len({note.keys for note in one.file.notes if note.keys})
        count["silent"] += len(unaccounted(one.file))
    for card in plan.cards:
        counts[card.draft.file.format]["cards"] += 1
        counts[card.draft.file.format]["unclean"] += card.file_name in wrong
    head = ("format", "files", "parsed", "mapped", "reported", "silent", "cards", "clean")
    print("".join(f"{word:>13}" for word in head))
    for name, count in sorted(counts.items()):
        parsed = count["files"] - count["unread"]
        clean = count["cards"] - count["unclean"]
        share = f"{clean / count['cards']:.1%}" if count["cards"] else "-"
        row = (name, count["files"], parsed, count["mapped"], count["reported"], count["silent"])
        print("".join(f"{cell!s:>13}" for cell in (*row, count["cards"], share)))
    print(f"not read: {len(plan.unread)}; errors of the set: {len(wrong)}")
    print(f"{_milliseconds(root, output):.2f} ms a file (best of 5, reading files included)")


def _milliseconds(root: Path, output: Path) -> float:
    files = foreign_files(root) if root.is_dir() else [root]
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        found = [one for path in files if (one := read_foreign(read_source(path), "files"))]
        assemble(found, ImportTarget(output=output, project=root))
        best = min(best, time.perf_counter() - start)
    return best * 1000 / max(1, len(files))


if __name__ == "__main__":
    main()
