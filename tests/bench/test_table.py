"""The benchmark measures processes and writes tables; no figure is held to its goal here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from bench.card_directory import SERVERS, write_cards
from bench.comparison import compare
from bench.figure import Figure, Goal
from bench.process import BenchError, run_json, run_process
from bench.samples import Samples, interleave
from bench.setup import ROOT, Peer, Setup
from bench.table import render_table, to_json

from fast_agent.cards.load import load_cards
from fast_agent.cards.load_set import check_set

if TYPE_CHECKING:
    from pathlib import Path

    from bench.comparison import Values


def test_samples_have_a_middle_and_ends() -> None:
    samples = Samples.of([3.0, 1.0, 2.0, 10.0])
    assert (samples.median, samples.low, samples.high) == (2.5, 1.0, 10.0)
    with pytest.raises(ValueError, match="no samples"):
        Samples.of([])


def test_runs_are_interleaved_and_the_first_round_is_thrown_away() -> None:
    order: list[str] = []

    def take(name: str) -> int:
        order.append(name)
        return len(order)

    values = interleave({"a": lambda: take("a"), "b": lambda: take("b")}, rounds=2)
    assert order == ["a", "b", "a", "b", "a", "b"]
    assert values == {"a": [3, 5], "b": [4, 6]}


def test_ratios_say_how_much_better_ours_is() -> None:
    time = Figure(name="t", unit="ms", ours=Samples((10.0,)), peer=Samples((40.0,)))
    assert time.peer_ratio == 4
    rate = Figure(
        name="r",
        unit="/s",
        ours=Samples((10.0,)),
        goal=Goal(20, at_least=True),
        peer=Samples((40.0,)),
        limit=Samples((100.0,)),
    )
    assert (rate.peer_ratio, rate.limit_ratio, rate.met) == (0.25, 0.1, False)


def test_table() -> None:
    figures = [
        Figure(
            name="start",
            unit="ms",
            ours=Samples((80.0, 90.5, 100.0)),
            goal=Goal(150),
            limit=Samples((12.0,)),
            peer=Samples((362.0,)),
        ),
        Figure(
            name="turns",
            unit="/s",
            ours=Samples((9_000.0,)),
            goal=Goal(10_000, at_least=True),
            peer_note="not installed",
        ),
    ]
    assert render_table(figures, peers=True) == (
        "| figure | ours (min-max)   | goal        | met | limit | x limit | peer (min-max) "
        "| vs peer   |\n"
        "|--------|------------------|-------------|-----|-------|---------|----------------"
        "|-----------|\n"
        "| start  | 90.5 ms (80-100) | <= 150 ms   | yes | 12 ms | 7.54    | 362 ms         "
        "| 4x better |\n"
        "| turns  | 9,000/s          | >= 10,000/s | NO  |       |         | not installed  "
        "|           |\n"
    )
    assert "peer" not in render_table(figures, peers=False)
    reported = to_json(figures, {"python": "3"})
    assert reported["facts"] == {"python": "3"}
    assert [one["met"] for one in reported["figures"]] == [True, False]


def test_a_process_is_measured(tmp_path: Path) -> None:
    code = "import time; held = b'x' * (150 * 2**20); time.sleep(0.05); print('done')"
    run = run_process((sys.executable, "-c", code), cwd=tmp_path, environ={}, expect="done")
    assert run.output == "done\n"
    assert run.seconds >= 0.05
    assert run.peak_mib >= 150


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('it broke')", "it broke"),
        ("print('other')", "did not say `done` but: other"),
    ],
)
def test_a_failed_process_is_an_error(tmp_path: Path, code: str, message: str) -> None:
    with pytest.raises(BenchError, match=message):
        run_process((sys.executable, "-c", code), cwd=tmp_path, environ={}, expect="done")


def test_a_process_that_hangs_is_killed(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "import time; time.sleep(600)")
    with pytest.raises(BenchError, match="failed"):
        run_process(command, cwd=tmp_path, environ={}, timeout=0.2)


def test_the_last_line_is_the_answer(tmp_path: Path) -> None:
    code = "print('noise'); print('{\"seconds\": 1}')"
    answer = run_json((sys.executable, "-c", code), cwd=tmp_path, environ={})
    assert answer == {"seconds": 1}
    with pytest.raises(BenchError, match="no JSON object"):
        run_json((sys.executable, "-c", "print(1)"), cwd=tmp_path, environ={})


def test_a_peer_that_fails_is_a_note(tmp_path: Path) -> None:
    peer = Peer(tmp_path / "python", "1")
    calls: list[Peer] = []

    def broken(one: Peer) -> Values:
        calls.append(one)
        raise BenchError("no such option")

    setup = Setup(tmp_path, peer=peer)
    done = compare(setup, lambda: {"t": 1.0}, peer=broken, rounds=3)
    figure = done.figure("t", "time", "ms")
    assert (figure.peer, figure.peer_note) == (None, "failed: no such option")
    assert len(figure.ours.values) == 3
    assert len(calls) == 1


def test_the_cards_are_sound_varied_and_repeatable(tmp_path: Path) -> None:
    first = write_cards(tmp_path / "a", 200)
    load = load_cards([first], environ={})
    problems = (*load.diagnostics, *check_set(load.cards, servers=SERVERS))
    assert [found.message for found in problems if found.severity == "error"] == []
    assert len(load.cards) == 200
    assert {card.config.type for card in load.cards} == {"agent", "chain", "parallel", "router"}
    assert {path.suffix for path in first.iterdir()} == {".md", ".yaml"}
    again = write_cards(tmp_path / "b", 200)
    for path in first.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes()


def test_the_command_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    target = tmp_path / "figures.json"
    command = (sys.executable, "-m", "bench", "--quick", "--only", "loading", "--json", str(target))
    run = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "| load and check 1,000 cards " in run.stdout
    reported = json.loads(target.read_text(encoding="utf-8"))
    assert reported["figures"][0]["limit"]["median"] > 0
    assert float(reported["facts"]["load before"]) >= 0
