"""Batches that are killed at every boundary of every step, each time in a forked process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from threading import Event
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from tests.engine.batch_world import (
    BatchWorld,
    ModelServer,
    Reply,
    call_reply,
    note_and_answer,
    run_command,
    text_reply,
)
from tests.engine.fault_world import Counts, FaultWorld
from tests.engine.faults import cancelled, every_boundary
from tests.patience import wait_until

from fast_agent.agents.step_tools import call_in_step
from fast_agent.engine.batch import Batch
from fast_agent.engine.model_requests import ModelRequests
from fast_agent.engine.run_rows import DONE, FAILED, NewRun
from fast_agent.engine.run_steps import DurableSteps
from fast_agent.engine.run_store import FullDiskError, RunStore, StoreError
from fast_agent.errors import ToolError
from fast_agent.messages.history import text_of_result
from fast_agent.messages.message import TextContent, ToolCall, ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.steps.parts import StepRedactor
from fast_agent.steps.steps import Codec, Key, Step, entered, here
from fast_agent.text.frozen import frozen
from fast_agent.tools.permission import AskedTool
from fast_agent.tools.tool import ToolContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from fast_agent.engine.engine import RunAnswer, RunState
    from fast_agent.engine.run_rows import RunRow
    from fast_agent.steps.steps import Steps
    from fast_agent.tools.tool import Tool, ToolSource


@pytest.mark.spec("RUN-1", "RUN-2", "RUN-3", "RUN-4", "RUN-5", "RUN-22")
@pytest.mark.parametrize("kind", ["agent", "parallel", "MAKER"])
def test_a_batch_killed_at_any_boundary_ends_as_if_it_had_not_been(
    tmp_path: Path, kind: str
) -> None:
    with FaultWorld(tmp_path, kind) as world:
        counts = every_boundary(world)
    assert counts.kills >= 20
    assert counts.results == counts.kills
    assert (counts.wrong, counts.repeated, counts.too_often) == (0, 0, 0)
    # Each kind of loss happened: a request without its answer, an effect without its record. Where
    # members run at once, which of them depends on what each had done when the process was killed.
    assert counts.in_flight + counts.twice > 0
    if kind != "parallel":
        assert counts.in_flight > 0
        assert counts.twice > 0


_PAYING_SERVER = """\
import os
import signal
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("bank", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def pay(item: str, ctx: Context[Any]) -> str:
    is_first = not os.path.exists("keys")
    with open("keys", "a") as file:
        file.write(f"{item} {(ctx.request_context.meta or {}).get('idempotencyKey')}\\n")
    if is_first:  # the money is gone, and whoever paid never learns of it
        os.kill(int(open("client").read()), signal.SIGKILL)
    return f"paid for {item}"


server.run()
"""


@pytest.mark.spec("RUN-15")
def test_a_call_that_is_repeated_has_the_same_key_at_its_server(tmp_path: Path) -> None:
    is_known = Event()  # whom the server kills

    def reply(body: dict[str, Any]) -> Reply:
        is_known.wait(60)
        item = next(one["content"] for one in body["messages"] if one["role"] == "user")
        if body["messages"][-1]["role"] == "tool":
            return text_reply(body["messages"][-1]["content"])
        return call_reply("bank__pay", {"item": item}, f"call-{item}")

    with ModelServer(reply) as server:
        world = BatchWorld(tmp_path, server.url, 2)
        (tmp_path / "bank.py").write_text(_PAYING_SERVER)
        card = (tmp_path / "noter.md").read_text()
        (tmp_path / "noter.md").write_text(card.replace("function_tools", "servers: [bank]\n#"))
        config = tmp_path / "fastagent.config.yaml"
        target = f"{{command: '{sys.executable}', args: [bank.py]}}"
        config.write_text(f"{config.read_text()}mcp: {{servers: {{bank: {target}}}}}\n")
        process = world.start("--concurrency", "1", "--quiet")
        (tmp_path / "client").write_text(str(process.pid))
        is_known.set()
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        world.run("--quiet")
    lines = (tmp_path / "keys").read_text().splitlines()
    assert len(lines) == 3
    # The first call was made twice with one key, and the other item has another key.
    assert len(set(lines)) == 2
    assert all(len(line.split()[1]) == 64 for line in lines)
    assert {row["output"] for row in world.rows()} == {"paid for item-0", "paid for item-1"}


@pytest.mark.spec("RUN-16")
@pytest.mark.parametrize(("kind", "stride"), [("agent", 3), ("hooks", 5), ("histories", 5)])
def test_a_run_cancelled_at_any_boundary_keeps_its_answers(
    tmp_path: Path, kind: str, stride: int
) -> None:
    with FaultWorld(tmp_path, kind) as world:
        counts = cancelled(world, stride)
    assert counts.kills >= 6
    assert counts.results >= counts.kills
    assert (counts.wrong, counts.repeated, counts.too_often) == (0, 0, 0)


@pytest.mark.spec("RUN-17")
def test_a_wrong_clock_changes_nothing(tmp_path: Path) -> None:
    counts = Counts()
    with FaultWorld(tmp_path, "parallel") as world:
        life = world.begin()
        reached = life.live()
        expected, effects = life.outputs(), life.effects()
        for at in range(1, len(reached) + 1, 4):
            life = world.begin()
            life.live(at, skew=3600.0)
            life.live(at, skew=-3600.0)
            life.live()
            counts.add(life.counts(expected, effects))
    assert counts.kills > counts.results >= 3
    assert (counts.wrong, counts.repeated, counts.too_often) == (0, 0, 0)


@pytest.mark.spec("RUN-17")
def test_steps_keep_their_order_where_the_clock_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = time.time
    names = [f"step-{number}" for number in range(4, 0, -1)]
    for skew, written in ((3600.0, names[:2]), (-3600.0, names[2:])):
        monkeypatch.setattr("time.time", lambda skew=skew: right() + skew)
        store = RunStore(tmp_path / "runs.sqlite", "b")
        store.queue([NewRun(0, "k", "a", '"hi"')])
        store.recover()
        run = store.take("me")
        assert run is not None
        for name in written:
            store.write_step(run, Key("turn", "tool", name, 1), "null", FAILED, "[]")
        store.close()
    store = RunStore(tmp_path / "runs.sqlite", "b")
    assert [step.key.name for step in store.steps(run.id)] == names
    # What was reported to a model is not asked again, though the report has an earlier time.
    store.recover()
    run = store.take("me")
    assert run is not None
    store.write_step(run, Key("turn", "model", "m", 1), "null", DONE, "{}")
    store.end(run, "failed", error="it failed")
    store.requeue(["failed"])
    assert len(store.steps(run.id)) == 5
    store.close()


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


def _kill_in_the_second_item(world: BatchWorld) -> None:
    process = world.start("--concurrency", "1", "--quiet")
    wait_until(lambda: world.answered() == 3)  # the second item has asked once
    process.kill()
    process.communicate()


def _edit(world: BatchWorld) -> None:
    card, tools = world.directory / "noter.md", world.directory / "tools.py"
    card.write_text(card.read_text().replace("You note.", "You note well."))
    tools.write_text(tools.read_text().replace("noted", "well noted"))


@pytest.mark.spec("RUN-13")
def test_a_run_continues_with_the_cards_it_began_with(tmp_path: Path) -> None:
    systems: list[tuple[str, str]] = []

    def reply(body: dict[str, Any]) -> Reply:
        system, user = (body["messages"][index]["content"] for index in (0, 1))
        systems.append((user, system))
        return note_and_answer(body)

    with ModelServer(reply, seconds=0.1) as server:
        world = BatchWorld(tmp_path, server.url, 3)
        _kill_in_the_second_item(world)
        _edit(world)
        done = world.run()
    assert "1 run continues with the cards before the last edit" in done.stderr
    assert [row["output"] for row in world.rows()] == [
        "done: noted item-0", "done: noted item-1", "done: well noted item-2"]  # fmt: skip
    assert {system for item, system in systems if item == "item-1"} == {"You note."}
    assert {system for item, system in systems if item == "item-2"} == {"You note well."}
    # Where the user works, not beside the old cards; the kill may have cost the record of one.
    assert set(world.effects()) == {"item-0", "item-1", "item-2"}


@pytest.mark.spec("RUN-13")
def test_a_step_that_is_asked_again_is_asked_with_the_edited_cards(tmp_path: Path) -> None:
    with ModelServer(seconds=0.1) as server:
        world = BatchWorld(tmp_path, server.url, 3)
        _kill_in_the_second_item(world)
        _edit(world)
        listed = run_command(world, "runs", "list", "--json").stdout
        run = next(one for one in json.loads(listed) if one["message"] == "item-1")
        run_command(world, "runs", "resume", run["id"], "--from", "1", "--quiet")
        assert world.rows()[1]["output"] == "done: well noted item-1"


@pytest.mark.spec("RUN-13")
@pytest.mark.parametrize("field", ["cwd: .", "instruction: key sk-key-of-the-batch"])
def test_cards_that_cannot_be_kept_are_not(tmp_path: Path, field: str) -> None:
    with ModelServer() as server:
        world = BatchWorld(tmp_path, server.url, 1)
        card = tmp_path / "noter.md"
        card.write_text(card.read_text().replace("type: agent", f"type: agent\n{field}"))
        if "instruction" in field:
            card.write_text(card.read_text().replace("You note.\n", ""))
        world.run("--quiet")
        (run,) = json.loads(run_command(world, "runs", "list", "--json").stdout)
        store = RunStore(world.store(), run["batch"])
        assert run["edition"]
        assert store.parts.get(run["edition"]) is None
        store.close()


@pytest.mark.spec("RUN-11")
def test_a_run_that_asks_something_else_is_reported_by_its_difference(tmp_path: Path) -> None:
    with ModelServer(seconds=0.1) as server:
        world = BatchWorld(tmp_path, server.url, 3)
        _kill_in_the_second_item(world)
        config = tmp_path / "fastagent.config.yaml"
        config.write_text(f"{config.read_text()}request_params: {{temperature: 0.5}}\n")
        world.run("--quiet")
        rows = world.rows()
        assert [row["ok"] for row in rows] == [True, False, True]
        message = rows[1]["error"]["message"]
        changed = [line for line in message.splitlines() if line.startswith(("+", "-"))]
        assert changed == ["+params:", "+  temperature: 0.5"]
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
            assert "free some space" in done.stderr
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


def in_a_life(store: Path, work: Callable[[DurableSteps], Awaitable[None]]) -> None:
    """Carry on the run of a store in a process of its own, which may end in the middle."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:

            async def live() -> None:
                opened = RunStore(store, "b")
                opened.recover()
                run = opened.take("me")
                assert run is not None
                steps = DurableSteps(opened, run, StepRedactor(), ModelRequests(1, notify=print))
                with entered(steps.top):
                    await work(steps)
                opened.close()

            anyio.run(live)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) in {0, -signal.SIGKILL}


class Deadly:
    """Notes in a file what happens, and kills the process the first time one thing does.

    Args:
        path: The file.
        kills: What kills it.
    """

    def __init__(self, path: Path, kills: str) -> None:
        self.path = path
        self.kills = kills

    def note(self, what: str) -> None:
        with self.path.open("a") as file:
            file.write(f"{what}\n")
        if what == self.kills and self.path.read_text().split("\n").count(what) == 1:
            os.kill(os.getpid(), signal.SIGKILL)


@frozen
class Asker:
    """A user that permits everything."""

    deadly: Deadly

    async def ask(self, request: object = None) -> str | None:
        del request
        self.deadly.note("asked")
        return None


@frozen
class Actor:
    """A tool of a server; `asker` is asked within the call, if there is one."""

    deadly: Deadly
    repeatable: bool
    asker: Asker | None
    spec: ToolSpec = ToolSpec("act", "Act.", {"type": "object"})
    source: ToolSource = "mcp"
    server_name: str | None = None

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del context
        if self.asker is not None:
            nothing = Codec[str | None](lambda given: given, lambda _: None)
            await here().steps.wait_for(Step("human", "call"), self.asker.ask, nothing)
            await anyio.lowlevel.checkpoint()  # the answer is in the file
        self.deadly.note("acted")
        return ToolResult(call.id, (TextContent("done"),))


@pytest.mark.spec("RUN-3", "RUN-27")
@pytest.mark.parametrize(
    ("kills", "repeatable", "needs_permission", "asked", "acted"),
    [
        ("asked", True, False, 2, 1),
        ("asked", False, False, 1, 0),
        ("acted", True, False, 1, 2),
        ("acted", False, False, 1, 1),
        ("asked", True, True, 2, 1),
        ("asked", False, True, 2, 1),
        ("acted", True, True, 1, 2),
        ("acted", False, True, 1, 1),
    ],
)
def test_a_call_that_asks_its_user_is_repeated_as_any_other(
    tmp_path: Path, kills: str, repeatable: bool, needs_permission: bool, asked: int, acted: int
) -> None:
    """A tool that asks within its call has begun; one that waits for permission has not."""
    path, deadly = tmp_path / "runs.sqlite", Deadly(tmp_path / "noted", kills)
    store = RunStore(path, "b")
    store.queue([NewRun(0, "k", "a", '"hi"')])
    store.close()
    asker = Asker(deadly)
    tool: Tool = Actor(deadly, repeatable, None if needs_permission else asker)
    if needs_permission:
        tool = AskedTool(tool, asker)

    async def live(steps: DurableSteps) -> None:
        del steps
        context = ToolContext(agent_name="a", turn_id="t", call_id="call", correlation_id="c")
        try:
            result = await call_in_step(tool, ToolCall("call", "act", {}), here(), context)
            deadly.note(text_of_result(result))
        except ToolError as error:
            deadly.note(error.message)

    for _ in range(3):
        in_a_life(path, live)
    lines = deadly.path.read_text().splitlines()
    assert (lines.count("asked"), lines.count("acted")) == (asked, acted)
    is_done = repeatable or (needs_permission and kills == "asked")
    assert lines[-1] == ("done" if is_done else "`act` was interrupted and is not repeated")


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
