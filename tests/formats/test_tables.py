"""Tables of borders: tools, models, variables, lines that are not YAML, configurations."""

from __future__ import annotations

import pytest

from fast_agent.formats.draft import card_model
from fast_agent.formats.importing import add_servers
from fast_agent.formats.loose import read_head, read_lines, split_names
from fast_agent.formats.servers import Server, server_name, variables
from fast_agent.formats.tools import Tool, UnsupportedTool, ability_of


@pytest.mark.spec("FMT-6")
@pytest.mark.parametrize(
    ("name", "family", "abilities"),
    [
        ("Read", "claude", {"read"}),
        ("MultiEdit", "claude", {"read", "write"}),
        ("Bash", "claude", {"shell"}),
        ("Bash(git *)", "claude", {"shell"}),
        ("WebFetch", "claude", {"fetch"}),
        ("AskUserQuestion", "claude", {"ask"}),
        ("search/codebase", "copilot", {"read"}),
        ("edit/editFiles", "copilot", {"read", "write"}),
        ("execute/runInTerminal", "copilot", {"shell"}),
        ("web/fetch", "copilot", {"fetch"}),
        ("read_file", "gemini", {"read"}),
        ("run_shell_command", "gemini", {"shell"}),
        ("*", "copilot", {"read", "write", "shell", "fetch"}),
    ],
)
def test_tools_that_cards_have(name: str, family: str, abilities: set[str]) -> None:
    tool = ability_of(name, family)
    assert isinstance(tool, Tool)
    assert tool.abilities == abilities
    assert (tool.note is not None) == ("(" in name)


@pytest.mark.spec("FMT-6")
@pytest.mark.parametrize(
    ("name", "family", "server", "pattern"),
    [
        ("mcp__docs__search", "claude", "docs", "search"),
        ("mcp__docs", "claude", "docs", "*"),
        ("mcp__my_docs__read_all", "claude", "my_docs", "read_all"),
        ("docs/*", "copilot", "docs", "*"),
        ("io.github.x/docs/read", "copilot", "docs", "read"),
        ("mcp_docs_read_all", "gemini", "docs", "read_all"),
    ],
)
def test_tools_of_servers(name: str, family: str, server: str, pattern: str) -> None:
    tool = ability_of(name, family)
    assert isinstance(tool, Tool)
    assert (tool.server, tool.pattern) == (server, pattern)


def test_tools_that_call_agents() -> None:
    assert ability_of("Agent(a, b c)", "claude") == Tool(agents=("a", "b c"))
    assert ability_of("Task", "claude") == Tool(agents=("*",))
    assert ability_of("agent/runSubagent", "copilot") == Tool(agents=("*",))


@pytest.mark.parametrize("name", ["WebSearch", "TodoWrite", "ExitPlanMode", "no such tool", ""])
def test_tools_that_cards_do_not_have(name: str) -> None:
    assert isinstance(ability_of(name, "claude"), UnsupportedTool)


@pytest.mark.spec("FMT-8")
@pytest.mark.parametrize(
    ("name", "effort", "spec"),
    [
        ("sonnet", None, "sonnet"),
        ("inherit", None, None),
        ("Auto", None, None),
        ("claude-sonnet-4-5-20250929", None, "claude-sonnet-4-5-20250929"),
        ("Claude Sonnet 4.5 (copilot)", None, "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4-0", None, "anthropic.claude-sonnet-4-0"),
        ("openrouter/x/y", None, "openrouter.x/y"),
        ("google-vertex/gemini-2.5-pro", None, "vertex.gemini-2.5-pro"),
        ("vertex_ai/gemini-2.5-pro", None, "vertex.gemini-2.5-pro"),
        ("gemini/gemini-2.5-pro", None, "google.gemini-2.5-pro"),
        ("amazon-bedrock/us.x.y", None, "bedrock.us.x.y"),
        ("huggingface/a/b", None, "hf.a/b"),
        ("github-copilot/gpt-5", None, "gpt-5"),
        ("gpt-5", "high", "gpt-5.high"),
        ("gpt-5", "strange", "gpt-5"),
        ("opus[1m]", None, "opus?context=1m"),
        ("anthropic/claude-sonnet-4-5[1m]", "high", "anthropic.claude-sonnet-4-5.high?context=1m"),
        ("gpt[1m]", None, None),
        ("who/knows", None, None),
        ("", None, None),
    ],
)
def test_models(name: str, effort: str | None, spec: str | None) -> None:
    found = card_model(name, effort)
    assert found.spec == spec
    assert (found.problem is not None) == (name in {"gpt[1m]", "who/knows", ""})
    assert found.has_effort == (effort != "strange")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("${TOKEN}", "${TOKEN:}"),
        ("Bearer ${env:TOKEN}", "Bearer ${TOKEN:}"),
        ("Bearer ${env.TOKEN}", "Bearer ${TOKEN:}"),
        ("${A:-b}", "${A:b}"),
        ("{env:KEY}", "${KEY:}"),
        ("${input:api-key}", "${API_KEY:}"),
        ("$COPILOT_MCP_KEY", "${COPILOT_MCP_KEY:}"),
        ("${{ secrets.KEY }}", "${KEY:}"),
        ("costs 5 $", "costs 5 $"),
        ("plain", "plain"),
    ],
)
def test_variables(text: str, written: str) -> None:
    assert variables(text) == written


def test_names_of_servers() -> None:
    assert server_name("My Docs__x") == "My-Docs_x"
    assert server_name("//") == "server"


def test_names_with_commas() -> None:
    text = 'Read, Bash(git log, ls), "Edit", Agent(a,b)'
    assert split_names(text) == ["Read", "Bash(git log, ls)", "Edit", "Agent(a,b)"]
    assert split_names("[a, 'b']") == ["a", "b"]
    assert split_names(" , ") == []


def test_lines_that_are_not_yaml() -> None:
    text = (
        "name: one\ndescription: Use when: x\n  and more\nlist: [a, b]\nnumber: 3\nempty:\n"
        'tools:\n  - a: b: c\n  - d\nname: two\nquoted: "a: b"\nblock: |\n  line\n'
    )
    assert read_lines(text) == {
        "name": "two",
        "description": "Use when: x and more",
        "list": ["a", "b"],
        "number": 3,
        "empty": None,
        "tools": ["a: b: c", "d"],
        "quoted": "a: b",
        "block": "line",
    }


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\na: b\n---\nx\n", "x\n"),
        ("\n---\na: b\n--- \nx", "x"),
        ("---\na: b\n\n# x\n", "\n# x\n"),
        ("---\n---\nx", "x"),
    ],
)
def test_heads(text: str, body: str) -> None:
    head = read_head(text)
    assert head is not None
    assert head.body == body


@pytest.mark.parametrize("text", ["# x\n", "", "---\n- a\n---\n", "--- x\n"])
def test_no_heads(text: str) -> None:
    assert read_head(text) is None


@pytest.mark.spec("FMT-10")
@pytest.mark.parametrize(
    ("text", "start"),
    [
        (None, "mcp:\n  servers:\n    a:"),
        ("# only\n", "# only\n\nmcp:\n"),
        ("x: 1", "x: 1\n\nmcp:"),
        ("mcp:\n    servers:\n        b: {command: c}\nx: 1\n", "mcp:\n    servers:\n        a:"),
    ],
)
def test_servers_are_added(text: str | None, start: str) -> None:
    added = add_servers(text, [Server("a", {"command": "run"})])
    assert added.text is not None
    assert added.text.startswith(start)
    assert added.added == ("a",)


def test_servers_that_cannot_be_added() -> None:
    added = add_servers("mcp: {servers: {b: {command: c}}}\n", [Server("a", {"command": "run"})])
    assert added.text is None
    assert "command: run" in added.block
