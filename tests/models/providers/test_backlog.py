"""Events of a stream that wait together: joined where only their text differs, and never else."""

from __future__ import annotations

import asyncio
import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.conftest import AnthropicWire, OpenAIWire, ask_of

from fast_agent.messages.message import Message
from fast_agent.models.model import ModelRequest, TextDelta
from fast_agent.models.providers.backlog import JoinedStream, joined

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from tests.models.conftest import StartWire


def event(value: object, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value)}\n\n".encode()


def chat(reason: str | None = None, /, index: int = 0, **delta: Any) -> bytes:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
    return event({"id": "x", "object": "chat.completion.chunk", "choices": [choice]})


def block(kind: str, key: str, text: str, index: int = 0) -> bytes:
    delta = {"type": kind, key: text}
    value = {"type": "content_block_delta", "index": index, "delta": delta}
    return event(value, "content_block_delta")


def response(text: str, number: int = 0, kind: str = "output_text", key: str = "delta") -> bytes:
    value: dict[str, object] = {
        "type": f"response.{kind}.{key}",
        "item_id": "m",
        key: text,
        "logprobs": [],
        "obfuscation": "o" * (number % 5),
        "sequence_number": number,
    }
    return event(value, f"response.{kind}.{key}")


def called(arguments: str, **more: Any) -> bytes:
    return chat(tool_calls=[{"index": 0, **more, "function": {"arguments": arguments}}])


FORMS: dict[str, Callable[[str, int], bytes]] = {
    "chat": lambda text, _: chat(content=text),
    "chat thinking": lambda text, _: chat(content=None, reasoning_content=text),
    "chat call": lambda text, _: called(text),
    "messages": lambda text, _: block("text_delta", "text", text),
    "messages thinking": lambda text, _: block("thinking_delta", "thinking", text),
    "messages call": lambda text, _: block("input_json_delta", "partial_json", text),
    "responses": response,
    "responses call": lambda text, n: response(text, n, "function_call_arguments"),
}
PATHS = [
    *(("choices", 0, "delta", key) for key in ("content", "reasoning_content")),
    ("choices", 0, "delta", "tool_calls", 0, "function", "arguments"),
    *(("delta", key) for key in ("text", "thinking", "partial_json")),
    ("delta",),
]


def text_of(data: bytes) -> str:
    """Return the text of an event, as the libraries read it."""
    value = json.loads(data.partition(b"data: ")[2])
    for path in PATHS:
        found = value
        for step in path:
            try:
                found = found[step]
            except (LookupError, TypeError):
                break
        else:
            if isinstance(found, str):
                return found
    raise AssertionError(f"{data!r} has no text")


@pytest.mark.parametrize("form", FORMS)
def test_pieces_that_wait_together_are_one_event(form: str) -> None:
    make = FORMS[form]
    pieces = ["a", 'b"', "\\", "\n\n", "ü\U0001f600", "", '"text": "x"', "{}"]
    (one,) = joined(b"".join(map(make, pieces, range(8)))).split(b"\n\n")[:-1]
    assert text_of(one) == "".join(pieces)
    whole = json.loads(make("".join(pieces), 7).partition(b"data: ")[2])
    assert json.loads(one.partition(b"data: ")[2]) == whole


@given(
    st.lists(st.tuples(st.sampled_from(sorted(FORMS)), st.text(max_size=5)), max_size=20),
    st.data(),
)
def test_the_text_is_the_same_however_the_bytes_are_cut(
    said: Sequence[tuple[str, str]], data: st.DataObject
) -> None:
    stream = b"".join(FORMS[form](text, number) for number, (form, text) in enumerate(said))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=4)))
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    is_between, read = True, b""
    for part in filter(None, parts):
        read += joined(part, is_between=is_between)
        is_between = part.endswith(b"\n\n")
    events = read.split(b"\n\n")[:-1]
    forms = [form for form, _ in groupby(said, lambda one: one[0])]
    assert len(forms) <= len(events) <= len(said)
    assert "".join(map(text_of, events)) == "".join(text for _, text in said)


@pytest.mark.parametrize(
    "apart",
    [
        [chat(role="assistant", content=""), chat(content="a")],
        [chat(content="a"), chat("stop", content="a")],
        [chat(content="a"), chat(index=1, content="b")],
        [chat(content="a"), chat(content=None, reasoning_content="b")],
        [chat(content="a", reasoning="x"), chat(content="b", reasoning="x")],
        [called("", id="c", name="f"), called("{")],
        [block("text_delta", "text", "a"), block("text_delta", "text", "b", 1)],
        [block("signature_delta", "signature", "a"), block("signature_delta", "signature", "b")],
        [response("a", 1), response("b", 2, "refusal")],
        [response("a", 1, key="text"), response("b", 2, key="text")],
        [response("YQ==", 1, "audio"), response("Yg==", 2, "audio")],
        [event({"error": "a"}), event({"error": "b"})],
        [b"data: [DONE]\n\n", b"data: [DONE]\n\n"],
        [b": ping\n\n", b": ping\n\n"],
        [b'data: {"delta":\ndata: "a"}\n\n', b'data: {"delta":\ndata: "b"}\n\n'],
        [chat(content="a").replace(b"\n", b"\r\n"), chat(content="b").replace(b"\n", b"\r\n")],
        [b'data: {"delta": "a\n\n', b'data: {"delta": "b\n\n'],
    ],
)
def test_events_that_differ_in_more_are_left_as_they_are(apart: Sequence[bytes]) -> None:
    assert joined(b"".join(apart)) == b"".join(apart)


def test_the_rest_of_an_event_is_not_taken_for_one() -> None:
    data = chat(content="a") + chat(content="b")
    assert joined(data, is_between=False) == data


class Source(httpx2.AsyncByteStream):
    """A source of bytes that are there at once, then what is asked for.

    Args:
        parts: The bytes.
        then: Raised at the end; None ends the stream.
        waits: Whether it goes on for ever after them.
    """

    def __init__(
        self, parts: Sequence[bytes], then: Exception | None = None, *, waits: bool = False
    ) -> None:
        self._parts = parts
        self._then = then
        self._waits = waits
        self.given = 0
        self.is_left = False
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            for part in self._parts:
                self.given += 1
                yield part
            if self._waits:
                await asyncio.Event().wait()
            if self._then is not None:
                raise self._then
        finally:
            self.is_left = True

    async def aclose(self) -> None:
        self.is_closed = True


async def _first(stream: JoinedStream) -> AsyncIterator[bytes]:
    async for part in stream:
        yield part
        break


async def read(stream: JoinedStream, parts: list[bytes]) -> None:
    async for part in stream:
        parts.append(part)  # noqa: PERF401 (what came before an error is there)


def test_an_error_comes_after_what_came_before_it() -> None:
    async def main() -> None:
        source = Source([chat(content="a"), chat(content="b")], httpx2.ReadError("cut"))
        parts: list[bytes] = []
        with pytest.raises(httpx2.ReadError, match="cut"):
            await read(JoinedStream(source), parts)
        assert parts == [chat(content="ab")]

    asyncio.run(main())


def test_a_stream_that_is_left_early_goes_on_with_the_rest_until_it_is_closed() -> None:
    async def main() -> None:
        source = Source([chat(content="a")], waits=True)
        stream = JoinedStream(source)
        async for part in stream:
            assert part == chat(content="a")
            break
        with pytest.raises(TimeoutError):  # an SDK reads what follows the end of an answer
            await asyncio.wait_for(read(stream, []), 0.01)
        assert not source.is_left
        await stream.aclose()
        await stream.aclose()
        assert source.is_left
        assert source.is_closed
        with pytest.raises(httpx2.StreamClosed):
            await read(stream, [])
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_closing_a_stream_ends_who_waits_for_it() -> None:
    async def main() -> None:
        stream = JoinedStream(Source([], waits=True))
        waiting = asyncio.create_task(read(stream, []))
        await asyncio.sleep(0.01)
        await stream.aclose()
        with pytest.raises(httpx2.StreamClosed):
            await waiting

    asyncio.run(main())


def test_an_endless_answer_is_not_read_ahead_without_bound() -> None:
    async def main() -> None:
        source = Source([b"x" * 100_000] * 100)
        size = 0
        async for part in JoinedStream(source):
            size += len(part)
            assert source.given * 100_000 <= size + 1_200_000
            await asyncio.sleep(0.001)
        assert size == 10_000_000

    asyncio.run(main())


def test_with_many_open_streams_each_is_read_seldom_and_what_is_there_at_once() -> None:
    class Pieces(Source):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for part in self._parts:
                await asyncio.sleep(0)  # as one that comes over a network
                yield part

    async def main() -> None:
        loop = asyncio.get_running_loop()
        others = [JoinedStream(Source([chat(content="a")], waits=True)) for _ in range(40)]
        for one in others:
            assert [part async for part in _first(one)]
        parts: list[bytes] = []
        start = loop.time()
        await read(JoinedStream(Pieces([chat(content="a")] * 4)), parts)
        assert loop.time() - start >= 3 * 40 * 0.001
        assert len(parts) == 4
        # Those that were read from the system together are not waited for one by one.
        await asyncio.wait_for(read(JoinedStream(Source([chat(content="Z")] * 2000)), parts), 30)
        assert b"".join(parts[4:]).count(b"Z") == 2000
        for one in others:
            await one.aclose()

    asyncio.run(main())


@pytest.mark.anyio
@pytest.mark.parametrize("wire", ["chat", "messages"])
async def test_an_answer_of_many_pieces_is_read_whole(start_wire: StartWire, wire: str) -> None:
    words = [f"w{number} " for number in range(200)]
    if wire == "chat":
        reply = OpenAIWire.stream(*({"content": word} for word in words))
        asked = ask_of(start_wire, reply, reply)
    else:
        reply = AnthropicWire.stream({"type": "text", "text": "".join(words)})
        asked = ask_of(start_wire, reply, reply, provider="anthropic", path="")
    for _ in range(2):
        asked.deltas.clear()
        request = ModelRequest("", [Message.user("go")])
        message = (await asked.model.request(request, asked.deltas.append)).message
        assert message.text == "".join(words)
        heard = [one.text for one in asked.deltas if isinstance(one, TextDelta)]
        assert "".join(heard) == "".join(words)
    await asked.model.aclose()
