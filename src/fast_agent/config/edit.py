"""Editing a configuration file: one key of a section is set, everything else stays as written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fast_agent.errors import ConfigError
from fast_agent.text.span import Span

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue


def with_setting(text: str, section: str, key: str, value: JsonValue) -> str:
    """Return the text of a configuration with another value of a key of a section.

    Args:
        text: The text of the file; empty where there is none.
        section: Such as `tui`.
        key: Such as `width`.
        value: A scalar, or a list of scalars.

    Raises:
        ConfigError: The text cannot be changed safely.
    """
    from fast_agent.text.yaml_document import YamlError, parse_yaml

    written = _written(value)
    try:
        document = parse_yaml(text)
        whole = document.value if isinstance(document.value, dict) else {}
        known = whole.get(section)
        if not isinstance(known, dict):
            start = text if not text or text.endswith("\n") else f"{text}\n"
            changed = f"{start}{section}:\n  {key}: {written}\n"
        elif key in known:
            # A block list may be indented as its key is, which a list in brackets may not.
            indent = "  " if isinstance(value, list) else ""
            changed = _replaced(text, document.span_of((section, key)), f"{indent}{written}")
        else:
            first = next(iter(known))
            there = document.span_of((section, first), key=True)
            braces = document.written((section,)).startswith("{")
            rest = ", " if braces else "\n" + " " * (there.start.column - 1)
            changed = _replaced(text, Span(there.start, there.start), f"{key}: {written}{rest}")
        again = parse_yaml(changed).value
    except YamlError as error:
        raise _by_hand(section, key) from error
    others = known if isinstance(known, dict) else {}
    if again != {**whole, section: {**others, key: value}}:
        raise _by_hand(section, key)
    return changed


def _written(value: JsonValue) -> str:
    from fast_agent.text.yaml_writer import write_scalar

    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return write_scalar(value) if isinstance(value, str) else json.dumps(value)


def _replaced(text: str, span: Span, new: str) -> str:
    """Replace a part of a text; whole lines stay whole."""
    lines = text.splitlines(keepends=True)
    before = "".join(lines[: span.start.line - 1])
    before += lines[span.start.line - 1][: span.start.column - 1]
    last = lines[span.end.line - 1] if span.end.line <= len(lines) else ""
    after = last[span.end.column - 1 :] + "".join(lines[span.end.line :])
    line_end = "" if after[:1] in {"", "\n"} or span.start == span.end else "\n"
    return f"{before}{new}{line_end}{after}"


def _by_hand(section: str, key: str) -> ConfigError:
    return ConfigError(
        "the configuration of the home cannot be changed automatically",
        hint=f"set `{section}: {{{key}: …}}` in it by hand",
    )
