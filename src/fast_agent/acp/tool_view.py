"""Tool view: how a tool call is shown: its title, its kind, and the files it is about."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.text.json_value import JsonObject, JsonValue

_LONGEST: Final = 120

_OWN = {
    "execute": "execute",
    "read_text_file": "read",
    "write_text_file": "edit",
    "read_file": "read",
    "write_file": "edit",
    "edit_file": "edit",
    "list_dir": "read",
    "glob": "search",
    "grep": "search",
    "fetch": "fetch",
}
_WORDS: Final = (
    ("delete", frozenset({"delete", "remove", "rm", "unlink"})),
    ("move", frozenset({"move", "rename", "mv"})),
    ("edit", frozenset({"edit", "write", "create", "update", "replace", "patch", "insert"})),
    ("search", frozenset({"search", "find", "grep", "glob", "query"})),
    ("execute", frozenset({"execute", "exec", "run", "shell", "bash", "terminal"})),
    ("fetch", frozenset({"fetch", "http", "download", "browse", "crawl"})),
    ("read", frozenset({"read", "get", "list", "show", "view", "cat", "open", "describe"})),
    ("think", frozenset({"think", "plan", "reason"})),
)
_PATHS: Final = ("path", "file_path", "filepath", "file", "filename", "uri", "agent_card_path")
_PARTS = re.compile(r"[a-z]+|[A-Z][a-z]*")


def tool_kind(name: str, source: str) -> str:
    """Return the kind of work a tool does, as far as its name reveals it."""
    if source == "agent":
        return "think"
    if source == "runtime" and name in _OWN:
        return _OWN[name]
    words = [part.lower() for part in _PARTS.findall(name.rpartition("__")[2])]
    for word in words:
        for kind, known in _WORDS:
            if word in known:
                return kind
    return "other"


def tool_title(name: str, arguments: JsonObject, *, agent: str | None = None) -> str:
    """Name a call for people.

    Args:
        name: The tool's name.
        arguments: Those of the call.
        agent: The agent that makes it, where it is not the one that is talked to.
    """
    subject = arguments.get({"execute": "command", "fetch": "url"}.get(name, "path"))
    title = name
    if name in _OWN and isinstance(subject, str) and subject.strip():
        said = one_line(subject)
        title = said if name == "execute" else f"{name.partition('_')[0].capitalize()} {said}"
    return f"{agent}: {title}" if agent else title


def locations(arguments: JsonObject, cwd: Path) -> list[JsonValue]:
    """Name the files the arguments of a call are about, absolute."""
    found: list[JsonValue] = []
    for name in _PATHS:
        value = arguments.get(name)
        path = _path(value, cwd) if isinstance(value, str) else None
        if path is None:
            continue
        line = arguments.get("line")
        if isinstance(line, int) and not isinstance(line, bool) and line > 0:
            found.append({"path": path, "line": line})
        else:
            found.append({"path": path})
    return found


def one_line(text: str, longest: int = _LONGEST) -> str:
    """Return foreign text as one bounded line without invisible characters."""
    line = " ".join(text.split())
    return visible(line if len(line) <= longest else f"{line[: longest - 1]}…")


def _path(value: str, cwd: Path) -> str | None:
    if "://" in value:
        parts = urlsplit(value)
        return unquote(parts.path) if parts.scheme == "file" and parts.path else None
    if not value.strip() or not value.isprintable():
        return None
    return os.path.normpath(cwd / value)
