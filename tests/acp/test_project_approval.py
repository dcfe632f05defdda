"""The editor's person is asked about a project when one of its agents is first talked to."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from acp.schema import McpServerStdio
from tests.acp.editor_world import Editor, started, work
from tests.acp.raw_client import RawClient
from tests.hostile.canary import canary_server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.acp.editor_world import Connected

pytestmark = pytest.mark.anyio

CARDS = ".fast-agent/agent-cards"
TINY = Path(__file__).parents[1] / "mcp/servers/tiny.py"
CALL = "***CALL_TOOL mark {}"


def desk(place: Path) -> Path:
    """A project whose `lead` runs a function, whose `kid` has a shell, and whose `plain` talks."""
    project = work(place)
    write(project, "lead.md", "default: true", "function_tools: [tools.py:mark]")
    write(project, "kid.md", "shell: true")
    write(project, "plain.md")
    tools = "from pathlib import Path\n\ndef mark() -> str:\n"
    tools += f"    Path({str(place / 'acted')!r}).touch()\n    return 'marked'\n"
    (project / CARDS / "tools.py").write_text(tools)
    return project


def write(project: Path, name: str, *fields: str) -> None:
    path = project / CARDS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("---", "model: passthrough", *fields, "---", "Be brief.\n")))


def modes(session: Any) -> dict[str, str]:
    return {one.id: one.name for one in session.modes.available_modes}


def approvals(place: Path) -> list[dict[str, Any]]:
    path = place / "home/approvals.json"
    return json.loads(path.read_text())["approvals"] if path.exists() else []


def question(editor: Editor, number: int = 0) -> str:
    shown = editor.asked[number]["toolCall"]
    (content,) = shown["content"]
    return content["content"]["text"]


async def asked(editor: Editor, many: int = 1) -> None:
    with anyio.fail_after(60):
        while len(editor.asked) < many:
            await editor.came.wait()


@asynccontextmanager
async def at_work(
    place: Path, *options: str, choose: str | None
) -> AsyncGenerator[tuple[Connected, Editor]]:
    editor = Editor(choose=choose)
    async with started(place, "--no-session", *options, editor=editor) as there:
        yield there, editor


@pytest.mark.spec("TR-Q4.1a", "TR-Q4.1b", "TR-Q4.3a")
async def test_a_found_agent_is_a_mode_and_its_first_prompt_asks(tmp_path: Path) -> None:
    desk(tmp_path)
    async with at_work(tmp_path, choose="allow_once") as (there, editor):
        session = await there.open()
        assert modes(session) == {
            "plain": "plain",
            "lead": "lead (needs approval)",
            "kid": "kid (needs approval)",
        }
        assert session.modes.current_mode_id == "lead"
        assert editor.asked == []
        answered = await there.prompt(session.session_id, CALL)
        assert (answered.stop_reason, editor.said()) == ("end_turn", "marked")
        assert (tmp_path / "acted").exists()
        assert editor.asked[0]["options"] == [
            "Allow for this session",
            "Allow until it changes",
            "No",
        ]
        text = question(editor)
        assert "wants to act on this machine" in text
        assert f"any command the model chooses               `kid`, {CARDS}/kid.md:3" in text
        assert "tools.py" in text
        # One question covers the root: `kid` may act too.
        listed = editor.of("config_option_update")[-1]["configOptions"][0]["options"]
        assert [one["name"] for one in listed] == ["kid", "lead", "plain"]
        await there.agent.set_session_mode(session_id=session.session_id, mode_id="kid")
        await there.prompt(session.session_id, "hello")
        assert len(editor.asked) == 1
    assert approvals(tmp_path) == []


@pytest.mark.spec("TR-Q4.1b")
async def test_until_it_changes_is_kept_for_the_next_start(tmp_path: Path) -> None:
    desk(tmp_path)
    async with at_work(tmp_path, choose="allow_always") as (there, editor):
        session = await there.open()
        await there.prompt(session.session_id, CALL)
        assert editor.said() == "marked"
    assert [one["answer"] for one in approvals(tmp_path)] == ["approved"]
    async with at_work(tmp_path, choose=None) as (there, editor):
        session = await there.open()
        assert modes(session) == {"kid": "kid", "lead": "lead", "plain": "plain"}
        await there.prompt(session.session_id, CALL)
        assert (editor.said(), editor.asked) == ("marked", [])


@pytest.mark.spec("TR-Q4.2")
async def test_a_no_is_answered_with_what_is_missing_and_kept(tmp_path: Path) -> None:
    desk(tmp_path)
    async with at_work(tmp_path, choose="reject_always") as (there, editor):
        session = await there.open()
        answered = await there.prompt(session.session_id, CALL)
        said = editor.said()
        assert answered.stop_reason == "end_turn"
        assert "error[FA801]: `lead` of " in said
        assert "may not act yet; nothing was started\n  run " in said
        assert "FAST_AGENT_TRUST=sha256:" in said
        await there.prompt(session.session_id, CALL)
        await there.prompt(session.session_id, "#kid hello")
        assert editor.said().count("error[FA801]") == 3
        assert len(editor.asked) == 1
        # What has no effects is free all the same.
        await there.prompt(session.session_id, "#plain hello")
        assert editor.said().endswith("hello")
    assert not (tmp_path / "acted").exists()
    assert [one["answer"] for one in approvals(tmp_path)] == ["declined"]
    async with at_work(tmp_path, choose="allow_once") as (there, editor):
        session = await there.open()
        await there.prompt(session.session_id, CALL)
        assert editor.asked == []
        await there.prompt(session.session_id, "/trust yes")
        await there.prompt(session.session_id, CALL)
        assert editor.said().endswith("marked")


@pytest.mark.spec("TR-Q4.2")
async def test_a_dismissed_question_is_a_no_that_is_not_kept(tmp_path: Path) -> None:
    desk(tmp_path)
    async with at_work(tmp_path, choose=None) as (there, editor):
        session = await there.open()
        await there.prompt(session.session_id, CALL)
        assert "error[FA801]" in editor.said()
        assert not (tmp_path / "acted").exists()
        editor.choose = "allow_once"
        await there.prompt(session.session_id, CALL)
        assert editor.said().endswith("marked")
        assert len(editor.asked) == 2


@pytest.mark.spec("TR-Q4.2")
async def test_a_prompt_is_cancelled_while_its_question_is_open(tmp_path: Path) -> None:
    desk(tmp_path)
    async with at_work(tmp_path, choose="wait") as (there, editor):
        session = await there.open()
        prompt = asyncio.create_task(there.prompt(session.session_id, CALL))
        await asked(editor)
        await there.agent.cancel(session_id=session.session_id)
        assert (await prompt).stop_reason == "cancelled"
        editor.choose = "allow_once"
        await there.prompt(session.session_id, CALL)
        assert editor.said() == "marked"
    assert approvals(tmp_path) == []


@pytest.mark.spec("TR-Q4.2")
def test_an_editor_that_hangs_up_leaves_no_answer(tmp_path: Path) -> None:
    desk(tmp_path)
    with RawClient(tmp_path, "--no-session") as client:
        client.initialize()
        session = client.open()
        client.begin_prompt(1, session, CALL)
        while client.read().get("method") != "session/request_permission":
            pass
        status, _ = client.end()
    assert status == 0
    assert approvals(tmp_path) == []
    assert not (tmp_path / "acted").exists()


@pytest.mark.spec("TR-Q4.1b")
async def test_two_sessions_ask_once(tmp_path: Path) -> None:
    desk(tmp_path)
    release = anyio.Event()

    class Slow(Editor):
        async def request_permission(self, *args: Any, **more: Any) -> Any:
            done = await super().request_permission(*args, **more)
            await release.wait()
            return done

    editor = Slow(choose="allow_once")
    async with started(tmp_path, "--no-session", editor=editor) as there:
        first, second = await there.open(), await there.open()
        prompts = [
            asyncio.create_task(there.prompt(one.session_id, CALL)) for one in (first, second)
        ]
        await asked(editor)
        # A third session answers meanwhile, and by that everything before it was taken.
        third = await there.open()
        await there.prompt(third.session_id, "#plain hello")
        release.set()
        assert [(await one).stop_reason for one in prompts] == ["end_turn", "end_turn"]
        assert len(editor.asked) == 1
        answers = [one for one in editor.of("agent_message_chunk") if "marked" in str(one)]
        assert {one["sessionId"] for one in answers} == {first.session_id, second.session_id}


@pytest.mark.spec("TR-Q4.1b")
async def test_what_changed_while_the_question_was_open_is_asked_about_again(
    tmp_path: Path,
) -> None:
    project = desk(tmp_path)

    class Pulling(Editor):
        async def request_permission(self, *args: Any, **more: Any) -> Any:
            if not self.asked:
                tools = project / CARDS / "tools.py"
                tools.write_text(tools.read_text().replace("marked", "changed"))
            else:
                self.choose = "reject_always"
            return await super().request_permission(*args, **more)

    editor = Pulling(choose="allow_always")
    async with started(tmp_path, "--no-session", editor=editor) as there:
        session = await there.open()
        await there.prompt(session.session_id, CALL)
        assert len(editor.asked) == 2
        assert "changed since" in question(editor, 1)
        assert "kid" not in question(editor, 1)
        assert "error[FA801]" in editor.said()
    assert not (tmp_path / "acted").exists()


@pytest.mark.spec("TR-Q4.1b")
async def test_servers_and_settings_of_the_project_come_with_the_answer(tmp_path: Path) -> None:
    project = work(tmp_path)
    write(project, "lead.md", "servers: [tiny]")
    write(project, "plain.md", "default: true")
    (project / "tiny.py").write_text(TINY.read_text())
    (project / "fastagent.config.yaml").write_text(
        "model_aliases: {mine: passthrough}\n"
        "openai: {base_url: http://127.0.0.1:9/v1}\n"
        f"mcp: {{servers: {{tiny: {{command: {sys.executable}, args: [tiny.py, once]}}}}}}\n"
    )
    async with at_work(tmp_path, choose="allow_once") as (there, editor):
        session = await there.open()
        assert session.modes.current_mode_id == "plain"
        await there.prompt(session.session_id, "before")
        assert editor.asked == []
        await there.prompt(session.session_id, '#lead ***CALL_TOOL tiny__add {"a": 1, "b": 2}')
        assert editor.said().endswith("3")
        # The agent that was talked to before remembers.
        await there.prompt(session.session_id, "/history")
        assert "before" in editor.said().rpartition("3")[2]


@pytest.mark.spec("TR-Q4.3b")
async def test_the_directory_of_a_session_is_only_a_place(tmp_path: Path) -> None:
    project = desk(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with at_work(elsewhere, choose="allow_once") as (there, editor):
        session = await there.agent.new_session(cwd=str(project))
        assert modes(session) == {"agent": "agent"}
        assert editor.asked == []


@pytest.mark.spec("TR-Q4.1a")
async def test_agents_that_wait_are_listed_and_chosen_by_commands(tmp_path: Path) -> None:
    desk(tmp_path)
    async with at_work(tmp_path, "--agent", "plain", choose="allow_once") as (there, editor):
        session = await there.open()
        await there.prompt(session.session_id, "/agents")
        assert "`kid`: agent; needs approval" in editor.said()
        await there.prompt(session.session_id, "@lead")
        assert editor.asked == []
        await there.prompt(session.session_id, CALL)
        assert editor.said().endswith("marked")


@pytest.mark.spec("TR-Q4.1b")
async def test_tools_that_are_meant_for_an_agent_wait_with_it(tmp_path: Path) -> None:
    project = work(tmp_path)
    write(project, "lead.md", "shell: true")
    tool = project / ".fast-agent/tool-cards/helper.md"
    tool.parent.mkdir()
    tool.write_text("---\nmodel: passthrough\ntool_only: true\n---\nHelp.\n")
    async with at_work(tmp_path, choose="allow_once") as (there, editor):
        session = await there.open()
        assert modes(session) == {"lead": "lead (needs approval)"}
        call = '***CALL_TOOL agent__helper {"message": "hello"}'
        await there.prompt(session.session_id, call)
        assert editor.said() == "hello"


@pytest.mark.spec("TR-Q4.1a", "TR-F2.1a")
async def test_a_card_of_a_typed_address_waits_too(tmp_path: Path) -> None:
    with canary_server() as canary:
        page = "---\nmodel: passthrough\n---\n{{url:" + canary.url + "/page}}\n"
        canary.answers["/ann.md"] = page
        async with at_work(tmp_path, choose="allow_once") as (there, editor):
            session = await there.open()
            await there.prompt(session.session_id, f"/card {canary.url}/ann.md")
            assert "`ann` is left out: it would connect" in editor.said()
            assert (len(canary.heard), editor.asked) == (1, [])
            await there.prompt(session.session_id, "#ann hello")
            assert editor.said().endswith("hello")
            assert f"`{canary.url}/ann.md` wants to act" in question(editor)
            assert [one.split()[1] for one in canary.heard] == ["/ann.md", "/page"]


@pytest.mark.spec("TR-E.use-servers", "TR-Q4.1b")
async def test_servers_of_the_editor_reach_found_agents_once_that_is_allowed(
    tmp_path: Path,
) -> None:
    project = work(tmp_path)
    write(project, "lead.md", "default: true")
    write(project, "kid.md", "tool_only: true")
    given = tmp_path / "own.md"
    given.write_text("---\nmodel: passthrough\n---\nHi.\n")
    server = McpServerStdio(name="tiny", command=sys.executable, args=[str(TINY), "once"], env=[])
    call = '***CALL_TOOL tiny__add {"a": 1, "b": 2}'
    async with at_work(tmp_path, "--card", str(given), choose=None) as (there, editor):
        alone = await there.open()
        session = await there.open(mcp_servers=[server])
        assert modes(alone) == {"own": "own", "lead": "lead"}
        assert modes(session) == {"own": "own", "lead": "lead (needs approval)"}
        # Without servers it is as free as before, and the given agent has them unasked.
        await there.prompt(alone.session_id, "#lead hello")
        await there.prompt(session.session_id, f"#own {call}")
        assert editor.said() == "hello3"
        assert editor.asked == []
        await there.prompt(session.session_id, f"#lead {call}")
        assert "error[FA801]: `lead` of " in editor.said()
        assert "use      server `tiny` of the editor reaches agent `lead`" in question(editor)
        assert "`kid`" not in question(editor)
        editor.choose = "allow_always"
        await there.prompt(session.session_id, f"#lead {call}")
        assert editor.said().endswith("3")
        other = await there.open(mcp_servers=[server])
        assert modes(other) == {"own": "own", "lead": "lead"}
        await there.prompt(other.session_id, f"#lead {call}")
        assert editor.said().endswith("33")
        assert len(editor.asked) == 2
    async with at_work(tmp_path, choose=None) as (there, editor):
        session = await there.open(mcp_servers=[server])
        await there.prompt(session.session_id, call)
        assert (editor.said(), editor.asked) == ("3", [])
        another = McpServerStdio(name="other", command="true", args=[], env=[])
        session = await there.open(mcp_servers=[server, another])
        await there.prompt(session.session_id, call)
        assert "server `other` of the editor" in question(editor)
        assert "server `tiny`" not in question(editor)


@pytest.mark.spec("TR-F6.1a")
async def test_a_found_server_gives_way_to_one_of_the_editor(tmp_path: Path) -> None:
    project = work(tmp_path)
    given = tmp_path / "own.md"
    given.write_text("---\nmodel: passthrough\n---\nHi.\n")
    (project / "fastagent.config.yaml").write_text(
        "mcp: {servers: {tiny: {command: 'false'}, other: {command: 'false'}}}\n"
    )
    server = McpServerStdio(name="tiny", command=sys.executable, args=[str(TINY), "once"], env=[])
    options = ("--trust", "--card", str(given))
    async with at_work(tmp_path, *options, choose=None) as (there, editor):
        session = await there.open(mcp_servers=[server])
        await there.prompt(session.session_id, '***CALL_TOOL tiny__add {"a": 1, "b": 2}')
        assert editor.said() == "3"
        assert "server `tiny` of " in editor.said("agent_thought_chunk")
        assert "is left out: something you gave" in editor.said("agent_thought_chunk")


@pytest.mark.spec("TR-F6.1a")
async def test_a_found_agent_takes_no_name_of_a_command(tmp_path: Path) -> None:
    write(work(tmp_path), "trust.md", "default: true")
    async with at_work(tmp_path, choose=None) as (there, editor):
        session = await there.open()
        await there.prompt(session.session_id, "/trust")
        assert editor.said() == "nothing here waits for your approval"
