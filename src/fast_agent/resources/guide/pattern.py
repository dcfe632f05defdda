"""Patterns of document names: `*`, `?` and `[…]` inside a name, `**` across folders.

Patterns come from clients, so a match takes time in proportion to the texts, whatever the pattern.

The forms of a `guide://` URI are here too: one fixed, four templates.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from fast_agent.resources.resource import Resource, ResourceTemplate
from fast_agent.resources.uri import Uri
from fast_agent.text.frozen import frozen

_Part: TypeAlias = "re.Pattern[str] | str | None"
_WILD = re.compile(r"[*?\[]")


def is_pattern(text: str) -> bool:
    """Return whether a name contains a wildcard."""
    return _WILD.search(text) is not None


@frozen
class Pattern:
    """A pattern, ready to match.

    Args:
        text: As it is written.
        prefix: What every match starts with.
        parts: One for each folder and the last for the name: a string, an expression, or None for
            `**`.
    """

    text: str
    prefix: str
    parts: tuple[_Part, ...]

    @classmethod
    def parse(cls, text: str, *, stem: bool = False) -> Pattern:
        """Read a pattern; every text is one.

        Args:
            text: Names with `/` between them. `**` as a whole name matches any folders, and at the
                end everything below. A `[` that is not closed is literal.
            stem: Whether a text without wildcards also matches names with an added extension.
        """
        names = text.split("/")
        if stem and not is_pattern(text):
            last = re.compile(re.escape(names[-1]) + r"(\.[^.]+)?", re.DOTALL)
            return cls(text, text, (*names[:-1], last))
        if names[-1] == "**":
            names.append("*")
        parts = [
            _part(name)
            for index, name in enumerate(names)
            if name != "**" or _is_first_of_run(names, index)
        ]
        return cls(text, _prefix(names), tuple(parts))

    def matches(self, name: str) -> bool:
        """Return whether a document's name, folders included, matches."""
        if not name.startswith(self.prefix):
            return False
        names = name.split("/")
        parts = self.parts
        at = part = after_star = 0
        star = -1
        while at < len(names):
            if part < len(parts) and parts[part] is None:
                star, after_star = part, at
                part += 1
            elif part < len(parts) and _fits(parts[part], names[at]):
                part += 1
                at += 1
            elif star >= 0:  # let the last `**` take one folder more
                after_star += 1
                part, at = star + 1, after_star
            else:
                return False
        return part == len(parts)


def _is_first_of_run(names: list[str], index: int) -> bool:
    """Whether a `**` is the first of several in a row, which mean the same as one."""
    return index == 0 or names[index - 1] != "**"


def _fits(part: _Part, name: str) -> bool:
    if isinstance(part, str):
        return part == name
    return part is not None and part.fullmatch(name) is not None


def _part(name: str) -> _Part:
    if name == "**":
        return None
    return _expression(name) if is_pattern(name) else name


def _prefix(names: list[str]) -> str:
    literal: list[str] = []
    for name in names:
        wild = _WILD.search(name)
        if wild is not None:
            return "/".join([*literal, name[: wild.start()]])
        literal.append(name)
    return "/".join(literal)


@lru_cache(maxsize=256)
def _expression(name: str) -> re.Pattern[str]:
    """Make the expression of one name.

    Between two stars the leftmost fit is always right, so it is taken once and for all (an atomic
    group): otherwise a pattern of many stars would be tried in every way there is.
    """
    first, *later = [_fixed(piece) for piece in _pieces(name)]
    if not later:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in later[:-1])
    return re.compile(f"{first}{middle}.*{later[-1]}", re.DOTALL)


def _pieces(name: str) -> list[list[str]]:
    """Split a name at its stars into pieces of signs that each take one character."""
    pieces: list[list[str]] = [[]]
    at = 0
    while at < len(name):
        end = at + 1
        if (
            name[at] == "["
            and (close := name.find("]", at + 2 + (name[at + 1 : at + 2] == "!"))) > 0
        ):
            end = close + 1
        sign = name[at:end]
        at = end
        if sign != "*":
            pieces[-1].append(sign)
        elif pieces[-1] or len(pieces) == 1:
            pieces.append([])
    return pieces


def _fixed(signs: list[str]) -> str:
    return "".join(map(_sign_pattern, signs))


def _sign_pattern(sign: str) -> str:
    if sign == "?":
        return "."
    return re.escape(sign) if len(sign) == 1 else _choice(sign[1:-1])


def _choice(inner: str) -> str:
    """Write the inside of `[…]` as an expression; a range that runs backwards holds nothing."""
    negative = inner.startswith("!")
    inner = inner[negative:]
    items: list[str] = []
    at = 0
    while at < len(inner):
        low, high = inner[at], inner[at]
        if inner[at + 1 : at + 2] == "-" and at + 2 < len(inner):
            high = inner[at + 2]
            at += 2
        at += 1
        if low <= high:
            items.append(re.escape(low) if low == high else f"{re.escape(low)}-{re.escape(high)}")
    if not items:
        return "." if negative else "(?!)"
    return f"[{'^' if negative else ''}{''.join(items)}]"


COLLECTION = "guide://collection/{id}"
CATEGORY = "guide://category/{name}"
CATEGORY_DOCUMENT = "guide://category/{name}/{+docId}"
DOCUMENT = "guide://document/{context}/{+docId}"
HELP = Uri.of("guide", ("help",))
MARKDOWN = "text/markdown"
HELP_ENTRY = Resource(
    HELP, "help", "How to read this guide", "Its URIs, contents and formats.", MARKDOWN
)
TEMPLATES = (
    ResourceTemplate(
        CATEGORY,
        "category",
        "Category",
        "All documents of a category; see `guide://help`.",
        MARKDOWN,
    ),
    ResourceTemplate(
        CATEGORY_DOCUMENT,
        "category-document",
        "Documents of a category",
        "A document of a category by name, with or without its extension, or all that a pattern"
        " (`*`, `**`, `%3F`, `[abc]`) fits.",
        MARKDOWN,
    ),
    ResourceTemplate(
        COLLECTION,
        "collection",
        "Collection",
        "All documents of a collection; see `guide://help`.",
        MARKDOWN,
    ),
    ResourceTemplate(
        DOCUMENT,
        "document",
        "Document",
        "One document by the name of its category or collection and its own.",
        MARKDOWN,
    ),
)
