from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.models.local.answer import (
    WrittenCall,
    end_of_prose,
    recover_tool_calls,
)

OFFERED = frozenset({"add", "get_weather"})
PARIS = WrittenCall("get_weather", {"city": "Paris"})
CALL = '{"name": "get_weather", "arguments": {"city": "Paris"}}'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(CALL, id="bare"),
        pytest.param(f"<tool_call>\n{CALL}\n</tool_call>", id="hermes"),
        pytest.param(f"<tool_call>{CALL}", id="hermes-open"),
        pytest.param(f"```json\n{CALL}\n```", id="fence"),
        pytest.param(f"```\n[{CALL}]\n```", id="fence-list"),
        pytest.param(f"[TOOL_CALLS] [{CALL}]", id="mistral"),
        pytest.param(
            '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}', id="llama31"
        ),
        pytest.param('<function=get_weather>{"city": "Paris"}</function>', id="llama-function"),
        pytest.param(
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
            "</function>\n</tool_call>",
            id="qwen-coder",
        ),
        pytest.param('[get_weather(city="Paris")]', id="llama32"),
        pytest.param('{"tool": "get_weather", "args": {"city": "Paris"}}', id="tool-args"),
        pytest.param('{"action": "get_weather", "action_input": {"city": "Paris"}}', id="action"),
        pytest.param('{"get_weather": {"city": "Paris"}}', id="keyed"),
        pytest.param(json.dumps({"tool_calls": [{"function": json.loads(CALL)}]}), id="openai"),
        pytest.param(
            json.dumps({"name": "get_weather", "arguments": '{"city": "Paris"}'}), id="string"
        ),
        pytest.param('{"name": "get_weather", "arguments": {"city": "Paris"}', id="unclosed"),
        pytest.param('<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"', id="cut"),
    ],
)
def test_every_notation_is_read(text: str) -> None:
    recovered = recover_tool_calls(text, OFFERED)
    assert recovered is not None
    assert recovered.calls == (PARIS,)
    assert recovered.prose == ""


@pytest.mark.parametrize(
    "text",
    [
        "The weather in Paris is fine.",
        '{"name": "rm", "arguments": {"path": "/"}}',
        '{"name": "get_weather", "arguments": "Paris"}',
        '{"name": "get_weather", "arguments": [1]}',
        '{"name": "get_weather", "colour": "red"}',
        '{"answer": 3}',
        "use `get_weather` with {city}",
        '[open(file="x")]',
        '[get_weather(city=__import__("os"))]',
        '[get_weather("Paris")]',
        "[1, 2",
        "```python\nprint({1: 2})\n```",
        "{" * 50,
        "",
    ],
)
def test_anything_else_stays_text(text: str) -> None:
    assert recover_tool_calls(text, OFFERED) is None


def test_prose_before_is_kept_and_guesses_after_are_dropped() -> None:
    text = f"I will look.\n<tool_call>{CALL}</tool_call>\nIt is 21 degrees."
    recovered = recover_tool_calls(text, OFFERED)
    assert recovered is not None
    assert recovered.prose == "I will look."


def test_several_calls_keep_their_order() -> None:
    add = '{"name": "add", "arguments": {"a": 1}}'
    text = f"<tool_call>{add}</tool_call>\n<tool_call>{CALL}</tool_call>"
    recovered = recover_tool_calls(text, OFFERED)
    assert recovered is not None
    assert recovered.calls == (WrittenCall("add", {"a": 1}), PARIS)


@pytest.mark.parametrize("text", ['{"name": "add"}', '{"name": "add", "arguments": null}'])
def test_a_call_may_have_no_arguments(text: str) -> None:
    recovered = recover_tool_calls(text, OFFERED)
    assert recovered is not None
    assert recovered.calls == (WrittenCall("add", {}),)


def test_long_hostile_text_is_read_quickly() -> None:
    started = time.process_time()
    for text in ("[" * 20_000, '{"a":' * 20_000, "```" * 20_000, "<function=add>" * 2_000):
        recover_tool_calls(text, OFFERED)
    assert time.process_time() - started < 20


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.text(alphabet=st.characters(exclude_characters="<{[`"), max_size=30),
    st.dictionaries(st.text(max_size=6), values, max_size=3),
    st.sampled_from(["{}", "<tool_call>{}</tool_call>", "```json\n{}\n```"]),
)
def test_what_is_written_is_recovered(prose: str, arguments: dict[str, object], form: str) -> None:
    call = json.dumps({"name": "add", "arguments": arguments})
    recovered = recover_tool_calls(prose + form.replace("{}", call), OFFERED)
    assert recovered is not None
    assert [(c.name, c.arguments) for c in recovered.calls] == [("add", arguments)]
    assert recovered.prose == prose.rstrip()


@given(st.text(alphabet="ab<`{[ \n", max_size=40), st.data())
def test_streamed_text_never_passes_the_beginning_of_a_call(text: str, data: st.DataObject) -> None:
    """The sure part of a beginning is a beginning of the sure part of the whole."""
    cut = data.draw(st.integers(0, len(text)))
    assert end_of_prose(text[:cut]) <= end_of_prose(text)
