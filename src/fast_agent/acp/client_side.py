"""Client side: what the client offers, as it says when it connects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fast_agent.acp.params import child
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject


@frozen(kw_only=True)
class ClientSide:
    """What a client offers; what it does not speak of, it does not offer.

    Args:
        reads_files: Its text files may be read.
        writes_files: They may be written.
        terminal: Whether commands may run in a terminal of the client.
        forms: It asks the person with forms.
        links: It shows the person addresses to open.
    """

    reads_files: bool = False
    writes_files: bool = False
    terminal: bool = False
    forms: bool = False
    links: bool = False


def read_client_side(capabilities: JsonObject) -> ClientSide:
    """Read the capabilities a client declares."""
    files, asking = child(capabilities, "fs"), child(capabilities, "elicitation")
    return ClientSide(
        reads_files=files.get("readTextFile") is True,
        writes_files=files.get("writeTextFile") is True,
        terminal=capabilities.get("terminal") is True,
        forms=isinstance(asking.get("form"), Mapping),
        links=isinstance(asking.get("url"), Mapping),
    )
