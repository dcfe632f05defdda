"""Modes, slash commands, and cards that change while sessions are open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from acp import RequestError
from tests.acp.editor_world import Connected, connected, started, write_card

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


def names(options: Any) -> list[str]:
    return [option["value"] for option in options[0]["options"]]


@pytest.mark.spec("ACP-2")
async def test_modes_are_the_agents_that_are_not_tool_only(tmp_path: Path) -> None:
    cards = (
        write_card(tmp_path, "a.md", "name: a", "description: writes"),
        write_card(tmp_path, "b.md", "name: b", "default: true"),
        write_card(tmp_path, "c.md", "name: c", "tool_only: true"),
    )
    async with connected(tmp_path, *cards) as there:
        session = await there.open()
        modes = session.modes
        assert modes.current_mode_id == "b"
        assert [(one.id, one.name, one.description) for one in modes.available_modes] == [
            ("a", "a", "writes"),
            ("b", "b", None),
        ]
        option = session.config_options[0]
        assert (option.category, option.current_value) == ("mode", "b")
        assert [one.value for one in option.options] == ["a", "b"]


@pytest.mark.spec("ACP-2")
async def test_a_mode_is_chosen_either_way(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(
        "agents:\n  a: [{text: I am a, repeat: 2}]\n  b: [{text: I am b}]\n"
    )
    cards = (write_card(tmp_path, "a.md", "name: a"), write_card(tmp_path, "b.md", "name: b"))
    model = f"scripted?file={tmp_path}/script.yaml"
    async with connected(tmp_path, *cards, model=model) as there:
        session = (await there.open()).session_id
        await there.prompt(session, "who?")
        await there.agent.set_session_mode(session_id=session, mode_id="b")
        await there.editor.until("current_mode_update")
        await there.prompt(session, "who?")
        changed = await there.agent.set_config_option(
            session_id=session, config_id="agent", value="a"
        )
        assert changed.config_options[0].current_value == "a"
        await there.prompt(session, "who?")
        assert there.editor.said() == "I am aI am bI am a"
        for wrong in ("c", ""):
            with pytest.raises(RequestError, match="there is no mode"):
                await there.agent.set_session_mode(session_id=session, mode_id=wrong)
        with pytest.raises(RequestError, match="there is no option"):
            await there.agent.set_config_option(session_id=session, config_id="x", value="a")


@pytest.mark.spec("ACP-2")
async def test_a_chain_hands_on_to_its_last_agent(tmp_path: Path) -> None:
    cards = (
        write_card(
            tmp_path, "line.md", "name: line", "type: chain", "default: true", "sequence: [x, y]"
        ),
        write_card(tmp_path, "x.md", "name: x"),
        write_card(tmp_path, "y.md", "name: y"),
    )
    async with connected(tmp_path, *cards) as there:
        session = await there.open()
        await there.prompt(session.session_id, "hello")
        assert there.editor.of("current_mode_update")[0]["currentModeId"] == "y"


@pytest.mark.spec("ACP-3")
async def test_slash_commands_are_advertised_and_run(tmp_path: Path) -> None:
    async with connected(tmp_path) as there:
        session = await there.open()
        update = (await there.editor.until("available_commands_update"))[0]
        offered = {one["name"]: one for one in update["availableCommands"]}
        assert {"help", "agents", "agent", "card", "reload", "usage"} <= offered.keys()
        assert "exit" not in offered
        assert offered["card"]["input"] == {"hint": "PATH|URL [--tool]"}
        assert offered["agents"]["description"] == "list the agents"
        await there.prompt(session.session_id, "/agents")
        assert "`agent`" in there.editor.said()


@pytest.mark.spec("ACP-3")
async def test_a_command_that_is_none_is_reported_and_a_path_is_a_message(tmp_path: Path) -> None:
    async with connected(tmp_path) as there:
        session = (await there.open()).session_id
        await there.prompt(session, "/agnets")
        assert "did you mean `/agents`?" in there.editor.said()
        await there.prompt(session, "/session new")
        assert "does not know `new`" in there.editor.said()
        await there.prompt(session, "/etc/hosts holds what?")
        assert there.editor.said().endswith("/etc/hosts holds what?")


@pytest.mark.spec("ACP-12")
async def test_a_card_is_loaded_into_all_open_sessions(tmp_path: Path) -> None:
    async with connected(tmp_path) as there:
        session, other = (await there.open()).session_id, (await there.open()).session_id
        (there.cwd / "more.md").write_text("---\nname: more\n---\nBe brief.\n")
        await there.prompt(session, "/card more.md")
        assert "loaded `more`" in there.editor.said()
        with anyio.fail_after(60):
            while not _lists_more(there, session) or not _lists_more(there, other):
                await there.editor.came.wait()
        await there.agent.set_session_mode(session_id=other, mode_id="more")


def _lists_more(there: Connected, session: str) -> bool:
    return any(
        one["sessionId"] == session and "more" in names(one["configOptions"])
        for one in there.editor.of("config_option_update")
    )


@pytest.mark.spec("ACP-12")
async def test_an_agent_becomes_a_tool(tmp_path: Path) -> None:
    cards = (
        write_card(tmp_path, "a.md", "name: a", "default: true"),
        write_card(tmp_path, "b.md", "name: b"),
    )
    async with connected(tmp_path, *cards) as there:
        session = (await there.open()).session_id
        await there.prompt(session, "/agent b --tool")
        await there.prompt(session, '***CALL_TOOL agent__b {"message": "deep"}')
        assert there.editor.of("tool_call_update")[-1]["status"] == "completed"
        assert there.editor.said().endswith("deep")


@pytest.mark.spec("ACP-12")
async def test_changed_cards_are_taken_by_reload(tmp_path: Path) -> None:
    card = write_card(tmp_path, "a.md", "name: a", "description: old")
    async with connected(tmp_path, card) as there:
        session = (await there.open()).session_id
        write_card(tmp_path, "a.md", "name: a", "description: new and longer")
        await there.prompt(session, "/reload")
        assert "AgentCards reloaded: +0 ~1 -0" in there.editor.said()
        option = (await there.editor.until("config_option_update"))[-1]["configOptions"][0]
        assert option["options"][0]["description"] == "new and longer"


@pytest.mark.spec("ACP-3")
async def test_a_called_agent_answers_once(tmp_path: Path) -> None:
    cards = (
        write_card(tmp_path, "a.md", "name: a", "default: true"),
        write_card(tmp_path, "b.md", "name: b"),
    )
    async with connected(tmp_path, *cards) as there:
        session = (await there.open()).session_id
        await there.prompt(session, "/call b the only answer")
        assert there.editor.said().count("the only answer") == 1


@pytest.mark.spec("ACP-12")
async def test_a_reload_is_refused_until_the_card_is_right(tmp_path: Path) -> None:
    card = write_card(tmp_path, "a.md", "name: a", "description: old")
    async with connected(tmp_path, card) as there:
        session = (await there.open()).session_id
        write_card(tmp_path, "a.md", "name: a", "descriptoin: new")
        for times in (1, 2, 3):
            await there.prompt(session, "/reload")
            assert there.editor.said().count("did you mean `description`?") == times
        await there.prompt(session, "still here")
        assert there.editor.said().endswith("still here")
        write_card(tmp_path, "a.md", "name: a", "description: newest")
        await there.prompt(session, "/reload")
        assert "AgentCards reloaded: +0 ~1 -0" in there.editor.said()


@pytest.mark.spec("ACP-12")
async def test_watched_cards_refresh_the_list_in_place(tmp_path: Path) -> None:
    write_card(tmp_path, "a.md", "name: a", "default: true")
    async with connected(tmp_path, str(tmp_path / "cards"), watch=True) as there:
        session = (await there.open()).session_id
        await there.prompt(session, "first")
        write_card(tmp_path, "b.md", "name: b")
        update = (await there.editor.until("config_option_update"))[-1]
        assert names(update["configOptions"]) == ["a", "b"]
        await there.agent.set_session_mode(session_id=session, mode_id="b")
        await anyio.Path(tmp_path / "cards/b.md").unlink()
        with anyio.fail_after(60):
            while there.editor.of("current_mode_update")[-1:] != [
                {"sessionId": session, "sessionUpdate": "current_mode_update", "currentModeId": "a"}
            ]:
                await there.editor.came.wait()
        await there.prompt(session, "second")
        assert "AgentCards reloaded: +0 ~0 -1" in there.editor.said("agent_thought_chunk")
        assert there.editor.said() == "firstsecond"


@pytest.mark.spec("ACP-12")
async def test_broken_cards_leave_the_agents_as_they_were(tmp_path: Path) -> None:
    write_card(tmp_path, "a.md", "name: a")
    async with connected(tmp_path, str(tmp_path / "cards")) as there:
        session = (await there.open()).session_id
        write_card(tmp_path, "a.md", "name: a", "modle: nothing")
        await there.prompt(session, "/reload")
        assert "AgentCards not reloaded" in there.editor.said()
        await there.prompt(session, "hello")
        assert there.editor.said().endswith("hello")


@pytest.mark.spec("ACP-2")
async def test_models_that_can_answer_are_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    cards = (
        write_card(tmp_path, "a.md", "name: a", "model: passthrough", "default: true"),
        write_card(tmp_path, "b.md", "name: b", "model: slow"),
        write_card(tmp_path, "line.md", "name: line", "type: chain", "sequence: [a]"),
    )
    async with started(tmp_path, *(word for card in cards for word in ("--card", card))) as there:
        session = await there.open()
        option = session.config_options[1]
        assert (option.category, option.current_value) == ("model", "passthrough")
        offered = [one.value for one in option.options]
        assert offered[:4] == ["default", "passthrough", "slow", "sonnet"]
        assert "gpt" not in offered, "there is no key of its provider"

        async def choose(value: str, option: str = "model") -> list[Any]:
            changed = await there.agent.set_config_option(
                session_id=session.session_id, config_id=option, value=value
            )
            return [(one.id, one.current_value) for one in changed.config_options]

        assert await choose("playback") == [("agent", "a"), ("model", "playback")]
        assert await choose("default") == [("agent", "a"), ("model", "passthrough")]
        with pytest.raises(RequestError, match="playbck"):
            await choose("playbck")
        await there.prompt(session.session_id, "/model playback")
        update = there.editor.of("config_option_update")[-1]
        assert update["configOptions"][1]["currentValue"] == "playback"
        assert await choose("line", "agent") == [("agent", "line")], "a chain uses no model"
        with pytest.raises(RequestError, match="no agent with a model"):
            await choose("sonnet")
