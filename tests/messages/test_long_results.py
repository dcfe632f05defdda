from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.messages.history import (
    RESULTS,
    History,
    ResultLimits,
    shortened,
    size_of,
    text_of_result,
)
from fast_agent.messages.message import (
    EmbeddedResource,
    ImageContent,
    Message,
    TextContent,
    ToolCall,
    ToolResult,
)

NOTE_BYTES = 250


def result(text: str, call_id: str = "c1") -> ToolResult:
    return ToolResult(call_id, (TextContent(text),))


@pytest.mark.parametrize("size", [0, 1, 1023, 1024])
def test_a_result_within_the_limit_is_the_same(size: int) -> None:
    one = result("x" * size)
    assert shortened(one, 1024) is one


@pytest.mark.parametrize("size", [1025, 5_000, 5_000_000])
def test_a_longer_one_keeps_head_and_tail_and_says_where_the_rest_is(size: int) -> None:
    text = "HEAD" + "x" * (size - 8) + "TAIL"
    cut = shortened(result(text), 1024)
    assert cut.text.startswith("HEAD")
    assert cut.text.endswith("TAIL")
    assert f"{RESULTS}c1" in cut.text
    assert f"{size - 1024:,} of {size:,} characters" in cut.text
    assert len(cut.text) <= 1024 + NOTE_BYTES


@given(st.text(max_size=3000), st.integers(1024, 2000))
def test_what_is_left_is_never_longer_than_the_limit_and_its_note(text: str, most: int) -> None:
    cut = shortened(result(text), most)
    assert len(cut.text.encode("utf-8", "surrogatepass")) <= most + NOTE_BYTES
    if len(text.encode("utf-8", "surrogatepass")) <= most:
        assert cut.text == text


def test_other_characters_than_ascii_are_cut_between_and_not_within() -> None:
    cut = shortened(result("é世🙂" * 2000), 1024)
    head, _, tail = cut.text.split("\n")
    assert set(head + tail) == set("é世🙂")


def test_a_lone_surrogate_does_not_stop_it() -> None:
    assert f"{RESULTS}c1" in shortened(result("\ud800" * 5000), 1024).text


def test_images_stay_and_embedded_texts_are_cut_with_the_others() -> None:
    image = ImageContent("aGk=", "image/png")
    document = EmbeddedResource("file:///a", text="d" * 4000)
    whole = ToolResult("c1", (TextContent("t" * 4000), image, document), structured={"a": 1})
    cut = shortened(whole, 1024)
    assert [type(block) for block in cut.content] == [TextContent, ImageContent]
    assert cut.structured is None
    assert text_of_result(whole) == "t" * 4000 + "\n" + "d" * 4000


@pytest.mark.parametrize(
    ("tool", "limit"), [("docs__read", 2048), ("docs", 1500), ("other", 4096), ("", 4096)]
)
def test_the_first_pattern_that_fits_holds(tool: str, limit: int) -> None:
    limits = ResultLimits(4096, {"docs__*": 2048, "docs": 1500, "docs__read": 9000})
    assert limits.of(tool) == limit
    assert limits.least == 1500


def test_only_the_results_of_tools_with_a_smaller_limit_are_cut() -> None:
    limits = ResultLimits(4096, {"small": 1024})
    calls = (ToolCall("1", "small"), ToolCall("2", "big"))
    message = Message("user", tool_results=(result("x" * 3000, "1"), result("y" * 3000, "2")))
    shown = limits.apply(message, calls)
    assert len(shown.tool_results[0].text) < 1024 + NOTE_BYTES
    assert shown.tool_results[1] is message.tool_results[1]
    assert limits.apply(message, (ToolCall("1", "big"),)) is message


def test_a_history_knows_its_longest_result() -> None:
    history = History([Message.user("q")])
    assert history.longest_result == 0
    longer = history.append(Message("user", tool_results=(result("x" * 70), result("y" * 30))))
    assert longer.longest_result == 70
    assert History(longer).longest_result == 70
    fork = longer.prefix(1).append(Message("user", tool_results=(result("é" * 100),)))
    assert fork.longest_result == 400 == size_of(result("é" * 100))
