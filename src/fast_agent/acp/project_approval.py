"""Project approval: the client asks its person whether what a project brings may act."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from anyio.to_thread import run_sync

from fast_agent.acp.permission import chosen_option
from fast_agent.acp.prompt_content import text_block
from fast_agent.commands.told import fenced
from fast_agent.errors import CardError
from fast_agent.rpc.message import RemoteError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import anyio

    from fast_agent.app import FastAgent
    from fast_agent.errors import TrustError
    from fast_agent.registry.reload import Reload
    from fast_agent.rpc.peer import Peer
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.trust.found_set import FoundSet
    from fast_agent.trust.question import Reply

_OPTIONS: Final[Mapping[str, tuple[Reply, str]]] = {
    "allow_once": ("once", "Allow for this session"),
    "allow_always": ("always", "Allow until it changes"),
    "reject_always": ("no", "No"),
}
"""By kind, the answer, and what the person reads."""


class ProjectApproval:
    """Asks about the project of an agent that was found, when it is first talked to.

    Args:
        peer: The client.
        session_id: The session.
        program: The agents.
        asking: Held while somebody is asked, so that sessions do not ask the same at once.
    """

    def __init__(self, peer: Peer, session_id: str, program: FastAgent, asking: anyio.Lock) -> None:
        self._peer = peer
        self._session_id = session_id
        self._program = program
        self._asking = asking
        self._numbers = count(1)

    async def ask(self, agent: str) -> None:
        """Ask until an agent may act; one question covers all that its project brings.

        What the project changed while the person was reading is not covered by their answer: the
        difference is asked about again.

        Args:
            agent: The agent, which is left out.

        Raises:
            TrustError: It stays left out.
            CardError: It may act, but cards are wrong.
            ConfigError: It may act, but the configuration is wrong; or the answer cannot be kept.
        """
        program = self._program
        async with self._asking:
            # Another session, or a terminal, may have approved it.
            done = await run_sync(program.reconsider)
            while (left := program.admission.left_out.get(agent)) is not None:
                _check(done)
                found = left.found
                reply = None
                if await run_sync(program.gate.can_ask, found):
                    reply = await self._answer_about(found)
                if reply is not None:
                    await run_sync(program.gate.answer, found, reply)
                if reply in {None, "no"}:
                    raise program.admission.refused(left, agent)
                done = await run_sync(program.reconsider)
            _check(done)

    async def _answer_about(self, found: FoundSet) -> Reply | None:
        """Ask about a project; returns None where the person did not answer."""
        from fast_agent.trust.question import render_question

        standing = await run_sync(self._program.gate.approvals.standing, found)
        head, _, rest = render_question(found, standing).partition("\n")
        options: list[JsonValue] = [
            {"optionId": kind, "name": name, "kind": kind} for kind, (_, name) in _OPTIONS.items()
        ]
        shown: JsonObject = {
            "toolCallId": f"project-{next(self._numbers)}",
            "title": head,
            "kind": "other",
            "status": "pending",
            "content": [{"type": "content", "content": text_block(f"{head}\n{fenced(rest)}")}],
        }
        params: JsonObject = {
            "sessionId": self._session_id,
            "toolCall": shown,
            "options": options,
        }
        try:
            answer = await self._peer.request("session/request_permission", params)
        except RemoteError:
            return None
        outcome = answer.get("outcome")
        chosen = chosen_option(outcome if isinstance(outcome, dict) else {}, tuple(_OPTIONS))
        return None if chosen is None else _OPTIONS[chosen][0]


def refusal_text(error: TrustError) -> str:
    """Write an error as a terminal shows it, in a block that keeps its columns."""
    code = "" if error.code is None else f"[{error.code}]"
    return fenced(f"error{code}: {error.message}\nhint: {error.hint}")


def _check(done: Reload) -> None:
    """Check that the cards were taken in.

    Raises:
        CardError: They are wrong.
    """
    if done.refused and done.problems:
        first = done.problems[0]
        raise CardError(first.message, hint=first.hint, diagnostics=done.problems)
