"""Cassettes: what is written is read, whatever it is and wherever it breaks off."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast_agent.errors import FastAgentError, RunError
from fast_agent.messages.json_message import message_to_wire
from fast_agent.messages.message import Message
from fast_agent.models.model import ModelRequest, TextDelta, ThinkingDelta
from fast_agent.models.offline import PassthroughModel
from fast_agent.models.script import Say, ScriptedModel
from fast_agent.models.step_model import StepModel, UnaskedModel
from fast_agent.recording.cassette import CassetteWriter, Entry, Failure, Recorder, read_cassette
from fast_agent.recording.replayer import Replayer, difference
from fast_agent.steps.parts import Parts, StepRedactor, spread
from fast_agent.steps.steps import Key, Kind, entered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.models.model import Delta, Model
    from fast_agent.steps.steps import Steps
    from fast_agent.text.json_value import JsonValue

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.builds(
    Key,
    st.text(max_size=8),
    st.sampled_from(get_args(Kind)),
    st.text(max_size=8),
    st.integers(1, 3),
)
ENTRIES = st.lists(
    st.builds(Entry, KEYS, VALUES, VALUES)
    | st.builds(Entry, KEYS, VALUES, unfinished=st.just(value=True))
    | st.builds(
        Entry,
        KEYS,
        VALUES,
        failure=st.builds(Failure, st.text(), st.text(), st.none() | st.text()),
    ),
    max_size=5,
    unique_by=lambda entry: entry.key,
)


def written(entries: Sequence[Entry]) -> bytes:
    """Return the bytes of a recording."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.jsonl"
        writer = CassetteWriter(path, {})
        for entry in entries:
            writer.entry(entry)
        writer.close()
        return path.read_bytes()


def read(data: bytes) -> list[Entry]:
    """Read a recording of these bytes."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.jsonl"
        path.write_bytes(data)
        return list(read_cassette(path).entries.values())


@pytest.mark.spec("REPLAY-7")
@settings(max_examples=60)
@given(entries=ENTRIES, part=st.floats(0, 1))
def test_what_is_written_is_read_up_to_where_it_breaks_off(
    entries: list[Entry], part: float
) -> None:
    data = written(entries)
    assert read(data) == entries
    cut = data[: int(len(data) * part)]
    whole = cut.count(b"\n")
    if whole:
        # The head is a line too, and the line that ends a recording is not an entry.
        assert read(cut) == entries[: whole - 1]
    else:
        with pytest.raises(RunError, match=r"is empty|holds no whole line"):
            read(cut)


@given(data=st.binary() | st.lists(VALUES.map(repr)).map("\n".join).map(str.encode))
def test_what_is_no_recording_is_refused(data: bytes) -> None:
    for head in (b"", b'{"cassette": 1}\n'):
        with suppress(RunError):  # anything else that is raised is a fault
            read(head + data)


@given(old=VALUES, new=VALUES)
def test_a_difference_is_empty_only_where_nothing_is_shown_to_differ(
    old: JsonValue, new: JsonValue
) -> None:
    assert difference(old, old) == ""
    lines = difference(old, new).split("\n")
    assert len(lines) < 70
    if lines != [""]:
        assert any(line.startswith(("-", "+")) for line in lines)


def test_a_conversation_costs_one_piece_a_message() -> None:
    kept: dict[str, JsonValue] = {}
    parts = Parts(StepRedactor(), kept.__setitem__)
    messages = [Message.user(f"message {number}") for number in range(50)]
    digest = ""
    for length in range(1, 51):
        digest = parts.digest_of_conversation(messages[:length])
    assert len(kept) == 100
    asked = spread({"messages": digest, "model": "m"}, kept)
    said = [message_to_wire(message) for message in messages]
    assert asked == {"messages": said, "model": "m"}


async def answered(model: Model, steps: Steps, text: str = "hi") -> tuple[Message, list[Delta]]:
    """Return the answer to a request of a run, and the pieces it was streamed in."""
    heard: list[Delta] = []
    request = ModelRequest("", (Message.user(text),))
    with entered(steps.top):
        return (await StepModel(model).request(request, heard.append)).message, heard


@pytest.mark.anyio
async def test_pieces_are_replayed_as_they_came(tmp_path: Path) -> None:
    say = Say("one two", ("one", " two"), thinking="well")
    recorder = Recorder(tmp_path / "a")
    first = await answered(ScriptedModel([say, "three"], "m"), recorder)
    recorder.close()
    assert first[1] == [ThinkingDelta("well"), TextDelta("one"), TextDelta(" two")]
    player = Replayer(read_cassette(tmp_path / "a"))
    assert await answered(UnaskedModel("m"), player) == first


@pytest.mark.anyio
async def test_another_model_is_another_request(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "a")
    await answered(PassthroughModel("one"), recorder)
    recorder.close()
    player = Replayer(read_cassette(tmp_path / "a"))
    with pytest.raises(RunError, match=r"-model: one\n\+model: two"):
        await answered(UnaskedModel("two"), player)
    with pytest.raises(RunError, match=r"-model: one\n\+model: two"):
        await answered(UnaskedModel("one"), player)


@pytest.mark.anyio
@pytest.mark.parametrize("gave", ["5", "{}", '{"message": {"role": "nobody"}}', '"text"', "null"])
async def test_an_answer_that_was_spoilt_is_reported(tmp_path: Path, gave: str) -> None:
    path = tmp_path / "a"
    recorder = Recorder(path)
    await answered(PassthroughModel("m"), recorder)
    recorder.close()
    lines = path.read_text().split("\n")
    at = next(number for number, line in enumerate(lines) if '"gave"' in line)
    lines[at] = lines[at].partition('"gave": ')[0] + f'"gave": {gave}}}'
    path.write_text("\n".join(lines))
    player = Replayer(read_cassette(path))
    with pytest.raises(FastAgentError, match="cannot be used"):
        await answered(UnaskedModel("m"), player)
    with pytest.raises(RunError, match="cannot be used"):
        player.check()


def test_a_full_disk_is_reported() -> None:
    with pytest.raises(RunError, match="`/dev/full` cannot be written: no space left"):
        CassetteWriter(Path("/dev/full"), {})
