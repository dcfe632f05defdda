"""Whatever is in a file, loading it ends with cards or with problems that point into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from fast_agent.cards.fields import FIELD_NAMED
from fast_agent.cards.load import load_cards

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SCRAPS = st.sampled_from(
    [
        *(f"{name}: " for name in FIELD_NAMED),
        *(
            "---\n",
            "--- \n",
            "+++\n",
            "\n",
            "\n  ",
            "\n- ",
            "- ",
            "  ",
            "[",
            "]",
            "{",
            "}",
            ": ",
            ",",
        ),
        *(
            "agent",
            "MAKER",
            "chain",
            "a",
            "3",
            "true",
            "null",
            "'",
            '"',
            "&a ",
            "*a",
            "!x ",
            "|\n ",
        ),
        *(
            "${X}",
            "${X:1}",
            "$${",
            "# ",
            "---USER\n",
            "---SYSTEM\n",
            "```\n",
            "é",
            "\u2028",
            "\t",
            "\r",
        ),
        *(
            "\x00",
            "\x1b",
            "fork",
            "auto",
            "none",
            "a.py:b",
            "type: object",
            "maxTokens: ",
            "target: ",
        ),
    ]
)
TEXTS = st.lists(SCRAPS, max_size=24).map("".join)
FILES = st.one_of(
    TEXTS.map(str.encode),
    TEXTS.map(lambda text: f"---\n{text}\n---\nHi\n".encode()),
    TEXTS.map(lambda text: f"{text}\ninstruction: Hi\n".encode()),
    st.binary(max_size=40),
)


def test_loading_never_fails(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory: Path = tmp_path_factory.mktemp("cards")

    @settings(max_examples=1500)
    @given(FILES, st.sampled_from(["card.md", "card.yaml"]), st.booleans(), st.booleans())
    def check(data: bytes, name: str, multi_card: bool, named: bool) -> None:
        for file in directory.iterdir():
            file.unlink()
        (directory / name).write_bytes(data)
        path = directory / name if named else directory
        load = load_cards([path], environ={"X": "1"}, multi_card=multi_card)
        assert load.cards or load.diagnostics
        assert all(card.sound for card in load.cards) or load.failed
        lines = data.decode(errors="replace").removeprefix("\ufeff").replace("\r\n", "\n")
        lines = lines.split("\n")
        for found in load.diagnostics:
            if found.span is None or found.code == "FA118":
                continue
            start, end = found.span.start, found.span.end
            assert start <= end
            assert 1 <= start.line <= len(lines) + 1
            assert found.source_line == (lines[start.line - 1] if start.line <= len(lines) else "")
            assert start.column <= len(found.source_line or "") + 1

    check()
