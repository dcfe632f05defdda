"""The quick way to read YAML: for text that provably holds nothing out of the ordinary.

`yaml12` is fast, but the last of two equal keys wins with it, it reads tags and keys that are no
strings, and it gives no places. So it is asked only about text that can hold no anchors, tags,
flow mappings, explicit keys, escapes or further documents, and its answer counts only if the keys
found are as many as the colons that could make one: a dropped duplicate would leave one over.
Everything else goes the way of `yaml_nodes`, which decides alone what is right and wrong.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue

_UNUSUAL = re.compile(
    r"""
      [^\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]
    | ^ (?: % | --- | \.\.\. )                      # directives and documents
    | \A (?: \#.*\n | [ ]*\n )* [ ]+[^ \n]         # an indented root
    | ^ (?! [A-Za-z_][\w-]*:(?:[ ]|$) | [ ] | - | \# | $ )      # other keys at the root
    | [,\[] [ \n]* [:?] | : [,\[\]]                 # colons and question marks in flow lists
    | ^ [ \-?:]{40}                                 # deep nesting
    | (?: ^ | [-:,\[] ) [ ]* (?:                    # where a value may begin:
        ! | [&*](?![ \n]|\Z) | \{(?!\{)             #   tags, anchors, aliases, flow mappings
      | \?(?:[ \n]|\Z) | [|>](?!-?\n[ ]+[^ \n])     #   explicit keys, rare block texts
      )
    | [0-9]{16} | 0x[0-9A-Fa-f]{15}                 # more than 64 bits
    """,
    re.VERBOSE | re.MULTILINE,
)
"""Anything that may be read differently, or that only `yaml_nodes` can judge."""

_KEY_MARK = re.compile(r""":(?=[\s,\[\]{}]|\Z)|["'\]}]:""")
"""Every colon that could stand behind a key, and perhaps a few more."""

_MOST_BRACKETS = 16


class _UnusualError(Exception):
    """The value holds something only `yaml_nodes` can judge."""


def parse_clean(text: str) -> dict[str, JsonValue] | None:
    """Read a YAML mapping, if it is a plain one.

    Args:
        text: One document, with line feeds as line ends.

    Returns:
        The mapping; None where the text has to be read the thorough way.
    """
    text = text.removeprefix("---\n")
    if _UNUSUAL.search(text) or text.count("[") > _MOST_BRACKETS:
        return None
    if "\\" in text and '"' in text:
        return None
    if text[-1:] != "\n" and ("|" in text or ">" in text):
        return None
    from yaml12 import parse_yaml

    try:
        value: object = parse_yaml(text)
        if type(value) is not dict:
            return None
        mapping = cast("dict[object, object]", value)
        keys = _count_keys(mapping)
    except (ValueError, _UnusualError):
        return None
    if keys != len(_KEY_MARK.findall(text)):
        return None
    return cast("dict[str, JsonValue]", mapping)


def _count_keys(mapping: dict[object, object]) -> int:
    """Count the keys of a mapping and all in it, and the key-like colons of its texts."""
    count = 0
    pending: list[object] = [mapping]
    for value in pending:
        if isinstance(value, str):
            if ":" in value:
                count += value.count(": ") + value.count(":\n")
        elif isinstance(value, dict):
            inner = cast("dict[object, object]", value)
            count += len(inner)
            if not all(type(key) is str for key in inner):
                raise _UnusualError
            pending.extend(inner.values())
        elif isinstance(value, list):
            pending.extend(cast("list[object]", value))
        elif not _is_plain_scalar(value):
            raise _UnusualError
    return count


def _is_plain_scalar(value: object) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    return value is None or isinstance(value, int)
