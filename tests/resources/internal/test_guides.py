"""The packaged guides, held to the code they describe: every example card is loaded for real."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import pytest
from tests.own_home import own_home

from fast_agent import FastAgent
from fast_agent.cards.agent_config import AgentConfig, HookPoint
from fast_agent.cards.fields import CARD_TYPES, FIELDS
from fast_agent.cards.load import load_cards
from fast_agent.cards.load_set import check_set
from fast_agent.cards.placeholder import PLAIN, WITH_ARGUMENT
from fast_agent.diagnostics.rulebook import rules
from fast_agent.resources.internal.provider import InternalProvider
from fast_agent.text.frontmatter import split_frontmatter
from fast_agent.text.source import Source
from fast_agent.text.yaml_document import parse_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[3]
PROVIDER = InternalProvider()
GUIDES = [one for one in PROVIDER.by_uri.values() if "/" not in one.id]
_BLOCK = re.compile(r"^```(\w+) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(name: str) -> str:
    return PROVIDER.text_of(PROVIDER.find(name))


def examples(name: str) -> Mapping[str, str]:
    return {file: body for _, file, body in _BLOCK.findall(text_of(name))}


def program(tmp_path: Path, files: Mapping[str, str]) -> FastAgent:
    for file, body in files.items():
        (tmp_path / file).write_text(body, "utf-8")
    return FastAgent(cwd=tmp_path, environ={**own_home(tmp_path), "PATH": "/usr/bin:/bin"})


@pytest.mark.spec("INTERNAL-11")
@pytest.mark.parametrize("guide", [one.id for one in GUIDES])
def test_the_example_cards_of_a_guide_load_as_one_set(guide: str, tmp_path: Path) -> None:
    files = examples(guide)
    made = program(tmp_path, files)
    cards = [file for file in files if file.endswith((".md", ".yaml")) and file[:5] != "fasta"]
    load = load_cards([tmp_path] if cards else [], environ={}, cwd=tmp_path)
    names = {card.config.name for card in load.cards}
    expected = {
        Path(file).stem
        for file in files
        if file.endswith((".md", ".yaml")) and not file.startswith("fastagent.")
    }
    assert names == expected
    found = check_set(load.cards, servers=made.server_names, probes=made.probes())
    problems = [one for one in (*load.diagnostics, *found) if one.severity != "info"]
    assert problems == []


def test_most_guides_have_examples() -> None:
    with_cards = [one.id for one in GUIDES if examples(one.id)]
    assert len(with_cards) >= 7


@pytest.mark.anyio
@pytest.mark.spec("INTERNAL-11")
async def test_the_examples_of_hooks_and_histories_run(tmp_path: Path) -> None:
    made = program(tmp_path, {**examples("hooks"), **examples("histories")})
    (tmp_path / "lead.yaml").unlink()
    made.load_agents(tmp_path)
    async with made.run(model="passthrough") as app:
        assert await app.clerk.send('***CALL_TOOL add {"a": 41}') == "42"
        assert "does not add 5000" in await app.clerk.send('***CALL_TOOL add {"a": 5000}')
        assert await app.exact.send("how many") == "how many\n\nBe exact."
        assert [message.text for message in app.namer.history][-1] == "Brine"


@pytest.mark.spec("INTERNAL-12")
def test_the_card_guide_tells_every_field_and_placeholder() -> None:
    cards, flows = text_of("smart-agent-cards"), text_of("workflows")
    for field in FIELDS:
        assert f"| `{field.name}` |" in cards + flows, field.name
        assert field.doc in cards + flows
    for one in CARD_TYPES:
        assert f"`{one}`" in cards
        assert f"## `{one}`" in flows or one == "agent"
    for name in PLAIN:
        assert f"{{{{{name}}}}}" in cards
    for name in WITH_ARGUMENT:
        assert f"{{{{{name}:" in cards
    known = {field.name for field in fields(AgentConfig)}
    assert {field.name for field in FIELDS if field.deprecated is None} <= known


@pytest.mark.spec("INTERNAL-12")
def test_the_other_guides_tell_everything_of_their_tables() -> None:
    assert all(f"## {code} " in text_of("diagnostics") for code in rules())
    assert all(f"`{point}`" in text_of("hooks") for point in get_args(HookPoint))
    assert "mcp.servers.NAME" in text_of("configuration")
    assert "`fast-agent go`" in text_of("running")


@pytest.mark.spec("INTERNAL-12")
def test_the_packaged_documents_are_as_the_generator_makes_them() -> None:
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    made = [one.source for one in GUIDES] + ["index.md", "manifest.json"]
    stale = done.stderr.partition("stale:")[2]
    assert [name for name in made if f" {name}" in stale.replace(",", " ")] == []
    assert "Traceback" not in done.stderr, done.stderr


@pytest.mark.spec("INTERNAL-13")
def test_the_packaged_skills_follow_the_skill_specification() -> None:
    place = ROOT / "src/fast_agent/resources/internal/documents/skills"
    folders = [path for path in place.iterdir() if path.is_dir()]
    assert len(folders) >= 3
    for folder in folders:
        found = split_frontmatter(Source.of("", (folder / "SKILL.md").read_text("utf-8")))
        assert found is not None
        head = cast("dict[str, str]", parse_yaml(found.text).value)
        assert head["name"] == folder.name
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", folder.name)
        assert len(folder.name) <= 64
        assert 1 <= len(head["description"]) <= 1024
        assert head.keys() <= {"name", "description", "license"}
        assert len(found.body.split("\n")) < 500
