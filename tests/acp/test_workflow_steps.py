"""What workflows decide on the way, as an editor sees it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.acp.editor_world import connected, write_card

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acp.editor_world import Connected

pytestmark = pytest.mark.anyio


def script(place: Path, **answers: list[str]) -> str:
    """A model that gives each agent's answers in order."""
    path = place / "script.yaml"
    agents = {name: [{"text": text} for text in texts] for name, texts in answers.items()}
    path.write_text(json.dumps({"agents": agents}), "utf-8")
    return f"scripted?file={path}"


def titles(there: Connected) -> list[tuple[str, str]]:
    """The calls with the titles they have in the end, and how they ended."""
    found: dict[str, tuple[str, str]] = {}
    for one in there.editor.updates:
        if one["sessionUpdate"] == "tool_call":
            found[one["toolCallId"]] = one["title"], one["status"]
        elif one["sessionUpdate"] == "tool_call_update":
            title, status = found[one["toolCallId"]]
            found[one["toolCallId"]] = one.get("title", title), one.get("status", status)
    return list(found.values())


@pytest.mark.spec("ACP-24")
async def test_steps_of_a_chain_are_numbered_in_the_titles_of_their_calls(tmp_path: Path) -> None:
    cards = (
        write_card(tmp_path, "line.md", "name: line", "type: chain", "default: true",
                   "sequence: [first, second, first]"),
        write_card(tmp_path, "first.md", "name: first"),
        write_card(tmp_path, "second.md", "name: second"),
    )  # fmt: skip
    async with connected(tmp_path, *cards) as there:
        session = await there.open()
        await there.prompt(session.session_id, "hello")
        assert titles(there) == [
            ("step 1 of 3: first", "completed"),
            ("step 2 of 3: second", "completed"),
            ("step 3 of 3: first", "completed"),
        ]
        assert there.editor.of("agent_thought_chunk") == []


@pytest.mark.spec("ACP-24")
async def test_a_route_and_ratings_are_thoughts_in_one_line_each(tmp_path: Path) -> None:
    cards = (
        write_card(tmp_path, "desk.md", "name: desk", "type: router", "default: true",
                   "agents: [writing, critic]"),
        write_card(tmp_path, "writing.md", "name: writing", "type: evaluator_optimizer",
                   "generator: writer", "evaluator: critic", "min_rating: GOOD"),
        write_card(tmp_path, "writer.md", "name: writer"),
        write_card(tmp_path, "critic.md", "name: critic"),
    )  # fmt: skip
    route = {"agent": "writing", "confidence": "high", "reasoning": "it is\na \u202etext"}
    poor = {"rating": "POOR", "feedback": "dull", "needs_improvement": True, "focus_areas": ["x"]}
    good = {**poor, "rating": "GOOD", "feedback": "better", "needs_improvement": False}
    model = script(
        tmp_path,
        desk=[json.dumps(route)],
        writer=["one", "two"],
        critic=[json.dumps(poor), json.dumps(good)],
    )
    async with connected(tmp_path, *cards, model=model) as there:
        session = await there.open()
        await there.prompt(session.session_id, "write")
        assert there.editor.said("agent_thought_chunk").splitlines() == [
            "desk: goes to `writing` (high confidence): it is a <U+202E>text",
            "writing: round 1 is POOR: dull",
            "writing: round 2 is GOOD: better",
        ]
        assert there.editor.said() == "two"


@pytest.mark.spec("ACP-24")
async def test_votes_are_thoughts(tmp_path: Path) -> None:
    cards = (
        write_card(tmp_path, "sure.md", "name: sure", "type: MAKER", "default: true",
                   "worker: voter", "k: 2", "max_samples: 5"),
        write_card(tmp_path, "voter.md", "name: voter"),
    )  # fmt: skip
    async with connected(tmp_path, *cards) as there:
        session = await there.open()
        await there.prompt(session.session_id, "yes")
        thoughts = there.editor.said("agent_thought_chunk").splitlines()
        assert thoughts[-1] == "sure: draw 2 says `yes`, which has 2 votes and is 2 ahead"


@pytest.mark.spec("ACP-6")
async def test_nothing_is_reported_of_a_workflow_that_is_not_shown(tmp_path: Path) -> None:
    cards = (
        write_card(tmp_path, "boss.md", "name: boss", "default: true", "agents: [line]",
                   "max_display_instances: 1"),
        write_card(tmp_path, "line.md", "name: line", "type: chain", "sequence: [part]",
                   "tool_only: true"),
        write_card(tmp_path, "part.md", "name: part", "tool_only: true"),
    )  # fmt: skip
    call = {"name": "agent__line", "arguments": {"message": "go"}}
    play = {"boss": [{"calls": [call, call]}, {"text": "done"}], "part": [{"text": "ok"}] * 2}
    path = tmp_path / "script.yaml"
    path.write_text(json.dumps({"agents": play}), "utf-8")
    async with connected(tmp_path, *cards, model=f"scripted?file={path}") as there:
        session = await there.open()
        await there.prompt(session.session_id, "go")
        assert there.editor.said() == "done"
        assert sorted(titles(there)) == [
            ("agent__line", "completed"),
            ("agent__line", "completed"),
            ("step 1 of 1: part", "completed"),
        ]
