"""What children start with and where their messages go: each word, and all together."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from anyio.lowlevel import checkpoint
from tests.patience import pass_seconds
from tests.workflows.scripted_world import World, agent, card

from fast_agent.agents.delegation.child_history import history_files, resolve_history
from fast_agent.cards.agent_config import HISTORIES, AgentConfig, ChildHistory
from fast_agent.errors import RunError
from fast_agent.messages.file import HistoryDocument, read_history, write_history
from fast_agent.messages.history import check_validity
from fast_agent.messages.message import Message
from fast_agent.models.script import Call, Fail, Say, Together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from fast_agent.cards.agent_config import HistorySource
    from fast_agent.models.model import ModelRequest
    from fast_agent.models.script import Step
    from fast_agent.runtime.runtime import Runtime

    ProblemOf: TypeAlias = Callable[[Iterable[Message]], str | None]

pytestmark = pytest.mark.anyio

FILE = (Message.user("in file"), Message.assistant("filed"))
EARLIER = (Message.user("earlier"), Message.assistant("kept"))


def call(message: str, child: str = "kid") -> Call:
    return Call(f"agent__{child}", {"message": message})


def boss(source: HistorySource = "none", target: HistorySource = "none") -> AgentConfig:
    return agent("boss", agents=("kid",), history_source=source, history_merge_target=target)


def texts(messages: Iterable[Message]) -> list[str]:
    return [one.text for one in messages]


def kid_in(directory: Path) -> AgentConfig:
    write_history(directory / "kid.json", HistoryDocument(None, FILE))
    return agent("kid", messages=("kid.json",), source=directory / "kid.md")


@pytest.mark.spec("ROUTE-1", "ROUTE-2", "ROUTE-3", "ROUTE-4", "ROUTE-5", "CARD-56")
@pytest.mark.parametrize("target", HISTORIES)
@pytest.mark.parametrize("source", HISTORIES)
async def test_every_combination(
    source: HistorySource, target: HistorySource, tmp_path: Path, problem_of: ProblemOf
) -> None:
    world = World({"boss": ["hello", call("draw"), "done", "bye"], "kid": ["a cat"]})
    kid = kid_in(tmp_path)
    async with world.runtime(boss(source, target), kid) as runtime:
        parent, child = runtime.agent("boss"), runtime.agent("kid")
        child.load_history(EARLIER)
        await parent.send("hi")
        await parent.send("go")
        await parent.send("bye")
        (seen,) = world.asked("kid")
        bases: dict[str, list[str]] = {
            "none": [],
            "messages": ["in file", "filed"],
            "child": ["earlier", "kept"],
            "orchestrator": ["hi", "hello", "go"],
            "cumulative": ["hi", "hello"],
        }
        joined = "go\ndraw" if source == "orchestrator" else "draw"
        before = bases[source][:-1] if source == "orchestrator" else bases[source]
        assert texts(seen.messages) == [*before, joined]
        new = ["draw", "a cat"]
        turn = ["hi", "hello", "go", "", "", "done"]
        to_parent = new if target == "orchestrator" else []
        assert texts(parent.history) == [*turn, *to_parent, "bye", "bye"]
        to_child = new if target == "child" else []
        assert texts(child.history) == ["earlier", "kept", *to_child]
        kept = read_history(tmp_path / "kid.json").messages
        assert texts(kept) == ["in file", "filed", *(new if target == "messages" else [])]
        for history in (parent.history, child.history, kept):
            assert check_validity(history) == []
        for request in world.seen:
            assert problem_of(request.messages) is None
    world.finish()


@pytest.mark.spec("ROUTE-5")
async def test_the_transcript_has_every_turn_with_its_agent_turn_and_call() -> None:
    steps = [Together((call("one"), call("two"))), "done"]
    world = World({"boss": steps, "kid": ["1", "2"]})
    async with world.runtime(boss("none", "cumulative"), agent("kid")) as runtime:
        result = await runtime.agent("boss").generate("go")
        entries = transcript(runtime)
    assert [(agent, texts) for agent, _, texts in entries] == [
        ("kid", ["one", "1"]),
        ("kid", ["two", "2"]),
        ("boss", ["go", "", "", "done"]),
    ]
    calls = [call.id for one in result.messages for call in one.tool_calls]
    assert [parent for _, parent, _ in entries] == [*calls, None]


def transcript(runtime: Runtime) -> list[tuple[str, str | None, list[str]]]:
    entries = runtime.transcript.entries
    return [(one.agent, one.parent_call_id, texts(one.messages)) for one in entries]


@pytest.mark.spec("ROUTE-6")
@pytest.mark.parametrize("target", ["child", "orchestrator", "messages", "cumulative"])
async def test_what_ends_first_lands_in_the_order_of_the_calls(
    target: HistorySource, tmp_path: Path
) -> None:
    names = "abcde"
    ended: list[str] = []

    async def pause(name: str) -> None:
        if name == "kid":
            mine = world.seen[-1].text
            while len(ended) < len(names) - 1 - names.index(mine):
                await checkpoint()
            ended.append(mine)

    world = World({"boss": [Together(tuple(map(call, names))), "done"]}, pause=pause)
    async with world.runtime(boss("none", target), kid_in(tmp_path)) as runtime:
        await runtime.agent("boss").send("go")
        places = {
            "child": runtime.agent("kid").history[2:],
            "orchestrator": runtime.agent("boss").history[4:],
            "messages": read_history(tmp_path / "kid.json").messages[2:],
            "cumulative": [one for entry in runtime.transcript for one in entry.messages][:-4],
        }
    assert ended == list("edcba")
    assert texts(places[target]) == list("aabbccddee")


@pytest.mark.spec("ROUTE-4")
async def test_a_child_of_an_orchestrator_never_sees_the_message_that_calls_it() -> None:
    steps = [call("one"), Together((call("two"), call("three"))), "done"]
    world = World({"boss": steps})
    async with world.runtime(boss("orchestrator", "orchestrator"), agent("kid")) as runtime:
        parent = runtime.agent("boss")
        await parent.send("go")
        first, second, third = (one.messages for one in world.asked("kid"))
        assert texts(first) == ["go\none"]
        assert second[:-1] == third[:-1]
        assert [len(one.tool_results) for one in second] == [0, 0, 1]
        assert (second[-1].tool_results[0].text, second[-1].text) == ("go\none", "two")
        assert texts(parent.history[-6::2]) == ["one", "two", "three"]
        ids = [call.id for one in parent.history for call in one.tool_calls]
        assert len(set(ids)) == len(ids)


@pytest.mark.spec("ROUTE-7")
async def test_calls_of_a_merged_child_get_ids_of_their_own(problem_of: ProblemOf) -> None:
    def look() -> str:
        """Look."""
        return "seen"

    world = World({"boss": [call("draw"), "done"] * 2, "kid": [Call("look"), "a cat"] * 2})
    kid = agent("kid", function_tools=(look,))
    async with world.runtime(boss("none", "orchestrator"), kid) as runtime:
        parent = runtime.agent("boss")
        await parent.send("go")
        await parent.send("go")
        history = parent.history
        ids = [call.id for one in history for call in one.tool_calls]
        assert len(set(ids)) == len(ids) == 4
        assert check_validity(history) == []
        assert problem_of(history) is None
        assert history[6].tool_results[0].text == "seen"


async def test_a_child_that_fails_leaves_what_it_would_remember(problem_of: ProblemOf) -> None:
    def look() -> str:
        """Look."""
        return "seen"

    steps: list[Step | str] = [call("one"), call("two"), "done"]
    play: list[Step | str] = [Fail("no"), Call("look"), Fail("not now")]
    world = World({"boss": steps, "kid": play})
    kid = agent("kid", function_tools=(look,))
    async with world.runtime(boss("none", "child"), kid) as runtime:
        await runtime.agent("boss").send("go")
        left = runtime.agent("kid").history
        assert texts(left) == ["two", "", "", "[no answer: the turn failed]"]
        assert problem_of(left) is None


async def test_a_child_that_takes_too_long_leaves_its_message_and_a_note() -> None:
    async def pause(name: str) -> None:
        if name == "kid":
            pass_seconds(10)
            await anyio.sleep_forever()

    world = World({"boss": [call("draw"), "done"]}, pause=pause)
    parent = replace(boss("none", "orchestrator"), child_timeout_sec=10)
    async with world.runtime(parent, agent("kid")) as runtime:
        await runtime.agent("boss").send("go")
        history = runtime.agent("boss").history
        assert texts(history)[3:] == ["done", "draw", "[cancelled before an answer]"]


async def test_a_cancelled_parent_keeps_what_ended_children_left(problem_of: ProblemOf) -> None:
    waiting = anyio.Event()

    async def pause(name: str) -> None:
        if name == "kid" and world.seen[-1].text == "two":
            waiting.set()
            await anyio.sleep_forever()

    world = World({"boss": [Together((call("two"), call("one"))), "done"]}, pause=pause)
    async with world.runtime(boss("none", "orchestrator"), agent("kid")) as runtime:
        parent = runtime.agent("boss")
        async with anyio.create_task_group() as group:
            group.start_soon(parent.send, "go")
            await waiting.wait()
            for _ in range(20):
                await checkpoint()
            group.cancel_scope.cancel()
        note = "[cancelled before an answer]"
        assert texts(parent.history) == ["go", "", "", note, "two", note, "one", "one"]
        assert problem_of(parent.history) is None


@pytest.mark.spec("ROUTE-3")
async def test_what_is_merged_into_a_busy_agent_lands_behind_its_turn() -> None:
    begun, go_on = anyio.Event(), anyio.Event()

    async def pause(name: str) -> None:
        if name == "kid" and world.seen[-1].text == "direct":
            begun.set()
            await go_on.wait()

    world = World({"boss": [call("draw"), "done"]}, pause=pause)
    async with world.runtime(boss("child", "child"), agent("kid")) as runtime:
        child = runtime.agent("kid")
        async with anyio.create_task_group() as group:
            group.start_soon(child.send, "direct")
            await begun.wait()
            await runtime.agent("boss").send("go")
            assert texts(child.history) == []
            go_on.set()
        assert texts(child.history) == ["direct", "direct", "draw", "draw"]


async def test_agents_that_call_and_merge_into_each_other_do_not_wait_for_each_other() -> None:
    ann = agent("ann", agents=("bob",), history_source="child", history_merge_target="child")
    bob = agent("bob", agents=("ann",), history_source="child", history_merge_target="child")
    world = World(
        {
            "ann": lambda request: other(request.messages[-1], "bob"),
            "bob": lambda request: other(request.messages[-1], "ann"),
        }
    )

    def other(heard: Message, name: str) -> Step | str:
        left = heard.text.removeprefix("go ")
        return call(f"go {int(left) - 1}", name) if left not in {"", "0"} else "done"

    async with world.runtime(ann, bob) as runtime:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for name in ("ann", "bob") * 3:
                    group.start_soon(runtime.agent(name).send, "go 4")
        for name in ("ann", "bob"):
            assert check_validity(runtime.agent(name).history) == []


@pytest.mark.spec("ROUTE-8", "CARD-60")
async def test_the_strongest_word_holds() -> None:
    own = {"kid": ChildHistory(source="none", merge_target="child")}
    parent = replace(boss("messages", "messages"), child_history=own)
    assert resolve_history(parent, "other") == ("messages", "messages")
    assert resolve_history(parent, "kid") == ("none", "child")
    run, one = ChildHistory(source="cumulative"), ChildHistory(merge_target="none")
    assert resolve_history(parent, "kid", run) == ("cumulative", "child")
    assert resolve_history(parent, "kid", one, run) == ("cumulative", "none")
    assert resolve_history(parent, "kid", ChildHistory(source="child"), run) == ("child", "child")
    half = replace(boss("child", "child"), child_history={"kid": ChildHistory(source="none")})
    assert resolve_history(half, "kid") == ("none", "child")


async def test_a_file_is_read_again_when_it_changed(tmp_path: Path) -> None:
    world = World({"boss": [call("one"), call("two"), "done"]})
    async with world.runtime(boss("messages", "messages"), kid_in(tmp_path)) as runtime:
        await runtime.agent("boss").send("go")
    first, second = (texts(one.messages) for one in world.asked("kid"))
    assert first == ["in file", "filed", "one"]
    assert second == ["in file", "filed", "one", "one", "two"]


@pytest.mark.parametrize("anew", [False, True])
async def test_a_change_that_leaves_the_size_is_seen_too(tmp_path: Path, anew: bool) -> None:
    path = tmp_path / "kid.json"

    def change() -> None:
        text, before = path.read_text(), path.stat()
        if anew:
            path.rename(tmp_path / "old.json")
        path.write_text(text.replace("filed", "fiLed"))
        # Another file, or another time: either is enough.
        later = 0 if anew else 1_000_000
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + later))
        assert path.stat().st_size == before.st_size

    def lead(request: ModelRequest) -> Step | str:
        match sum(bool(one.tool_results) for one in request.messages):
            case 0:
                return call("one")
            case 1:
                change()
                return call("two")
            case _:
                return "done"

    world = World({"boss": lead})
    async with world.runtime(boss("messages"), kid_in(tmp_path)) as runtime:
        await runtime.agent("boss").send("go")
    assert [texts(one.messages)[1] for one in world.asked("kid")] == ["filed", "fiLed"]


def test_a_card_from_an_address_has_no_files(tmp_path: Path) -> None:
    kid = agent("kid", messages=("../kid.json",))
    assert history_files(kid, tmp_path) == (tmp_path / "../kid.json",)
    assert history_files(replace(kid, remote="https://example.org/kid.md"), tmp_path) == ()


async def test_a_file_that_cannot_be_read_fails_the_call_not_the_turn(tmp_path: Path) -> None:
    world = World({"boss": [call("one"), "done"]})
    async with world.runtime(boss("messages"), kid_in(tmp_path)) as runtime:
        (tmp_path / "kid.json").write_text("{")
        parent = runtime.agent("boss")
        await parent.send("go")
        result = parent.history[2].tool_results[0]
        assert result.is_error
        assert "agent `kid` failed: " in result.text


async def test_a_file_that_cannot_be_written_is_reported_and_the_answer_stays(
    tmp_path: Path,
) -> None:
    world = World({"boss": [call("one"), "done"]})
    kid = kid_in(tmp_path)
    async with world.runtime(boss("none", "messages"), kid) as runtime:
        parent = runtime.agent("boss")
        runtime.agent("kid")
        (tmp_path / "kid.json").write_text("{")
        await parent.send("go")
        assert parent.history[2].tool_results[0].text == "one"
    assert any("the messages of agent `kid` were not saved" in one for one in world.warnings)


async def test_a_child_without_files_starts_empty_and_cannot_be_merged_into() -> None:
    world = World({"boss": [call("one"), "done"]})
    async with world.runtime(boss("messages"), agent("kid")) as runtime:
        await runtime.agent("boss").send("go")
        assert texts(world.asked("kid")[0].messages) == ["one"]
    async with world.runtime(boss("none", "messages"), agent("kid")) as runtime:
        with pytest.raises(RunError, match="`messages` of `kid`, which has none"):
            runtime.agent("boss")


@pytest.mark.spec("ROUTE-3")
async def test_a_workflow_can_be_the_child(problem_of: ProblemOf) -> None:
    world = World({"boss": [call("go", "team"), "done"] * 2, "one": ["first"] * 2})
    parent = replace(boss("child", "child"), agents=("team",))
    team = card("team", "chain", sequence=("one", "two"))
    async with world.runtime(parent, team, agent("one"), agent("two")) as runtime:
        await runtime.agent("boss").send("a")
        await runtime.agent("boss").send("b")
        shared = runtime.agent("team")
        assert texts(shared.history) == ["go", "first"] * 2
        assert len(runtime.agent("one").history) == 0
        assert [one[0] for one in transcript(runtime)][:4] == ["one", "two", "team", "boss"]


async def test_a_copy_shares_the_messages_it_starts_with() -> None:
    world = World()
    async with world.runtime(agent("boss"), agent("kid")) as runtime:
        parent = runtime.agent("boss")
        for number in range(200):
            await parent.send(str(number))
        copy = runtime.clone("kid", parent.conversation)
        assert copy.history is parent.history
        await copy.send("more")
        assert (len(copy.history), len(parent.history)) == (402, 400)
        await copy.aclose()


async def test_a_child_that_does_not_remember_still_merges_what_is_asked_of_it() -> None:
    world = World({"boss": [call("one"), call("two"), "done"]})
    kid = agent("kid", use_history=False)
    async with world.runtime(boss("child", "child"), kid) as runtime:
        await runtime.agent("boss").send("go")
        child = runtime.agent("kid")
        assert texts(world.asked("kid")[1].messages) == ["one", "one", "two"]
        await child.send("direct")
        assert texts(world.asked("kid")[2].messages) == ["direct"]


async def test_grandchildren_merged_into_a_child_go_where_the_child_goes() -> None:
    top = boss("none", "orchestrator")
    kid = agent("kid", agents=("cub",), history_merge_target="orchestrator")
    world = World({"boss": [call("a"), "done"], "kid": [call("b", "cub"), "mid"]})
    async with world.runtime(top, kid, agent("cub")) as runtime:
        await runtime.agent("boss").send("go")
        assert texts(runtime.agent("boss").history) == [
            *("go", "", "", "done"),
            *("a", "", "", "mid", "b", "b"),
        ]


async def test_a_cleared_agent_does_not_get_back_what_was_under_way() -> None:
    async def pause(name: str) -> None:
        if name == "kid":
            runtime.agent("boss").clear()

    world = World({"boss": [call("one"), "done"]}, pause=pause)
    async with world.runtime(boss("none", "orchestrator"), agent("kid")) as runtime:
        await runtime.agent("boss").send("go")
        assert len(runtime.agent("boss").history) == 0


@pytest.mark.parametrize("answer", ["", "x" * 10_000_000])
async def test_an_answer_is_never_nothing_and_never_without_end(answer: str) -> None:
    world = World({"boss": [call("one"), Say("done")], "kid": [answer]})
    async with world.runtime(boss("none", "child"), agent("kid")) as runtime:
        await runtime.agent("boss").send("go")
        result = runtime.agent("boss").history[2].tool_results[0]
        assert not result.is_error
        if answer:
            assert 1_000_000 <= len(result.text) < 1_001_000
        else:
            assert result.text == "[the agent returned an empty answer]"
        assert runtime.agent("kid").history[-1].text == answer


def _merge_often(directory: str, name: str, times: int) -> None:
    async def run() -> None:
        from pathlib import Path

        path = Path(directory)
        kid = agent("kid", messages=("kid.json",), source=path / "kid.md")
        steps: list[Step | str] = [call(f"{name}{index}") for index in range(times)]
        world = World({"boss": [*steps, "done"]})
        async with world.runtime(boss("none", "messages"), kid) as runtime:
            await runtime.agent("boss").send("go")

    anyio.run(run)


@pytest.mark.spec("ROUTE-2")
async def test_two_processes_that_merge_into_a_file_lose_nothing(tmp_path: Path) -> None:
    kid_in(tmp_path)
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_merge_often, args=(str(tmp_path), name, 10)) for name in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        await anyio.to_thread.run_sync(worker.join)
        assert worker.exitcode == 0
    kept = texts(read_history(tmp_path / "kid.json").messages)[2:]
    for name in "ab":
        assert [one for one in kept if one[0] == name] == [
            f"{name}{index}" for index in range(10) for _ in range(2)
        ]
    assert kept[::2] == kept[1::2]
