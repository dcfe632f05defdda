"""The section `guide`: documents in categories and collections, as values and as a table.

A file `.guide.yaml` next to the documents has the same keys.
"""

from __future__ import annotations

from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from fast_agent.schema.kinds import Entry, ListOf, MapOf, PathText, Record, Text
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


def _none() -> Mapping[str, Any]:
    return _NONE


@frozen(kw_only=True)
class CategorySettings:
    """One of `guide.categories`.

    Args:
        dir: Its directory, relative to the docroot; None is the category's name.
        patterns: Which documents of it, or None for all.
        description: What it is about, or None.
    """

    dir: str | None = None
    patterns: tuple[str, ...] | None = None
    description: str | None = None


@frozen(kw_only=True)
class CollectionSettings:
    """One of `guide.collections`.

    Args:
        members: Categories, `category/pattern`, and other collections.
        description: What it is about, or None.
    """

    members: tuple[str, ...]
    description: str | None = None


@frozen(kw_only=True)
class GuideSettings:
    """The section `guide`, or a file `.guide.yaml`.

    Args:
        docroot: The directory all documents are below, absolute; None where it is not given.
        categories: By name, in the order of the file.
        collections: By name, in the order of the file.
    """

    docroot: Path | None = None
    categories: Mapping[str, CategorySettings] = field(default_factory=_none)
    collections: Mapping[str, CollectionSettings] = field(default_factory=_none)


NO_GUIDE: Final = GuideSettings()
"""The section of someone who has none."""

CATEGORY: Final = Record(
    entries=(
        Entry("dir", Text(), "its directory below the docroot; its name, if left out", effects=()),
        Entry("patterns", ListOf(Text()), "which documents of it; all, if left out", effects=()),
        Entry("description", Text(), "what it is about", effects=()),
    ),
    build=CategorySettings,
)
COLLECTION: Final = Record(
    entries=(
        Entry(
            "members",
            ListOf(Text()),
            "categories, `category/pattern`, and other collections",
            effects=(),
            required=True,
        ),
        Entry("description", Text(), "what it is about", effects=()),
    ),
    build=CollectionSettings,
)
GUIDE: Final = Record(
    entries=(
        Entry("docroot", PathText(), "the directory all documents are below", effects=("read",)),
        Entry("categories", MapOf(CATEGORY), "directories of documents by name", effects=()),
        Entry("collections", MapOf(COLLECTION), "choices of documents by name", effects=()),
    ),
    build=GuideSettings,
)
"""The section, and a whole `.guide.yaml`."""
