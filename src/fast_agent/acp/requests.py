"""Requests: what the other side of a connection asks for, and the answers it gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Protocol, TypeAlias

from anyio import CancelScope

from fast_agent.acp.problem import INTERNAL_ERROR, INVALID_REQUEST, Refused
from fast_agent.acp.workers import Workers
from fast_agent.resources.encoding import encode

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from fast_agent.acp.outgoing import Outgoing
    from fast_agent.text.json_value import JsonObject, JsonValue

log = getLogger(__name__)

Work: TypeAlias = Callable[[], Awaitable["JsonObject"]]
RequestId: TypeAlias = "int | str"


class Side(Protocol):
    """What stands behind a peer."""

    def accept(self, method: str, params: JsonObject, scope: CancelScope) -> Work:
        """Take a request, in the order in which they come.

        Args:
            method: What is asked for.
            params: Its parameters.
            scope: What the work runs in; where it is cancelled, `cancelled` answers.

        Returns:
            What gives its result; run beside other requests.

        Raises:
            Refused: It cannot be answered.
        """
        ...

    def cancelled(self, method: str) -> JsonObject:
        """Give the result of a request that was cancelled.

        Raises:
            Refused: There is none.
        """
        ...

    def notice(self, method: str, params: JsonObject) -> None:
        """Take a notification."""
        ...


class Requests:
    """Answers requests, beside each other.

    Args:
        side: Who answers them.
        outgoing: Where answers go.
        tasks: Where they are answered.
        hidden: Hides secrets in an answer or error that is sent.
    """

    def __init__(
        self, side: Side, outgoing: Outgoing, tasks: TaskGroup, hidden: Callable[[bytes], bytes]
    ) -> None:
        self._hidden = hidden
        self._side = side
        self._outgoing = outgoing
        self._workers = Workers(tasks)
        self._running: dict[RequestId, CancelScope] = {}

    def begin(self, number: RequestId, method: str, params: JsonObject) -> None:
        """Take a request."""
        if number in self._running:
            self.refuse(number, Refused(INVALID_REQUEST, "a request with this id is running"))
            return
        scope = CancelScope()
        try:
            work = self._side.accept(method, params, scope)
        except Refused as problem:
            self.refuse(number, problem)
            return
        self._running[number] = scope
        self._workers.do(partial(self._answer, number, method, work, scope))

    def notice(self, method: str, params: JsonObject) -> None:
        """Take a notification."""
        if method == "$/cancel_request":
            self._cancel(params.get("requestId"))
            return
        try:
            self._side.notice(method, params)
        except Refused as problem:
            log.warning("`%s`: %s", method, problem.message)

    def refuse(self, number: RequestId | None, problem: Refused) -> None:
        """Answer that there is no result; without a number where the request has none."""
        name = b"null" if number is None else _id(number)
        error = b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (name, encode(problem.wire))
        self._outgoing.put(self._hidden(error), now=True)

    def end(self) -> None:
        """Take note that no more will come."""
        self._workers.end()

    async def _answer(self, number: RequestId, method: str, work: Work, scope: CancelScope) -> None:
        try:
            result: JsonObject | None = None
            with scope:
                result = await work()
            if result is None:
                result = self._side.cancelled(method)
            answer = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_id(number), encode(result))
            self._outgoing.put(self._hidden(answer), now=True)
        except Refused as problem:
            self.refuse(number, problem)
        except Exception:  # a task boundary: the connection outlives a request it cannot answer
            log.exception("could not answer `%s`", method)
            self.refuse(number, Refused(INTERNAL_ERROR, "internal error"))
        finally:
            del self._running[number]

    def _cancel(self, number: JsonValue) -> None:
        scope = self._running.get(number) if isinstance(number, int | str) else None
        if scope is not None:
            scope.cancel()


def _id(number: RequestId) -> bytes:
    return b"%d" % number if isinstance(number, int) else encode(number)
