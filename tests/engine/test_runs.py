"""`fast-agent runs`, as a process over the runs of batches."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.engine.batch_world import BatchWorld, ModelServer, Reply, note_and_answer, run_command
from tests.patience import wait_until


def _listed(world: BatchWorld, *words: str) -> list[dict[str, Any]]:
    return json.loads(run_command(world, "runs", "list", "--format", "json", *words).stdout)


@pytest.mark.spec("RUNS-1", "RUNS-2")
def test_runs_are_listed_and_shown_with_their_steps(tmp_path: Path) -> None:
    with ModelServer(seconds=0.05) as server:
        world = BatchWorld(tmp_path, server.url, 3)
        assert "there are no runs" in run_command(world, "runs").stdout
        world.run("--quiet")
    runs = _listed(world)
    assert [run["message"] for run in runs] == ["item-0", "item-1", "item-2"]
    assert {run["state"] for run in runs} == {"done"}
    assert _listed(world, "--state", "failed") == []
    assert len(_listed(world, "--limit", "2")) == 2
    (run,) = _listed(world, runs[1]["id"])
    shown = json.loads(run_command(world, "runs", "show", run["id"], "--json").stdout)
    assert shown["output"] == "done: noted item-1"
    asked = [(step["kind"], step["state"]) for step in shown["steps"]
             if step["kind"] in {"model", "tool"}]  # fmt: skip
    assert asked == [("model", "done"), ("tool", "done"), ("model", "done")]
    lines = run_command(world, "runs", "show", run["id"]).stdout.splitlines()
    assert lines[0].startswith(f"run {run['id']}: done, agent noter")
    drawn = run_command(world, "runs", "show", run["id"], "--trace").stdout.splitlines()
    bars = [line for line in drawn if "│" in line]
    starts = [line.split("│")[1].index("█") for line in bars]
    assert [line.split("│")[0].strip() for line in bars] == [
        "noter: model generic.m", "noter: tool note", "noter: model generic.m"]  # fmt: skip
    assert starts == sorted(starts)
    assert "10 tokens" in bars[0]
    missing = run_command(world, "runs", "show", f"{run['id'][:-1]}x", status=1)
    assert f"did you mean `{run['id']}`?" in missing.stderr


@pytest.mark.spec("RUNS-6")
@pytest.mark.parametrize("broken", [False, True])
def test_an_exported_run_is_replayed_without_a_model(tmp_path: Path, broken: bool) -> None:
    def reply(body: dict[str, Any]) -> Reply:
        if broken and body["messages"][-1]["role"] == "tool":
            return 400, {}, {"error": {"message": "no such thing", "type": "invalid"}}
        return note_and_answer(body)

    with ModelServer(reply) as server:
        world = BatchWorld(tmp_path, server.url, 2)
        world.run("--quiet")
        asked, effects = server.asked.copy(), world.effects()
        run = _listed(world)[0]
        reported = run_command(world, "runs", "export", run["id"], "-o", "run.jsonl").stdout
        words = shlex.split(reported)
        assert words[:2] == ["fast-agent", "go"]
        done = run_command(world, *words[1:], status=1 if broken else 0)
        assert server.asked == asked
    assert world.effects() == effects
    if broken:
        assert world.rows()[0]["error"]["message"] in done.stderr
    else:
        assert done.stdout == f"{run['output']}\n"
        assert "not asked for" not in done.stderr


@pytest.mark.spec("RUNS-3", "RUNS-4", "RUNS-5")
def test_a_run_is_watched_and_cancelled_and_resumed(tmp_path: Path) -> None:
    held = Event()

    def reply(body: dict[str, Any]) -> Reply:
        if "item-1" in json.dumps(body["messages"]) and body["messages"][-1]["role"] == "tool":
            held.wait(60)
        return note_and_answer(body)

    with ModelServer(reply) as server:
        world = BatchWorld(tmp_path, server.url, 3)
        batch = world.start("--quiet")
        wait_until(lambda: world.answered() == 5)
        run = next(run for run in _listed(world) if run["message"] == "item-1")
        assert run["state"] == "running"
        program = str(Path(sys.executable).with_name("fast-agent"))
        tail = subprocess.Popen(
            [program, "runs", "tail", run["id"], "--json"],
            cwd=world.directory, env=world.environ, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert "cancelled" in run_command(world, "runs", "cancel", run["id"]).stdout
        _, errors = batch.communicate(timeout=60)
        assert batch.returncode == 0, errors
        lines = [json.loads(line) for line in tail.communicate(timeout=60)[0].splitlines()]
        assert lines[-1]["run"] == "cancelled"
        steps = [line["step"] for line in lines[:-1]]
        assert [step["kind"] for step in steps if step["kind"] in {"model", "tool"}] == [
            "model", "tool", "model"]  # fmt: skip
        rows = world.rows()
        assert [row["ok"] for row in rows] == [True, False, True]
        assert rows[1]["error"] == {"kind": "Cancelled", "message": "it was cancelled"}
        held.set()
        again = run_command(world, "runs", "cancel", run["id"]).stdout
        assert "it has ended already, cancelled" in again
        run_command(world, "runs", "resume", run["id"], "--quiet")
        assert sum(server.asked.values()) == 7
    assert all(row["ok"] for row in world.rows())
    assert set(world.effects().values()) == {1}


@pytest.mark.spec("RUNS-5")
def test_a_run_goes_on_from_a_step_that_is_named(tmp_path: Path) -> None:
    with ModelServer() as server:
        world = BatchWorld(tmp_path, server.url, 2)
        world.run("--quiet")
        run = _listed(world)[0]
        shown = json.loads(run_command(world, "runs", "show", run["id"], "--json").stdout)
        kinds = [step["kind"] for step in shown["steps"]]
        last_model = len(kinds) - kinds[::-1].index("model")
        run_command(world, "runs", "resume", run["id"], "--from", str(last_model), "--quiet")
        assert sum(server.asked.values()) == 5
        batch = run["batch"]
        run_command(world, "runs", "resume", batch, "--quiet")  # everything is answered
        assert sum(server.asked.values()) == 5
        run_command(world, "runs", "resume", batch, "--from", "1", status=2)
    assert all(row["ok"] for row in world.rows())
    assert set(world.effects().values()) == {1}


@pytest.mark.spec("RUNS-7")
def test_only_old_batches_that_ended_are_pruned(tmp_path: Path) -> None:
    with ModelServer() as server:
        world = BatchWorld(tmp_path, server.url, 2)
        world.run("--quiet")
        world.run("--quiet", "--output", "other.jsonl", "--limit-tokens", "0", status=75)
    time.sleep(1.1)
    assert _prune(world, "1h") == "0 runs deleted\n"
    assert len(_listed(world)) == 4
    assert _prune(world, "1s") == "2 runs deleted\n"
    assert {run["state"] for run in _listed(world)} == {"queued"}
    wrong = run_command(world, "runs", "prune", "--older-than", "soon", status=2)
    assert "write a number and s, m, h, d or w" in wrong.stderr


@pytest.mark.spec("RUNS-1", "RUNS-7")
def test_a_batch_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    with ModelServer() as server:
        world = BatchWorld(tmp_path, server.url, 2)
        world.run("--quiet")
    (kept,) = world.home.rglob("runs/*.sqlite")
    damaged = kept.with_name("0000000000.sqlite")
    damaged.write_text("no database")
    listed = run_command(world, "runs", "list", "--format", "json", status=1)
    assert [run["message"] for run in json.loads(listed.stdout)] == ["item-0", "item-1"]
    assert f"`{damaged}` cannot be used: file is not a database" in listed.stderr
    run_id = json.loads(listed.stdout)[0]["id"]
    assert run_command(world, "runs", "show", run_id).stdout.startswith(f"run {run_id}: done")
    pruned = run_command(world, "runs", "prune", "--older-than", "0s", status=1)
    assert f"`{damaged}` cannot be used" in pruned.stderr
    assert (damaged.exists(), kept.exists()) == (True, False)
    only = run_command(world, "runs", "list", status=1)
    assert only.stdout == ""


def _prune(world: BatchWorld, age: str) -> str:
    return run_command(world, "runs", "prune", "--older-than", age).stdout
