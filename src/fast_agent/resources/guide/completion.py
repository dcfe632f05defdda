"""Completing the arguments of the guide's templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.resources.guide.forms import CATEGORY, CATEGORY_DOCUMENT, COLLECTION, DOCUMENT
from fast_agent.resources.problem import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fast_agent.resources.guide.index import GuideIndex

_ARGUMENTS = {
    COLLECTION: ("id",),
    CATEGORY: ("name",),
    CATEGORY_DOCUMENT: ("name", "docId"),
    DOCUMENT: ("context", "docId"),
}


def complete(
    index: GuideIndex, template: str, argument: str, value: str, given: Mapping[str, str]
) -> Iterable[str]:
    """Complete an argument; see `Provider.complete`.

    Args:
        index: The guide as it is now.
        template: One of the guide's templates.
        argument: The argument's name.
        value: What is written of it so far.
        given: The other arguments, those that are known.

    Returns:
        Values that begin with what is written, then those that hold it, each sorted.

    Raises:
        NotFound: There is no such template or argument.
    """
    if argument not in _ARGUMENTS.get(template, ()):
        raise NotFound(f"{template}: {argument}", what="argument")
    if argument == "id":
        names: Iterable[str] = index.config.collections
    elif argument == "name":
        names = index.shelves
    elif argument == "context":
        names = sorted({*index.shelves, *index.config.collections})
    else:
        first = "name" if template == CATEGORY_DOCUMENT else "context"
        names = map(_written, _documents(index, given.get(first), first == "context"))
    return _fitting(names, value)


def _documents(index: GuideIndex, within: str | None, collections: bool) -> Iterable[str]:
    if within is None:
        return sorted({name for shelf in index.shelves.values() for name in shelf.names})
    shelf = index.shelves.get(within)
    names = () if shelf is None else shelf.names
    if not collections or within not in index.config.collections:
        return names
    return sorted({*names, *(one.name for one in index.collection(within))})


def _written(name: str) -> str:
    """Write a name as it goes into a template: what would end the path is encoded."""
    for sign, code in (("%", "%25"), ("?", "%3F"), ("#", "%23")):
        name = name.replace(sign, code)
    return name


def _fitting(names: Iterable[str], value: str) -> Iterator[str]:
    folded = value.casefold()
    inside: list[str] = []
    for name in names:
        place = name.casefold().find(folded)
        if place == 0:
            yield name
        elif place > 0:
            inside.append(name)
    yield from inside
