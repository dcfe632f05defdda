"""Conversations in the compact form of their provider, at the wire, in sessions and after them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.models.conftest import AnthropicWire, OpenAIWire, Reply
from tests.models.providers.test_native import response_of

from fast_agent import FastAgent, Recorder, Replayer, SessionStore, read_cassette
from fast_agent.agents.live_agent import LlmAgent
from fast_agent.sessions.export import export_json

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from tests.models.conftest import StartWire, Wire

    from fast_agent.agent_app import AgentApp
    from fast_agent.sessions.session import Session
    from fast_agent.steps.steps import Steps

pytestmark = pytest.mark.anyio

SIGNED = {
    "type": "compaction",
    "content": "they greeted each other",
    "signature": "c2lnbmVk",
    "encrypted_content": None,
}


def said(text: str, used: int = 15) -> Reply:
    reply = response_of(
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }
    )
    body = json.loads(reply.chunks[0])
    body["usage"] |= {"input_tokens": used - 5, "total_tokens": used}
    return OpenAIWire.reply(body)


def compacted(secret: str) -> Reply:
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": secret}
    usage = {
        "input_tokens": 900,
        "output_tokens": 20,
        "total_tokens": 920,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    body = {"id": "resp_c", "object": "response.compaction", "created_at": 1, "output": [item]}
    return OpenAIWire.reply({**body, "usage": usage})


def program(tmp_path: Path, model: str, wire: Wire, **card: Any) -> FastAgent:
    provider = model.partition(".")[0]
    (tmp_path / "fast-agent.yaml").write_text(
        f"{provider}: {{base_url: '{wire.url}', api_key: k-secret}}\n"
        f"model_facts: {{{model}: {{context_window: 1000}}}}\n"
    )
    config = tmp_path / "fast-agent.yaml"
    fast = FastAgent("t", config_path=config, cwd=tmp_path, environ={"HOME": str(tmp_path)})
    # Above some length, Anthropic's SDK asks for a stream.
    params = {"max_tokens": 100} if provider == "anthropic" else {}
    fast.agent("ann", "Be kind.", model=model, default=True, request_params=params, **card)
    return fast


def kept(fast: FastAgent, session: Session | None = None) -> AbstractAsyncContextManager[AgentApp]:
    return fast.run() if session is None else fast.run(journal=session.journal)


def sent(wire: Wire, number: int) -> str:
    return json.dumps(wire.seen[number].body)


def ann(app: AgentApp) -> LlmAgent:
    agent = app["ann"]
    assert isinstance(agent, LlmAgent)
    return agent


@pytest.mark.spec("CONTEXT-8")
async def test_a_full_window_is_compacted_by_openai_and_survives_its_session(
    start_wire: StartWire, tmp_path: Path
) -> None:
    wire = start_wire(
        said("the first answer", 900), compacted("b3BhcXVl"), said("the second"), said("the third")
    )
    fast = program(tmp_path, "openai.gpt-5", wire)
    store = SessionStore(tmp_path / "kept")
    with store.create() as session:
        async with kept(fast, session) as app:
            assert await app.ann("the first question") == "the first answer"
            assert await app.ann("the next") == "the second"
            assert [one.text for one in ann(app).history] == [
                "the first question",
                "the first answer",
                "the next",
                "the second",
            ]
            assert ann(app).usage.requests == 3
            assert ann(app).usage.total_tokens == 900 + 920 + 15
    assert [one.path for one in wire.seen] == ["/responses", "/responses/compact", "/responses"]
    assert "the first answer" in sent(wire, 1)
    assert "b3BhcXVl" in sent(wire, 2)
    assert "the first answer" not in sent(wire, 2)
    with store.open(session.id) as again:
        exported = export_json(again.state)
        assert "the first answer" in exported
        assert "b3BhcXVl" not in exported
        async with kept(program(tmp_path, "openai.gpt-5", wire), again) as app:
            assert await app.ann("and now") == "the third"
        assert "b3BhcXVl" in sent(wire, 3)
        assert "the first answer" not in sent(wire, 3)
        assert "the second" in sent(wire, 3)
        again.rewind(1)
        made = again.journal.compaction("ann")
        assert made is None


@pytest.mark.spec("CONTEXT-8")
async def test_another_model_is_given_a_summary_of_what_only_the_first_can_read(
    start_wire: StartWire, tmp_path: Path
) -> None:
    wire = start_wire(said("the first answer", 900), compacted("b3BhcXVl"), said("the second"))
    store = SessionStore(tmp_path / "kept")
    with store.create() as session:
        async with kept(program(tmp_path, "openai.gpt-5", wire), session) as app:
            await app.ann("the first question")
            await app.ann("the next")
    other = start_wire(
        OpenAIWire.answer(content="they talked of the first question"),
        OpenAIWire.answer(content="the third"),
    )
    with store.open(session.id) as again:
        async with kept(program(tmp_path, "generic.m", other), again) as app:
            assert await app.ann("and now") == "the third"
            made = ann(app).conversation.compaction
            assert made is not None
            assert made.native is None
    assert "the first answer" in sent(other, 0)
    assert "they talked of the first question" in sent(other, 1)
    assert "b3BhcXVl" not in sent(other, 0) + sent(other, 1)
    assert "the first answer" not in sent(other, 1)
    with store.open(session.id) as again:
        made = again.journal.compaction("ann")
        assert made is not None
        assert (made.summary, made.native) == ("they talked of the first question", None)


@pytest.mark.spec("CONTEXT-8")
async def test_a_person_has_anthropic_compact_a_conversation(
    start_wire: StartWire, tmp_path: Path
) -> None:
    text = {"type": "text", "text": "hello yourself"}
    wire = start_wire(
        AnthropicWire.answer(text),
        AnthropicWire.answer(SIGNED, stop="compaction"),
        AnthropicWire.answer({"type": "text", "text": "still here"}),
    )
    store = SessionStore(tmp_path / "kept")
    with store.create() as session:
        async with kept(program(tmp_path, "anthropic.claude-sonnet-4-6", wire), session) as app:
            await app.ann("hello")
            made = await ann(app).compact("the names")
            assert made.summary == "they greeted each other"
            assert await app.ann("are you there?") == "still here"
    asked, after = wire.seen[1].body, wire.seen[2].body
    assert asked["compaction"]["type"] == "summarize"
    assert "the names" in asked["compaction"]["instructions"]
    assert "Be kind." not in asked["compaction"]["instructions"]  # that is its system prompt
    assert "compaction" not in after
    blocks = [block for one in after["messages"] for block in one["content"]]
    assert [block["type"] for block in blocks] == ["compaction", "text"]
    assert blocks[0]["signature"] == "c2lnbmVk"
    other = start_wire(OpenAIWire.answer(content="as well"))
    with store.open(session.id) as again:
        async with kept(program(tmp_path, "generic.m", other), again) as app:
            assert await app.ann("and you?") == "as well"
    assert len(other.seen) == 1
    assert "they greeted each other" in sent(other, 0)


@pytest.mark.spec("CONTEXT-8")
@pytest.mark.parametrize("model", ["openai.gpt-5", "anthropic.claude-haiku-4-5"])
async def test_where_the_provider_has_no_such_form_the_model_summarizes(
    start_wire: StartWire, tmp_path: Path, model: str
) -> None:
    if model.startswith("openai"):
        refused = OpenAIWire.error(404, "no such path")
        wire = start_wire(said("one"), refused, said("a summary"), said("two"))
    else:
        first, summary, last = (
            {"type": "text", "text": one} for one in ("one", "a summary", "two")
        )
        answer, stream = AnthropicWire.answer, AnthropicWire.stream
        wire = start_wire(answer(first), stream(summary), answer(last))
    async with kept(program(tmp_path, model, wire)) as app:
        await app.ann("hello")
        made = await ann(app).compact()
        assert (made.summary, made.native) == ("a summary", None)
        assert await app.ann("more") == "two"
    assert "a summary" in sent(wire, len(wire.seen) - 1)


@pytest.mark.spec("CONTEXT-8")
async def test_a_card_may_ask_for_summaries(start_wire: StartWire, tmp_path: Path) -> None:
    wire = start_wire(said("one"), said("a summary"))
    fast = program(tmp_path, "openai.gpt-5", wire, compaction={"native": False})
    async with kept(fast) as app:
        await app.ann("hello")
        assert (await ann(app).compact()).summary == "a summary"
    assert [one.path for one in wire.seen] == ["/responses", "/responses"]


@pytest.mark.spec("CONTEXT-8")
async def test_a_recorded_compaction_is_replayed_without_its_provider(
    start_wire: StartWire, tmp_path: Path
) -> None:
    wire = start_wire(said("one"), compacted("b3BhcXVl"), said("two"))

    async def talk(steps: Steps) -> list[str]:
        async with program(tmp_path, "openai.gpt-5", wire).run(steps=steps) as app:
            await app.ann("hello")
            await ann(app).compact()
            await app.ann("more")
            return [one.text for one in ann(app).conversation.view]

    recorder = Recorder(tmp_path / "run.jsonl")
    seen = await talk(recorder)
    recorder.close()
    assert seen[1:] == ["", "more", "two"]
    replayer = Replayer(read_cassette(tmp_path / "run.jsonl"))
    assert await talk(replayer) == seen
    assert replayer.left() == ()
    assert len(wire.seen) == 3
