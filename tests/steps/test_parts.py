"""Questions to a model, made of pieces that are named by their digest."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.messages.json_message import message_from_wire
from fast_agent.messages.message import Message
from fast_agent.steps.parts import Parts, StepRedactor, is_same_question, messages_of

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


ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
SECRETS = (
    "hunter2-hunter2",
    'quoted "secret" \\ here',
    "geheim-größe-😀",
    "two lines\nof a secret",
)
PIECES = (
    *SECRETS,
    *(json.dumps(one)[1:-1] for one in SECRETS),
    *(quote(one) for one in SECRETS),
    *("hunter2-hun…", "…", "/home/me/work", "/home/me/work/file.py", "/home/me/workshop"),
    *("plain", " ", '"', "\\", "\n", "é", "\x00", "<<workspace>>"),
)
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=4).map("".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(VALUES, st.sampled_from(["", "/home/me/work"]), st.sets(st.sampled_from(SECRETS)))
def test_the_quick_way_writes_what_the_thorough_way_writes(
    value: JsonValue, workspace: str, secrets: set[str]
) -> None:
    redactor = StepRedactor(secrets, workspace)
    hidden = redactor.redacted(value)
    assert redactor.written(value, ENCODER) == (hidden, ENCODER.encode(hidden))


@pytest.mark.parametrize("secret", SECRETS)
def test_no_form_of_a_secret_is_taken_for_clean(secret: str) -> None:
    value: Any = {"a": [{"b": f"it is {secret}!"}]}
    written, text = StepRedactor([secret]).written(value, ENCODER)
    assert written == {"a": [{"b": "it is <<secret>>!"}]}
    assert json.loads(text) == written


def test_a_mapping_that_is_no_dictionary_is_written() -> None:
    value = {"arguments": MappingProxyType({"a": 1})}
    assert StepRedactor().written(value, ENCODER) == (
        {"arguments": {"a": 1}},
        '{"arguments":{"a":1}}',
    )


def test_a_conversation_is_named_by_its_messages_and_grows_by_one_piece() -> None:
    kept: dict[str, JsonValue] = {}
    parts = Parts(StepRedactor(), kept.__setitem__)
    talk = [Message.user("one"), Message.assistant("two"), Message.user("three")]
    first = parts.digest_of_conversation(talk[:2])
    pieces = len(kept)
    whole = parts.digest_of_conversation(talk)
    assert len(kept) == pieces + 2  # the message, and what joins it to those before
    assert parts.digest_of_conversation(talk) == whole != first
    names = messages_of(whole, kept)
    assert names == [parts.digest_of_message(one) for one in talk]
    assert [message_from_wire(kept[name]).text for name in names] == ["one", "two", "three"]
    del kept[first]
    assert messages_of(whole, kept) == [first, names[-1]]
