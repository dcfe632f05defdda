"""Project approval: the client asks its user whether what a project brings may act."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from anyio.to_thread import run_sync

from fast_agent.acp.params import text_block
from fast_agent.acp.permission import chosen_option
from fast_agent.commands.command import fenced
from fast_agent.errors import CardError
from fast_agent.rpc.message import RemoteError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import anyio

    from fast_agent.agent_app import AgentApp
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.errors import TrustError
    from fast_agent.program.program import Program
    from fast_agent.registry.reload import Reload
    from fast_agent.rpc.peer import Peer
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.trust.effect import Effect
    from fast_agent.trust.found_set import FoundSet
    from fast_agent.trust.question import Reply

_OPTIONS: Final[Mapping[str, tuple[Reply, str]]] = {
    "allow_once": ("once", "Allow for this session"),
    "allow_always": ("always", "Allow until it changes"),
    "reject_always": ("no", "No"),
}
"""By kind, the answer, and what the user reads."""


class ProjectApproval:
    """Asks about the project of an agent that was found, when it is first talked to.

    Args:
        peer: The client.
        session_id: The session.
        program: The agents.
        asking: Held while a question is open, so that sessions do not ask the same concurrently.
        servers: The names of the servers the editor provides to this session's agents.
    """

    def __init__(
        self,
        peer: Peer,
        session_id: str,
        program: Program,
        asking: anyio.Lock,
        servers: tuple[str, ...] = (),
    ) -> None:
        self._peer = peer
        self._session_id = session_id
        self._program = program
        self._asking = asking
        self._servers = servers
        self._numbers = count(1)
        self._surveyed: tuple[object, tuple[FoundSet, ...]] | None = None
        self._barred: frozenset[str] = frozenset()

    def waiting(self) -> Mapping[str, AgentConfig]:
        """Return the agents that wait for an answer: those left out, and those that servers of the
        editor would reach.
        """
        waiting = self._program.admission.waiting
        if not self._servers:
            return waiting
        cards = self._program.load_set.cards
        reached = [cards[name].config for name in self._reached() if name in cards]
        return {**waiting, **{one.name: one for one in reached}}

    def barred(self) -> frozenset[str]:
        """Return the agents that servers of the editor do not reach now."""
        cards = self._program.load_set.cards.values() if self._servers else ()
        remote = (card.config.name for card in cards if card.config.remote is not None)
        self._barred = frozenset((*self._reached(), *remote))
        return self._barred

    async def apply(self, app: AgentApp) -> None:
        """Pass the editor's servers to agents as currently approved.

        Raises:
            FastAgentError: An agent cannot be made; all stay as they were.
        """
        if not self._servers:
            return
        before = self._barred
        known = (before ^ self.barred()).intersection(app.load_set.cards)
        if known:
            await app.runtime.refresh(app.load_set, {*known, *app.load_set.dependents(known)})

    def _reached(self) -> dict[str, tuple[FoundSet, tuple[Effect, ...]]]:
        """Return the agents of found sets that may not act with the editor's servers."""
        reached: dict[str, tuple[FoundSet, tuple[Effect, ...]]] = {}
        for found in self._sets():
            allowed = self._program.gate.allowed(found)
            for effect in found.effects:
                if effect.holder.kind == "card" and effect not in allowed:
                    _, before = reached.get(effect.holder.name, (found, ()))
                    reached[effect.holder.name] = found, (*before, effect)
        return reached

    def _sets(self) -> tuple[FoundSet, ...]:
        if not self._servers:
            return ()
        stand = (self._program.snapshot.version, id(self._program.settings))
        if self._surveyed is None or self._surveyed[0] != stand:
            self._surveyed = stand, self._program.admission.decisions.sets_with(self._servers)
        return self._surveyed[1]

    def _missing(self, agent: str) -> tuple[FoundSet, tuple[Effect, ...]] | None:
        """Return what of an agent is not allowed, with its set; None where it may act."""
        left = self._program.admission.left_out.get(agent)
        if left is None:
            return self._reached().get(agent)
        found = next((one for one in self._sets() if one.root == left.found.root), left.found)
        return found, left.effects

    async def ask(self, agent: str) -> None:
        """Ask until an agent may act; one question covers all that its project brings.

        What the project changed while the user was reading is not covered by their answer: the
        difference is asked about again.

        Args:
            agent: The agent, which is left out.

        Raises:
            TrustError: It stays left out.
            CardError: It may act, but cards are wrong.
            ConfigError: It may act, but the configuration is wrong; or the answer cannot be kept.
        """
        from fast_agent.trust.question import refusal

        program = self._program
        async with self._asking:
            # Another session, or a terminal, may have approved it.
            done = await self._reconsider()
            while (missing := self._missing(agent)) is not None:
                _check(done)
                found, effects = missing
                reply = None
                if await run_sync(program.gate.can_ask, found):
                    reply = await self._answer_about(found)
                if reply is not None:
                    await run_sync(program.gate.answer, found, reply)
                if reply in {None, "no"}:
                    raise refusal(found, effects, agent=agent)
                done = await self._reconsider()
            _check(done)

    async def _reconsider(self) -> Reload:
        self._surveyed = None
        return await run_sync(self._program.reconsider)

    async def _answer_about(self, found: FoundSet) -> Reply | None:
        """Ask about a project; returns None where the user did not answer."""
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
