from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.workflows.scripted_world import Play, World, agents, card

from fast_agent.agents.events import (
    ChildFinished,
    ChildStarted,
    Origin,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
    TurnStarted,
    WorkflowAdvanced,
)
from fast_agent.messages.message import Message, TextContent, ToolCall, ToolResult
from fast_agent.models.script import Call, Fail
from fast_agent.tui.drawing.activity import MAX_ROWS, Activity
from fast_agent.tui.drawing.rows import plain, width
from fast_agent.tui.drawing.theme import Theme

if TYPE_CHECKING:
    from fast_agent.agents.events import Event
    from fast_agent.text.json_value import JsonObject

TOP = Origin("ann", "t1", None)


def activity(columns: int = 80) -> Activity:
    return Activity(Theme(), lambda: 100.0, lambda: columns)


def start(found: Activity, number: int, *, shown: int = 99) -> ToolCall:
    call = ToolCall(f"c{number}", "agent__critic", {"message": f"read {number}"})
    found.take(ToolStarted(TOP, call, "agent", None))
    found.take(ChildStarted(TOP, call.id, "critic", number, shown))
    found.take(TurnStarted(Origin("critic", f"child{number}", call.id), Message.user("x")))
    return call


@pytest.mark.spec("T-W3.1", "T-W1.1")
@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_children_are_a_tree(columns: int) -> None:
    found = activity(columns)
    found.take(TurnStarted(TOP, Message.user("go")))
    start(found, 1)
    start(found, 2)
    inner = ToolCall("c1", "read_file", {"path": "draft.md"})
    found.take(ToolStarted(Origin("critic", "child2", "c2"), inner, "function", None))
    found.take(ToolProgressed(Origin("critic", "child2", "c2"), "c1", 3, 10, "fetching"))
    rows = [plain(row) for row in found.rows(columns)]
    assert len(rows) == 3
    assert all(width(row) <= columns for row in rows)
    assert "critic" in rows[0]
    assert "critic[2]" in rows[1]
    assert rows[2].lstrip().startswith("├─")
    if columns >= 80:
        assert "read_file" in rows[2]
        assert "3/10 fetching" in rows[2]
    result = ToolResult("c1", (TextContent("fine"),))
    done = found.take(ToolFinished(Origin("critic", "child2", "c2"), inner, result))
    assert len(done) == 1
    assert plain(done[0]).startswith("   ✓ read_file")
    assert len(found.rows(columns)) == 2


@pytest.mark.spec("T-W3.2")
def test_at_most_eight_rows() -> None:
    found = activity()
    found.take(TurnStarted(TOP, Message.user("go")))
    calls = [start(found, number) for number in range(1, 21)]
    found.take(ToolFinished(TOP, calls[0], ToolResult("c1", (TextContent("ok"),))))
    failed = ToolResult("c2", (TextContent("one\ntwo\nthree\nfour"),), is_error=True)
    found.take(ToolFinished(TOP, calls[1], failed))
    rows = [plain(row) for row in found.rows(80)]
    assert len(rows) == MAX_ROWS
    assert rows[-1].strip() == "+11 at work, 1 done, 1 failed"


@pytest.mark.spec("T-W3.3", "T-W1.2")
def test_instances_beyond_those_shown_say_nothing_unless_they_fail() -> None:
    found = activity()
    found.take(TurnStarted(TOP, Message.user("go")))
    calls = [start(found, number, shown=1) for number in (1, 2, 3)]
    results = [
        found.take(ToolFinished(TOP, call, ToolResult(call.id, (TextContent("a\nb\nc\nd"),),
                                                      is_error=number == 2)))
        for number, call in enumerate(calls)
    ]  # fmt: skip
    assert [len(lines) for lines in results] == [1, 0, 4]  # an error shows three lines
    found.take(ChildFinished(TOP, "c3", "critic", 3, "it failed"))


@pytest.mark.anyio
@pytest.mark.spec("T-W4.1")
async def test_each_step_of_a_workflow_is_a_line() -> None:
    found = activity()
    lines: list[str] = []
    world = World({"one": [Call("nothing"), "first"], "two": ["second"]})
    chain = card("line", "chain", sequence=("one", "two"))

    def hear(event: Event) -> None:
        lines.extend(found.take(event))

    async with world.runtime(chain, *agents(("one", "two")), listener=hear) as runtime:
        await runtime.agent("line").generate("go")
    texts = [plain(line) for line in lines]
    assert any("✗ nothing" in text for text in texts)
    assert any("→" in text and "`one` answered: first" in text for text in texts)
    assert any("→" in text and "`two` answered: second" in text for text in texts)
    assert found.rows(80) == []


@pytest.mark.spec("T-W4.1")
def test_a_long_answer_of_a_step_is_one_row() -> None:
    found = activity()
    found.take(TurnStarted(TOP, Message.user("go")))
    facts = {"number": 1, "of": 2, "agent": "one", "text": "word " * 90}
    (row,) = found.take(WorkflowAdvanced(TOP, "step", facts))
    assert width(row) == 80
    facts = {"round": 1, "rating": "poor", "feedback": "word " * 90}
    rows = [plain(row) for row in found.take(WorkflowAdvanced(TOP, "rating", facts))]
    assert len(rows) > 5
    assert all(width(row) <= 80 for row in rows)
    assert all(row.startswith("   word") for row in rows[1:])


PLAN = """{"steps": [
{"description": "find", "tasks": [
    {"agent": "one", "description": "read it"}, {"agent": "two", "description": "count it"}]},
{"description": "write", "tasks": [{"agent": "one", "description": "write it"}]}]}"""
AGAIN = """{"steps": [{"description": "write", "tasks": [
    {"agent": "two", "description": "write it shorter"}]}]}"""


@pytest.mark.anyio
@pytest.mark.spec("T-W4.2")
async def test_a_plan_is_a_checklist_in_place() -> None:
    found = activity()
    frames: list[list[str]] = []
    lines: list[str] = []
    answers: dict[str, Play] = {
        "lead": [PLAN, AGAIN, "all done"],
        "one": ["it is read", Fail("gone")],
        "two": ["it is counted", "it is short"],
    }
    world = World(answers)
    lead = card("lead", "orchestrator", agents=("one", "two"))

    def hear(event: Event) -> None:
        taken = [plain(line) for line in found.take(event)]
        lines.extend(taken)
        if isinstance(event, WorkflowAdvanced):
            assert taken == []
            frames.append([plain(row).split("   ")[0] for row in found.rows(80)])

    async with world.runtime(lead, *agents(("one", "two")), listener=hear) as runtime:
        await runtime.agent("lead").generate("go")
    assert frames[0] == [" ○ one read it", " ○ two count it", " ○ one write it"]
    assert any(frame[:3] == [" ✓ one read it", " ✓ two count it", " ◐ one write it"]
               for frame in frames)  # fmt: skip
    assert " ○ two write it shorter" in frames[-3]
    assert lines[-4:] == [
        " ✓ one read it", " ✓ two count it", " ✗ one write it", " ✓ two write it shorter"
    ]  # fmt: skip
    assert found.rows(80) == []


@pytest.mark.spec("T-W4.2")
def test_a_long_plan_shows_what_is_left() -> None:
    found = activity()
    found.take(TurnStarted(TOP, Message.user("go")))
    tasks = [{"agent": "one", "description": f"task {number}"} for number in range(20)]
    steps: JsonObject = {"number": 1, "steps": [{"description": "all", "tasks": tasks}]}
    found.take(WorkflowAdvanced(TOP, "plan", steps))
    for number in range(18):
        for status in ("started", "done"):
            done: JsonObject = {**tasks[number], "plan": 1, "status": status}
            found.take(WorkflowAdvanced(TOP, "task", done))
    rows = [plain(row) for row in found.rows(80)]
    assert rows == [" … 18 ended, 2 to do", " ○ one task 18", " ○ one task 19"]


@pytest.mark.anyio
@pytest.mark.spec("T-W4.2")
async def test_a_vote_is_one_bar() -> None:
    found = activity()
    bars: list[str] = []
    lines: list[str] = []
    world = World({"judge": ["7", "8", "", "7", "7"]})
    voter = card("vote", "MAKER", worker="judge", k=2)

    def hear(event: Event) -> None:
        lines.extend(plain(line) for line in found.take(event))
        if isinstance(event, WorkflowAdvanced):
            bars.append(plain(found.rows(80)[0]))

    async with world.runtime(voter, *agents(("judge",)), listener=hear) as runtime:
        await runtime.agent("vote").generate("go")
    assert bars[0] == " 7 1 · ahead by 1 of 2"
    assert bars[-1] == " 7 3 · 8 1 · flagged 1 · ahead by 2 of 2"
    assert lines[-1] == bars[-1]
    assert found.rows(80) == []
