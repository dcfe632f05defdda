from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.resources.problem import AmbiguousName, NotFound
from fast_agent.resources.sections import excerpt, section, sections

TEXT = """---
title: Guide
---
Intro.

# Guide

## Setup

### Linux
apt

### `macOS` ##
brew

```sh
# not a heading
```

## Auth *flow*
text

Below
=====
More
---
- item
---
### Linux
end
"""


def test_sections() -> None:
    found = sections(TEXT)
    assert [(one.level, one.name) for one in found] == [
        (0, ""),
        (1, "Guide"),
        (2, "Guide > Setup"),
        (3, "Guide > Setup > Linux"),
        (3, "Guide > Setup > macOS"),
        (2, "Guide > Auth flow"),
        (1, "Below"),
        (2, "Below > More"),
        (3, "Below > More > Linux"),
    ]
    setup = found[2]
    assert TEXT[setup.start : setup.end].startswith("## Setup\n\n### Linux\napt")
    assert TEXT[setup.start : setup.end].endswith("# not a heading\n```\n\n")
    assert TEXT[setup.start : setup.own_end] == "## Setup\n\n"
    assert TEXT[found[-1].start : found[-1].end] == "### Linux\nend\n"


@given(st.text("# =-\n\r`~ab>:|", max_size=80))
def test_sections_cover_the_text_in_order(text: str) -> None:
    found = sections(text)
    assert "".join(text[one.start : one.own_end] for one in found).strip() == text.strip()
    for one in found:
        assert one.start < one.own_end <= one.end <= len(text)


def test_line_ends_do_not_matter() -> None:
    names = [one.name for one in sections(TEXT)]
    assert [one.name for one in sections(TEXT.replace("\n", "\r\n"))] == names
    assert sections("") == ()
    assert sections("plain")[0].level == 0


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("auth FLOW", "Guide > Auth flow"),
        ("## Setup", "Guide > Setup"),
        ("Setup > Linux", "Guide > Setup > Linux"),
        ("setup>linux", "Guide > Setup > Linux"),
        ("macOS", "Guide > Setup > macOS"),
        ("Guide", "Guide"),
    ],
)
def test_a_section_by_name(name: str, found: str) -> None:
    assert section("u", TEXT, name).name == found


def test_no_such_section() -> None:
    with pytest.raises(NotFound) as caught:
        section("guide://a", TEXT, "Setpu")
    assert caught.value.suggestions == ("Guide > Setup",)
    assert caught.value.message == "there is no section of `guide://a` called `Setpu`"
    with pytest.raises(NotFound) as caught:
        section("guide://a", TEXT, "something else")
    assert "Below" in caught.value.suggestions
    with pytest.raises(AmbiguousName) as ambiguous:
        section("guide://a", TEXT, "Linux")
    assert ambiguous.value.message == "`guide://a § Linux` can mean 2 sections"
    assert ambiguous.value.candidates == ("Guide > Setup > Linux", "Below > More > Linux")


def test_a_section_named_twice_alike_is_the_first() -> None:
    text = "# A\none\n# A\ntwo\n"
    assert section("u", text, "A").start == 0


@given(st.text("ab\n# ", max_size=200), st.integers(1, 50))
def test_following_the_notes_gives_the_whole(text: str, most: int) -> None:
    pieces: list[str] = []
    offset = 0
    while True:
        piece = excerpt("u", text, offset=offset, max_chars=most)
        assert len(piece.text) <= most
        assert piece.start == offset
        pieces.append(piece.text)
        if piece.note is None:
            break
        assert f"continue with `offset` {piece.end}" in piece.note
        offset = piece.end
    assert "".join(pieces) == text


def test_excerpts() -> None:
    assert excerpt("u", TEXT).text == TEXT
    linux = excerpt("u", TEXT, section_name="Setup > Linux")
    assert linux.text == "### Linux\napt\n\n"
    assert linux.note is None
    cut = excerpt("u", TEXT, section_name="Setup > Linux", max_chars=12)
    assert (cut.text, cut.note) == (
        "### Linux\n",
        "characters 0 to 10 of 15; continue with `offset` 10",
    )
    assert excerpt("u", "abc", offset=99).text == ""
    assert excerpt("u", "abc", offset=-5, max_chars=0).text == "a"
