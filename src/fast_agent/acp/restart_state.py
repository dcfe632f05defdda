"""RestartState: what a process leaves to the one that takes its place in the same connection."""

from __future__ import annotations

import json
import os
from logging import getLogger
from typing import TYPE_CHECKING, Final, cast

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from fast_agent.text.json_value import JsonObject

VARIABLE: Final = "FAST_AGENT_ACP_HANDOVER"
"""Names the descriptor it is read from, for the one process it is meant for."""

log = getLogger(__name__)


@frozen(kw_only=True)
class RestartState:
    """Everything the next process needs to continue with a client as if nothing had happened.

    Args:
        hello: The parameters of the client's `initialize`.
        sessions: Those of a `session/resume` for each session, with the `agent` it talks to.
        unread: The start of a message that has not arrived whole.
        asked: How many requests the client was sent; no number is used twice.
    """

    hello: JsonObject
    sessions: tuple[JsonObject, ...]
    unread: bytes = b""
    asked: int = 0

    def leave(self, environ: MutableMapping[str, str]) -> None:
        """Leave it to the program that this process runs next.

        It travels in a file without a name, because what clients send may contain secrets.

        Args:
            environ: The environment of that program.

        Raises:
            OSError: It cannot be written.
        """
        from base64 import b64encode
        from tempfile import mkstemp

        facts = {
            "hello": self.hello,
            "sessions": self.sessions,
            "unread": b64encode(self.unread).decode(),
            "asked": self.asked,
        }
        descriptor, path = mkstemp()
        os.unlink(path)  # noqa: PTH108
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(json.dumps(facts).encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.set_inheritable(descriptor, True)
        environ[VARIABLE] = str(descriptor)

    @classmethod
    def taken(cls, environ: MutableMapping[str, str]) -> RestartState | None:
        """Take what was left to this process; nothing of it stays in the environment.

        Args:
            environ: The environment.
        """
        named = environ.pop(VARIABLE, None)
        if named is None:
            return None
        from base64 import b64decode

        try:
            with os.fdopen(int(named), "rb") as file:
                facts = cast("dict[str, object]", json.loads(file.read()))
            return cls(
                hello=cast("JsonObject", facts["hello"]),
                sessions=tuple(cast("list[JsonObject]", facts["sessions"])),
                unread=b64decode(cast("str", facts["unread"])),
                asked=cast("int", facts["asked"]),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("what the process before left cannot be read: %s", error)
            return None
