"""The client of a call, as agents may turn to it: its person, and its model."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, ValidationError

from fast_agent.tools.human import HumanAnswer, asker

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.human import HumanRequest

_Result = TypeVar("_Result", bound=BaseModel)

log = logging.getLogger(__name__)

_WORDS: JsonObject = {
    "type": "object",
    "properties": {"text": {"type": "string", "title": "Answer"}},
    "required": ["text"],
}


class Ask(Protocol):
    """Sends a request of the server's to its client, in whatever way the protocol has."""

    async def __call__(self, request: types.ServerRequest, result: type[_Result]) -> _Result:
        """Ask and wait for the answer.

        Raises:
            MCPError: The client answered with an error, or cannot be asked.
        """
        ...


class ServedClient:
    """The person behind a client, and the model it offers.

    Args:
        ask: Asks the client.
        can: What it declared.
    """

    def __init__(self, ask: Ask, can: types.ClientCapabilities) -> None:
        self._ask = ask
        self._can = can

    @classmethod
    def of(cls, ask: Ask, can: types.ClientCapabilities | None) -> ServedClient | None:
        """Make one for a client that can be asked anything; None for any other."""
        if can is None or (can.elicitation is None and can.sampling is None):
            return None
        return cls(ask, can)

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        """Ask the person; a client that cannot show the question answers `cancel`."""
        elicitation = self._can.elicitation
        if elicitation is None:
            return HumanAnswer(action="cancel")
        params: types.ElicitRequestFormParams | types.ElicitRequestURLParams
        if request.url is not None:
            if elicitation.url is None:
                return HumanAnswer(action="cancel")
            params = types.ElicitRequestURLParams(
                message=_question(request), url=request.url, elicitation_id=str(id(request))
            )
        else:
            form = _WORDS if request.schema is None else request.schema
            params = types.ElicitRequestFormParams(
                message=_question(request), requested_schema=dict(form)
            )
        try:
            answer = await self._ask(types.ElicitRequest(params=params), types.ElicitResult)
        except (MCPError, NoBackChannelError, ValidationError) as error:
            log.warning("the client could not be asked: %s", error)
            return HumanAnswer(action="cancel")
        content = dict(answer.content) if answer.content is not None else None
        return HumanAnswer(action=answer.action, content=content)

    def offers_model(self, params: types.CreateMessageRequestParams) -> bool:
        """Whether its model can answer a sampling request."""
        sampling = self._can.sampling
        return sampling is not None and (not params.tools or sampling.tools is not None)

    async def sample(
        self, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        """Have its model answer a sampling request."""
        request = types.CreateMessageRequest(params=params)
        try:
            if params.tools:
                return await self._ask(request, types.CreateMessageResultWithTools)
            return await self._ask(request, types.CreateMessageResult)
        except MCPError as error:
            return error.error
        except ValidationError:
            return types.ErrorData(code=types.INTERNAL_ERROR, message="the answer is malformed")


def through_session(session: ServerSession, request_id: types.RequestId | None) -> Ask:
    """Ask over the stream of the request that is being answered, as handshake clients have it."""

    async def ask(request: types.ServerRequest, result: type[_Result]) -> _Result:
        about = ServerMessageMetadata(related_request_id=request_id)
        return await session.send_request(request, result, metadata=about)

    return ask


def _question(request: HumanRequest) -> str:
    """Say who asks; files of this machine are nothing a client needs to know."""
    return f"{asker(request)}:\n{request.message}"
