"""The pieces requests are made of: each is written once, and named by its digest after that."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeVar

from fast_agent.messages.json_message import message_to_wire
from fast_agent.text.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fast_agent.messages.message import Message
    from fast_agent.text.json_value import JsonValue

T = TypeVar("T")

_DIGITS: Final = 20
_LINE_BREAKS: Final = re.compile("\n+")
_WORKSPACE: Final = "<<workspace>>"
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class StepRedactor:
    """Keeps secrets out of what is recorded, and makes it the same in every workspace.

    Args:
        secrets: Texts that must not be written.
        workspace: The directory of the program, absolute; empty for none.
    """

    def __init__(self, secrets: Iterable[str] = (), workspace: str = "") -> None:
        self._secrets = Redactor(secrets)
        self._workspace = workspace if workspace.count("/") > 1 else ""
        self._json_workspace = json.dumps(self._workspace)[1:-1]
        self._path = re.compile(re.escape(self._workspace) + r"(?![\w-]|\.\w)")

    def redact(self, text: str) -> str:
        """Replace secrets and the workspace by marks."""
        text = self._secrets.redact(text)
        if self._workspace and self._workspace in text:
            text = self._path.sub(_WORKSPACE, text)
        return text

    def redacted(self, value: JsonValue) -> JsonValue:
        """Copy a value with every text in it hidden."""
        return _mapped(value, self.redact)

    def written(self, value: JsonValue, encoder: json.JSONEncoder) -> tuple[JsonValue, str]:
        """Write a value as JSON, with every text in it hidden.

        Most values hold nothing to hide, which shows faster in their JSON than in each text.

        Args:
            value: The value.
            encoder: Writes it, in ASCII.

        Returns:
            The value without what was hidden, and its JSON.
        """
        try:
            text = encoder.encode(value)
        except TypeError:  # a mapping that is not a dictionary
            text = ""
        names_workspace = self._workspace and self._json_workspace in text
        if text and not names_workspace and self._secrets.is_clean(text):
            return value, text
        value = self.redacted(value)
        return value, encoder.encode(value)

    def restored(self, value: JsonValue) -> JsonValue:
        """Copy a value with this workspace where the mark for one is."""
        return _mapped(value, self._show) if self._workspace else value

    def _show(self, text: str) -> str:
        return text.replace(_WORKSPACE, self._workspace) if _WORKSPACE in text else text


class Parts:
    """Names pieces by their digest.

    Args:
        redactor: What is hidden in them.
        keep: Called once with each new piece and its digest.
    """

    def __init__(self, redactor: StepRedactor, keep: Callable[[str, JsonValue], None]) -> None:
        self.redactor = redactor
        self._keep = keep
        self._known: set[str] = set()
        # Values that are kept alive here cannot lend their id to another.
        self._messages: dict[int, tuple[Message, str]] = {}
        self._values: dict[int, tuple[object, str]] = {}
        self._lines: dict[tuple[str, str], str] = {}

    def digest(self, value: JsonValue) -> str:
        """Name a piece; the same for equal ones."""
        redacted, text = self.redactor.written(value, _ENCODER)
        return self._store(redacted, text)

    def _store(self, value: JsonValue, text: str) -> str:
        digest = sha256(text.encode()).hexdigest()[:_DIGITS]
        if digest not in self._known:
            self._known.add(digest)
            self._keep(digest, value)
        return digest

    def digest_of(self, value: T, write: Callable[[T], JsonValue]) -> str:
        """Name a value that does not change, and is asked for again and again.

        Args:
            value: The value; it is known by its identity.
            write: Writes it as JSON, once.
        """
        found = self._values.get(id(value))
        if found is None:
            found = self._values[id(value)] = value, self.digest(write(value))
        return found[1]

    def digest_of_message(self, message: Message) -> str:
        """Name a message."""
        found = self._messages.get(id(message))
        if found is None:
            found = self._messages[id(message)] = message, self._digest_of_new(message)
        return found[1]

    def _digest_of_new(self, message: Message) -> str:
        return self.digest(message_to_wire(message))

    def digest_of_conversation(self, messages: Sequence[Message]) -> str:
        """Name a conversation: a new message costs one piece, however long the conversation."""
        line = ""
        for message in messages:
            last = self.digest_of_message(message)
            longer = self._lines.get((line, last))
            if longer is None:
                text = f'{{"after":"{line}","message":"{last}"}}'  # digests hold nothing to hide
                longer = self._store({"after": line, "message": last}, text)
                self._lines[(line, last)] = longer
            line = longer
        return line


def spread(asked: JsonValue, parts: Mapping[str, JsonValue]) -> JsonValue:
    """Replace the digests of a model request by their pieces.

    Args:
        asked: What `Parts.question` gave; anything else is given back as it is.
        parts: The pieces by digest. One that is missing stays a digest.
    """
    if not isinstance(asked, Mapping) or "messages" not in asked:
        return asked
    value = {
        key: parts.get(digest, digest) if isinstance(digest, str) and key != "model" else digest
        for key, digest in asked.items()
    }
    messages = messages_of(asked["messages"], parts)
    value["messages"] = [parts.get(one, one) for one in messages]
    return value


def is_same_question(
    old: JsonValue,
    old_parts: Mapping[str, JsonValue],
    new: JsonValue,
    new_parts: Mapping[str, JsonValue],
) -> bool:
    """Return whether two questions to a model differ in line breaks of their system text alone.

    An instruction used to keep the line breaks at its end, also where more text follows it.

    Args:
        old: What was asked before.
        old_parts: The pieces it names, by digest.
        new: What is asked now.
        new_parts: The pieces that names.
    """
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return False
    texts = (old_parts.get(str(old.get("system"))), new_parts.get(str(new.get("system"))))
    if {**old, "system": ""} != {**new, "system": ""}:
        return False
    before, now = (_LINE_BREAKS.sub("\n", one).rstrip() if isinstance(one, str) else None
                   for one in texts)  # fmt: skip
    return before is not None and before == now


def messages_of(line: JsonValue, parts: Mapping[str, JsonValue]) -> list[str]:
    """Return the digests of the messages of a conversation, the oldest first.

    Args:
        line: What `Parts.digest_of_conversation` gave.
        parts: The pieces by digest. Where one is missing, its digest is the first.
    """
    messages: list[str] = []
    while isinstance(line, str) and line:
        joint = parts.get(line)
        if not isinstance(joint, dict | Mapping):
            messages.append(line)
            break
        messages.append(str(joint.get("message")))
        line = joint.get("after")
    return messages[::-1]


def _mapped(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    if isinstance(value, str):
        return change(value)
    # Before the protocols below: to ask whether a value is a `Mapping` takes ten times as long.
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, dict | Mapping):
        return {key: _mapped(inner, change) for key, inner in value.items()}
    return [_mapped(inner, change) for inner in value]
