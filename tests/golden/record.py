"""Record the answers of a commit: `python -m tests.golden.record --commit 4186adf [STAGE…]`."""

from __future__ import annotations

import argparse
import subprocess
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.golden.answers import write_recorded
from tests.golden.play import play
from tests.golden.stage import read_stage, stage_names
from tests.golden.world import ROOT, Program

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def tree_of(commit: str) -> Generator[Path]:
    """Check a commit out into a directory of its own, for as long as it is needed."""
    with TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(tree), commit],
            cwd=ROOT,
            check=True,
        )
        try:
            yield tree
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True
            )


def main() -> None:
    """Record."""
    parser = argparse.ArgumentParser(description="Record the answers of a commit.")
    parser.add_argument("--commit", required=True)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="only these")
    options = parser.parse_args()
    with tree_of(options.commit) as tree:
        for name in options.stages or stage_names():
            answers = play(read_stage(name), Program(tree))
            write_recorded(name, answers)
            print(f"{name}: {len(answers)} exchanges")


if __name__ == "__main__":
    main()
