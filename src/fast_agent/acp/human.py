"""Human: questions to the person, asked through the client."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Final

from fast_agent.acp.permission import chosen_option
from fast_agent.acp.prompt_content import text_block
from fast_agent.errors import ToolError
from fast_agent.rpc.message import RemoteError
from fast_agent.tools.human import HumanAnswer, asker
from fast_agent.tools.human_form import form_fields

if TYPE_CHECKING:
    from fast_agent.acp.client_side import ClientSide
    from fast_agent.rpc.peer import Peer
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.human import HumanRequest, Origins
    from fast_agent.tools.human_form import FormField

_MAX_CHOICES: Final = 8
_WORDS: JsonObject = {
    "type": "object",
    "properties": {"text": {"type": "string", "title": "Answer"}},
    "required": ["text"],
}
_AWAY = HumanAnswer(action="cancel")


class ClientHuman:
    """The person in front of a client.

    A client without forms is asked where the answer is one of a few: then each is an option of a
    permission. What else it cannot ask is dismissed.

    Args:
        peer: The client.
        session_id: The session.
        client: What the client offers.
        origins: Knows where agents and servers come from.
    """

    def __init__(self, peer: Peer, session_id: str, client: ClientSide, origins: Origins) -> None:
        self._origins = origins
        self._peer = peer
        self._session_id = session_id
        self._client = client
        self._numbers = count(1)

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        """Ask and wait for the answer."""
        message = f"{asker(request, self._origins)}:\n{request.message}"
        try:
            if request.url is not None:
                return await self._open(message, request.url)
            if self._client.forms:
                return await self._fill(message, request.schema)
            return await self._choose(message, request.schema)
        except RemoteError:
            return _AWAY

    async def confirm(self, title: str, text: str, *, yes: str) -> bool:
        """Ask whether to continue; no answer means no.

        Args:
            title: The question, in one line.
            text: What it is about.
            yes: The name of the option that agrees.
        """
        options: list[JsonValue] = [
            {"optionId": "yes", "name": yes, "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]
        shown: JsonObject = {
            "toolCallId": f"question-{next(self._numbers)}",
            "title": title,
            "kind": "other",
            "status": "pending",
            "content": [{"type": "content", "content": text_block(text)}],
        }
        try:
            return await self._chosen(shown, options, ("yes", "no")) == "yes"
        except RemoteError:
            return False

    async def _open(self, message: str, url: str) -> HumanAnswer:
        if not self._client.links:
            return _AWAY
        answer = await self._peer.request(
            "elicitation/create",
            {"sessionId": self._session_id, "mode": "url", "message": message, "url": url,
             "elicitationId": f"link-{next(self._numbers)}"},
        )  # fmt: skip
        return _answer(answer)

    async def _fill(self, message: str, schema: JsonObject | None) -> HumanAnswer:
        form = _WORDS if schema is None else schema
        answer = await self._peer.request(
            "elicitation/create",
            {"sessionId": self._session_id, "mode": "form", "message": message,
             "requestedSchema": form},
        )  # fmt: skip
        return _answer(answer)

    async def _choose(self, message: str, schema: JsonObject | None) -> HumanAnswer:
        field = _only_field(schema)
        if field is None:
            return _AWAY
        values = _values(field)
        options: list[JsonValue] = [
            {"optionId": str(at), "name": label, "kind": _option_kind(label)}
            for at, (_, label) in enumerate(values)
        ]
        shown: JsonObject = {
            "toolCallId": f"question-{next(self._numbers)}",
            "title": " ".join(message.split("\n")[:2]),
            "kind": "other",
            "status": "pending",
            "content": [{"type": "content", "content": text_block(message)}],
        }
        offered = tuple([str(at) for at in range(len(values))])
        chosen = await self._chosen(shown, options, offered)
        if chosen is None:
            return _AWAY
        return HumanAnswer(action="accept", content={field.name: values[int(chosen)][0]})

    async def _chosen(
        self, shown: JsonObject, options: list[JsonValue], offered: tuple[str, ...]
    ) -> str | None:
        """Ask with options; returns the id of the one that was chosen, or None."""
        answer = await self._peer.request(
            "session/request_permission",
            {"sessionId": self._session_id, "toolCall": shown, "options": options},
        )
        outcome = answer.get("outcome")
        return chosen_option(outcome if isinstance(outcome, Mapping) else {}, offered)


def _answer(answer: JsonObject) -> HumanAnswer:
    action, content = answer.get("action"), answer.get("content")
    if action == "accept":
        return HumanAnswer(
            action="accept", content=content if isinstance(content, Mapping) else None
        )
    return HumanAnswer(action="decline") if action == "decline" else _AWAY


def _only_field(schema: JsonObject | None) -> FormField | None:
    """Return the only field of a form if its answer is one of a few, else None."""
    if schema is None:
        return None
    try:
        fields = form_fields(schema)
    except ToolError:
        return None
    if len(fields) != 1 or fields[0].kind == "array":
        return None
    return fields[0] if 0 < len(_values(fields[0])) <= _MAX_CHOICES else None


def _values(field: FormField) -> tuple[tuple[JsonValue, str], ...]:
    if field.kind == "boolean":
        return ((True, "yes"), (False, "no"))
    return field.choices


def _option_kind(label: str) -> str:
    return "reject_once" if label.lower() in {"no", "reject", "deny", "cancel"} else "allow_once"
