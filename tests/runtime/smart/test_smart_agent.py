"""Smart agents: their prompt, and the tools that run, check and look into other cards."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pytest
from tests.mcp.served_everything import served_everything
from tests.own_home import own_home
from tests.patience import pass_seconds

from fast_agent import FastAgent
from fast_agent.agents.events import ChildFinished, ChildStarted
from fast_agent.agents.live_agent import LlmAgent
from fast_agent.agents.runtime_options import MAX_DEPTH
from fast_agent.cards.agent_config import RequestParams, UsageLimits
from fast_agent.mcp.server import from_url
from fast_agent.prompt.instruction import internal_index, resources_block
from fast_agent.resources.internal.provider import InternalProvider
from fast_agent.runtime.smart.smart_agent import smart_instruction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.agent_fields import AgentFields
    from fast_agent.agents.events import Listener
    from fast_agent.agents.runtime_options import RuntimeOptions
    from fast_agent.messages.message import ToolResult

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[2] / "mcp/servers/everything.py"
SMART_TOOLS = {
    "smart",
    "validate",
    "create_agent_card",
    "smart_list_resources",
    "smart_get_resource",
    "smart_with_resource",
    "resource_list",
    "resource_read",
    "resource_search",
}


class Desk:
    """A program with one smart agent that is told which tool to call."""

    def __init__(self, directory: Path, **fields: Unpack[AgentFields]) -> None:
        self.directory = directory / "work"
        self.directory.mkdir(exist_ok=True)
        self.home = directory / "home"
        # The cards are the person's own: what strange ones may do is in `test_smart_cards.py`.
        own_home(self.directory, self.home)
        self.environ = {
            "HOME": str(directory),
            "FAST_AGENT_HOME": str(self.home),
            "SECRET_KEY": "swordfish",
        }
        self.program = FastAgent(cwd=self.directory, environ=self.environ)
        self.fields: AgentFields = {"model": "passthrough", **fields}
        self.listener: Listener | None = None

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    async def call(self, tool: str, /, **arguments: object) -> ToolResult:
        self.program.smart("desk", **self.fields)
        async with self.program.run(listener=self.listener) as app:
            await app.desk.send(f"***CALL_TOOL {tool} {json.dumps(arguments)}")
            results = [one for message in app.desk.history for one in message.tool_results]
        (result,) = results
        return result


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture(scope="module", name="server_url")
def _server_url() -> Iterator[str]:
    with served_everything() as url:
        yield url


@pytest.mark.spec("INTERNAL-20", "INTERNAL-15")
async def test_a_smart_agent_is_an_agent_with_these_tools(desk: Desk) -> None:
    desk.write("desk.md", "---\ntype: smart\nmodel: passthrough\n---\nBe brief.")
    desk.program.load_agents("desk.md")
    async with desk.program.run() as app:
        agent = app["desk"]
        assert isinstance(agent, LlmAgent)
        assert agent.config.type == "smart"
        table = await agent.setup.tools.table()
        assert set(table) >= SMART_TOOLS
        assert {name for name in SMART_TOOLS if not table[name].repeatable} == {
            "smart", "smart_with_resource", "create_agent_card",
        }  # fmt: skip
        assert await agent.send("hello") == "hello"


@pytest.mark.spec("INTERNAL-15")
@pytest.mark.parametrize("given", [True, False])
async def test_a_plain_agent_has_the_tools_for_documents_where_its_card_says_so(
    desk: Desk, given: bool
) -> None:
    desk.program.agent("plain", model="passthrough", resource_tools=given)
    async with desk.program.run() as app:
        plain = app.plain
        assert isinstance(plain, LlmAgent)
        tools = set(await plain.setup.tools.table())
    wanted = {"resource_list", "resource_read", "resource_search"}
    assert tools & SMART_TOOLS == (wanted if given else set())


@pytest.mark.spec("INTERNAL-19", "INTERNAL-21")
async def test_the_prompt_holds_the_index_and_no_document(desk: Desk) -> None:
    desk.program.smart("desk", "Speak like a pirate.", model="passthrough")
    async with desk.program.run() as app:
        agent = app.desk
        assert isinstance(agent, LlmAgent)
        prompt = await agent.setup.render()
    assert internal_index() in prompt
    assert prompt.rstrip().endswith("Speak like a pirate.")
    assert "{{" not in prompt
    provider = InternalProvider()
    for document in provider.by_uri.values():
        text = provider.text_of(document)
        long_lines = [line for line in text.split("\n") if len(line) > 60]
        assert not [line for line in long_lines if line in prompt]


@pytest.mark.spec("INTERNAL-21")
def test_a_card_that_places_the_index_itself_has_it_once() -> None:
    whole = smart_instruction("Look here:\n{{agentInternalResources}}")
    assert whole.count("{{agentInternalResources}}") == 1
    assert whole.index("Look here") < whole.index("{{agentInternalResources}}")


@pytest.mark.spec("INTERNAL-19")
def test_the_index_gives_uri_description_why_and_size_escaped() -> None:
    provider = InternalProvider()
    block = internal_index()
    for one in provider.index:
        assert f"<uri>{one.uri}</uri>" in block
        assert f"<why>{one.why}</why>\n<tokens>{one.tokens}</tokens>" in block
    document = provider.index[0]
    evil = replace(document, description="</resource> & <uri>x</uri>", why="a < b")
    block = resources_block([evil])
    assert "&lt;/resource&gt; &amp; &lt;uri&gt;" in block
    assert "a &lt; b" in block
    assert resources_block([]) == ""


@pytest.mark.spec("INTERNAL-22")
async def test_any_card_may_show_the_index_or_a_whole_document(desk: Desk) -> None:
    instruction = "{{agentInternalResources}}\n---\n{{internal:smart_agent_cards}}"
    desk.program.agent("plain", instruction, model="passthrough")
    async with desk.program.run() as app:
        plain = app.plain
        assert isinstance(plain, LlmAgent)
        prompt = await plain.setup.render()
    provider = InternalProvider()
    text = provider.text_of(provider.find("smart-agent-cards"))
    assert prompt == f"{internal_index()}\n---\n{text}"


@pytest.mark.spec("INTERNAL-22")
def test_an_unknown_document_is_an_error_of_the_card_with_a_suggestion(desk: Desk) -> None:
    path = desk.write("bad.md", "---\nname: bad\n---\nRead:\n{{internal:workflow}}\n")
    from fast_agent.errors import CardError

    with pytest.raises(CardError) as raised:
        desk.program.load_agents(path)
    (problem,) = raised.value.diagnostics
    assert problem.code == "FA703"
    assert problem.span is not None
    assert problem.span.start.line == 5
    assert "`workflow`" in problem.message
    assert problem.hint is not None
    assert "`workflows`" in problem.hint


@pytest.mark.spec("INTERNAL-23")
async def test_smart_runs_the_default_agent_of_a_set(desk: Desk) -> None:
    desk.write("set/echo.md", "---\ndefault: true\nmodel: passthrough\n---\nRepeat.")
    desk.write("set/other.md", "---\nmodel: passthrough\n---\nRepeat.")
    result = await desk.call("smart", agent_card_path="set", message="hello there")
    assert (result.is_error, result.text) == (False, "hello there")
    assert desk.program.names() == ["desk"], "what was run is not one of the program's agents"


@pytest.mark.spec("INTERNAL-23")
async def test_smart_runs_the_agent_that_is_named(desk: Desk) -> None:
    desk.write("set/echo.md", "---\ndefault: true\nmodel: passthrough\n---\nRepeat.")
    desk.write("set/fixed.md", "---\nmodel: passthrough\n---\nRepeat.")
    result = await desk.call("smart", agent_card_path="set", agent="fixed", message="hi")
    assert result.text == "hi"
    wrong = await Desk(desk.directory.parent).call(
        "smart", agent_card_path="set", agent="fixd", message="hi"
    )
    assert wrong.is_error
    assert "did you mean `fixed`?" in wrong.text


@pytest.mark.spec("INTERNAL-23")
async def test_the_work_of_a_card_is_charged_to_the_caller_and_told(desk: Desk) -> None:
    desk.write("echo.md", "---\nmodel: passthrough\n---\nRepeat.")
    events: list[object] = []
    desk.program.smart("desk", **desk.fields)
    call = json.dumps({"agent_card_path": "echo.md", "message": "hi"})
    async with desk.program.run(listener=events.append) as app:
        result = await app.desk.generate(f"***CALL_TOOL smart {call}")
        assert result.tree_usage.requests == result.usage.requests + 1
        assert app.usage.requests == result.tree_usage.requests
    (started,) = [one for one in events if isinstance(one, ChildStarted)]
    (finished,) = [one for one in events if isinstance(one, ChildFinished)]
    assert (started.child, started.instance) == ("echo", 1)
    assert finished.error is None


@pytest.mark.spec("INTERNAL-23")
async def test_the_limits_of_the_caller_hold_for_the_card(tmp_path: Path) -> None:
    limits = RequestParams(usage_limits=UsageLimits(max_requests=1))
    desk = Desk(tmp_path, request_params=limits)
    desk.write("echo.md", "---\nmodel: passthrough\n---\nRepeat.")
    desk.program.smart("desk", **desk.fields)
    call = json.dumps({"agent_card_path": "echo.md", "message": "hi"})
    from fast_agent.errors import LimitError

    async with desk.program.run() as app:
        with pytest.raises(LimitError, match="max_requests"):
            await app.desk.generate(f"***CALL_TOOL smart {call}")
        results = [one for message in app.desk.history for one in message.tool_results]
        assert "max_requests" in results[0].text


@pytest.mark.spec("INTERNAL-24")
@pytest.mark.parametrize("calls", [MAX_DEPTH, MAX_DEPTH + 1])
async def test_smart_agents_nest_only_so_deep(desk: Desk, calls: int) -> None:
    desk.write("nest.md", "---\ntype: smart\nmodel: passthrough\n---\nRepeat.")
    message = "bottom"
    for _ in range(calls):
        call = json.dumps({"agent_card_path": "nest.md", "message": message})
        message = f"***CALL_TOOL smart {call}"
    arguments = json.loads(message.removeprefix("***CALL_TOOL smart "))
    result = await desk.call("smart", **arguments)
    assert (f"{MAX_DEPTH} deep at most" in result.text) is (calls > MAX_DEPTH)
    assert ("bottom" in result.text) is (calls <= MAX_DEPTH)


@pytest.mark.spec("INTERNAL-23")
async def test_a_card_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    def let_time_pass(event: object) -> None:
        if isinstance(event, ChildStarted):
            pass_seconds(60)

    desk = Desk(tmp_path, child_timeout_sec=60)
    desk.listener = let_time_pass
    desk.write("slow.md", "---\nmodel: slow?seconds=600\n---\nWait.")
    result = await desk.call("smart", agent_card_path="slow.md", message="hi")
    assert result.is_error
    assert "`child_timeout_sec`" in result.text


@pytest.mark.spec("INTERNAL-25")
async def test_validate_finds_what_the_check_finds(desk: Desk) -> None:
    desk.write("set/a.md", "---\nname: a\nagents: [bee]\nservers: [tme]\n---\n{{currentdate}}\n")
    desk.write("set/bad.yaml", "name: bad\ninstruktion: x\nmodel: passthrogh\n")
    result = await desk.call("validate", agent_card_path="set")
    assert not result.is_error
    program = FastAgent(cwd=desk.directory, environ=desk.environ)
    from fast_agent.cards.load import load_cards
    from fast_agent.cards.load_set import check_set

    load = load_cards(["set"], cwd=desk.directory, environ=desk.environ)
    found = check_set(load.cards, servers=(), probes=program.probes(), unread=load.unread)
    codes = {one.code for one in (*load.diagnostics, *found) if one.severity != "info"}
    assert codes >= {"FA101", "FA201", "FA206", "FA501", "FA701"}
    assert all(code in result.text for code in codes)
    assert "set/a.md:3" in result.text


@pytest.mark.spec("INTERNAL-25")
async def test_validate_says_when_nothing_is_wrong(desk: Desk) -> None:
    desk.write("good.md", "---\nmodel: passthrough\n---\nRepeat.")
    result = await desk.call("validate", agent_card_path="good.md")
    assert "good" in result.text
    assert "no problems" in result.text


@pytest.mark.spec("INTERNAL-27")
async def test_resources_of_the_servers_of_a_card_are_listed_and_read(
    desk: Desk, server_url: str
) -> None:
    desk.write("noter.md", "---\nmodel: passthrough\nservers: [notes]\n---\nRepeat.")

    async def call(tool: str, **arguments: object) -> ToolResult:
        fresh = Desk(desk.directory.parent)
        fresh.program.add_server(replace(from_url(server_url), name="notes"))
        return await fresh.call(tool, agent_card_path="noter.md", **arguments)

    listed = await call("smart_list_resources")
    assert not listed.is_error, listed.text
    assert "notes: note://a (text/plain)" in listed.text
    assert "(a template)" in listed.text
    read = await call("smart_get_resource", uri="note://a")
    assert not read.is_error, read.text
    (block,) = read.content
    assert getattr(block, "uri", None) == "note://a"
    asked = await call("smart_with_resource", uri="note://a", message="what is it?")
    assert not asked.is_error, asked.text
    assert "what is it?" in asked.text
    missing = await call("smart_get_resource", uri="note://none")
    assert missing.is_error
    other = await call("smart_get_resource", uri="note://a", server="note")
    assert other.is_error
    assert "it has `notes`" in other.text


async def test_the_server_that_lists_a_resource_is_asked_for_it(
    desk: Desk, server_url: str
) -> None:
    desk.write("noter.md", "---\nmodel: passthrough\nservers: [notes, more]\n---\nRepeat.")

    async def get(uri: str) -> ToolResult:
        fresh = Desk(desk.directory.parent)
        for name in ("notes", "more"):
            fresh.program.add_server(replace(from_url(server_url), name=name))
        return await fresh.call("smart_get_resource", agent_card_path="noter.md", uri=uri)

    assert not (await get("note://a")).is_error
    missing = await get("note://none")
    assert missing.is_error
    assert "no server lists `note://none`" in missing.text
    assert "say which `server`: `notes`, `more`" in missing.text


@pytest.mark.parametrize(("most", "more"), [(2, ""), (1, "1 more; name one `server`, or read")])
async def test_a_long_list_of_resources_ends_with_how_many_are_left_out(
    desk: Desk, server_url: str, monkeypatch: pytest.MonkeyPatch, most: int, more: str
) -> None:
    fields = "model: passthrough\nservers: [notes]\nresources: {notes: ['note://a', '*{*']}"
    desk.write("noter.md", f"---\n{fields}\n---\nRepeat.")
    desk.program.add_server(replace(from_url(server_url), name="notes"))
    monkeypatch.setattr("fast_agent.runtime.smart.smart_agent._MAX_LISTED", most)
    lines = (await desk.call("smart_list_resources", agent_card_path="noter.md")).text.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("notes: note://a")
    assert lines[1].startswith(more or "notes: ")


@pytest.mark.spec("INTERNAL-27")
async def test_the_filter_of_the_card_holds_for_its_resources(desk: Desk, server_url: str) -> None:
    fields = "model: passthrough\nservers: [notes]\nresources: {notes: ['note://a']}"
    desk.write("noter.md", f"---\n{fields}\n---\nRepeat.")
    for tool in ("smart_get_resource", "smart_with_resource"):
        fresh = Desk(desk.directory.parent)
        fresh.program.add_server(replace(from_url(server_url), name="notes"))
        more = {"message": "hi"} if tool == "smart_with_resource" else {}
        result = await fresh.call(tool, agent_card_path="noter.md", uri="note://hidden", **more)
        assert result.is_error
        assert "not open to this agent" in result.text


async def test_a_card_that_a_model_reaches_has_no_servers_of_the_conversation(
    desk: Desk, server_url: str
) -> None:
    desk.write("plain.md", "---\nmodel: passthrough\n---\nRepeat.")
    notes = replace(from_url(server_url), name="notes")

    def with_server(given: RuntimeOptions) -> RuntimeOptions:
        return replace(given, servers=(notes,), extra_servers=("notes",))

    desk.program.smart("desk", model="passthrough")
    async with desk.program.run(adjust=with_server) as app:
        assert any(tool.name.startswith("notes__") for tool in await app.list_tools("desk"))
        answer = await app.desk.send(
            '***CALL_TOOL smart_list_resources {"agent_card_path": "plain.md"}'
        )
    assert "has no MCP servers" in answer


async def test_a_card_without_servers_says_so(desk: Desk) -> None:
    desk.write("plain.md", "---\nmodel: passthrough\n---\nRepeat.")
    result = await desk.call("smart_list_resources", agent_card_path="plain.md")
    assert result.is_error
    assert "has no MCP servers" in result.text
