"""Requirements of the card design that are about the whole, so that no room's tests hold them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.dump import dump_set
from fast_agent.cards.load import load_cards
from fast_agent.cards.load_set import LoadSet

if TYPE_CHECKING:
    from pathlib import Path


def config(path: Path, text: str) -> AgentConfig:
    path.write_text(text, encoding="utf-8")
    load = load_cards([path], environ={})
    assert load.diagnostics == ()
    (card,) = load.cards
    return replace(card.config, source=None)


@pytest.mark.spec("CARD-1", "CARD-10", "CARD-30", "CARD-31", "CARD-32")
def test_markdown_and_yaml_of_the_same_card_are_one_configuration(tmp_path: Path) -> None:
    expected = AgentConfig(name="sizer", instruction="Given an object,\nguess its size.")
    assert expected.type == "agent"
    body = "Given an object,\nguess its size."
    for name, text in {
        "sizer.md": f"---\ntype: agent\nname: sizer\n---\n{body}\n",
        "sizer.markdown": f"---\nname: sizer\n---\n{body}\n",
        "sizer.yaml": f"type: agent\ninstruction: |-\n  {body.replace(chr(10), chr(10) + '  ')}\n",
        "sizer.yml": f"instruction: |-\n  {body.replace(chr(10), chr(10) + '  ')}\n",
    }.items():
        assert config(tmp_path / name, text) == expected, name


@pytest.mark.spec("CARD-26", "CARD-29")
@pytest.mark.parametrize("line", ["", "schema_version: 1\n"])
def test_the_schema_version_is_kept(tmp_path: Path, line: str) -> None:
    made = config(tmp_path / "ann.md", f"---\nname: ann\n{line}---\nHi.\n")
    assert made.schema_version == 1
    load = load_cards([tmp_path / "ann.md"], environ={})
    dump_set(LoadSet.of(load.cards), tmp_path / "out", "yaml", base=tmp_path)
    (again,) = load_cards([tmp_path / "out"], environ={}).cards
    assert again.config.schema_version == 1


@pytest.mark.spec("CARD-12", "SET-8")
def test_the_same_cards_give_the_same_result_in_every_process(tmp_path: Path) -> None:
    for number, name in enumerate(("zoe", "ann", "bob", "cid")):
        (tmp_path / f"{name}.md").write_text(
            f"---\nagents: [{'nobody' if number else 'bob'}, ann]\nmax_paralel: 3\n---\nHi.\n"
        )
    code = (
        "import sys\nfrom fast_agent.cards.load import load_cards\n"
        "from fast_agent.cards.load_set import check_set, default_card\n"
        "load = load_cards([sys.argv[1]], environ={})\n"
        "print([card.config for card in load.cards], load.diagnostics)\n"
        "print(check_set(load.cards, servers=()), default_card(load.cards).config.name)\n"
    )
    reported: set[str] = set()
    for seed in ("0", "1", "77"):
        done = subprocess.run(
            [sys.executable, "-c", code, "."],
            cwd=tmp_path,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        reported.add(done.stdout)
    assert len(reported) == 1
    assert reported.pop().count("FA101") == 4
