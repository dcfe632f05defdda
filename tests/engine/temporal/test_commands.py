"""`worker`, and `batch --engine temporal`, as processes on one machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.batch_world import BatchWorld, ModelServer, Reply, note_and_answer, text_reply
from tests.engine.temporal.temporal_world import eventually, temporal_world
from tests.patience import wait_until
from tests.temporal_server import TemporalServer, why_not

from fast_agent.engine.temporal.server_runs import ServerRuns

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"{why_not()}")


class ClusterWorld(BatchWorld):
    """A batch world whose items are answered by workers.

    Args:
        directory: The directory.
        url: The address of the model.
        items: How many items there are.
        server: The server.
    """

    def __init__(self, directory: Path, url: str, items: int, server: TemporalServer) -> None:
        super().__init__(directory, url, items)
        self._server = server
        config = directory / "fastagent.config.yaml"
        config.write_text(f"{config.read_text()}temporal: {{heartbeat_seconds: 2}}\n")

    def command(self, *options: str) -> list[str]:
        """Return the command line of the batch."""
        given = ("--engine", "temporal", "--temporal-address", self._server.address)
        return super().command(*given, *options)

    def start_worker(self, *options: str) -> subprocess.Popen[str]:
        """Start a worker, and wait until it takes work."""
        program = str(Path(sys.executable).with_name("fast-agent"))
        worker = subprocess.Popen(
            [
                *(program, "worker", "--engine", "temporal", "-c", "fastagent.config.yaml"),
                *("--temporal-address", self._server.address, *options),
            ],
            cwd=self.directory,
            env=self.environ,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert worker.stderr is not None
        lines: list[str] = []
        while line := worker.stderr.readline():
            lines.append(line)
            if "worker of " in line:
                return worker
        raise AssertionError("".join(lines))

    @contextmanager
    def worker(self, *options: str) -> Generator[subprocess.Popen[str]]:
        """Run a worker as long as the block."""
        worker = self.start_worker(*options)
        try:
            yield worker
        finally:
            worker.kill()
            worker.communicate()


def answers(world: BatchWorld) -> list[object]:
    """Return what the rows hold, or their errors."""
    return [row.get("output", row.get("error")) for row in world.rows()]


@pytest.mark.spec("TEMPORAL-10", "BATCH-4")
def test_two_workers_answer_a_batch(tmp_path: Path) -> None:
    with TemporalServer(in_memory=True) as server, ModelServer() as models:
        world = ClusterWorld(tmp_path, models.url, 40, server)
        with world.worker(), world.worker() as second:
            done = world.run("--limit-cost", "0.00045", "--concurrency", "2", status=75)
            assert "the batch reached its limit: $0.0004 used" in done.stderr
            assert sum(models.asked.values()) == 4
            done = world.run("--format", "json")
            assert answers(world) == [f"done: noted item-{number}" for number in range(40)]
            facts = json.loads(done.stdout)
            assert (facts["done"], facts["model_requests"], facts["tokens"]) == (40, 80, 800)
            assert world.effects() == {f"item-{number}": 1 for number in range(40)}
            # Asked to end, a worker leaves without a crash.
            second.send_signal(signal.SIGTERM)
            assert second.wait(60) == 0
            # Run again, the batch asks nothing.
            world.run()
            # What models of this machine answer costs nothing.
            options = ("--output", "free.jsonl", "--model", "passthrough", "--limit", "2")
            world.run("--limit-cost", "0.00045", *options)
            assert sum(models.asked.values()) == 80


_KEYED_TOOLS = '''\
from fast_agent import ToolContext


def note(item: str, context: ToolContext) -> str:
    """Note an item."""
    with open("effects", "a", encoding="utf-8") as file:
        file.write(f"{item} {context.idempotency_key}\\n")
    return f"noted {item}"
'''


@pytest.mark.spec("TEMPORAL-15")
def test_workers_and_the_server_are_killed_and_no_answered_request_is_repeated(
    tmp_path: Path,
) -> None:
    with TemporalServer() as server, ModelServer(seconds=0.05) as models:
        world = ClusterWorld(tmp_path, models.url, 60, server)
        (tmp_path / "tools.py").write_text(_KEYED_TOOLS)
        worker = world.start_worker("--slots", "8")
        batch = world.start("--quiet")
        try:
            for life in range(1, 4):
                wait_until(lambda so_far=life * 20: sum(models.answered.values()) >= so_far)
                worker.kill()
                worker.communicate()
                worker = world.start_worker("--slots", "8")
            wait_until(lambda: sum(models.answered.values()) >= 80)
            server.kill()
            server.start()
            said = batch.communicate(timeout=240)
            assert batch.returncode == 0, said
        finally:
            batch.kill()
            batch.communicate()
            worker.kill()
            worker.communicate()
        assert answers(world) == [f"done: noted item-{number}" for number in range(60)]
        # At each of the kills, requests that had no answer yet are sent again: at most one a slot.
        kills = 4
        in_flight = kills * 8
        assert 120 <= sum(models.asked.values()) <= 120 + in_flight
        # A call that was under way at some of them is made again after each, with the same key.
        items = Counter[str]()
        for effect, times in world.effects().items():
            items[effect.split()[0]] += 1
            assert times <= 1 + kills
        assert items == {f"item-{number}": 1 for number in range(60)}
        assert sum(world.effects().values()) <= 60 + in_flight


@pytest.mark.spec("TEMPORAL-15")
def test_a_worker_that_is_asked_to_end_lets_its_steps_finish(tmp_path: Path) -> None:
    with TemporalServer(in_memory=True) as server, ModelServer(seconds=2.0) as models:
        world = ClusterWorld(tmp_path, models.url, 4, server)
        with world.worker() as first:
            batch = world.start("--quiet")
            wait_until(lambda: sum(models.asked.values()) == 4)
            first.send_signal(signal.SIGTERM)
            assert first.wait(60) == 0
            assert sum(models.answered.values()) == 4
        with world.worker():
            assert batch.communicate(timeout=120) == ("", "")
        assert sum(models.asked.values()) == 8
        assert set(world.effects().values()) == {1}


@pytest.mark.spec("TEMPORAL-13")
@pytest.mark.anyio
async def test_a_question_to_the_user_outlasts_the_worker_that_asked_it(tmp_path: Path) -> None:
    with TemporalServer(in_memory=True) as server, ModelServer() as models:
        cluster = ClusterWorld(tmp_path, models.url, 1, server)
        async with temporal_world(tmp_path, server) as world:
            config = tmp_path / "fastagent.config.yaml"
            config.write_text(
                f"temporal: {{queue: {world.options.queue}, parts: '{tmp_path}/parts'}}\n"
            )
            world.write(one="type: agent\nmodel: passthrough\nhuman_input: true\ninstruction: x\n")
            edition = await world.pin("one.yaml")
            call = '***CALL_TOOL request_human_input {"message": "which one?"}'
            run = await world.start("one", call, edition)
            with cluster.worker():
                asked = await eventually(partial(world.runs.questions, run.id))
            with cluster.worker():
                ((key, question),) = asked.items()
                assert question["message"] == "which one?"
                await world.runs.answer(run.id, key, "accept", {"text": "the blue one"})
                assert (await world.runs.result(run)).message.text == "the blue one"


@pytest.mark.spec("TEMPORAL-13")
def test_an_item_of_a_batch_waits_for_no_user(tmp_path: Path) -> None:
    with TemporalServer(in_memory=True) as server, ModelServer() as models:
        world = ClusterWorld(tmp_path, models.url, 1, server)
        (tmp_path / "noter.md").write_text(
            "---\ntype: agent\nname: noter\nmodel: passthrough\nhuman_input: true\n---\nYou ask.\n"
        )
        call = '***CALL_TOOL request_human_input {"message": "which one?"}'
        world.write_items([call])
        with world.worker(), world.start() as batch:
            batch.communicate(timeout=120)
        (row,) = world.rows()
    assert "no user is connected; continue without an answer" in str(row)


_PAYING_TOOLS = '''\
import asyncio

from fast_agent import ToolContext, tool
from fast_agent.tools.human import HumanRequest


@tool(repeatable=False)
async def pay(how: str, context: ToolContext) -> str:
    """Pay."""
    with open("paid", "a") as file:
        file.write("x")
    if how == "slowly":
        await asyncio.sleep(600)
    if how == "asking":
        await context.human.ask(HumanRequest(message="how much?", agent_name="one"))
    return "paid"
'''


@pytest.mark.spec("TEMPORAL-13")
@pytest.mark.anyio
@pytest.mark.parametrize("how", ["quickly", "slowly", "asking"])
async def test_a_call_that_acts_once_may_lose_its_worker_before_its_user_permits_it(
    tmp_path: Path, how: str
) -> None:
    """After that, it may not: it may have acted, whether or not it asks again."""
    with TemporalServer(in_memory=True) as server, ModelServer() as models:
        cluster = ClusterWorld(tmp_path, models.url, 1, server)
        (tmp_path / "tools.py").write_text(_PAYING_TOOLS)
        async with temporal_world(tmp_path, server) as world:
            config = tmp_path / "fastagent.config.yaml"
            config.write_text(
                f"temporal: {{queue: {world.options.queue}, parts: '{tmp_path}/parts'}}\n"
            )
            world.write(
                one="type: agent\nmodel: passthrough\ninstruction: x\n"
                "function_tools: [tools.py:pay]\nconfirm: [pay]\n"
            )
            call = f'***CALL_TOOL pay {{"how": "{how}"}}'
            run = await world.start("one", call, await world.pin("one.yaml"))
            questions = partial(world.runs.questions, run.id)
            with cluster.worker():
                ((key, _),) = (await eventually(questions)).items()

            async def is_paid() -> bool:
                return (tmp_path / "paid").exists()

            async def asks_how_much() -> bool:
                return "how much?" in str(await questions())

            with cluster.worker():
                await world.runs.answer(run.id, key, "accept", {"call": "yes"})
                if how != "quickly":
                    await eventually(is_paid if how == "slowly" else asks_how_much)
            with cluster.worker():
                said = (await world.runs.result(run)).message.text
            assert (tmp_path / "paid").read_text() == "x"
            done = "paid" if how == "quickly" else "`pay` was interrupted and is not repeated"
            assert said == done


def test_without_a_server_there_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with ModelServer() as models:
        world = BatchWorld(tmp_path, models.url, 1)
        done = world.run("--engine", "temporal", "--temporal-address", "127.0.0.1:1", status=1)
    assert "cannot connect to Temporal at `127.0.0.1:1`" in done.stderr
    assert "hint: " in done.stderr


def test_a_worker_refuses_a_key_that_others_can_read(tmp_path: Path) -> None:
    with ModelServer() as models:
        world = BatchWorld(tmp_path, models.url, 1)
        key = tmp_path / "key"
        key.write_text("00" * 32)
        key.chmod(0o644)
        config = tmp_path / "fastagent.config.yaml"
        config.write_text(f"{config.read_text()}temporal: {{key_file: key}}\n")
        program = str(Path(sys.executable).with_name("fast-agent"))
        done = subprocess.run(
            [program, "worker", "-c", "fastagent.config.yaml"],
            cwd=tmp_path,
            env={**os.environ, **world.environ},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 1
    assert "can be read by other users" in done.stderr
    assert "chmod 600" in done.stderr


def fast_agent(world: BatchWorld, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the directory of a world."""
    program = str(Path(sys.executable).with_name("fast-agent"))
    return subprocess.run(
        [program, *words],
        cwd=world.directory,
        env=world.environ,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.spec("TEMPORAL-14")
def test_go_has_its_turn_run_by_a_worker_and_its_session_continues(tmp_path: Path) -> None:
    with TemporalServer(in_memory=True) as server, ModelServer() as models:
        world = ClusterWorld(tmp_path, models.url, 1, server)
        at_server = ("--engine", "temporal", "--temporal-address", server.address, "--quiet")
        go = ("go", "--card", "noter.md", "-c", "fastagent.config.yaml", *at_server)
        with world.worker():
            done = fast_agent(world, *go, "--session", "--message", "item-0")
            assert (done.stdout, done.returncode) == ("done: noted item-0\n", 0), done.stderr
            again = fast_agent(world, *go, "--resume", "--message", "item-1", "--format", "json")
            facts = json.loads(again.stdout)
            assert facts["usage"]["requests"] >= 1, facts
            assert any("item-0" in asked and "item-1" in asked for asked in models.asked)
        refused = fast_agent(world, *go, "--message", "x", "--replay", "run.jsonl")
        assert refused.returncode == 2
        assert "--replay applies only to runs in this process" in refused.stderr


def test_go_reports_a_server_that_does_not_answer(tmp_path: Path) -> None:
    with ModelServer() as models:
        world = BatchWorld(tmp_path, models.url, 1)
        words = ("--message", "x", "--engine", "temporal", "--temporal-address", "127.0.0.1:1")
        done = fast_agent(world, "go", "--card", "noter.md", "-c", "fastagent.config.yaml", *words)
    assert done.returncode == 1
    assert "cannot connect to Temporal at `127.0.0.1:1`" in done.stderr


@pytest.mark.spec("TEMPORAL-16")
def test_runs_of_a_server_are_listed_shown_cancelled_and_resumed(tmp_path: Path) -> None:
    is_up = Event()

    def reply(body: dict[str, Any]) -> Reply:
        if "second" not in json.dumps(body["messages"][0]):
            return note_and_answer(body)
        return text_reply("the end") if is_up.is_set() else (401, {}, {})

    with TemporalServer(in_memory=True) as server, ModelServer(reply) as models:
        world = ClusterWorld(tmp_path, models.url, 1, server)
        config = tmp_path / "fastagent.config.yaml"
        # No step counts as lost while the machine is busy: requests are counted.
        config.write_text(config.read_text().replace("_seconds: 2", "_seconds: 60"))
        at_server = ("--engine", "temporal", "--temporal-address", server.address)
        at_server += ("-c", "fastagent.config.yaml")

        def runs(*words: str, status: int = 0) -> str:
            done = fast_agent(world, "runs", *words, *at_server)
            assert done.returncode == status, done.stderr
            return done.stdout + done.stderr

        assert "there are no runs" in runs("list")
        member = "type: agent\nmodel: generic.m\n"
        (tmp_path / "first.yaml").write_text(
            f"{member}instruction: first\nfunction_tools: [tools.py:note]\n"
        )
        (tmp_path / "second.yaml").write_text(f"{member}instruction: second\n")
        (tmp_path / "both.yaml").write_text("type: chain\nsequence: [first, second]\n")
        cards = ("both.yaml", "first.yaml", "second.yaml")
        with world.worker():
            batch = fast_agent(
                world,
                *("batch", *cards, "--agent", "both", *at_server, "--quiet"),
                *("--input", "in.jsonl", "--output", "out.jsonl"),
            )
            assert "failed" in runs("list"), batch.stderr
            (listed,) = json.loads(runs("list", "--state", "failed", "--json"))
            run_id, asked = listed["id"], sum(models.asked.values())
            assert (listed["agent"], listed["message"]) == ("both", "item-0")
            shown = runs("show", run_id[:-1])
            assert "error: " in shown
            assert "tool note" in shown
            assert f"{run_id}: it has ended already, failed" in runs("cancel", run_id)
            is_up.set()
            assert f"{run_id}: resumed" in runs("resume", run_id)
            assert "the run is done" in runs("tail", run_id)
            # The two requests and the call that were answered are not sent again.
            assert sum(models.asked.values()) == asked + 1
            assert world.effects() == {"item-0": 1}
            found = json.loads(runs("show", run_id, "--json"))
            assert found["state"] == "done"
            assert [step["state"] for step in found["steps"]] == ["done"] * 4
            assert f"{run_id}: it neither failed" in runs("resume", run_id)
        assert "there is no run `other`" in runs("show", "other", status=1)


@pytest.mark.anyio
async def test_a_run_that_waits_is_shown_as_waiting_and_cancelled(tmp_path: Path) -> None:
    with TemporalServer(in_memory=True) as server:
        async with temporal_world(tmp_path, server) as world, world.worker():
            world.write(one="type: agent\nmodel: passthrough\nhuman_input: true\ninstruction: x\n")
            run = await world.start("one", '***CALL_TOOL request_human_input {"message": "who?"}')
            found = ServerRuns(world.runs)
            await eventually(partial(world.runs.questions, run.id))
            assert (await found.find(run.id)).state == "waiting"
            assert await found.cancel(run.id)

            async def is_cancelled() -> bool:
                return (await found.find(run.id)).state == "cancelled"

            await eventually(is_cancelled)
            assert await found.resume(run.id)
            asked = await eventually(partial(world.runs.questions, run.id))
            await world.runs.answer(run.id, next(iter(asked)), "accept", {"text": "you"})
            resumed = world.client.get_workflow_handle(run.id)
            assert (await world.runs.result(resumed)).message.text == "you"


def test_runs_report_a_server_that_does_not_answer(tmp_path: Path) -> None:
    with ModelServer() as models:
        world = BatchWorld(tmp_path, models.url, 1)
        words = ("--engine", "temporal", "--temporal-address", "127.0.0.1:1")
        done = fast_agent(world, "runs", "list", "-c", "fastagent.config.yaml", *words)
    assert done.returncode == 1
    assert "cannot connect to Temporal at `127.0.0.1:1`" in done.stderr


def test_options_of_the_connection_reach_the_server_and_the_key_is_not_printed(
    tmp_path: Path,
) -> None:
    with TemporalServer(in_memory=True) as server, ModelServer() as models:
        world = BatchWorld(tmp_path, models.url, 1)
        command = ("runs", "list", "-c", "fastagent.config.yaml", "--engine", "temporal")
        at_server = (*command, "--temporal-address", server.address)
        missing = fast_agent(world, *at_server, "--temporal-namespace", "nowhere")
        assert missing.returncode == 1
        assert "nowhere" in missing.stderr
        key = tmp_path / "api-key"
        key.write_text("key-that-nobody-may-print\n")
        # The key implies encryption, and this server has none.
        encrypted = fast_agent(world, *at_server, "--temporal-api-key-file", "api-key")
        assert encrypted.returncode == 1
        assert "cannot connect to Temporal" in encrypted.stderr
        assert "nobody-may-print" not in encrypted.stdout + encrypted.stderr
        absent = fast_agent(world, *at_server, "--temporal-server-ca", "absent.pem")
        assert "`absent.pem` cannot be read" in absent.stderr
