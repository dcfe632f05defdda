"""How often cards are parsed by the slow parser, which knows places: once for each wrong one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent import FastAgent
from fast_agent.errors import CardError
from fast_agent.text import yaml_nodes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.card_writer import WriteCard

CONFIGURATION = "mcp:\n  servers:\n    time:\n      command: uvx\n      args: [time]\n"


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were parsed slowly, in order."""
    parsed: list[str] = []
    begin = yaml_nodes.Composition.__init__

    def counted(self: yaml_nodes.Composition, text: str, first_line: int = 1) -> None:
        parsed.append(text)
        begin(self, text, first_line)

    monkeypatch.setattr(yaml_nodes.Composition, "__init__", counted)
    return parsed


def write_good_cards(write_card: WriteCard, directory: Path) -> None:
    (directory / "fastagent.config.yaml").write_text(CONFIGURATION)
    (directory / "tools.py").write_text("def count(text: str) -> int:\n    return len(text)\n")
    (directory / "talk.json").write_text('{"messages": []}')
    (directory / "note.txt").write_text("Be kind.")
    (directory / "skills/one").mkdir(parents=True)
    skill = "---\nname: one\ndescription: One thing.\n---\nDo it.\n"
    (directory / "skills/one/SKILL.md").write_text(skill)
    more = "servers: [time]", "function_tools:\n- tools.py:count", "agents: [zoe]"
    files = "messages: [talk.json]", "skills: [skills]", "model: passthrough"
    body = "{{currentDate}} {{file:note.txt}}"
    for number in range(10):
        write_card(f"card{number}.md", *more, *files, body=body)
    write_card("zoe.yaml", "model: openai.gpt-5", "instruction: '{{currentDate}} Hi.'", body="")
    zoe = directory / "zoe.yaml"
    zoe.write_text(zoe.read_text().replace("---\n", "").replace("\n---", ""))


@pytest.mark.parametrize("ready", [False, True])
def test_good_cards_are_parsed_once(
    tmp_path: Path, write_card: WriteCard, parses: list[str], ready: bool
) -> None:
    write_good_cards(write_card, tmp_path)
    environ = {"OPENAI_API_KEY": "k"} if ready else {}
    program = FastAgent(cwd=tmp_path, environ=environ, config_path="fastagent.config.yaml")
    assert len(program.load_agents(".")) == 11
    assert [text for text in parses if text != CONFIGURATION] == []


def test_each_card_with_a_wrong_model_is_parsed_once_more(
    tmp_path: Path, write_card: WriteCard, parses: list[str]
) -> None:
    write_good_cards(write_card, tmp_path)
    for name in ("bad", "worse"):
        write_card(f"{name}.md", "model: no-such-model", f"description: {name}")
    with pytest.raises(CardError) as caught:
        FastAgent(cwd=tmp_path, environ={}).load_agents(".")
    slow = [text for text in parses if text != CONFIGURATION]
    assert len(slow) == len(set(slow)) == 2
    errors = [one for one in caught.value.diagnostics if one.severity == "error"]
    places = [(one.path, one.span.start.line) for one in errors if one.span]
    assert places == [("./bad.md", 2), ("./worse.md", 2)]
