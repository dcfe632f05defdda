"""The quick way to read YAML: for text that provably holds nothing out of the ordinary.

`yaml12` is fast, but the last of two equal keys wins with it, it reads tags and keys that are no
strings, and it gives no places. So it is asked only about text that can hold no anchors, tags,
flow mappings, explicit keys, escapes or further documents, and its answer counts only if the keys
found are as many as the colons that could make one: a dropped duplicate would leave one over.
Everything else goes the way of `yaml_nodes`, which decides alone what is right and wrong.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue

# Characters that are no line ends here but are for others, or that YAML does not allow.
_ODD = re.compile(
    r"[^\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)

_USUAL = re.compile(
    r"""
    (?: [ ]*+ (?:\#[^\n]*+)? \n )*+ (?![ ])                 # the root is not indented
    (?>
        (?: [ ]*+ (?:\#[^\n]*+)? \n )                       # nothing, or a comment
      | [A-Za-z_][\w-]*+ : [ ] [|>]-? \n                    # a text, and its lines
            (?P<indent>[ ]+) [^ \n] [^\n]*+ \n
            (?: (?P=indent) [^\n]*+ \n | [ ]*+ \n )*+
      | (?= [ ] | -[ ] | [A-Za-z_][\w.-]*+ : )            # only fields at the root
        [ ]{0,39}+ (?: -[ ]++ )?                            # a list item
        (?: [A-Za-z_][\w.-]*+ : (?:[ ]+|(?=\n)) )?          # a key
        (?: '[^'\n]*+' [ ]*+                                # a value in quotes
          | "[^"\\\n]*+" [ ]*+
          | \[ (?: [ ]*+ ,? [ ]*+ (?:                     # a list on one line
                '[^'\n]*+' | "[^"\\\n]*+"
              | (?!0[xo]) [A-Za-z0-9_][^\n'"\[\]{},:?\#&*!|>%@`]*+ [*?]?
            ) )*+ [ ]*+ \] [ ]*+
          | (?!0[xo]) [A-Za-z0-9_./$(] [^\n:]*+ (?: :(?![ \n]) [^\n:]*+ )*+    # plain text
          | -[0-9][0-9.]*+
        )? \n
    )*+
    """,
    re.VERBOSE,
)
"""Lines as cards have them: no anchors, tags, flow mappings, escapes or further documents."""

_EXACT = 2.0**53


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
    whole = text if text[-1:] == "\n" else f"{text}\n"
    if _USUAL.fullmatch(whole) is None or _ODD.search(text):
        return None
    if whole is not text and ("|" in text or ">" in text):
        return None  # where a last text ends depends on the line end that is not there
    from yaml12 import parse_yaml

    try:
        value: object = parse_yaml(text)
        if type(value) is not dict:
            return None
        mapping = cast("dict[object, object]", value)
        keys = _count_keys(mapping)
    except (ValueError, _UnusualError):
        return None
    if keys != whole.count(": ") + whole.count(":\n"):
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
            for key in inner:
                if type(key) is not str:
                    raise _UnusualError
            pending.extend(inner.values())
        elif isinstance(value, list):
            pending.extend(cast("list[object]", value))
        elif not _is_plain_scalar(value):
            raise _UnusualError
    return count


def _is_plain_scalar(value: object) -> bool:
    if isinstance(value, float):
        return abs(value) < _EXACT  # a whole number beyond 64 bits has become a decimal one
    return value is None or isinstance(value, int)
