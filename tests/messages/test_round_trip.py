"""Both formats give back exactly what was written."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fast_agent.errors import HistoryError
from fast_agent.messages.delimited_codec import (
    FILE_PART,
    MESSAGE_PART,
    read_delimited_history,
    write_delimited_history,
)
from fast_agent.messages.file import read_history, write_history
from fast_agent.messages.history import HistoryDocument
from fast_agent.messages.json_message import read_json_history, write_json_history
from fast_agent.messages.message import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    Message,
    OpaqueContent,
    ResourceLink,
    TextContent,
    ToolCall,
    ToolResult,
)
from fast_agent.text.source import Source

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue

AWKWARD = [
    "",
    " ",
    "\n",
    "\r\n",
    "\r",
    "\ufeff",
    "\0",
    "---USER",
    "---ASSISTANT\nno",
    "a\n---SYSTEM\nb",
    "---RESOURCE\n{}",
    "---USER\r",
    " ---USER",
    "\n\nindented\n    \n",
    "    four spaces first",
    "trailing  ",
    "\u2028---USER\u2028",
    "\ud83d half a pair",
    '{"type": "text"}',
    "\x0b\x0c\x1c",
]
texts = (
    st.text(max_size=30)
    | st.sampled_from(AWKWARD)
    | st.lists(st.sampled_from(AWKWARD) | st.text(max_size=8), max_size=4).map("\n".join)
)
keys = st.text(max_size=8).map(lambda text: f"x-{text}")
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers()
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
extras = st.dictionaries(keys | st.sampled_from(["annotations", "_meta"]), values, max_size=2)
media_types = st.sampled_from(["text/plain", "image/png", MESSAGE_PART, FILE_PART]) | texts
some_type = st.none() | media_types


@st.composite
def resources(draw: st.DrawFn) -> EmbeddedResource:
    binary = draw(st.booleans())
    body = draw(texts)
    return EmbeddedResource(
        draw(texts),
        draw(some_type),
        None if binary else body,
        body if binary else None,
        draw(extras),
        draw(extras),
    )


known = {"text", "image", "audio", "resource_link", "resource"}


@st.composite
def opaque(draw: st.DrawFn) -> OpaqueContent:
    rest = draw(st.dictionaries(st.text(max_size=5), values, max_size=3))
    return OpaqueContent({**rest, "type": draw(texts.filter(lambda kind: kind not in known))})


blocks: st.SearchStrategy[Content] = st.one_of(
    st.builds(TextContent, texts),
    st.builds(TextContent, texts, extras),
    st.builds(ImageContent, texts, media_types, extras),
    st.builds(AudioContent, texts, media_types, extras),
    st.builds(ResourceLink, texts, texts, some_type, extras),
    resources(),
    opaque(),
)
contents = st.lists(blocks, max_size=3).map(tuple)
arguments = st.dictionaries(st.text(max_size=5), values, max_size=3)
call_extras = extras | arguments.filter(bool).map(
    lambda inner: {"params": {f"x-{key}": value for key, value in inner.items()}}
)
calls = st.lists(
    st.builds(ToolCall, texts, texts, arguments, call_extras), max_size=3, unique_by=lambda c: c.id
)
results = st.lists(
    st.builds(ToolResult, texts, contents, st.booleans(), values, extras),
    max_size=3,
    unique_by=lambda result: result.id,
)
full_messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant"]),
    content=contents,
    tool_calls=calls.map(tuple),
    tool_results=results.map(tuple),
    channels=st.dictionaries(texts, contents, max_size=2),
    native=values,
    stop_reason=st.none() | st.sampled_from(["endTurn", "toolUse"]) | texts,
    phase=st.none() | texts,
    is_template=st.booleans(),
    timestamp=st.none() | texts | numbers,
    extra=extras,
)
plain_messages = st.one_of(st.builds(Message.user, texts), st.builds(Message.assistant, texts))
empty_messages = st.sampled_from([Message("user"), Message("assistant")])
transcripts = st.builds(
    HistoryDocument,
    st.none() | texts,
    st.lists(full_messages | plain_messages | empty_messages, max_size=5).map(tuple),
    st.dictionaries(keys, values, max_size=2),
)


@pytest.mark.spec("HIST-5")
@given(transcripts)
@settings(max_examples=80)
def test_json_gives_back_what_was_written(transcript: HistoryDocument) -> None:
    text = write_json_history(transcript)
    assert read_json_history(Source.of("h.json", text)) == transcript
    assert write_json_history(read_json_history(Source.of("h.json", text))) == text


@pytest.mark.spec("HIST-5")
@given(transcripts)
@settings(max_examples=80)
def test_delimited_text_gives_back_what_was_written(transcript: HistoryDocument) -> None:
    text = write_delimited_history(transcript)
    assert read_delimited_history(Source.of("h.md", text)) == transcript


@given(transcripts)
@settings(max_examples=50)
def test_delimited_text_with_crlf_and_a_mark_is_the_same(transcript: HistoryDocument) -> None:
    text = "\ufeff" + write_delimited_history(transcript).replace("\n", "\r\n")
    assert read_delimited_history(Source.of("h.md", text)) == transcript


@pytest.mark.spec("HIST-5")
@given(transcripts)
@settings(max_examples=30)
def test_files_give_back_what_was_written(transcript: HistoryDocument) -> None:
    with TemporaryDirectory() as folder:
        for name in ("h.json", "H.JSON", "h.md", "plain"):
            path = Path(folder) / name
            write_history(path, transcript)
            assert read_history(path) == transcript


@given(st.text(alphabet=st.sampled_from("-USERASIT\n {}\"'x\r\t"), max_size=80))
@example("---USER\n---RESOURCE")
@example("---RESOURCE\n{}")
@example("---SYSTEM\n\n---RESOURCE\n[1]")
def test_any_text_is_read_or_refused_with_places(text: str) -> None:
    source = Source.of("h.md", text)
    try:
        transcript = read_delimited_history(source)
    except HistoryError as error:
        must_have_places(error)
    else:
        again = write_delimited_history(transcript)
        assert read_delimited_history(Source.of("h.md", again)) == transcript


@given(values)
def test_any_json_is_read_or_refused_with_places(value: JsonValue) -> None:
    from fast_agent.messages.json_text import write_json

    for document in (
        value,
        {"messages": value},
        {"messages": [{"role": "user", "content": value}]},
    ):
        source = Source.of("h.json", write_json(document, indent=1))
        try:
            transcript = read_json_history(source)
        except HistoryError as error:
            must_have_places(error)
        else:
            assert read_json_history(Source.of("", write_json_history(transcript))) == transcript


def must_have_places(error: HistoryError) -> None:
    assert error.diagnostics
    assert all(item.span is not None for item in error.diagnostics)


def test_order_of_calls_and_results_is_kept() -> None:
    ids = ["zeta", "alpha", "10", "9", "Beta"]
    asking = Message("assistant", tool_calls=tuple(ToolCall(one, "t") for one in ids))
    answer = Message("user", tool_results=tuple(ToolResult(one) for one in ids))
    transcript = HistoryDocument(messages=(asking, answer))
    for back in (
        read_json_history(Source.of("", write_json_history(transcript))),
        read_delimited_history(Source.of("", write_delimited_history(transcript))),
    ):
        assert [call.id for call in back.messages[0].tool_calls] == ids
        assert [result.id for result in back.messages[1].tool_results] == ids


def test_plain_messages_stay_plain() -> None:
    transcript = HistoryDocument(
        "Be brief.",
        (
            Message.user("What is 2 + 2?\n\n    indented"),
            Message.assistant("4"),
            Message.user("why?"),
            Message.user("say"),
        ),
    )
    assert write_delimited_history(transcript) == (
        "---SYSTEM\nBe brief.\n---USER\nWhat is 2 + 2?\n\n    indented\n---ASSISTANT\n4\n"
        "---USER\nwhy?\n---USER\nsay\n"
    )


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Message("user", native={"x": float("nan")}), "JSON"),
        (Message("user", native={"x": float("inf")}), "JSON"),
        (Message("user", extra={"role": "assistant"}), "`role`"),
        (Message("user", (TextContent("x", {"text": "y"}),)), "`text`"),
        (Message("user", (OpaqueContent({"type": "text", "text": "x"}),)), "`text`"),
        (Message("user", (OpaqueContent({}),)), "opaque"),
        (Message("user", (EmbeddedResource("a:b"),)), "either text or a blob"),
        (Message("user", (EmbeddedResource("a:b", None, "x", "y"),)), "either text or a blob"),
        (Message("assistant", tool_calls=(ToolCall("1", "a"), ToolCall("1", "b"))), "same id"),
        (Message("user", tool_results=(ToolResult("1"), ToolResult("1"))), "same id"),
        (Message("assistant", tool_calls=(ToolCall("1", "a", extra={"params": 1}),)), "`params`"),
        (
            Message("assistant", tool_calls=(ToolCall("1", "a", extra={"params": {"name": "b"}}),)),
            "`name`",
        ),
        (Message("user", native={"x": {1}}), "no JSON form"),  # type: ignore[dict-item]
    ],
)
def test_what_cannot_be_read_back_is_not_written(message: Message, reason: str) -> None:
    transcript = HistoryDocument(messages=(Message.user("first"), message))
    for write in (write_json_history, write_delimited_history):
        with pytest.raises(HistoryError) as caught:
            write(transcript)
        assert reason in caught.value.message
