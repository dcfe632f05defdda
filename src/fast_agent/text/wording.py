"""Wording: words that depend on what was written, and on a number, a list or a time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_MAX_CHARACTERS = 64


def closest(word: str, choices: Iterable[str]) -> str | None:
    """Find the choice meant by a misspelled word.

    Letter case, `-`, `_` and spaces do not count as differences. One edit is forgiven for every
    three characters, a swap of neighbours being one edit.

    Args:
        word: What was written.
        choices: What could have been written, the more likely first.

    Returns:
        The closest choice, the first of equals; None where nothing is close.
    """
    folded = _fold(word)
    if not folded or len(word) > _MAX_CHARACTERS:
        return None
    best: str | None = None
    best_distance = max(1, len(folded) // 3) + 1
    for choice in choices:
        candidate = _fold(choice)
        if candidate == folded:
            return choice
        if len(choice) > _MAX_CHARACTERS or abs(len(candidate) - len(folded)) >= best_distance:
            continue
        distance = _distance(folded, candidate)
        # Rewriting most of a short word is not a misspelling of it.
        if distance < best_distance and distance < min(len(folded), len(candidate)):
            best, best_distance = choice, distance
    return best


@overload
def did_you_mean(near: str | None) -> str | None: ...
@overload
def did_you_mean(near: str | None, otherwise: str) -> str: ...
def did_you_mean(near: str | None, otherwise: str | None = None) -> str | None:
    """Return the hint that names the closest choice.

    Args:
        near: What `closest` found.
        otherwise: The hint where nothing is close; None for none.
    """
    return f"did you mean `{near}`?" if near else otherwise


def _fold(word: str) -> str:
    return word.casefold().translate(_IGNORED)


_IGNORED = {ord("-"): None, ord("_"): None, ord(" "): None}


def _distance(left: str, right: str) -> int:
    """Count the edits between two words: insert, delete, replace, swap neighbours."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]


def is_subsequence(letters: str, text: str) -> bool:
    """Whether letters occur in a string in their order."""
    place = 0
    for letter in letters:
        place = text.find(letter, place) + 1
        if not place:
            return False
    return True


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number with its noun: `1 turn`, `1,204 turns`.

    Args:
        number: How many there are.
        noun: The word for one of them.
        nouns: The word for several; None adds an `s`.
    """
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def first_of(names: Collection[str], most: int) -> str:
    """List names in backticks, at most `most` of them, and say how many more there are."""
    listed = ", ".join([f"`{name}`" for name in tuple(names)[:most]])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


def local_minute(seconds: float) -> str:
    """Return a time in seconds since the epoch as `2026-11-29 14:05`, in the local time zone."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "minutes")[:16]


def shortened_line(text: str, most: int) -> str:
    """Return a string as one line of at most `most` characters; `…` ends one that was cut."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
