"""Keys: the table of the terminal's own keys, for the editor, `/keys` and the documentation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@frozen
class Key:
    """A key.

    Args:
        keys: Its sequences as prompt_toolkit writes them, any of which does it.
        shown: How people write it.
        action: What it does, by name.
        idle: What it does between turns.
        busy: What it does while a turn works; empty where that is the same.
        twin: The command that does the same, for terminals that keep the key.
    """

    keys: tuple[tuple[str, ...], ...]
    shown: str
    action: str
    idle: str
    busy: str
    twin: str


KEYS: Final = (
    Key((("enter",),), "Enter", "send", "send", "queue for the next turn", "/queue"),
    Key((("c-s",),), "Ctrl-S", "steer", "send", "send into this turn", "/steer"),
    Key(
        (("escape",), ("f24",)),
        "Esc",
        "escape",
        "close a menu; twice rewind",
        "stop the turn",
        "/stop",
    ),
    Key(
        (("c-c",),), "Ctrl-C", "interrupt", "clear the text; twice leave", "stop the turn", "/stop"
    ),
    Key((("c-d",),), "Ctrl-D", "end", "leave, or delete", "twice leave", "/exit"),
    Key((("c-z",),), "Ctrl-Z", "suspend", "suspend", "", "/suspend"),
    Key(
        (("escape", "enter"), ("c-j",)),
        "Alt-Enter, Ctrl-J, \\ Enter",
        "newline",
        "start a new line",
        "",
        "/editor",
    ),
    Key((("tab",),), "Tab", "complete", "complete", "", "/complete"),
    Key(
        (("s-tab",),), "Shift-Tab", "mode", "previous way; next permission mode", "", "/permissions"
    ),
    Key((("up",),), "Up", "up", "line up, history", "take the last queued message back", "/recall"),
    Key((("down",),), "Down", "down", "line down, history", "", "/recall"),
    Key((("c-r",),), "Ctrl-R", "search", "search history", "", "/recall TEXT"),
    Key((("c-g",), ("c-x", "c-e")), "Ctrl-G", "editor", "edit in $EDITOR", "", "/editor"),
    Key((("c-v",),), "Ctrl-V", "image", "attach the image on the clipboard", "", "/image"),
    Key((("c-t",),), "Ctrl-T", "transcript", "show the conversation in a pager", "", "/transcript"),
    Key((("c-o",),), "Ctrl-O", "details", "show the last tool call in full", "", "/details"),
    Key((("c-l",),), "Ctrl-L", "clear", "clear the screen; the scrollback stays", "", "/redraw"),
    Key((("c-x", "c"),), "Ctrl-X c", "copy", "copy the last answer", "", "/copy"),
    Key((("c-x", "k"),), "Ctrl-X k", "copy_code", "copy the last code block", "", "/copy code"),
    Key((("c-x", "m"),), "Ctrl-X m", "model", "choose a model", "", "/model"),
    Key((("c-x", "a"),), "Ctrl-X a", "agent", "choose an agent", "", "/agent"),
    Key((("f1",),), "F1, ? when empty", "help", "show keys and commands", "", "/keys"),
)
"""Every key of the terminal itself; those of emacs or vi also edit the text."""


_PREFIXES: Final = {"ctrl": "c-", "shift": "s-", "alt": "escape"}
_NAMED: Final = frozenset(
    {"enter", "tab", "escape", "up", "down", "left", "right", "home", "end", "pageup", "pagedown",
     "delete", "insert", "backspace", "space", *(f"f{number}" for number in range(1, 13))}
)  # fmt: skip


def parse_key(text: str) -> tuple[str, ...] | None:
    """Read a key as users write it: `ctrl-s`, `alt-m`, `f2`, `ctrl-x m`; None where it is none."""
    found: list[str] = []
    for part in text.lower().split():
        *before, name = part.split("-") if part != "-" else ["-"]
        if any(one not in _PREFIXES for one in before) or not (len(name) == 1 or name in _NAMED):
            return None
        if "alt" in before:
            found.append("escape")
        found.append("".join(_PREFIXES[one] for one in before if one != "alt") + name)
    return tuple(found) or None


def bound_keys(bind: Mapping[str, str]) -> tuple[tuple[Key, ...], dict[str, str]]:
    """Return the table of keys with those of `tui.bind` in it.

    Args:
        bind: Actions by key.

    Returns:
        The table, and what is wrong with a key of `bind`, which is then left out.
    """
    keys, problems = list(KEYS), dict[str, str]()
    taken: dict[tuple[str, ...], str] = {}
    for text, action in bind.items():
        sequence = parse_key(text)
        actions = [one.action for one in KEYS]
        if sequence is None:
            problems[text] = f"`{text}` is not a key"
        elif action not in actions:
            near = closest(action, actions)
            meant = f"; did you mean `{near}`?" if near else ""
            problems[text] = f"there is no action `{action}`{meant}"
        elif sequence in taken:
            problems[text] = f"`{text}` is the same key as `{taken[sequence]}`"
        elif (other := _loses_its_key(keys, sequence, action)) is not None:
            problems[text] = f"`{text}` is the only key of `{other}`; bind that to another key too"
        else:
            taken[sequence] = text
            keys = [_rebound(one, sequence, action, text) for one in keys]
    return tuple(keys), problems


def _loses_its_key(keys: Sequence[Key], sequence: tuple[str, ...], action: str) -> str | None:
    for one in keys:
        if (
            one.action != action
            and one.keys
            and all(_covers(sequence, other) for other in one.keys)
        ):
            return one.action
    return None


def _covers(sequence: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether a key could never be reached, since another one is the same or its start."""
    return other[: len(sequence)] == sequence and sequence != ("escape",)


def _rebound(key: Key, sequence: tuple[str, ...], action: str, text: str) -> Key:
    rest = tuple(one for one in key.keys if one != sequence)
    if key.action == action:
        return replace(key, keys=(*rest, sequence), shown=f"{key.shown}, {text}")
    return key if rest == key.keys else replace(key, keys=rest)


def key_lines(keys: Sequence[Key] = KEYS) -> list[str]:
    """Return a line of Markdown for each key."""
    return [
        f"- `{one.shown}`: {one.idle}"
        + (f"; while a turn works: {one.busy}" if one.busy else "")
        + f" (`{one.twin}`)"
        for one in keys
    ]
