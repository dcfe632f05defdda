from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.conftest import HELLO, ask_of
from tests.models.conftest import OpenAIWire as Wired

from fast_agent.messages.message import TextContent
from fast_agent.models.model import Delta, TextDelta, ThinkingDelta
from fast_agent.models.providers.classes import ThinkingSplitter, split_thinking

if TYPE_CHECKING:
    from tests.models.conftest import StartWire

ANSWERS = [
    ("<think>a b</think>\n\nyes", "a b", "yes"),
    ("  <think>\na < b</think>yes </think>", "a < b", "yes </think>"),
    ("<think>never ends", "never ends", ""),
    ("no <think>marks</think>", "", "no <think>marks</think>"),
    ("<thin air", "", "<thin air"),
    ("", "", ""),
]


@given(st.sampled_from(ANSWERS), st.data())
def test_any_pieces_come_to_the_same(answer: tuple[str, str, str], data: st.DataObject) -> None:
    text, thinking, rest = answer
    heard: list[Delta] = []
    splitter = ThinkingSplitter(heard.append)
    while text:
        size = data.draw(st.integers(1, len(text)))
        splitter.add(text[:size])
        text = text[size:]
    splitter.end()
    thought = "".join(one.text for one in heard if isinstance(one, ThinkingDelta))
    said = "".join(one.text for one in heard if isinstance(one, TextDelta))
    assert (thought.strip(), said) == (thinking, rest)
    assert split_thinking(answer[0]) == (thinking, rest)


@pytest.mark.spec("MODEL-17")
@pytest.mark.anyio
@pytest.mark.parametrize("provider", ["generic", "hf", "azure"])
@pytest.mark.parametrize("streams", [True, False])
async def test_reasoning_in_the_text_is_taken_out_of_it(
    start_wire: StartWire, streams: bool, provider: str
) -> None:
    pieces = ["<th", "ink>hm", "m</", "think>\n", "\nyes"]
    stream = Wired.stream(*({"content": one} for one in pieces))
    whole = Wired.answer(content="".join(pieces))
    asked = ask_of(start_wire, stream if streams else whole, provider=provider)
    response = await asked.model.request(HELLO, asked.deltas.append if streams else None)
    await asked.model.aclose()
    message = response.message
    assert message.text == "yes"
    assert message.channels["reasoning"] == (TextContent("hmm"),)
    assert message.native is None
    if streams:
        said = "".join(one.text for one in asked.deltas if isinstance(one, TextDelta))
        assert said == "yes"
