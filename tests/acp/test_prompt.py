"""Prompts: what the client learns of a turn, and how it ends."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import pytest
from acp import RequestError, embedded_text_resource, image_block, resource_block, text_block
from tests.acp.editor_world import connected, write_card

from fast_agent.messages.history import check_validity
from fast_agent.messages.message import EmbeddedResource, ImageContent, TextContent
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()


def script(place: Path, text: str) -> str:
    path = place / "script.yaml"
    path.write_text(text, "utf-8")
    return f"scripted?file={path}"


@pytest.mark.spec("ACP-4")
async def test_an_answer_is_streamed(tmp_path: Path) -> None:
    async with connected(tmp_path) as there:
        session = await there.open()
        ended = await there.prompt(session.session_id, "hello")
        assert ended.stop_reason == "end_turn"
        assert ended.usage.total_tokens > 0
        assert there.editor.said() == "hello"


@pytest.mark.spec("ACP-4")
async def test_pieces_and_thoughts_come_apart(tmp_path: Path) -> None:
    model = script(
        tmp_path, "steps:\n  - thinking: hm\n    pieces: [one, ' two']\n  - text: last\n"
    )
    async with connected(tmp_path, model=model) as there:
        session = await there.open()
        await there.prompt(session.session_id, "go")
        texts = [one["content"]["text"] for one in there.editor.of("agent_message_chunk")]
        assert texts == ["one", " two"]
        assert there.editor.said("agent_thought_chunk") == "hm"


@pytest.mark.spec("ACP-5")
async def test_tool_calls_are_shown_with_kind_place_and_result(tmp_path: Path) -> None:
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards/tools.py").write_text(
        "def read_notes(path: str, line: int = 1) -> str:\n    return f'notes of {path}'\n"
        "def delete_all() -> str:\n    raise ValueError('no')\n"
    )
    card = write_card(
        tmp_path, "a.md", "name: a", "function_tools: [tools.py:read_notes, tools.py:delete_all]"
    )
    async with connected(tmp_path, card) as there:
        session = await there.open()
        text = '***CALL_TOOL read_notes {"path": "notes/a.md", "line": 7}\n***CALL_TOOL delete_all'
        await there.prompt(session.session_id, text)
        begun = {one["title"]: one for one in there.editor.of("tool_call")}
        read, delete = begun["read_notes"], begun["delete_all"]
        assert (read["title"], read["kind"], read["status"]) == (
            "read_notes",
            "read",
            "in_progress",
        )
        assert read["locations"] == [{"path": str(there.cwd / "notes/a.md"), "line": 7}]
        assert read["rawInput"] == {"path": "notes/a.md", "line": 7}
        assert delete["kind"] == "delete"
        ended = {one["toolCallId"]: one for one in there.editor.of("tool_call_update")}
        done, failed = ended[read["toolCallId"]], ended[delete["toolCallId"]]
        assert done["status"] == "completed"
        assert done["content"][0]["content"]["text"] == "notes of notes/a.md"
        assert failed["status"] == "failed"


@pytest.mark.spec("ACP-5")
async def test_a_call_of_a_missing_tool_is_shown_as_failed(tmp_path: Path) -> None:
    async with connected(tmp_path) as there:
        session = await there.open()
        await there.prompt(session.session_id, "***CALL_TOOL nowhere")
        assert there.editor.of("tool_call")[0]["title"] == "nowhere"
        assert there.editor.of("tool_call_update")[0]["status"] == "failed"


@pytest.mark.spec("ACP-6")
async def test_what_agents_below_do_is_shown_and_told_apart(tmp_path: Path) -> None:
    cards = (
        write_card(tmp_path, "boss.md", "name: boss", "default: true", "agents: [clerk]"),
        write_card(tmp_path, "clerk.md", "name: clerk", "tool_only: true", "resource_tools: true"),
    )
    model = script(
        tmp_path,
        """
agents:
  boss:
    - calls: [{name: agent__clerk, arguments: {message: look}},
              {name: agent__clerk, arguments: {message: look}}]
    - text: done
  clerk:
    - {calls: [{name: nothing, arguments: {}}], repeat: 2}
    - {text: seen, repeat: 2}
""",
    )
    async with connected(tmp_path, *cards, model=model) as there:
        session = await there.open()
        await there.prompt(session.session_id, "go")
        assert there.editor.said() == "done"
        calls = there.editor.of("tool_call")
        assert sorted(call["title"] for call in calls) == [
            "agent__clerk",
            "agent__clerk",
            "nothing",
            "nothing",
        ]
        ids = [call["toolCallId"] for call in calls]
        assert len(set(ids)) == len(ids)
        ended = [one["toolCallId"] for one in there.editor.of("tool_call_update")]
        assert sorted(ended) == sorted(ids)


@pytest.mark.spec("ACP-6")
async def test_parts_of_a_workflow_are_calls_and_its_answer_is_said(tmp_path: Path) -> None:
    cards = (
        write_card(tmp_path, "line.md", "name: line", "type: chain", "default: true",
                   "sequence: [first, second]", "continue_with_final: false"),
        write_card(tmp_path, "first.md", "name: first"),
        write_card(tmp_path, "second.md", "name: second"),
    )  # fmt: skip
    async with connected(tmp_path, *cards) as there:
        session = await there.open()
        await there.prompt(session.session_id, "hello")
        assert there.editor.said() == "hello"
        assert [one["title"] for one in there.editor.of("tool_call")] == ["first", "second"]
        ended = [one for one in there.editor.of("tool_call_update") if "status" in one]
        assert [one["status"] for one in ended] == ["completed", "completed"]
        assert ended[0]["content"][0]["content"]["text"] == "hello"


@pytest.mark.spec("ACP-7")
async def test_a_plan_is_reported_and_kept_up_to_date(tmp_path: Path) -> None:
    cards = (
        write_card(tmp_path, "boss.md", "name: boss", "type: orchestrator", "default: true",
                   "agents: [mason]"),
        write_card(tmp_path, "mason.md", "name: mason"),
    )  # fmt: skip
    steps = [
        {"description": "s", "tasks": [{"agent": "mason", "description": f"lay {what}"}]}
        for what in ("one", "two")
    ]
    plan = json.dumps({"steps": steps})
    model = script(
        tmp_path,
        f"""
agents:
  boss:
    - text: '{plan}'
    - text: built
  mason:
    - text: laid
    - fail: no bricks
    - text: laid
""",
    )
    async with connected(tmp_path, *cards, model=model) as there:
        session = await there.open()
        with suppress(RequestError):  # the script ends early; the plan is what is looked at
            await there.prompt(session.session_id, "build")
        plans = there.editor.of("plan")
        first = [(one["content"], one["status"]) for one in plans[0]["entries"]]
        assert first == [("mason: lay one", "pending"), ("mason: lay two", "pending")]
        assert plans[1]["entries"][0]["status"] == "in_progress"
        assert plans[2]["entries"][0]["status"] == "completed"
        assert plans[4]["entries"][1]["content"] == "mason: lay two (failed)"


@pytest.mark.spec("ACP-8")
async def test_pictures_and_resources_reach_the_agent(tmp_path: Path) -> None:
    async with connected(tmp_path) as there:
        session = await there.open()
        await there.agent.prompt(
            session_id=session.session_id,
            prompt=[
                text_block("what is this?"),
                image_block(PICTURE, "image/png"),
                resource_block(
                    embedded_text_resource("file:///a.txt", "inside", mime_type="text/plain")
                ),
            ],
        )
        _, state = SessionStore(there.home).read(session.session_id)
        said = (state.history("agent") or [])[0].content
        assert said[0] == TextContent("what is this?")
        assert said[1] == ImageContent(PICTURE, "image/png")
        assert isinstance(said[2], EmbeddedResource)
        assert (said[2].uri, said[2].text) == ("file:///a.txt", "inside")


@pytest.mark.spec("ACP-9")
async def test_a_cancelled_turn_ends_so_and_leaves_a_valid_history(tmp_path: Path) -> None:
    async with connected(tmp_path, model="slow?seconds=600", shell=True) as there:
        session = await there.open()
        ended: list[str] = []

        async def ask() -> None:
            ended.append((await there.prompt(session.session_id, "hello")).stop_reason)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await there.begun(session.session_id)
            await there.agent.cancel(session_id=session.session_id)
        assert ended == ["cancelled"]
        _, state = SessionStore(there.home).read(session.session_id)
        history = state.history("agent") or []
        assert [one.role for one in history] == ["user", "assistant"]
        assert check_validity(history) == []


@pytest.mark.spec("ACP-9")
async def test_cancelling_ends_open_calls_and_the_session_goes_on(tmp_path: Path) -> None:
    async with connected(tmp_path, shell=True) as there:
        session = await there.open()

        async def ask() -> None:
            text = '***CALL_TOOL execute {"command": "sleep 600"}'
            assert (await there.prompt(session.session_id, text)).stop_reason == "cancelled"

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await there.editor.until("tool_call_update")
            await there.agent.cancel(session_id=session.session_id)
        call = there.editor.of("tool_call")[0]
        last = there.editor.of("tool_call_update")[-1]
        assert (last["toolCallId"], last["status"]) == (call["toolCallId"], "failed")
        assert (await there.prompt(session.session_id, "hello")).stop_reason == "end_turn"
        _, state = SessionStore(there.home).read(session.session_id)
        assert check_validity(state.history("agent") or []) == []


@pytest.mark.spec("ACP-10")
async def test_a_second_prompt_at_once_is_refused(tmp_path: Path) -> None:
    async with connected(tmp_path, model="slow?seconds=600") as there:
        sessions = [(await there.open()).session_id for _ in range(2)]

        async with anyio.create_task_group() as tasks:
            for session in sessions:
                tasks.start_soon(there.prompt, session, "hello")
            await there.begun(*sessions)
            with pytest.raises(RequestError, match="is answering a prompt"):
                await there.prompt(sessions[0], "me too")
            for session in sessions:
                await there.agent.cancel(session_id=session)


@pytest.mark.spec("ACP-11")
async def test_a_turn_that_fails_is_an_error_and_the_session_goes_on(tmp_path: Path) -> None:
    model = script(
        tmp_path, "steps:\n  - fail: {message: no bricks, hint: buy some}\n  - text: ok\n"
    )
    async with connected(tmp_path, model=model) as there:
        session = await there.open()
        with pytest.raises(RequestError, match="no bricks") as raised:
            await there.prompt(session.session_id, "build")
        assert raised.value.data == {"hint": "buy some"}
        assert (await there.prompt(session.session_id, "again")).stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("reason", "message"),
    [("maxTokens", "max_tokens"), ("refusal", "refusal"), ("stopSequence", "end_turn")],
)
async def test_why_a_turn_ended(tmp_path: Path, reason: str, message: str) -> None:
    model = script(tmp_path, f"steps:\n  - text: so far\n    stop_reason: {reason}\n")
    async with connected(tmp_path, model=model) as there:
        session = await there.open()
        assert (await there.prompt(session.session_id, "go")).stop_reason == message


async def test_a_prompt_of_nothing_is_refused(tmp_path: Path) -> None:
    async with connected(tmp_path) as there:
        session = await there.open()
        with pytest.raises(RequestError, match="holds no blocks"):
            await there.agent.prompt(session_id=session.session_id, prompt=[])
