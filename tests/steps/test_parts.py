"""Questions to a model, made of pieces that are named by their digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.steps.parts import is_same_question

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue

OLD = {"1": "Help.\nNow.\n", "2": "Help.\nNow.\n\n\n<skills/>", "3": ["Help."], "t": "tools"}
NEW = {"a": "Help.\nNow.", "b": "Help.\nNow.\n\n<skills/>", "c": "Help. Now.", "t": "tools"}


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ({"system": "1", "tools": "t"}, {"system": "a", "tools": "t"}, True),
        ({"system": "2"}, {"system": "b"}, True),
        ({"system": "1"}, {"system": "b"}, False),
        ({"system": "1"}, {"system": "c"}, False),
        ({"system": "1", "tools": "t"}, {"system": "a", "tools": "x"}, False),
        ({"system": "1", "tools": "t"}, {"system": "a"}, False),
        ({"system": "3"}, {"system": "a"}, False),
        ({"system": "missing"}, {"system": "missing"}, False),
        ({"tool": "1"}, {"tool": "a"}, False),
        (None, {"system": "a"}, False),
        ("1", "a", False),
    ],
)
def test_line_breaks_of_the_system_text_make_no_other_question(
    old: JsonValue, new: JsonValue, same: bool
) -> None:
    assert is_same_question(old, OLD, new, NEW) is same
