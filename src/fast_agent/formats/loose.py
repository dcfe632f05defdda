"""Frontmatter that other tools accept although it is not YAML, such as `description: Use: now`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.text.yaml_document import YamlDocument, YamlError, parse_yaml

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue

_OPEN = re.compile(r"\s*---[ \t]*\n")
_CLOSE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_KEY = re.compile(r"""^["']?([A-Za-z_][\w-]*)["']?[ \t]*:(?:[ \t]+(.*)|[ \t]*)$""")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


class Head(NamedTuple):
    """The two parts of a Markdown file.

    Args:
        values: The fields.
        body: What follows them.
        yaml: The places of the fields; None where the text is not YAML.
        problem: Why the text is not YAML, and where; None where it is.
    """

    values: dict[str, JsonValue]
    body: str
    yaml: YamlDocument | None
    problem: tuple[str, int] | None = None


def read_head(text: str) -> Head | None:
    """Split a Markdown file, and read its frontmatter line by line where it is not YAML.

    Args:
        text: The file, with line feeds as line ends.

    Returns:
        Its parts; None where it has no frontmatter.
    """
    opened = _OPEN.match(text)
    if opened is None:
        return None
    closed = _CLOSE.search(text, opened.end())
    if closed is None:
        # Some files forget the closing fence; the fields end at the first empty line.
        end = text.find("\n\n", opened.end())
        end = len(text) if end < 0 else end + 1
        head, body = text[opened.end() : end], text[end:]
        values = read_lines(head)
        return Head(values, body, None, ("the frontmatter is never closed", 1)) if values else None
    head, body = text[opened.end() : closed.start()], text[closed.end() :].removeprefix("\n")
    first_line = text.count("\n", 0, opened.end()) + 1
    try:
        yaml = parse_yaml(head, first_line=first_line)
    except YamlError as error:
        line = error.problems[0].span.start.line
        return Head(read_lines(head), body, None, (error.message, line))
    if yaml.value is None:
        return Head({}, body, yaml)
    if isinstance(yaml.value, dict):
        return Head(yaml.value, body, yaml)
    return None


def read_lines(text: str) -> dict[str, JsonValue]:
    """Read `key: value` lines; deeper lines belong to the key above them.

    Args:
        text: The frontmatter.

    Returns:
        The fields. A value is text, unless it is a number, a boolean, a list in brackets or a list
        of dashes; of a key that is given twice, the last value counts.
    """
    values: dict[str, JsonValue] = {}
    name, first, more = "", "", list[str]()
    for line in text.split("\n"):
        found = _KEY.match(line)
        if found is None:
            more.append(line)
            continue
        if name:
            values[name] = _value(first, more)
        name, first, more = found[1], found[2] or "", []
    if name:
        values[name] = _value(first, more)
    return values


def split_names(text: str) -> list[str]:
    """Split names at commas that stand in no brackets: `Read, Bash(git *, ls), Agent(a)`."""
    names: list[str] = []
    depth = start = 0
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    for at, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth <= 0:
            names.append(text[start:at])
            start = at + 1
    names.append(text[start:])
    return [name.strip().strip("\"'") for name in names if name.strip()]


def _value(first: str, more: list[str]) -> JsonValue:
    lines = [line.strip() for line in more if line.strip() and not line.lstrip().startswith("#")]
    first = first.strip()
    if not first and lines:
        try:
            return parse_yaml("\n".join(more)).value
        except YamlError:
            pass
        if all(line.startswith("-") for line in lines):
            return [_scalar(line[1:].strip()) for line in lines]
    if first[:1] in {"|", ">"}:
        first = ""
    return _scalar(" ".join([first, *lines]).strip())


def _scalar(text: str) -> JsonValue:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text[:1] == text[-1:] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    if text[:1] == text[-1:] == "'" and len(text) > 1:
        return text[1:-1].replace("''", "'")
    if text.startswith("[") and text.endswith("]"):
        return [*split_names(text)]
    try:
        return int(text)
    except ValueError:
        return text
