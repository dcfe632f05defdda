"""The quick way to read the head of a `SKILL.md`: for the plainest of YAML, which most heads are.

A server of a thousand skills reads a thousand heads before it answers. What is read here holds
fields on one line each, in ASCII, without any character that means something more in YAML, and
`metadata` with such lines; everything else takes the thorough way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue

# Plain text that begins with a letter and holds neither `:` nor `#`, or quotes without escapes.
_VALUE = r"""(?:[A-Za-z](?:[ !"$-9;-~]*[!"$-9;-~])?|"[ !#-\[\]-~]*"|'[ -&(-~]*')"""
_INNER = rf"(?:[ ][ ][A-Za-z][A-Za-z0-9_-]*+:[ ]{_VALUE}\n)++"
_PLAIN = re.compile(rf"(?:[a-z][a-z-]*+:[ ]{_VALUE}\n|metadata:\n{_INNER})*+")
_NO_TEXT = frozenset({"null", "true", "false"})
_FENCE = b"---\n"


def plain_fields(data: bytes) -> dict[str, JsonValue] | None:
    """Read the frontmatter of a file where it is plain.

    Args:
        data: The whole file.

    Returns:
        The fields as the thorough way gives them; None where that has to be asked.
    """
    end = data.find(b"\n---\n", 3)
    if end < 0 or not data.startswith(_FENCE) or b"\0" in data:
        return None
    head = data[len(_FENCE) : end + 1]
    if not head.isascii():
        return None
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    text = head.decode("ascii")
    return None if _PLAIN.fullmatch(text) is None else _fields(text)


def _fields(text: str) -> dict[str, JsonValue] | None:
    fields: dict[str, JsonValue] = {}
    inner: dict[str, JsonValue] = {}
    lines = text.split("\n")
    for line in lines[:-1]:
        key, _, value = line.partition(": ")
        if not value:
            key, into = key[:-1], fields
            fields[key] = inner
            continue
        into = fields
        if line[0] == " ":
            key, into = key[2:], inner
        if value[0] in "\"'":
            value = value[1:-1]
        elif value.lower() in _NO_TEXT:
            return None
        if key in into or key.lower() in _NO_TEXT:
            return None
        into[key] = value
    return fields if 0 < len(lines) - 1 == len(fields) + len(inner) else None
