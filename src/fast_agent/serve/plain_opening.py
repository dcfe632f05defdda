"""Opening: a plain handshake, which begins a session the SDK need not know of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fast_agent.errors import FastAgentError
from fast_agent.resources.opening import negotiate
from fast_agent.serve.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.resources.answer import Answer
    from fast_agent.resources.session import Session
    from fast_agent.serve.plain_message import PlainMessage
    from fast_agent.serve.plain_sessions import PlainSession
    from fast_agent.serve.resource_server import ResourceServer
    from fast_agent.text.json_value import JsonValue

    Hold = Callable[[Session, bytes, Mailbox], PlainSession]

_LONGEST = 4096
"""Most bytes of a handshake that is kept for the SDK."""


async def open_plainly(
    server: ResourceServer, message: PlainMessage, body: bytes, hold: Hold
) -> tuple[PlainSession, Answer] | None:
    """Begin a session.

    Args:
        server: Where.
        message: The client's `initialize`.
        body: The same as it came, for the SDK.
        hold: Makes the session of what is known of it.

    Returns:
        The session and the answer; None where only the SDK can say what is wrong.
    """
    can = message.params.get("capabilities")
    if (
        len(body) > _LONGEST
        or not isinstance(can, Mapping)
        or not all(_is_plain(value) for value in can.values())
    ):
        return None
    try:
        negotiate(message.params)
    except FastAgentError:
        return None
    mailbox = Mailbox()
    session = server.service.open(mailbox.put)
    try:
        answer = server.service.answer(session, message.method, message.params, message.id)
        await server.welcome(session, message.params)
    except BaseException as error:
        await server.farewell(session)
        if isinstance(error, FastAgentError):
            return None
        raise
    return None if answer is None else (hold(session, body, mailbox), answer)


def _is_plain(capability: JsonValue) -> bool:
    """Whether a capability is written as the protocol has it: objects, and in them switches."""
    if not isinstance(capability, Mapping):
        return False
    return all(isinstance(one, bool) or _is_plain(one) for one in capability.values())
