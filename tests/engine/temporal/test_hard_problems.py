"""What is hard about running the loop in workflow code: each problem has a test."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from temporalio.client import Client
from temporalio.service import RetryConfig
from tests.engine.batch_world import ModelServer, Reply, call_reply, text_reply
from tests.engine.temporal.temporal_world import eventually, temporal_world
from tests.temporal_server import TemporalServer

from fast_agent.cli.running.temporal import pin_cards
from fast_agent.engine.edition import EditionChoices
from fast_agent.engine.execute import StepExecutor
from fast_agent.engine.part_store import Cipher
from fast_agent.engine.temporal.runs import RunCancelledError
from fast_agent.errors import ModelError, RunError

if TYPE_CHECKING:
    from pathlib import Path

    from temporalio.client import WorkflowHandle, WorkflowHistory
    from tests.engine.temporal.temporal_world import TemporalWorld

pytestmark = pytest.mark.anyio

_PAYING_TOOL = '''\
from fast_agent import tool


@tool(repeatable=False)
def pay() -> str:
    """Pay."""
    return "paid"
'''
AGENT = "type: agent\nmodel: generic.m\ninstruction: You answer.\n"


def use_model(world: TemporalWorld, models: ModelServer) -> None:
    """Have the models of the cards answered by a server."""
    text = f"generic: {{base_url: '{models.url}', api_key: sk-key-of-the-tests}}\n"
    (world.directory / "config.yaml").write_text(text)


def kinds(history: WorkflowHistory) -> list[str]:
    """Return the events of a history."""
    return [
        str(event.WhichOneof("attributes")).removesuffix("_event_attributes")
        for event in history.events
    ]


@pytest.mark.spec("TEMPORAL-1")
async def test_a_time_out_around_a_step_ends_the_child_and_not_the_loop(
    tmp_path: Path, server: TemporalServer
) -> None:
    """anyio cancels again and again, and an activity ends only later: a livelock without shield."""
    async with temporal_world(tmp_path, server) as world, world.worker(max_cached_runs=0):
        world.write(
            boss="type: agent\nmodel: passthrough\ninstruction: x\nagents: [slow]\n"
            "child_timeout_sec: 1\ndefault: true\n",
            slow="type: agent\nmodel: slow?seconds=600\ninstruction: x\n",
        )
        run = await world.start("boss", '***CALL_TOOL agent__slow {"message": "hi"}')
        result = await world.runs.result(run)
        assert "1 s" in result.message.text, result.message.text
        history = await run.fetch_history()
        assert "timer_fired" in kinds(history)
        await world.replay(history, 3)


@pytest.mark.spec("TEMPORAL-2")
async def test_a_cancelled_run_ends_as_cancelled_and_its_steps_are_reported(
    tmp_path: Path, server: TemporalServer
) -> None:
    """A cancelled activity is an error with a cause, which agents would report as a failure."""
    async with temporal_world(tmp_path, server) as world, world.worker():
        members = {
            f"m{number}": "type: agent\nmodel: slow?seconds=600\ninstruction: x\n"
            for number in range(8)
        }
        world.write(
            top=f"type: parallel\nfan_out: [{', '.join(members)}]\ndefault: true\n", **members
        )
        run = await world.start("top")

        async def all_are_asked() -> bool:
            return len((await run.describe()).raw_description.pending_activities) == 8

        await eventually(all_are_asked)
        await world.runs.cancel(run.id)
        with pytest.raises(RunCancelledError):
            await world.runs.result(run)
        assert kinds(await run.fetch_history()).count("activity_task_cancel_requested") == 8


@pytest.mark.spec("TEMPORAL-3")
async def test_an_error_fails_the_run_with_its_type_and_hint(
    tmp_path: Path, server: TemporalServer
) -> None:
    """An exception out of workflow code fails the task, which is tried again for ever."""
    async with temporal_world(tmp_path, server) as world, world.worker():
        with ModelServer(lambda _: (401, {}, {"error": {"message": "bad key"}})) as models:
            use_model(world, models)
            world.write(one=AGENT)
            run = await world.start("one")
            with pytest.raises(ModelError) as caught:
                await world.runs.result(run)
            assert caught.value.hint is not None
            assert sum(models.asked.values()) == 1
            assert "workflow_task_failed" not in kinds(await run.fetch_history())


@pytest.mark.spec("TEMPORAL-3")
async def test_a_step_that_fails_for_an_unknown_reason_fails_its_run(
    tmp_path: Path, server: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tried again for ever, its run would hang without a word."""
    tries = 0

    async def broken(*_: object, **__: object) -> None:
        nonlocal tries
        tries += 1
        raise LookupError("nowhere")

    monkeypatch.setattr(StepExecutor, "execute", broken)
    async with temporal_world(tmp_path, server) as world, world.worker():
        world.write(one="type: agent\nmodel: passthrough\ninstruction: You answer.\n")
        with pytest.raises(RunError, match="a step of agent `one` failed: LookupError: nowhere"):
            await world.run("one")
    assert tries == 3


@pytest.mark.spec("TEMPORAL-3")
async def test_only_temporal_sends_a_request_again(tmp_path: Path, server: TemporalServer) -> None:
    """Two layers of retries would multiply."""
    replies: list[Reply] = [(503, {}, {}), (429, {"retry-after": "0"}, {}), text_reply("there")]
    async with temporal_world(tmp_path, server) as world, world.worker():
        with ModelServer(lambda _: replies.pop(0)) as models:
            use_model(world, models)
            world.write(one=AGENT)
            assert (await world.run("one")).message.text == "there"
            assert sum(models.asked.values()) == 3


@pytest.mark.spec("TEMPORAL-5")
async def test_what_is_sent_grows_with_the_turns_and_not_with_their_square(
    tmp_path: Path, server: TemporalServer
) -> None:
    """A history that repeats the conversation in every step reaches its limit after 200 turns."""

    def reply(body: dict[str, Any]) -> Reply:
        results = sum(one["role"] == "tool" for one in body["messages"])
        if results < 40:
            return call_reply("look", {"page": results}, f"call-{results}")
        return text_reply("done")

    async with temporal_world(tmp_path, server) as world, world.worker():
        with ModelServer(reply) as models:
            use_model(world, models)
            (tmp_path / "tools.py").write_text(
                'def look(page: int) -> str:\n    """Look at a page."""\n'
                "    return f'{page} ' + 'word ' * 200\n"
            )
            world.write(
                one=f"{AGENT}function_tools: [tools.py:look]\n"
                "request_params: {max_iterations: 60}\n"
            )
            run = await world.start("one")
            result = await world.runs.result(run)
            assert result.steps == 81
            history = await run.fetch_history()
            sizes = [event.ByteSize() for event in history.events]
            half = len(sizes) // 2
            assert sum(sizes[half:]) < 1.2 * sum(sizes[:half])
            # A turn of the conversation is a question, a call and its result of 1 kB.
            assert sum(sizes) / 40 < 6_000
            await world.replay(history)


@pytest.mark.spec("TEMPORAL-5")
async def test_a_result_above_the_limit_of_a_payload_is_kept_outside(
    tmp_path: Path, server: TemporalServer
) -> None:
    """Temporal refuses payloads above 2 MB, and a result above it is retried for ever."""
    async with temporal_world(tmp_path, server) as world, world.worker(max_cached_runs=0):
        (tmp_path / "tools.py").write_text(
            'def huge() -> str:\n    """Return 3 MB."""\n    return "x" * 3_000_000 + "end"\n'
        )
        world.write(
            one="type: agent\nmodel: passthrough\ninstruction: x\n"
            "function_tools: [tools.py:huge]\nrequest_params: {tool_result_bytes: 4000000}\n"
        )
        run = await world.start("one", "***CALL_TOOL huge {}")
        text = (await world.runs.result(run)).message.text
        assert len(text) > 3_000_000
        history = await run.fetch_history()
        assert sum(event.ByteSize() for event in history.events) < 20_000
        await world.replay(history)


@pytest.mark.spec("TEMPORAL-8")
async def test_a_run_ends_with_the_cards_it_began_with(
    tmp_path: Path, server: TemporalServer
) -> None:
    """A card that is edited while a run is under way is one for later runs."""

    def reply(body: dict[str, Any]) -> Reply:
        system = body["messages"][0]["content"]
        if body["messages"][-1]["role"] == "tool":
            return text_reply(f"{system} {body['messages'][-1]['content']}")
        return call_reply("version", {}, "call")

    def write(version: int) -> None:
        (tmp_path / "tools.py").write_text(
            f'def version() -> str:\n    """Tell."""\n    return "tool {version}"\n'
        )
        world.write(
            one=f"type: agent\nmodel: generic.m\ninstruction: card {version}\n"
            "function_tools: [tools.py:version]\n"
        )

    async with temporal_world(tmp_path, server) as world:
        with ModelServer(reply) as models:
            use_model(world, models)
            write(1)
            first = await world.start("one")  # no worker runs yet
            write(2)
            second = await world.start("one")
            async with world.worker(max_cached_runs=0):
                assert (await world.runs.result(first)).message.text == "card 1 tool 1"
                assert (await world.runs.result(second)).message.text == "card 2 tool 2"


@pytest.mark.spec("TEMPORAL-13")
async def test_a_call_that_needs_permission_asks_the_user_of_the_run(
    tmp_path: Path, server: TemporalServer
) -> None:
    async with temporal_world(tmp_path, server) as world, world.worker():
        (tmp_path / "tools.py").write_text('def pay() -> str:\n    """Pay."""\n    return "paid"\n')
        world.write(
            one="type: agent\nmodel: passthrough\ninstruction: x\n"
            "function_tools: [tools.py:pay]\nconfirm: [pay]\n"
        )
        run = await world.start("one", "***CALL_TOOL pay {}")
        asked = await eventually(partial(world.runs.questions, run.id))
        ((key, question),) = asked.items()
        assert "pay" in str(question["message"])
        await world.runs.answer(run.id, key, "decline")
        assert "paid" not in (await world.runs.result(run)).message.text


@pytest.mark.spec("TEMPORAL-13")
async def test_more_questions_than_a_server_takes_at_once_wait_for_the_answers_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By itself, the SDK requests an update ten times; a user takes longer.
    few = partial(Client.connect, retry_config=RetryConfig(max_retries=1))
    monkeypatch.setattr(Client, "connect", few)
    values = {"history.maxInFlightUpdates": 1}
    with TemporalServer(in_memory=True, values=values) as server:
        async with temporal_world(tmp_path, server) as world, world.worker():
            (tmp_path / "tools.py").write_text(_PAYING_TOOL)
            child = (
                "type: agent\nmodel: passthrough\ninstruction: x\n"
                "function_tools: [tools.py:pay]\nconfirm: [pay]\n"
            )
            world.write(both="type: parallel\nfan_out: [ann, bob]\n", ann=child, bob=child)
            run = await world.start("both", "***CALL_TOOL pay {}")
            ((first, _),) = (await eventually(partial(world.runs.questions, run.id))).items()
            await asyncio.sleep(4)
            await world.runs.answer(run.id, first, "accept", {"call": "yes"})

            async def others() -> set[str]:
                return set(await world.runs.questions(run.id)) - {first}

            (second,) = await eventually(others)
            await world.runs.answer(run.id, second, "accept", {"call": "yes"})
            assert (await world.runs.result(run)).message.text.count("paid") == 2


@pytest.mark.spec("TEMPORAL-11")
async def test_a_model_with_workers_of_its_own_is_asked_by_them_alone(
    tmp_path: Path, server: TemporalServer
) -> None:
    """Limits are those of a model, so its requests need a queue of their own."""
    async with temporal_world(tmp_path, server) as world:
        with ModelServer(lambda _: text_reply("hello")) as models:
            use_model(world, models)
            world.write(one=AGENT)
            async with world.worker(), world.worker(queues=("generic.m",)):
                await eventually(partial(world.runs.is_served, "generic.m"))
                run = await world.start("one")
                assert (await world.runs.result(run)).message.text == "hello"
            (scheduled,) = [
                event.activity_task_scheduled_event_attributes
                for event in (await run.fetch_history()).events
                if event.HasField("activity_task_scheduled_event_attributes")
            ]
            assert scheduled.task_queue.name == world.options.side_queue("generic.m")


@pytest.mark.spec("TEMPORAL-18")
async def test_the_steps_of_an_agent_with_a_queue_wait_for_its_workers(
    tmp_path: Path, server: TemporalServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The child stays in the workflow of its parent; only its steps move."""
    async with temporal_world(tmp_path, server) as world:
        (tmp_path / "tools.py").write_text(
            'def double(n: int) -> int:\n    """Double."""\n    return n * 2\n'
        )
        tools = "function_tools: [tools.py:double]\n"
        world.write(
            boss=f"type: agent\nmodel: passthrough\ninstruction: x\nagents: [painter]\n{tools}",
            painter=f"type: agent\nmodel: passthrough\ninstruction: x\nqueue: gpu\n{tools}",
        )
        program = world.program()
        program.load_agents(".")
        pinned = await pin_cards(world.runs, program, EditionChoices(), [])
        assert pinned.queues == ("gpu",)
        told = capsys.readouterr().err
        assert "no worker serves the queue `gpu`" in told
        address = world.runs.options.address
        waits_for = f"its runs wait for `fast-agent worker --temporal-address {address}`"
        assert f"no worker serves the queue `{world.runs.options.queue}`: {waits_for}" in told
        call = '***CALL_TOOL agent__painter {"message": "***CALL_TOOL double {\\"n\\": 4}"}'
        async with world.worker():
            run = await world.start("boss", call, edition=pinned)

            async def waits() -> bool:
                return "model painter" in str(await run.query("progress"))

            await eventually(waits)
            async with world.worker(queues=("gpu",)):
                assert "8" in (await world.runs.result(run)).message.text
                assert await world.runs.unserved(pinned) == []
                assert await world.runs.has_workers()
        scheduled = [
            event.activity_task_scheduled_event_attributes
            for event in (await run.fetch_history()).events
            if event.HasField("activity_task_scheduled_event_attributes")
        ]
        queues = [
            (one.activity_type.name, one.task_queue.name.partition(":")[2]) for one in scheduled
        ]
        own = [("model", "gpu"), ("tool", "gpu"), ("model", "gpu")]
        assert queues == [("model", ""), *own, ("model", "")]


@pytest.mark.spec("TEMPORAL-12")
async def test_nothing_of_an_encrypted_run_can_be_read_by_the_server(
    tmp_path: Path, server: TemporalServer
) -> None:
    cipher = Cipher(bytes(range(32)))
    async with temporal_world(tmp_path, server, cipher) as world, world.worker():
        world.write(one="type: agent\nmodel: passthrough\ninstruction: a secret plan\n")
        run = await world.start("one", "the secret message")
        assert (await world.runs.result(run)).message.text == "the secret message"
        events = b"".join(event.SerializeToString() for event in (await run.fetch_history()).events)
        kept = b"".join(path.read_bytes() for path in (tmp_path / "parts").glob("*/*"))
        assert b"secret" not in events + kept
        failing = await world.start("missing", "the secret message")
        with pytest.raises(RunError, match="no agent is named"):
            await world.runs.result(failing)


async def test_a_worker_with_another_configuration_refuses_the_run(
    tmp_path: Path, server: TemporalServer
) -> None:
    async with temporal_world(tmp_path, server) as world:
        world.write(one="type: agent\nmodel: passthrough\ninstruction: x\n")
        edition = await world.pin()
        (tmp_path / "config.yaml").write_text("request_params: {max_iterations: 2}\n")
        async with world.worker():
            with pytest.raises(Exception, match="differs from the client's in `request_params`"):
                await world.run("one", edition=edition)


@pytest.mark.spec("TEMPORAL-9")
async def test_a_run_ends_in_the_version_of_the_loop_it_began_in(
    tmp_path: Path, server: TemporalServer
) -> None:
    """An older loop that went on with a newer run would ask for other steps."""

    async def builds(run: WorkflowHandle[Any, Any]) -> set[str]:
        return {
            event.workflow_task_completed_event_attributes.deployment_version.build_id
            for event in (await run.fetch_history()).events
            if event.HasField("workflow_task_completed_event_attributes")
        }

    async with temporal_world(tmp_path, server) as world, world.worker(build_id="1"):
        world.write(one="type: agent\nmodel: passthrough\ninstruction: x\nhuman_input: true\n")
        call = '***CALL_TOOL request_human_input {"message": "which one?"}'
        older = await world.start("one", call)
        asked = await eventually(partial(world.runs.questions, older.id))
        async with world.worker(build_id="2"):

            async def begins_in_the_new_one() -> bool:
                newer = await world.start("one", "hello")
                assert (await world.runs.result(newer)).message.text == "hello"
                return await builds(newer) == {"2"}

            # The server passes the version to its queues a moment later.
            await eventually(begins_in_the_new_one)
            await world.runs.answer(older.id, next(iter(asked)), "accept", {"text": "blue"})
            assert (await world.runs.result(older)).message.text == "blue"
        assert await builds(older) == {"1"}
