"""The database of runs: when what is written is in the file, and what a write that fails takes."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from fast_agent.engine.conversation_steps import ConversationSteps
from fast_agent.engine.model_requests import ModelRequests
from fast_agent.engine.run_rows import BEGUN, DONE, NewRun
from fast_agent.engine.run_steps import DurableSteps
from fast_agent.engine.run_store import FullDiskError, RunStore, StoreError
from fast_agent.messages.message import Message
from fast_agent.steps.parts import StepRedactor
from fast_agent.steps.steps import Codec, Key, Step, entered, here

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fast_agent.engine.run_rows import RunRow

KEY = Key("turn", "tool", "call", 1)
TEXT = Codec[str](str, str)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    store = RunStore(tmp_path / "runs.sqlite", "b")
    store.queue([NewRun(0, "k", "a", '"one"'), NewRun(1, "l", "a", '"two"')])
    yield store
    store.close()


def taken(store: RunStore) -> RunRow:
    run = store.take("me")
    assert run is not None
    return run


def in_the_file(store: RunStore, run: RunRow) -> list[int]:
    """Return the states of a run's steps, as another process sees them."""
    with closing(sqlite3.connect(store.path)) as other:
        rows = other.execute("SELECT state FROM step WHERE run=? ORDER BY at", (run.id,))
        return [state for (state,) in rows]


def fill_disk(store: RunStore, pages: int) -> None:
    store._connection.execute(f"PRAGMA max_page_count = {pages}")


def test_without_an_event_loop_each_statement_is_in_the_file(store: RunStore) -> None:
    run = taken(store)
    store.write_step(run, KEY, "null", BEGUN)
    assert in_the_file(store, run) == [BEGUN]


@pytest.mark.parametrize("end", ["barrier", "flush", "round", "close"])
def test_what_a_loop_writes_in_one_round_is_one_transaction(store: RunStore, end: str) -> None:
    async def write() -> RunRow:
        run = taken(store)
        store.write_step(run, KEY, "null", BEGUN)
        store.store_part("0" * 20, "a piece")
        store.write_step(run, KEY._replace(number=2), "null", DONE, '"answer"')
        commits: list[str] = []
        store._connection.set_trace_callback(
            lambda sql: commits.append(sql) if sql == "COMMIT" else None
        )
        if end == "barrier":
            await store.barrier()
        elif end == "flush":
            store.flush()
        elif end == "round":
            await asyncio.sleep(0)
        else:
            store.close()
        assert commits == ["COMMIT"]
        assert in_the_file(store, run) == [BEGUN, DONE]
        return run

    asyncio.run(write())


@pytest.mark.spec("RUN-25")
def test_runs_that_write_in_the_same_round_share_a_transaction(store: RunStore) -> None:
    runs, commits = [taken(store), taken(store)], list[str]()
    store._connection.set_trace_callback(
        lambda sql: commits.append(sql) if sql == "COMMIT" else None
    )

    async def write(run: RunRow) -> None:
        store.write_step(run, KEY, "null", BEGUN)
        await store.barrier()
        assert in_the_file(store, run) == [BEGUN]

    async def main() -> None:
        await asyncio.gather(*map(write, runs))

    asyncio.run(main())
    assert commits == ["COMMIT"]


def test_a_round_that_its_loop_never_ended_is_written_by_the_next_one(store: RunStore) -> None:
    run = taken(store)

    def write() -> None:
        store.write_step(run, KEY, "null", BEGUN)
        loop.stop()

    loop = asyncio.new_event_loop()
    loop.call_soon(write)
    loop.run_forever()
    loop.close()  # before the end of the round was called

    async def write_more() -> None:
        store.write_step(run, KEY._replace(number=2), "null", BEGUN)
        assert in_the_file(store, run) == [BEGUN]
        await store.barrier()

    asyncio.run(write_more())
    assert in_the_file(store, run) == [BEGUN, BEGUN]


@pytest.mark.spec("RUN-9", "RUN-25")
def test_a_store_that_lost_a_round_writes_nothing_more(store: RunStore) -> None:
    async def write() -> RunRow:
        run = taken(store)
        await store.barrier()
        fill_disk(store, 1)
        store.write_step(run, KEY, "null", BEGUN)
        with pytest.raises(FullDiskError, match="is full"):
            store.write_step(run, KEY._replace(number=2), "null", DONE, "x" * 100_000)
        fill_disk(store, 1_000_000)
        # The first of these steps is lost with the second: nothing may follow that relies on it.
        with pytest.raises(FullDiskError, match="is full"):
            store.write_step(run, KEY._replace(number=3), "null", BEGUN)
        with pytest.raises(FullDiskError, match="is full"):
            store.flush()
        with pytest.raises(FullDiskError, match="is full"):
            store.sync()
        with pytest.raises(FullDiskError, match="is full"):
            store.take("me")
        return run

    run = asyncio.run(write())
    assert in_the_file(store, run) == []


def test_a_single_write_that_fails_loses_nothing_else(store: RunStore) -> None:
    run = taken(store)
    store.write_step(run, KEY, "null", BEGUN)
    fill_disk(store, 1)
    with pytest.raises(FullDiskError):
        store.write_step(run, KEY._replace(number=2), "null", DONE, "x" * 100_000)
    fill_disk(store, 1_000_000)
    store.write_step(run, KEY, "null", DONE, '"answer"')
    assert in_the_file(store, run) == [DONE]


def test_a_conversation_continues_once_its_disk_has_room(tmp_path: Path) -> None:
    steps, said = ConversationSteps(tmp_path / "steps.sqlite", StepRedactor()), "x" * 1_000

    async def work() -> str:
        return said

    async def turn(name: str) -> None:
        nonlocal said
        said *= 10  # pages that the turn before left are used again
        with steps.turn("a", Message.user("hi"), None):
            carrier = here().steps
            for number in range(3):
                await carrier.ask(Step("tool", f"{name} {number}"), work, TEXT)

    async def main() -> None:
        await turn("first")
        fill_disk(steps.store, 1)
        with pytest.raises(StoreError, match="is full"):
            await turn("second")
        fill_disk(steps.store, 1_000_000)
        await turn("third")
        steps.close()

    asyncio.run(main())


@pytest.mark.spec("RUN-23")
def test_answers_are_in_the_file_before_a_tool_is_called(store: RunStore) -> None:
    async def main() -> None:
        run = taken(store)
        steps = DurableSteps(store, run, StepRedactor(), ModelRequests(1, notify=print))

        async def answer() -> str:
            return "answer"

        async def look() -> str:
            # A tool may end the process or block the loop.
            return str(in_the_file(store, run))

        with entered(steps.top):
            await steps.ask(Step("model", "", {"model": "m"}), answer, TEXT)
            assert await steps.ask(Step("tool", "call"), look, TEXT) == f"[{DONE}, {BEGUN}]"

    asyncio.run(main())


@pytest.mark.spec("RUN-24")
@pytest.mark.parametrize("repeatable", [True, False])
def test_a_step_that_must_not_be_repeated_begins_on_the_disk_itself(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, repeatable: bool
) -> None:
    settled: list[list[int]] = []

    async def main() -> None:
        run = taken(store)
        steps = DurableSteps(store, run, StepRedactor(), ModelRequests(1, notify=print))

        def settle(_descriptor: int) -> None:
            settled.append(in_the_file(store, run))

        monkeypatch.setattr("os.fsync", settle)

        async def act() -> str:
            assert settled == ([] if repeatable else [[BEGUN]])
            return "done"

        with entered(steps.top):
            await steps.ask(Step("tool", "call", repeatable=repeatable), act, TEXT)

    asyncio.run(main())
