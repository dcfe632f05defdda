"""Keys: the table of the terminal's own keys, for the editor, `/keys` and the documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Key:
    """A key.

    Args:
        keys: Its sequences as prompt_toolkit writes them, any of which does it.
        shown: How people write it.
        action: What it does, by name.
        idle: What it does between turns.
        busy: What it does while a turn works; empty where that is the same.
        twin: The command that does the same, or empty.
    """

    keys: tuple[tuple[str, ...], ...]
    shown: str
    action: str
    idle: str
    busy: str = ""
    twin: str = ""


KEYS: Final = (
    Key((("enter",),), "Enter", "send", "send", "queue for the next turn", "/queue"),
    Key((("c-s",),), "Ctrl-S", "steer", "send", "send into this turn", "/steer"),
    Key((("escape",), ("f24",)), "Esc", "escape", "close a menu", "stop the turn", "/stop"),
    Key((("c-c",),), "Ctrl-C", "interrupt", "clear the text; twice leave", "stop the turn"),
    Key((("c-d",),), "Ctrl-D", "end", "leave, or delete", "twice leave", "/exit"),
    Key((("c-z",),), "Ctrl-Z", "suspend", "suspend"),
    Key(
        (("escape", "enter"), ("c-j",)),
        "Alt-Enter, Ctrl-J, \\ Enter",
        "newline",
        "start a new line",
    ),
    Key((("tab",),), "Tab", "complete", "complete"),
    Key(
        (("s-tab",),), "Shift-Tab", "mode", "previous way; next permission mode", "", "/permissions"
    ),
    Key((("up",),), "Up", "up", "line up, history", "take the last queued message back"),
    Key((("down",),), "Down", "down", "line down, history"),
    Key((("c-r",),), "Ctrl-R", "search", "search history"),
    Key((("c-g",), ("c-x", "c-e")), "Ctrl-G", "editor", "edit in $EDITOR", "", "/editor"),
    Key((("c-t",),), "Ctrl-T", "transcript", "show the conversation in a pager"),
    Key((("c-o",),), "Ctrl-O", "details", "show the last tool call in full"),
    Key((("c-l",),), "Ctrl-L", "clear", "clear the screen; the scrollback stays"),
    Key((("c-x", "c"),), "Ctrl-X c", "copy", "copy the last answer", "", "/copy"),
    Key((("c-x", "k"),), "Ctrl-X k", "copy_code", "copy the last code block", "", "/copy code"),
    Key((("c-x", "m"),), "Ctrl-X m", "model", "choose a model", "", "/model"),
    Key((("c-x", "a"),), "Ctrl-X a", "agent", "choose an agent", "", "/agent"),
    Key((("f1",),), "F1, ? when empty", "help", "show keys and commands", "", "/keys"),
)
"""Every key of the terminal's own; those of emacs or vi edit the text besides."""


def key_lines() -> list[str]:
    """Return a line of Markdown for each key."""
    return [
        f"- `{one.shown}`: {one.idle}"
        + (f"; while a turn works: {one.busy}" if one.busy else "")
        + (f" (`{one.twin}`)" if one.twin else "")
        for one in KEYS
    ]
