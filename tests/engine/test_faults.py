"""Batches that are killed at every boundary of every step, each time in a forked process."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from tests.engine.batch_world import (
    BatchWorld,
    ModelServer,
    Reply,
    call_reply,
    run_command,
    text_reply,
)
from tests.engine.fault_world import FaultWorld
from tests.engine.faults import every_boundary
from tests.patience import wait_until

from fast_agent.engine.batch import Batch
from fast_agent.engine.model_requests import ModelRequests
from fast_agent.engine.run_steps import DurableSteps
from fast_agent.engine.run_store import DONE, FullDiskError, NewRun, RunStore, StoreError
from fast_agent.steps.parts import StepRedactor
from fast_agent.steps.steps import Codec, Key, Step, entered

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.engine.engine import RunAnswer
    from fast_agent.engine.run_store import RunRow, RunState
    from fast_agent.steps.steps import Steps


@pytest.mark.spec("RUN-1", "RUN-2", "RUN-3", "RUN-4", "RUN-5")
@pytest.mark.parametrize("kind", ["agent", "parallel", "MAKER"])
def test_a_batch_killed_at_any_boundary_ends_as_if_it_had_not_been(
    tmp_path: Path, kind: str
) -> None:
    with FaultWorld(tmp_path, kind) as world:
        counts = every_boundary(world)
    assert counts.kills >= 20
    assert counts.results == counts.kills
    assert (counts.wrong, counts.repeated, counts.too_often) == (0, 0, 0)
    # Each kind of loss happened: a request without its answer, an effect without its record.
    assert counts.in_flight > 0
    assert counts.twice > 0


@pytest.mark.spec("RUN-10")
def test_an_answer_of_three_megabytes_outlives_a_kill(tmp_path: Path) -> None:
    def reply(body: dict[str, Any]) -> Reply:
        if body["messages"][-1]["role"] == "tool":
            return text_reply(str(len(body["messages"][-1]["content"])))
        return call_reply("large", {}, "call")

    with ModelServer(reply) as server:
        world = BatchWorld(tmp_path, server.url, 2)
        large = 'def large() -> str:\n    """Return much."""\n    return "x" * 3_000_000\n'
        (tmp_path / "tools.py").write_text(large)
        card = (tmp_path / "noter.md").read_text().replace("tools.py:note", "tools.py:large")
        (tmp_path / "noter.md").write_text(card)
        process = world.start("--concurrency", "1", "--quiet")
        wait_until(lambda: world.answered() >= 1)
        process.kill()
        process.communicate()
        world.run()
        asked = sum(server.asked.values())
        assert asked <= 5
    outputs = {row["output"] for row in world.rows()}
    assert len(outputs) == 1
    assert int(outputs.pop()) <= 3_000_100


@pytest.mark.spec("RUN-11")
@pytest.mark.parametrize("field", ["instruction", "tool"])
def test_a_card_that_is_edited_under_way_is_told_by_its_difference(
    tmp_path: Path, field: str
) -> None:
    with ModelServer(seconds=0.1) as server:
        world = BatchWorld(tmp_path, server.url, 3)
        process = world.start("--concurrency", "1", "--quiet")
        wait_until(lambda: world.answered() == 3)  # the second item has asked once
        process.kill()
        process.communicate()
        if field == "instruction":
            card = (tmp_path / "noter.md").read_text().replace("You note.", "You note well.")
            (tmp_path / "noter.md").write_text(card)
        else:
            tools = (tmp_path / "tools.py").read_text().replace("Note an item.", "Note one item.")
            (tmp_path / "tools.py").write_text(tools)
        world.run("--quiet")
        rows = world.rows()
        assert [row["ok"] for row in rows] == [True, False, True]
        message = rows[1]["error"]["message"]
        changed = [line for line in message.splitlines() if line.startswith(("+", "-"))]
        assert (
            changed
            == {
                "instruction": ["-system: You note.", "+system: You note well."],
                "tool": ["-    description: Note an item.", "+    description: Note one item."],
            }[field]
        )
        listed = run_command(world, "runs", "list", "--state", "failed", "--json").stdout
        (run,) = json.loads(listed)
        run_command(world, "runs", "resume", run["id"], "--from", "1", "--quiet")
    assert all(row["ok"] for row in world.rows())


@pytest.mark.spec("RUN-9")
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_pauses_the_batch(tmp_path: Path) -> None:
    with ModelServer() as server:
        world = BatchWorld(tmp_path, server.url, 40)
        runs = world.home / "fa/runs"
        runs.mkdir(parents=True)
        mount = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", runs], check=False
        )
        if mount.returncode:
            pytest.skip("this machine mounts no file system")
        try:
            done = world.run("--quiet", "--concurrency", "2", status=75)
            assert "is full" in done.stderr
            assert "free some room" in done.stderr
            kept, asked = world.answered(), sum(server.asked.values())
            assert 0 < kept <= asked <= kept + 2
            subprocess.run(["mount", "-o", "remount,size=64m", runs], check=True)
            world.run("--quiet")
            assert sum(server.asked.values()) <= 80 + asked - kept
        finally:
            subprocess.run(["umount", runs], check=True)
    assert all(row["ok"] for row in world.rows())
    assert max(world.effects().values()) <= 2


@pytest.mark.spec("RUN-8")
def test_a_process_that_lost_a_run_writes_nothing_to_it(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs.sqlite", "b")
    store.queue([NewRun(0, "k", "a", '"hi"')])
    lost = store.take("first")
    assert lost is not None
    store.recover()
    run = store.take("second")
    assert run is not None
    key = Key("turn", "tool", "call", 1)
    with pytest.raises(StoreError, match="another process took over"):
        store.write_step(lost, key, "null", DONE, '"zombie"')
    store.write_step(run, key, "null", DONE, '"living"')
    store.end(lost, "failed", error="zombie")
    store.end(run, "done", output="fine")
    (step,) = store.steps(run.id)
    assert step.gave == '"living"'
    ended = store.run(run.id)
    assert ended is not None
    assert (ended.state, ended.output) == ("done", '"fine"')
    store.close()


@pytest.mark.spec("RUN-12")
@pytest.mark.parametrize("late", [True, False])
def test_whether_a_time_out_expired_is_decided_once(tmp_path: Path, late: bool) -> None:
    store = RunStore(tmp_path / "runs.sqlite", "b")
    store.queue([NewRun(0, "k", "a", '"hi"')])
    text = Codec[str](str, str)

    async def live(answer_seconds: float, limit: float) -> tuple[bool, str | None, int]:
        store.recover()
        run = store.take("me")
        assert run is not None
        requests = ModelRequests(1, notify=print)
        steps = DurableSteps(store, run, StepRedactor(), requests)
        answer: str | None = None
        asked = 0

        async def work() -> str:
            nonlocal asked
            asked += 1
            await anyio.sleep(answer_seconds)
            return "answer"

        with entered(steps.top), steps.deadline("call", limit) as scope:
            answer = await steps.ask(Step("tool", "call"), work, text)
        return scope.cancelled_caught, answer, asked

    first = anyio.run(live, 60 if late else 0, 0.05 if late else 60)
    assert first == (late, None if late else "answer", 1)
    # The other way round now, and decided as before: nothing is asked.
    again = anyio.run(live, 0 if late else 60, 60 if late else 0.0)
    assert again == (late, None if late else "answer", 0)
    store.close()


class FullStore(RunStore):
    """A store whose disk is full once runs end."""

    def end(self, run: RunRow, state: RunState, **facts: Any) -> None:
        raise FullDiskError(f"no room to write that `{run.id}` is {state}: {facts}")


@pytest.mark.anyio
@pytest.mark.spec("RUN-9")
async def test_a_disk_that_stays_full_while_runs_stop_ends_the_batch_with_that(
    tmp_path: Path,
) -> None:
    store = FullStore(tmp_path / "runs.sqlite", "b")
    store.queue([NewRun(0, "k", "a", '"one"'), NewRun(1, "l", "a", '"two"')])
    began: list[str] = []

    async def ask(run: RunRow, steps: Steps) -> RunAnswer:
        began.append(run.id)
        while len(began) == 1 and run.id == began[0]:
            await anyio.lowlevel.checkpoint()
        if run.id == began[0]:
            raise FullDiskError("no room for a step")
        await anyio.sleep_forever()
        raise AssertionError(steps)

    requests = ModelRequests(2, notify=print)
    batch = Batch(store, requests, StepRedactor(), ask, edition="", concurrency=2)
    with pytest.raises(FullDiskError, match="no room for a step"):
        await batch.run()
    assert batch.counts.running == 0
    store.recover()
    assert store.counts() == {"queued": 2}
    store.close()
