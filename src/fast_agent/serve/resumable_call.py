"""A call that is answered over several requests, since the client is asked on the way.

The newest protocol has no requests from server to client. A call that needs the client's person
ends with the questions instead, and with a token; the client asks again with the token and the
answers, and the turn, which waited until then, continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio

from fast_agent.resources.problem import bad_params
from fast_agent.rpc.encoding import NOTHING
from fast_agent.rpc.message import RemoteError
from fast_agent.serve.fair_share import FairShare

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import TaskGroup

    from fast_agent.resources.provider import ToolAnswer
    from fast_agent.serve.agent_call import AgentCall
    from fast_agent.serve.agent_progress import Report
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.human import Human

MAX_WAITING = 100
"""Maximum number of calls that wait for answers of their clients."""

ANSWER_SECONDS = 600.0
"""How long a call waits for them."""


class _Question:
    """One question, until it has an answer."""

    def __init__(self, method: str, params: JsonObject) -> None:
        self.wire: JsonObject = {"method": method, "params": params}
        self.answer: JsonValue = None
        self.answered = anyio.Event()


class ResumableCall:
    """A call under way, and the questions its client has to answer.

    Args:
        call: The call.
        seconds: How long the client may take for an answer; None for `ANSWER_SECONDS`.
    """

    def __init__(self, call: AgentCall, seconds: float | None = None) -> None:
        self.call = call
        self.answer: ToolAnswer | None = None
        self.report: Report | None = None
        self._seconds = ANSWER_SECONDS if seconds is None else seconds
        self._scope = anyio.CancelScope()
        self._questions: dict[str, _Question] = {}
        self._asked = 0
        self._moved = anyio.Event()

    @property
    def ended(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.answer is not None or self._scope.cancel_called

    def cancel(self) -> None:
        """End the turn as if it was cancelled."""
        self._scope.cancel()

    async def run(self, human: Human) -> None:
        """Run the agent; its questions go to the request that waits in `moved`."""
        with self._scope:
            self.answer = await self.call.run(self._tell if self.report else None, human)
        self._moved.set()

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask the client at its next request; see `agent_client.Ask`.

        Raises:
            RemoteError: There was no answer in time.
        """
        self._asked += 1
        name, question = f"q{self._asked}", _Question(method, params)
        self._questions[name] = question
        self._moved.set()
        with anyio.move_on_after(self._seconds):
            await question.answered.wait()
            return question.answer if isinstance(question.answer, Mapping) else NOTHING
        self._questions.pop(name, None)
        self.cancel()
        raise RemoteError("the client gave no answer in time")

    def take(self, answers: JsonObject) -> None:
        """Take the client's answers; a question without one is asked again."""
        for name, answer in answers.items():
            question = self._questions.pop(name, None)
            if question is not None:
                question.answer = answer
                question.answered.set()

    async def moved(self) -> JsonObject | None:
        """Wait for the answer, or for questions.

        Returns:
            The questions as the protocol has them; None where there is the answer, or none will be.
        """
        while not self.ended and not self._questions:
            self._moved = anyio.Event()
            await self._moved.wait()
        if self.ended:
            return None
        return {name: one.wire for name, one in self._questions.items()}

    async def _tell(self, progress: float, message: str) -> None:
        if self.report is not None:
            await self.report(progress, message)


class ResumableCalls:
    """The calls that wait for their clients.

    Args:
        new_id: Returns unguessable tokens.
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._waiting: dict[str, ResumableCall] = {}
        self._shares: FairShare[str] = FairShare(MAX_WAITING)

    async def begin(
        self, tasks: TaskGroup, exchange: ResumableCall, human: Human, owner: str
    ) -> JsonObject | None:
        """Start a call; otherwise like `go_on`."""
        tasks.start_soon(exchange.run, human)
        return await self.go_on(exchange, owner)

    async def go_on(self, exchange: ResumableCall, owner: str) -> JsonObject | None:
        """Wait until a call has its answer or needs one of the client.

        Args:
            exchange: The call.
            owner: Its client.

        Returns:
            What the client is to be given instead of an answer; None if there is the answer.
        """
        try:
            questions = await exchange.moved()
        except BaseException:
            exchange.cancel()  # the client has gone, or cancelled the call
            raise
        if questions is None:
            return None
        self._make_room(owner)
        token = self._new_id()
        self._waiting[token] = exchange
        self._shares.add(token, owner)
        return {"resultType": "input_required", "inputRequests": questions, "requestState": token}

    def find(self, token: object, name: str) -> ResumableCall:
        """Find the call a request continues.

        Raises:
            RequestRefused: There is none, or it is of another tool.
        """
        found = self._waiting.get(token) if isinstance(token, str) else None
        if found is None or found.call.name != name or found.ended:
            raise bad_params("`requestState` is none that this server waits for; call anew")
        self._forget(str(token))
        return found

    def _make_room(self, owner: str) -> None:
        """Cancel a call of the client with the most of them, if as many wait as may."""
        for token in [name for name, one in self._waiting.items() if one.ended]:
            self._forget(token)
        while self._shares.full:
            token = self._shares.to_end(owner, lambda _: True)
            if token is None:
                return
            self._forget(token).cancel()

    def _forget(self, token: str) -> ResumableCall:
        self._shares.remove(token)
        return self._waiting.pop(token)
