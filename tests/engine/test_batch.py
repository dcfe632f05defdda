"""`fast-agent batch`, as a process against a model on loopback that counts what it is asked."""

from __future__ import annotations

import json
import random
import signal
from datetime import date
from decimal import Decimal
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.batch_world import BatchWorld, ModelServer, Reply, note_and_answer, text_reply
from tests.patience import wait_until

from fast_agent.engine.batch_output import write_rows

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.spec("RUN-1", "BATCH-1", "BATCH-2", "BATCH-16")
def test_a_batch_killed_again_and_again_pays_nothing_twice(tmp_path: Path) -> None:
    items, chance = 40, random.Random(7)
    with ModelServer(seconds=0.02) as server:
        world = BatchWorld(tmp_path, server.url, items)
        kills = 0
        while kills < 6:
            least = world.answered() + chance.randrange(1, 12)
            if not _killed(world, least):
                break
            kills += 1
        world.run("--concurrency", "4", "--quiet")
        assert kills >= 3
        needed = 2 * items
        assert len(server.answered) == needed
        # What was on its way at a kill is all that may be asked again: nobody has its answer.
        assert sum(server.asked.values()) <= needed + 4 * kills
        assert world.answered() == needed
    rows = world.rows()
    assert [row["id"] for row in rows] == list(range(1, items + 1))
    assert [row["output"] for row in rows] == [f"done: noted item-{n}" for n in range(items)]
    assert set(world.effects()) == {f"item-{n}" for n in range(items)}
    assert max(world.effects().values()) <= 2
    asked = server.asked.copy()
    # Everything is answered: the rows are written again, nothing is asked.
    summary = json.loads(world.run("--format", "json").stdout.splitlines()[-1])
    assert server.asked == asked
    assert world.rows() == rows
    assert (summary["items"], summary["done"], summary["failed"]) == (items, items, 0)
    assert summary["model_requests"] == needed
    assert summary["asked_again"] <= 4 * kills


@pytest.mark.spec("BATCH-16")
@pytest.mark.parametrize("model", ["generic.m", "passthrough"])
def test_the_summary_is_the_standard_output_and_guesses_no_price(
    tmp_path: Path, model: str
) -> None:
    with ModelServer() as server:
        world = BatchWorld(tmp_path, server.url, 2)
        first = world.run("--model", model, "--format", "json")
        again = world.run("--model", model, "--format", "json")
        people = world.run("--model", model)
    assert first.stdout == again.stdout
    summary = json.loads(first.stdout)
    assert (summary["items"], summary["done"]) == (2, 2)
    assert (summary["cost"] is None) is (model == "passthrough")
    assert people.stdout.splitlines()[:3] == ["items: 2", "done: 2", "failed: 0"]
    assert world.run("--model", model, "--quiet").stdout == ""


def _killed(world: BatchWorld, least: int) -> bool:
    """Kill the command when so many answers are kept; False where it ended before."""
    process = world.start("--concurrency", "4", "--quiet")
    wait_until(lambda: process.poll() is not None or world.answered() >= least)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode < 0


@pytest.mark.spec("BATCH-7")
def test_a_second_client_attaches_and_both_end(tmp_path: Path) -> None:
    attached = Event()
    with ModelServer(_held_until(attached)) as server:
        world = BatchWorld(tmp_path, server.url, 20)
        first = world.start("--concurrency", "2")
        wait_until(lambda: world.answered() > 2)
        second = world.start("--concurrency", "2")
        assert "another process is running this batch" in _line(second)
        attached.set()
        said = [process.communicate(timeout=60) for process in (first, second)]
        assert (first.returncode, second.returncode) == (0, 0), said
        assert sum(server.asked.values()) == 40
    assert all(row["ok"] for row in world.rows())


@pytest.mark.spec("BATCH-7")
def test_the_second_client_takes_over_when_the_first_is_killed(tmp_path: Path) -> None:
    attached = Event()
    with ModelServer(_held_until(attached)) as server:
        world = BatchWorld(tmp_path, server.url, 12)
        first = world.start("--concurrency", "2")
        wait_until(lambda: world.answered() > 2)
        second = world.start("--concurrency", "2")
        assert "another process is running this batch" in _line(second)
        first.kill()
        first.communicate()
        attached.set()
        second.communicate(timeout=60)
        assert second.returncode == 0
        assert world.answered() == 24
        assert sum(server.asked.values()) <= 26
    assert all(row["ok"] for row in world.rows())


def _held_until(event: Event) -> Callable[[dict[str, Any]], Reply]:
    """Answer the first three items at once, the others after an event."""

    def reply(body: dict[str, Any]) -> Reply:
        text = json.dumps(body["messages"])
        if not any(f'"item-{number}"' in text for number in range(3)):
            event.wait(60)
        return note_and_answer(body)

    return reply


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return process.stderr.readline()


@pytest.mark.spec("BATCH-1", "BATCH-6")
def test_errors_are_rows_and_are_run_again_on_request(tmp_path: Path) -> None:
    broken = True

    def reply(body: dict[str, Any]) -> Reply:
        text = json.dumps(body["messages"])
        if broken and "item-3" in text:
            return 400, {}, {"error": {"message": "no such thing", "type": "invalid"}}
        return note_and_answer(body)

    with ModelServer(reply) as server:
        world = BatchWorld(tmp_path, server.url, 6)
        world.run()
        rows = world.rows()
        assert [row["ok"] for row in rows] == [True, True, True, False, True, True]
        assert rows[3]["error"]["kind"] == "ModelError"
        assert "no such thing" in rows[3]["error"]["message"]
        asked = sum(server.asked.values())
        broken = False
        world.run()
        assert sum(server.asked.values()) == asked
        world.run("--retry-failed")
        assert sum(server.asked.values()) == asked + 2
    assert all(row["ok"] for row in world.rows())


@pytest.mark.spec("BATCH-6")
def test_too_many_errors_stop_the_batch(tmp_path: Path) -> None:
    def reply(body: dict[str, Any]) -> Reply:
        del body
        return 400, {}, {"error": {"message": "no", "type": "invalid"}}

    with ModelServer(reply) as server:
        world = BatchWorld(tmp_path, server.url, 20)
        done = world.run("--max-errors", "10%", "--concurrency", "1", status=1)
        assert "3 runs failed, and `--max-errors` allows 2" in done.stderr
        assert sum(server.asked.values()) == 3


@pytest.mark.spec("BATCH-5")
def test_a_rate_limit_slows_all_runs_down_and_fails_none(tmp_path: Path) -> None:
    refused = 0

    def reply(body: dict[str, Any]) -> Reply:
        nonlocal refused
        if refused < 12:  # the first, however long the process took to start
            refused += 1
            return 429, {"retry-after": "1"}, {"error": {"message": "slow down"}}
        return note_and_answer(body)

    with ModelServer(reply) as server:
        world = BatchWorld(tmp_path, server.url, 12)
        world.run("--concurrency", "6")
        assert refused == 12
        assert len(server.answered) == 24
    assert all(row["ok"] for row in world.rows())


@pytest.mark.spec("BATCH-5")
def test_a_quota_pauses_the_batch_and_says_until_when(tmp_path: Path) -> None:
    spent = True

    def reply(body: dict[str, Any]) -> Reply:
        if spent and "item-2" in json.dumps(body["messages"]):
            error = {"message": "quota", "type": "insufficient_quota", "code": "insufficient_quota"}
            return 429, {}, {"error": error}
        return note_and_answer(body)

    with ModelServer(reply) as server:
        world = BatchWorld(tmp_path, server.url, 4)
        done = world.run("--concurrency", "1", status=75)
        assert "the quota or credit" in done.stderr
        assert "run the same command again later" in done.stderr
        rows = world.rows()
        assert [row["ok"] for row in rows] == [True, True, False, False]
        assert rows[2]["error"]["kind"] == "NotRun"
        spent = False
        world.run()
        assert len(server.answered) == 8
        assert sum(server.answered.values()) == 8
    assert all(row["ok"] for row in world.rows())


@pytest.mark.spec("BATCH-4")
@pytest.mark.parametrize("workers", ["2", "3", "8"])
@pytest.mark.parametrize(
    ("option", "value", "used"),
    [("--limit-tokens", "45", "40 tokens"), ("--limit-cost", "0.00045", "$0.0004")],
)
def test_a_limit_is_kept_and_the_batch_goes_on_with_a_higher_one(
    tmp_path: Path, option: str, value: str, used: str, workers: str
) -> None:
    with ModelServer(seconds=0.02) as server:
        world = BatchWorld(tmp_path, server.url, 6)
        done = world.run(option, value, "--concurrency", workers, status=75)
        assert f"the batch reached its limit: {used} used" in done.stderr
        # Ten tokens each. Every request under way at the limit was finished, and is kept.
        assert sum(server.asked.values()) == 4
        assert world.answered() == 4
        again = world.run(option, value, "--concurrency", workers, status=75)
        assert f"the batch reached its limit: {used} used" in again.stderr
        assert sum(server.asked.values()) == 4
        world.run("--concurrency", workers)
        assert sum(server.asked.values()) == 12
    assert all(row["ok"] for row in world.rows())
    assert set(world.effects().values()) == {1}


@pytest.mark.spec("BATCH-4")
def test_a_model_of_this_machine_costs_nothing(tmp_path: Path) -> None:
    with ModelServer() as server:
        world = BatchWorld(tmp_path, server.url, 2)
        world.run("--limit-cost", "0.01", "--model", "passthrough")
    assert all(row["ok"] for row in world.rows())


@pytest.mark.spec("BATCH-14")
def test_the_same_text_twice_is_two_items(tmp_path: Path) -> None:
    with ModelServer() as server:
        world = BatchWorld(tmp_path, server.url, 0)
        world.write_items(["a", "b", "a"])
        world.run()
        assert [row["id"] for row in world.rows()] == [1, 2, 3]
        asked = sum(server.asked.values())
        world.write_items(["a", "c", "b", "a"])  # what is known is not asked again
        world.run()
        assert len(world.rows()) == 4
        assert sum(server.asked.values()) - asked == asked // 3


@pytest.mark.spec("BATCH-3", "BATCH-14")
def test_items_are_checked_before_anything_is_run(tmp_path: Path) -> None:
    with ModelServer() as server:
        world = BatchWorld(tmp_path, server.url, 0)
        path = tmp_path / "in.jsonl"
        path.write_text('"good"\n{"text": "no message"}\nnot json\n""\n17\n')
        done = world.run(status=1)
        for line in ("4 of 5 items", "line 2: it has no `message`", "line 3: it is not JSON",
                     "line 4: it is empty", "line 5: it is neither"):  # fmt: skip
            assert line in done.stderr, done.stderr
        world.write_items([{"id": 1, "message": "a"}, {"id": 1, "message": "b"}])
        done = world.run("--id-field", "id", status=1)
        assert "line 2: its id `1` is also that of line 1" in done.stderr
        assert not server.asked


def test_the_input_is_not_replaced_and_a_missing_card_is_one_error(tmp_path: Path) -> None:
    with ModelServer() as server:
        world = BatchWorld(tmp_path, server.url, 1)
        (tmp_path / "link.jsonl").symlink_to("in.jsonl")
        before = (tmp_path / "in.jsonl").read_text()
        for target in ("in.jsonl", "link.jsonl"):
            done = world.run("--output", target, status=1)
            assert f"`{target}` is the input, and the results would replace it" in done.stderr
        assert (tmp_path / "in.jsonl").read_text() == before
        done = world.run("--agent", "notre", status=1)
        assert "hint: did you mean `noter`?" in done.stderr, done.stderr
        for card in tmp_path.glob("*.md"):
            card.unlink()
        done = world.run(status=1)
        assert "1 error" in done.stderr
        assert "no agent" not in done.stderr
        assert not server.asked


@pytest.mark.spec("BATCH-8", "BATCH-15")
def test_csv_goes_in_and_out(tmp_path: Path) -> None:
    with ModelServer(lambda body: text_reply(body["messages"][-1]["content"].upper())) as server:
        world = BatchWorld(tmp_path, server.url, 0)
        (tmp_path / "in.csv").write_text('name,message\na,"one, two"\nb,three\n')
        options = ["--input", "in.csv", "--output", "out.csv", "--id-field", "name"]
        world.run(*options, "--include-input")
        lines = (tmp_path / "out.csv").read_text().splitlines()
        assert lines[0].startswith("id,input_name,input_message,ok,output,usage_input_tokens")
        assert lines[1].startswith('a,a,"one, two",true,"ONE, TWO",7,3,1,0,')
        assert lines[2].startswith("b,b,three,true,THREE,7,3,1,0,")


@pytest.mark.spec("BATCH-12")
def test_parquet_goes_in_and_out(tmp_path: Path) -> None:
    pyarrow: Any = pytest.importorskip("pyarrow")
    parquet: Any = pytest.importorskip("pyarrow.parquet")

    def reply(body: dict[str, Any]) -> Reply:
        text = body["messages"][-1]["content"]
        if text == "bad":
            return 400, {}, {"error": {"message": "no such thing", "type": "invalid"}}
        return text_reply(text.upper())

    with ModelServer(reply) as server:
        world = BatchWorld(tmp_path, server.url, 0)
        rows = {
            "name": ["a", "b", "c"],
            "message": ["one", "bad", "three"],
            "at": [date(2026, 11, number) for number in (1, 2, 3)],
            "of": [Decimal("1.50"), None, Decimal("2.25")],
        }
        parquet.write_table(pyarrow.table(rows), tmp_path / "in.parquet")
        options = ["--input", "in.parquet", "--output", "out.parquet", "--id-field", "name"]
        world.run(*options, "--include-input")
        found = parquet.read_table(tmp_path / "out.parquet").to_pylist()
        assert [row["id"] for row in found] == ["a", "b", "c"]
        assert [row["output"] for row in found] == ["ONE", None, "THREE"]
        assert [row["input_at"] for row in found] == ["2026-11-01", "2026-11-02", "2026-11-03"]
        assert [row["input_of"] for row in found] == ["1.50", None, "2.25"]
        assert "no such thing" in found[1]["error_message"]
        assert found[0]["usage_input_tokens"] == 7
        (tmp_path / "in.parquet").write_text("no parquet")
        done = world.run(*options, status=1)
        assert "in.parquet` cannot be read: it is not Parquet" in done.stderr


@pytest.mark.spec("BATCH-12")
def test_values_of_several_types_are_json_in_a_table(tmp_path: Path) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    write_rows(tmp_path / "out.parquet", [{"output": "a"}, {"output": 1}, {"output": None}])
    write_rows(tmp_path / "of.parquet", [{"output": 1}, {"output": 1.5}])
    assert parquet.read_table(tmp_path / "out.parquet").column(0).to_pylist() == ["a", "1", None]
    assert parquet.read_table(tmp_path / "of.parquet").column(0).to_pylist() == [1, 1.5]


@pytest.mark.spec("BATCH-9")
def test_a_part_of_the_items_is_taken(tmp_path: Path) -> None:
    with ModelServer(lambda _: text_reply("yes")) as server:
        world = BatchWorld(tmp_path, server.url, 20)
        world.run("--offset", "2", "--limit", "3")
        assert [row["id"] for row in world.rows()] == [3, 4, 5]
        world.run("--sample", "4", "--seed", "1")
        chosen = [row["id"] for row in world.rows()]
        assert len(chosen) == 4
        assert chosen == sorted(chosen)
        world.run("--sample", "4", "--seed", "1")
        assert [row["id"] for row in world.rows()] == chosen
        assert sum(server.asked.values()) <= 7


@pytest.mark.spec("BATCH-10")
def test_a_dry_run_estimates_and_asks_nothing(tmp_path: Path) -> None:
    with ModelServer() as server:
        world = BatchWorld(tmp_path, server.url, 100)
        done = world.run("--dry-run", "--format", "json")
        facts = json.loads(done.stdout)
        assert facts["items"] == 100
        assert facts["model"] == "generic.m"
        assert facts["cost_at_least"] > 0
        assert not server.asked
    assert not world.output.exists()


@pytest.mark.spec("BATCH-11")
def test_answers_have_the_form_of_a_schema(tmp_path: Path) -> None:
    with ModelServer(lambda _: text_reply('{"good": true}')) as server:
        world = BatchWorld(tmp_path, server.url, 2)
        schema = {"type": "object", "properties": {"good": {"type": "boolean"}},
                  "required": ["good"]}  # fmt: skip
        (tmp_path / "schema.json").write_text(json.dumps(schema))
        world.run("--json-schema", "schema.json")
        assert [row["output"] for row in world.rows()] == [{"good": True}] * 2


@pytest.mark.spec("RUN-7")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_what_is_under_way_and_loses_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    with ModelServer(seconds=0.05) as server:
        world = BatchWorld(tmp_path, server.url, 20)
        process = world.start("--concurrency", "3", "--quiet")
        wait_until(lambda: world.answered() >= 5)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 128 + number
        assert f"the batch was stopped by {number.name}" in errors
        assert sum(server.asked.values()) == world.answered() < 40
        world.run("--concurrency", "8", "--quiet")
        assert sum(server.asked.values()) == 40
    assert all(row["ok"] for row in world.rows())
    assert set(world.effects().values()) == {1}


@pytest.mark.spec("RUN-7")
def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    held = Event()
    with ModelServer(_held_until(held)) as server:
        world = BatchWorld(tmp_path, server.url, 8)
        process = world.start("--concurrency", "2")
        wait_until(lambda: sum(server.asked.values()) == world.answered() + 2 == 8)
        process.send_signal(signal.SIGTERM)
        assert "finishing the requests in progress" in _line_with(process, "finishing")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert process.returncode == 128 + signal.SIGTERM
        held.set()
        world.run("--quiet")
        assert world.answered() == 16
        assert sum(server.asked.values()) == 18  # the two that nobody has the answers of
    assert all(row["ok"] for row in world.rows())


def _line_with(process: subprocess.Popen[str], words: str) -> str:
    line = ""
    while words not in line:
        line = _line(process)
        assert line, "it ended without it"
    return line


@pytest.mark.spec("RUN-6")
def test_no_secret_is_kept(tmp_path: Path) -> None:
    with ModelServer(lambda _: text_reply("the key is sk-key-of-the-batch")) as server:
        world = BatchWorld(tmp_path, server.url, 1)
        world.run()
        store = world.store()
        data = b"".join(path.read_bytes() for path in store.parent.iterdir())
    assert b"sk-key-of-the-batch" not in data
    assert store.stat().st_mode & 0o777 == 0o600
