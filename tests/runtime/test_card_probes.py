from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.agent_config import AgentConfig, McpConnect
from fast_agent.cards.card import Card
from fast_agent.cards.load import load_cards
from fast_agent.config.load import load_settings
from fast_agent.mcp.listing import SIZES_FILE, ListedTool, ToolSizes
from fast_agent.mcp.server import from_connect, from_settings
from fast_agent.runtime.card_probes import card_probes, history_probe, skill_probe
from fast_agent.text.span import Span

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spec("CARD-15", "CARD-50", "SET-6")
def test_problems_stand_in_the_card_or_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards/good.md").write_text("---USER\nhi\n---ASSISTANT\nhello\n")
    (tmp_path / "cards/bad.json").write_text('{"messages": [\n{"role": "bot", "content": []}]}')
    text = "---\nname: me\nmessages: [good.md, gone.md, bad.json]\n---\nBe brief.\n"
    (tmp_path / "cards/me.md").write_text(text)
    (card,) = load_cards(["cards/me.md"]).cards
    gone, bad = history_probe(card)
    assert (gone.code, gone.path, gone.span) == ("FA401", "cards/me.md", Span.at(3, 21, 7))
    assert gone.message == "history `cards/gone.md` cannot be read: no such file or directory"
    assert gone.source_line == "messages: [good.md, gone.md, bad.json]"
    assert (bad.code, bad.path, bad.span) == ("FA404", "cards/bad.json", Span.at(2, 10, 5))


def test_a_single_name(tmp_path: Path) -> None:
    path = tmp_path / "me.md"
    path.write_text("---\nmessages: gone.md\n---\nBe brief.\n")
    (card,) = load_cards([str(path)]).cards
    (gone,) = history_probe(card)
    assert (gone.path, gone.span) == (str(path), Span.at(2, 11, 7))


def test_each_name_that_is_not_a_folder_of_skills_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    (tmp_path / "file").touch()
    path = tmp_path / "me.md"
    path.write_text("---\nskills: [skills, file, gone]\n---\nBe brief.\n")
    (card,) = load_cards([str(path)]).cards
    file, gone = skill_probe(card, workspace=tmp_path)
    assert (file.message, gone.message) == (
        "the folder of skills `file` is not a folder",
        "the folder of skills `gone` does not exist",
    )
    assert (file.span, gone.span) == (Span.at(2, 18, 4), Span.at(2, 24, 4))


def test_nothing_to_read() -> None:
    assert list(history_probe(Card(AgentConfig(name="me", messages=("x.md",))))) == []


def listed(name: str, size: int) -> ListedTool:
    return ListedTool(
        name=name,
        title=None,
        description="x" * size,
        input_schema={},
        output_schema=None,
        read_only=False,
        destructive=False,
        idempotent=False,
    )


CONFIG = """
default_model: passthrough
model_facts: {passthrough: {context_window: 10000}}
mcp:
  servers:
    docs: {command: docs-server, args: [--token, secret]}
    mail: {url: "https://mail.example/mcp?key=secret"}
    unused: {command: other}
"""


@pytest.mark.spec("CONTEXT-5", "TR-G4.1")
def test_servers_that_fill_the_window_are_named_from_what_the_last_run_recorded(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    (tmp_path / "fast-agent.yaml").write_text(CONFIG)
    settings = load_settings(cwd=tmp_path, environ={}, home=home)
    (tmp_path / "me.md").write_text("---\nservers: [docs, mail]\n---\nBe brief.\n")

    def problems(text: str = "") -> list[str]:
        if text:
            (tmp_path / "me.md").write_text(text)
        (card,) = load_cards([str(tmp_path / "me.md")]).cards
        probes = card_probes(tmp_path, settings, {"FAST_AGENT_HOME": str(home)})
        return [
            f"{one.severity} {one.code} {one.span and one.span.start.line}: {one.message}"
            for probe in probes
            for one in probe(card)
        ]

    assert problems() == []
    assert not home.exists()
    docs, mail, unused = from_settings(settings.mcp)
    sizes = ToolSizes(home / SIZES_FILE)
    sizes.remember(docs, [listed("find", 7_994), listed("read", 7_994)])
    sizes.remember(unused, [listed("all", 100_000)])
    assert problems() == []
    sizes.remember(mail, [listed("send", 11_994)])
    [found] = problems()
    assert found == (
        "warning FA511 2: instruction and tools take about 7,002 of the 10,000 tokens of the"
        " context window of `passthrough`, before the first message: `docs` about 4,000,"
        " `mail` about 3,000"
    )
    brought = "---\nmcp_connect: {mine: my-server}\n---\nBe brief.\n"
    assert problems(brought) == []
    mine = from_connect(McpConnect(target="my-server", name="mine"), directory=tmp_path)
    sizes.remember(mine, [listed("find", 31_994)])
    assert "before the first message: `mine` about 8,000" in problems()[0]
    filtered = "---\nservers: [docs, mail]\ntools: {docs: [none]}\n---\nBe brief.\n"
    assert problems(filtered) == []
    assert "secret" not in (home / SIZES_FILE).read_text()
    (home / SIZES_FILE).write_text('{"broken": 1}')
    assert problems() == []
    sizes.remember(replace(docs, declared="elsewhere"), [listed("find", 7_994)])
    assert sizes.of(docs) == {"find": 8_000}
