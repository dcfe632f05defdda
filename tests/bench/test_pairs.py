from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.pairs import MEASURES, Pairs, Side, compare
from bench.process import BenchError, processor_seconds
from bench.setup import Setup


@pytest.mark.parametrize(
    ("higher", "speeds", "met"), [(True, (1.0, 0.5), False), (False, (1.0, 2.0), True)]
)
def test_a_speed_is_that_of_this_tree_pair_by_pair(
    higher: bool, speeds: tuple[float, ...], met: bool
) -> None:
    pairs = Pairs("x", now=(2.0, 2.0), before=(2.0, 4.0), higher=higher)
    assert pairs.speeds.values == speeds
    assert pairs.figure().met is met


def test_both_sides_are_measured_in_turn_and_the_first_pair_is_thrown_away(tmp_path: Path) -> None:
    order: list[str] = []

    def measure(_: Setup, side: Side) -> dict[str, float]:
        order.append(side.root.name)
        gone = {"gone": 1.0} if len(order) % 2 else {}
        return {"reads/s": float(len(order)), "errors": 0.0, **gone}

    sides = {name: Side(Path(name), Path()) for name in ("before", "now")}
    # What one side does not measure is left out, and so is what is 0: it has no ratio.
    (pairs,) = compare(Setup(tmp_path), sides, measure, 2)
    assert order == ["before", "now"] * 3
    assert (pairs.before, pairs.now, pairs.higher) == ((3.0, 5.0), (4.0, 6.0), True)


def test_a_side_runs_the_source_of_its_tree(tmp_path: Path) -> None:
    package = tmp_path / "tree/src/fast_agent/cli"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "main.py").write_text("def main():\n    import click\n    print(__file__)\n")
    side = Side.of(tmp_path / "tree", tmp_path / "python")
    done = subprocess.run([side.program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(package / "main.py")


def test_processor_time_is_that_of_all_threads() -> None:
    if sys.platform != "linux":
        pytest.skip("reported on Linux only")
    assert processor_seconds(os.getpid()) > 0
    with pytest.raises(BenchError):
        processor_seconds(2**22 + 1)


def test_the_figures_of_the_goal_are_measured() -> None:
    assert list(MEASURES) == ["start", "http", "stdio", "cards"]
