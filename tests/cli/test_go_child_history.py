from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

CALL = '***CALL_TOOL agent__kid {"message": "draw"}'


def write_two(project: Path, messages: str = "[kid.json]") -> None:
    cards = project / "cards"
    cards.mkdir()
    (cards / "boss.yaml").write_text(
        "name: boss\nmodel: passthrough\ndefault: true\nagents: [kid]\ninstruction: Lead.\n"
    )
    (cards / "kid.yaml").write_text(
        f"name: kid\nmodel: playback\nmessages: {messages}\ninstruction: Draw.\n"
    )
    first = [
        {"role": "user", "content": [{"type": "text", "text": "what?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "a cat"}]},
    ]
    (cards / "kid.json").write_text(json.dumps({"messages": first}))


@pytest.mark.spec("ROUTE-9", "ROUTE-2")
def test_options_set_where_called_agents_start_and_where_their_messages_go(
    run: Run, project: Path
) -> None:
    write_two(project)
    options = ("--child-history-source", "messages", "--child-history-merge-target", "messages")
    ran = run("go", "--card", "cards", "-q", *options, "-m", CALL)
    assert (ran.code, ran.out) == (0, "a cat\n"), ran.err
    kept = json.loads((project / "cards/kid.json").read_text())["messages"]
    texts = [message["content"][0]["text"] for message in kept]
    assert texts == ["what?", "a cat", "draw", "a cat"]
    ran = run("go", "--card", "cards", "-q", "-m", CALL)
    assert ran.out.startswith("MESSAGES EXHAUSTED")


def test_a_merge_into_files_a_child_does_not_have_is_refused(run: Run, project: Path) -> None:
    write_two(project, messages="[]")
    options = ("--child-history-merge-target", "messages")
    ran = run("go", "--card", "cards", "-q", *options, "-m", CALL)
    assert ran.code == 1
    assert "agent `boss` merges into the `messages` of `kid`, which has none" in ran.err
    assert run("go", "--child-history-source", "parent", "-m", "hi").code == 2
