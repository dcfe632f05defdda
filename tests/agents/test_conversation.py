"""The agents of one conversation: made when they are asked for, replaced when cards change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.sessions.session_world import store_in

from fast_agent import FastAgent
from fast_agent.errors import FastAgentError, RunError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


def program(directory: Path) -> FastAgent:
    fast = FastAgent("test", cwd=directory, ignore_config=True)
    for name in ("ann", "bob", "eve"):
        fast.agent(name, "Help.", model="passthrough", default=name == "ann")
    return fast


async def test_agents_are_made_when_they_are_asked_for_and_once(tmp_path: Path) -> None:
    async with program(tmp_path).run() as app:
        conversation = app.new_conversation()
        assert conversation.live == ()
        ann = conversation.agent("ann")
        assert conversation.agent("ann") is ann
        assert conversation.live == ("ann",)
        await conversation.aclose()
        assert conversation.live == ()
        with pytest.raises(RunError):
            conversation.agent("bob")


async def test_conversations_are_separate_and_end_with_their_blocks(tmp_path: Path) -> None:
    async with program(tmp_path).run() as app:
        await app("mine")
        async with app.new_conversation() as hers, app.new_conversation() as his:
            await app.agent("ann", hers).send("hers")
            await app.agent("ann", his).send("his")
            for conversation, said in ((hers, "hers"), (his, "his"), (None, "mine")):
                history = app.agent("ann", conversation).history
                assert [message.text for message in history] == [said, said]
        assert (hers.live, his.live) == ((), ())
        with pytest.raises(RunError, match="closed"):
            app.agent("ann", hers)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_problem_of_closing_is_raised_unless_another_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    async with program(tmp_path).run() as app:

        async def refuse() -> None:
            raise FastAgentError("it cannot be closed")

        async def converse() -> None:
            async with app.new_conversation() as conversation:
                monkeypatch.setattr(conversation.agent("ann"), "aclose", refuse)
                if fails:
                    raise FastAgentError("the block is wrong")

        with pytest.raises(FastAgentError, match="is wrong" if fails else "cannot be closed"):
            await converse()


async def test_only_what_changed_and_was_asked_for_is_made_again(tmp_path: Path) -> None:
    async with program(tmp_path).run() as app:
        conversation = app.new_conversation()
        ann, bob = conversation.agent("ann"), conversation.agent("bob")
        await bob.send("remember this")
        fresh = conversation.prepare({"bob", "eve"})
        assert list(fresh) == ["bob"]
        assert fresh["bob"] is not bob
        assert conversation.agent("bob") is bob, "nothing is replaced yet"
        old = conversation.take(fresh, gone=["ann", "eve"])
        assert old == [ann, bob]
        assert conversation.live == ("bob",)
        assert conversation.agent("bob") is fresh["bob"]
        assert conversation.agent("bob").history[0].text == "remember this"
        for agent in old:
            await agent.aclose()


async def test_what_a_journal_has_is_restored_to_every_agent(tmp_path: Path) -> None:
    with store_in(tmp_path).create() as session:
        async with program(tmp_path).run() as app:
            conversation = app.new_conversation(journal=session.journal)
            for name in ("ann", "bob"):
                await conversation.agent(name).send(f"for {name}")
            again = app.new_conversation(journal=session.journal)
            assert again.usage.requests == conversation.usage.requests == 2
            for name in ("ann", "bob"):
                said = [message.text for message in again.agent(name).history]
                assert said == [f"for {name}", f"for {name}"]
            session.rewind(0)
            again.restore()
            assert [len(again.agent(name).history) for name in ("ann", "bob")] == [0, 0]


async def test_closing_closes_every_agent_and_returns_the_first_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with program(tmp_path).run() as app:
        conversation = app.new_conversation()
        closed: list[str] = []
        for name in ("ann", "bob", "eve"):
            agent = conversation.agent(name)

            async def close(name: str = name) -> None:
                closed.append(name)
                if name != "eve":
                    raise FastAgentError(f"{name} stays open")

            monkeypatch.setattr(agent, "aclose", close)
        problem = await conversation.aclose()
        assert closed == ["ann", "bob", "eve"]
        assert str(problem) == "ann stays open"
