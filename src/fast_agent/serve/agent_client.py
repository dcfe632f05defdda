"""The client of a call, as agents may turn to it: its person, and its model."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from fast_agent.rpc.message import RemoteError
from fast_agent.tools.human import HumanAnswer, asker

if TYPE_CHECKING:
    import mcp_types as types

    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.human import HumanRequest

log = logging.getLogger(__name__)

Ask: TypeAlias = Callable[[str, "JsonObject"], Awaitable["JsonObject"]]
"""Sends a request of the server to its client, in whatever way the protocol has; raises
`RemoteError` if the client answers with an error, or cannot answer."""

_ACTIONS = frozenset({"accept", "decline", "cancel"})
_WORDS: JsonObject = {
    "type": "object",
    "properties": {"text": {"type": "string", "title": "Answer"}},
    "required": ["text"],
}


class ServedClient:
    """The person behind a client, and the model it offers.

    Args:
        ask: Asks the client.
        can: The capabilities it declared.
    """

    def __init__(self, ask: Ask, can: JsonObject) -> None:
        self._ask = ask
        self._elicitation = _declared(can, "elicitation")
        self._sampling = _declared(can, "sampling")

    @classmethod
    def of(cls, ask: Ask, can: JsonValue) -> ServedClient | None:
        """Return one for a client that can be asked anything; None for any other."""
        if not isinstance(can, Mapping):
            return None
        client = cls(ask, can)
        return None if client._elicitation is None and client._sampling is None else client

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        """Ask the person; a client that cannot show the question answers `cancel`."""
        if self._elicitation is None:
            return HumanAnswer(action="cancel")
        question = _question(request)
        params: JsonObject
        if request.url is not None:
            if self._elicitation.get("url") is None:
                return HumanAnswer(action="cancel")
            params = {
                "mode": "url",
                "message": question,
                "url": request.url,
                "elicitationId": str(id(request)),
            }
        else:
            form = _WORDS if request.schema is None else request.schema
            params = {"mode": "form", "message": question, "requestedSchema": form}
        try:
            answer = await self._ask("elicitation/create", params)
        except RemoteError as error:
            log.warning("the client could not be asked: %s", error.message)
            return HumanAnswer(action="cancel")
        action, content = answer.get("action"), answer.get("content")
        if action not in _ACTIONS or not (content is None or isinstance(content, Mapping)):
            log.warning("the client's answer to a question is malformed")
            return HumanAnswer(action="cancel")
        return HumanAnswer(
            action=cast("Literal['accept', 'decline', 'cancel']", action),
            content=None if content is None else dict(content),
        )

    def offers_model(self, params: types.CreateMessageRequestParams) -> bool:
        """Whether its model can answer a sampling request."""
        if self._sampling is None:
            return False
        return not params.tools or self._sampling.get("tools") is not None

    async def sample(
        self, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        """Have its model answer a sampling request."""
        import mcp_types as types  # here, since only who has a server that samples has it loaded
        from pydantic import ValidationError

        asked = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        try:
            answer = await self._ask("sampling/createMessage", asked)
            if params.tools:
                return types.CreateMessageResultWithTools.model_validate(answer, by_name=False)
            return types.CreateMessageResult.model_validate(answer, by_name=False)
        except RemoteError as error:
            code = types.INTERNAL_ERROR if error.code is None else error.code
            return types.ErrorData(code=code, message=error.message, data=error.data)
        except ValidationError:
            return types.ErrorData(code=types.INTERNAL_ERROR, message="the answer is malformed")


def _declared(can: JsonObject, name: str) -> JsonObject | None:
    value = can.get(name)
    return value if isinstance(value, Mapping) else None


def _question(request: HumanRequest) -> str:
    """Say who asks; files of this machine are nothing a client needs to know."""
    return f"{asker(request)}:\n{request.message}"
