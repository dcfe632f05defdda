"""Importing whole projects: everything read, everything accounted for, everything checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.foreign_samples import COUNT, write_samples

from fast_agent.cards.load import load_cards
from fast_agent.cards.load_set import check_set
from fast_agent.cards.placeholder import parse_template
from fast_agent.errors import CardError
from fast_agent.formats.foreign import unaccounted
from fast_agent.formats.importing import Import, plan_import, write_import


def imported(root: Path, choice: str = "files") -> tuple[Import, Path]:
    output = root / "project" / ".fast-agent" / "agent-cards"
    assert choice in {"none", "files", "all"}
    tools = "files" if choice == "files" else "all" if choice == "all" else "none"
    plan = plan_import([root / "project"], output, choice=tools, cwd=root / "project")
    return plan, output


def agent(root: Path, text: str, place: str = ".claude/agents/one.md") -> Import:
    path = root / "project" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return imported(root)[0]


def codes(plan: Import) -> set[str]:
    return {one.code for one in plan.diagnostics()}


@pytest.mark.spec("FMT-1", "FMT-2", "FMT-3")
def test_forty_files_of_each_format(tmp_path: Path) -> None:
    samples = write_samples(tmp_path / "project")
    plan, output = imported(tmp_path)
    by_path = {Path(one.file.path): one.file for one in plan.files}
    for kind, paths in samples.items():
        assert len(paths) >= COUNT or kind == "mcp"
        for path in paths:
            file = by_path.pop(path)
            assert file.format == kind
            assert unaccounted(file) == [], path
            assert not [note for note in file.notes if note.rule == "FA835"], path
    assert by_path == {}
    written = write_import(plan, force=False)
    assert len(written) == len(plan.cards) + 1
    load = load_cards([output], environ={})
    names = {"docs"}
    problems = [*load.diagnostics, *check_set(load.cards, servers=names)]
    assert [one for one in problems if one.severity == "error"] == []
    assert len(load.cards) == len(plan.cards)
    located = [one for one in plan.diagnostics() if one.span is None]
    assert located == []


@pytest.mark.spec("FMT-5")
@pytest.mark.parametrize(
    "body",
    [
        "{{currentDate}}",
        "\\{{env}} and {{{{x}}}} and {{{y}}}",
        "${HOME} $${X}",
        "first\n\n---USER\nhello\n---ASSISTANT\nyes",
        "---SYSTEM\nx",
        "a\n---\ntype: agent\n---\nb",
        "```\n---USER\n```",
        "one\r\ntwo",
        "---",
    ],
)
def test_text_stays_text(tmp_path: Path, body: str) -> None:
    plan = agent(tmp_path, f"---\nname: one\ndescription: d ${{HOME}}\ntools: Read\n---\n{body}\n")
    write_import(plan, force=False)
    load = load_cards([plan.output], environ={}, multi_card=True)
    assert [one for one in load.diagnostics if one.severity == "error"] == []
    (card,) = load.cards
    template = parse_template(card.config.instruction or "")
    assert template.segments == (body.replace("\r\n", "\n"),)
    assert card.config.description == "d ${HOME}"


@pytest.mark.spec("FMT-4")
def test_frontmatter_that_is_not_yaml(tmp_path: Path) -> None:
    text = (
        "---\nname: one\ndescription: Use when: <example>user: 'hi'</example>\n"
        "tools:\n  - Read\n  - Bash\ncolor: #ff\n---\nBe good.\n"
    )
    plan = agent(tmp_path, text)
    (card,) = plan.cards
    assert card.draft.values["description"] == "Use when: <example>user: 'hi'</example>"
    assert card.draft.abilities == {"read", "shell"}
    assert "FA834" in codes(plan)


@pytest.mark.spec("FMT-8")
@pytest.mark.parametrize(
    ("written", "model"),
    [
        ("['Claude Sonnet 4.5', 'GPT-5']", ("claude-sonnet-4-5", "gpt-5")),
        ("['GPT-5']", "gpt-5"),
        ("['GPT-5', 'GPT-5 (copilot)']", "gpt-5"),
        ("['Nobody Knows 1', 'GPT-5']", "gpt-5"),
        ("[]", None),
    ],
)
def test_models_in_order_answer_one_where_the_other_fails(
    tmp_path: Path, written: str, model: object
) -> None:
    text = f"---\nname: one\ndescription: d\nmodel: {written}\n---\nx\n"
    write_import(agent(tmp_path, text, ".github/agents/one.agent.md"), force=False)
    (card,) = load_cards([tmp_path / "project/.fast-agent/agent-cards"], environ={}).cards
    assert card.config.model == model


@pytest.mark.spec("FMT-7")
@pytest.mark.parametrize("choice", ["none", "files", "all"])
def test_an_agent_without_tools(tmp_path: Path, choice: str) -> None:
    agent(tmp_path, "---\nname: one\ndescription: d\n---\nx\n")
    plan, _ = imported(tmp_path, choice)
    (card,) = plan.cards
    assert f"--tools {choice}" in card.text
    assert (
        card.draft.abilities
        == {
            "none": set[str](),
            "files": {"read", "write"},
            "all": {"read", "write", "shell", "fetch"},
        }[choice]
    )
    assert ("shell: true" in card.text) == (choice == "all")
    assert "FA836" in codes(plan)


def project(root: Path, files: dict[str, str]) -> Import:
    for name, text in files.items():
        path = root / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return imported(root)[0]


@pytest.mark.spec("FMT-1")
@pytest.mark.parametrize("place", ["security.md", "build/contributing.md", "target/changelog.md"])
def test_agents_with_names_of_documents(tmp_path: Path, place: str) -> None:
    text = "---\nname: one\ndescription: d\ntools: Read\n---\nx\n"
    plan = project(tmp_path, {f".claude/agents/{place}": text, f"docs/{place}": text})
    (card,) = plan.cards
    assert ".claude" in card.draft.file.path


@pytest.mark.spec("FMT-20")
def test_files_beside_agents_that_are_none_are_named(tmp_path: Path) -> None:
    one = "---\nname: one\ndescription: d\ntools: Read\n---\nx\n"
    files = {".claude/agents/one.md": one, ".claude/agents/notes.md": "notes\n", "notes.md": "n\n"}
    plan = project(tmp_path, files)
    skipped = [note for note in plan.diagnostics() if note.code == "FA838"]
    assert [(Path(note.path).name, note.severity) for note in skipped] == [("notes.md", "info")]
    assert ".claude" in skipped[0].path
    alone = project(tmp_path / "b", {".claude/agents/one.md": one})
    assert codes(alone) == set()


def test_an_opencode_configuration_shares_its_model_and_files(tmp_path: Path) -> None:
    text = json.dumps(
        {
            "$schema": "https://opencode.ai/config.json",
            "model": "anthropic/claude-sonnet-4-5",
            "instructions": ["RULES.md", "docs/*.md"],
            "agent": {
                "build": {"mode": "primary", "prompt": "{file:./prompts/build.txt}"},
                "plan": {"model": "openai/gpt-5", "prompt": "Plan {file:x}."},
                "gone": {"prompt": "{file:../../etc/passwd}"},
            },
        }
    )
    files = {"opencode.json": text, "prompts/build.txt": "Build.", "RULES.md": "Rules."}
    plan = project(tmp_path, files)
    cards = {card.name: card for card in plan.cards}
    assert cards["build"].text.endswith("---\n{{file:prompts/build.txt}}\n\n{{file:RULES.md}}\n")
    assert "Plan {file:x}.\n\n{{file:RULES.md}}" in cards["plan"].text
    models = {name: card.draft.values["model"] for name, card in cards.items()}
    assert models == {
        "build": "anthropic.claude-sonnet-4-5",
        "plan": "openai.gpt-5",
        "gone": "anthropic.claude-sonnet-4-5",
    }
    lost = [note.message for note in plan.diagnostics() if note.code == "FA831"]
    assert lost == [
        "`docs/*.md` is not a file of the project",
        "`../../etc/passwd` is not a file of the project",
    ]
    assert all(unaccounted(one.file) == [] for one in plan.files)


def test_a_server_named_as_a_tool_is_all_of_its_tools(tmp_path: Path) -> None:
    servers = json.dumps({"servers": {"playwright": {"command": "npx", "args": ["p"]}}})
    mode = "---\ndescription: d\ntools: ['codebase', 'Playwright', 'nothing']\n---\nx\n"
    plan = project(
        tmp_path, {".vscode/mcp.json": servers, ".github/chatmodes/Old Mode.chatmode.md": mode}
    )
    (card,) = plan.cards
    assert card.draft.values["servers"] == ["playwright"]
    assert "tools" not in card.draft.values
    lost = [note.message for note in plan.diagnostics() if note.code == "FA831"]
    assert lost == ["no tool `nothing` is known"]


@pytest.mark.spec("FMT-9")
def test_references_between_agents(tmp_path: Path) -> None:
    agent(tmp_path, "---\nname: a\ndescription: d\ntools: Agent(b, nobody)\n---\nx\n")
    plan = agent(
        tmp_path,
        "---\nname: B\ndescription: d\ntools: Agent(a)\n---\nx\n",
        ".claude/agents/two.md",
    )
    values = {card.name: card.draft.values for card in plan.cards}
    assert values["a"]["agents"] == ["B"]
    assert "agents" not in values["B"]
    reported = [one.message for one in plan.diagnostics()]
    assert "no agent is named `nobody` in the files" in reported
    assert any("leads back to `B`" in message for message in reported)


def test_two_agents_of_one_name(tmp_path: Path) -> None:
    agent(tmp_path, "---\nname: one\ndescription: d\n---\nx\n")
    plan = agent(tmp_path, "---\nname: One\ndescription: d\n---\nx\n", ".claude/agents/two.md")
    assert [card.file_name for card in plan.cards] == ["one.md", "One-2.md"]
    assert any("is called `One-2`" in one.message for one in plan.diagnostics())


@pytest.mark.spec("FMT-10")
@pytest.mark.parametrize(
    ("place", "text", "connect"),
    [
        (
            ".codex/agents/one.toml",
            (
                'name = "one"\ndescription = "d"\ndeveloper_instructions = "x"\n'
                '[mcp_servers.docs]\ncommand = "docs"\nenv_vars = ["KEY"]\n'
                'enabled_tools = ["get"]\n'
            ),
            {"target": "docs", "name": "docs", "env": {"KEY": "${KEY:}"}},
        ),
        (
            ".codex/agents/one.toml",
            (
                'name = "one"\ndescription = "d"\ndeveloper_instructions = "x"\n'
                '[mcp_servers.docs]\ncommand = "npx"\nenabled_tools = ["get"]\n'
                'args = ["--header", "Auth: ${KEY}", "a=${KEY}", "it\'s", "${KEY}", ""]\n'
            ),
            {
                "target": "npx --header 'Auth: ${KEY:}' a=${KEY:} 'it'\"'\"'s' ${KEY:} ''",
                "name": "docs",
            },
        ),
        (
            ".codex/agents/one.toml",
            (
                'name = "one"\ndescription = "d"\ndeveloper_instructions = "x"\n'
                '[mcp_servers.docs]\nurl = "https://a.example"\nbearer_token_env_var = "KEY"\n'
                'enabled_tools = ["get"]\n[mcp_servers.docs.env_http_headers]\nX-Team = "TEAM"\n'
            ),
            {
                "target": "https://a.example",
                "name": "docs",
                "headers": {"Authorization": "Bearer ${KEY:}", "X-Team": "${TEAM:}"},
            },
        ),
        (
            ".gemini/agents/one.md",
            (
                "---\nname: one\ndescription: d\nmcp_servers:\n  docs:\n"
                "    http_url: https://a.example\n    include_tools: [get]\n---\nx\n"
            ),
            {"target": "https://a.example", "name": "docs"},
        ),
        (
            "agent.yaml",
            (
                "agents:\n  one:\n    description: d\n    instruction: x\n    model: openai/gpt-5\n"
                "    toolsets:\n      - type: mcp\n        name: docs\n        tools: [get]\n"
                "        remote:\n          url: https://a.example\n"
                "          headers: {X-Key: '${env.KEY}'}\n"
            ),
            {"target": "https://a.example", "name": "docs", "headers": {"X-Key": "${KEY:}"}},
        ),
    ],
)
def test_servers_of_an_agent_stay_its_own(
    tmp_path: Path, place: str, text: str, connect: dict[str, object]
) -> None:
    plan = agent(tmp_path, text, place)
    assert codes(plan) & {"FA831", "FA833"} == set()
    (card,) = plan.cards
    assert card.draft.values["mcp_connect"] == [connect]
    assert card.draft.values["tools"] == {"docs": ["get"]}


def test_servers_of_a_codex_configuration(tmp_path: Path) -> None:
    plan = agent(
        tmp_path,
        'model = "gpt-5"\n[mcp_servers.docs]\ncommand = "docs"\nargs = ["-v"]\n'
        '[mcp_servers.off]\nurl = "https://a.example/mcp"\nenabled = false\n',
        ".codex/config.toml",
    )
    assert plan.cards == []
    assert plan.servers.added == ("docs", "off")
    assert plan.servers.text == (
        'mcp:\n  servers:\n    docs:\n      command: docs\n      args:\n        - "-v"\n'
        '    "off":\n      url: https://a.example/mcp\n      enabled: false\n'
    )
    (lost,) = plan.diagnostics()
    assert (lost.code, lost.span and lost.span.start.line) == ("FA831", 1)
    assert "`model` has no counterpart" in lost.message


@pytest.mark.spec("FMT-10", "FMT-11")
def test_servers_go_into_the_configuration(tmp_path: Path) -> None:
    project = tmp_path / "project"
    servers = {
        "docs": {"type": "http", "url": "https://a.example/mcp"},
        "here": {"command": "mine"},
        "own": {
            "command": "npx",
            "args": ["-y", "${PACKAGE:-thing}"],
            "env": {"API_KEY": "sk-1234567890", "TOKEN": "${TOKEN}", "MODE": "fast"},
        },
    }
    project.mkdir()
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    config = project / "fastagent.config.yaml"
    config.write_text("# mine\nmcp:\n  servers:\n    here: {command: other}  # stays\n")
    plan = agent(tmp_path, "---\nname: a\ndescription: d\ntools: mcp__docs__*, Read\n---\nx\n")
    assert write_import(plan, force=False)[-1] == config
    text = config.read_text()
    assert text.startswith("# mine\nmcp:\n")
    assert "here: {command: other}  # stays" in text
    assert "sk-1234567890" not in text
    for line in ("API_KEY: ${API_KEY:}", "TOKEN: ${TOKEN:}", "MODE: fast", "${PACKAGE:thing}"):
        assert line.split(": ")[-1] in text
    assert plan.servers.added == ("docs", "own")
    assert plan.servers.kept == ("here",)
    assert "servers: [docs]" in plan.cards[0].text


@pytest.mark.spec("FMT-12")
def test_nothing_is_overwritten(tmp_path: Path) -> None:
    plan = agent(tmp_path, "---\nname: one\ndescription: d\n---\nx\n")
    write_import(plan, force=False)
    assert write_import(imported(tmp_path)[0], force=False) == []
    card = plan.output / "one.md"
    card.write_text("mine")
    with pytest.raises(CardError, match="already exists"):
        write_import(imported(tmp_path)[0], force=False)
    assert card.read_text() == "mine"
    write_import(imported(tmp_path)[0], force=True)
    assert card.read_text() == plan.cards[0].text


@pytest.mark.spec("FMT-18")
@pytest.mark.parametrize(("omits", "has"), [("", True), ("omitClaudeMd: true\n", False)])
def test_the_instructions_of_the_project(tmp_path: Path, omits: str, has: bool) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/CLAUDE.md").write_text("Use tabs.\n")
    plan = agent(tmp_path, f"---\nname: one\ndescription: d\ntools: Read\n{omits}---\nx\n")
    assert plan.cards[0].text.endswith("x\n\n{{projectInstructions}}\n") == has
    assert unaccounted(plan.files[0].file) == []


def test_nothing_to_import(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/README.md").write_text("# Hello\n")
    with pytest.raises(CardError, match="holds no agents"):
        imported(tmp_path)
