"""Cards: an agent's configuration together with the text it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.document import CardDocument
    from fast_agent.text.json_value import JsonObject
    from fast_agent.text.span import Span


@frozen
class Card:
    """One agent of a load-set.

    Args:
        config: What it compiles to.
        path: The file or address, as the user named it; empty for an agent made in Python.
        document: The text it came from; None for an agent made in Python.
        sound: Whether it is free of errors. An unsound card keeps what is right in it, so that
            the checks across cards can still be made; it is never run.
    """

    config: AgentConfig
    path: str = ""
    document: CardDocument | None = field(default=None, repr=False, compare=False)
    sound: bool = True

    def with_config(self, config: AgentConfig) -> Card:
        """Return a copy that compiles to something else."""
        return Card(config, self.path, self.document, self.sound)

    @property
    def written(self) -> JsonObject | None:
        """The values of its fields as they are written, before `${VARIABLES}` are replaced."""
        if self.document is None:
            return None
        value = self.document.yaml.value
        # `dict` first: to ask whether a value is a `Mapping` takes ten times as long.
        return value if isinstance(value, dict | Mapping) else {}

    def locate(self, message: str) -> str:
        """Return a message about it with its name, if no file says where it is."""
        return message if self.path else f"agent `{self.config.name}`: {message}"

    def span_of(self, name: str, *keys: str | int, key: bool = False) -> Span | None:
        """Find where a field, or something in it, is written.

        Args:
            name: The field.
            *keys: Keys and indexes in its value; a part that does not exist is left off.
            key: Whether to return the place of the last key instead of its value.

        Returns:
            Its span in the file; None if the card does not set the field, or was made of an agent
            of another tool.
        """
        if self.document is None or self.document.source.is_made:
            return None
        return self.document.span_of((name, *keys), key=key)

    def source_line(self, number: int) -> str | None:
        """Return a line of its file, numbered from 1; None for an agent made in Python."""
        return None if self.document is None else self.document.source.line(number)
