"""The index of a guide: which documents there are, by category, at one moment.

It is made from the names in the tree alone; no document is read for it.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fast_agent.diagnostics.rules import EMPTY_GUIDE_MEMBER
from fast_agent.resources.guide.pattern import Pattern, is_pattern
from fast_agent.resources.uri import Uri
from fast_agent.text.suggestion import closest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.guide.config import Category, GuideConfig, Member
    from fast_agent.resources.problem import TooLarge
    from fast_agent.text.safe_file import FileStamp

_PLAIN = re.compile(r"[A-Za-z0-9._~/-]+")
"""Paths that stand in a URI as they are."""

FolderState: TypeAlias = "tuple[int, int, int] | tuple[()] | None"
"""What distinguishes one state of a directory: device, inode, time of the last change.

Nothing where it is missing; None where the next change could leave no trace.
"""


class Document(NamedTuple):
    """A document in a category.

    Args:
        category: The category's name.
        name: Its name there, folders included, in composed form.
        path: Where it is below the docroot, as the disk spells it.
        stamp: Its state when it was found.
    """

    category: str
    name: str
    path: str
    stamp: FileStamp

    @property
    def uri(self) -> Uri:
        """Its canonical URI."""
        return Uri.of("guide", ("document", self.category, *self.name.split("/")))

    @property
    def uri_text(self) -> str:
        """The text of its canonical URI, made fast: a list of all documents needs every one."""
        path = f"{self.category}/{self.name}"
        return f"guide://document/{path}" if _PLAIN.fullmatch(path) else self.uri.text


class Shelf:
    """The documents of one category.

    Args:
        category: The category.
        documents: By name.
        problem: Why none are served, where there are too many.
        missing: Whether the directory is not there.
    """

    __slots__ = ("category", "documents", "missing", "names", "problem")

    def __init__(
        self,
        category: Category,
        documents: Mapping[str, Document],
        problem: TooLarge | None = None,
        *,
        missing: bool = False,
    ) -> None:
        self.category = category
        self.documents = documents
        self.names = sorted(documents)
        self.problem = problem
        self.missing = missing

    def all(self) -> list[Document]:
        """Return every document, sorted by name."""
        return [self.documents[name] for name in self.names]

    def stems(self, stem: str) -> list[Document]:
        """Return the documents with this name plus an extension."""
        start = f"{stem}."
        return [
            self.documents[name]
            for name in self.beginning(start)
            if "." not in name[len(start) :] and "/" not in name[len(start) :]
        ]

    def named(self, name: str) -> list[Document]:
        """Return the document of this name, or else all with an extension added."""
        exact = self.documents.get(name)
        return self.stems(name) if exact is None else [exact]

    def matching(self, pattern: Pattern) -> list[Document]:
        """Return the documents that a pattern matches, sorted by name."""
        return [
            self.documents[name] for name in self.beginning(pattern.prefix) if pattern.matches(name)
        ]

    def beginning(self, start: str) -> Iterator[str]:
        """Yield the names that start with a prefix, sorted."""
        names = self.names
        for index in range(bisect_left(names, start), len(names)):
            if not names[index].startswith(start):
                return
            yield names[index]


class GuideIndex:
    """Which documents there are; never changed.

    Args:
        config: The guide's configuration.
        shelves: The documents, by category.
        folders: The state of each directory the documents are in.
        problems: What is wrong with the tree.
    """

    def __init__(
        self,
        config: GuideConfig,
        shelves: Mapping[str, Shelf],
        folders: Mapping[str, FolderState],
        problems: tuple[Diagnostic, ...],
    ) -> None:
        self.config = config
        self.shelves = shelves
        self.problems = problems
        self.count = sum(len(shelf.names) for shelf in shelves.values())
        self._folders = folders
        self._collections: dict[str, tuple[Document, ...]] = {}

    def documents(self) -> Iterator[Document]:
        """Yield every document, by category and name."""
        for shelf in self.shelves.values():
            yield from shelf.all()

    def names(self) -> list[tuple[str, str, str]]:
        """Return the category, name and path of every document, in order."""
        return [document[:3] for document in self.documents()]

    def collection(self, name: str) -> tuple[Document, ...]:
        """Return the documents of a collection, sorted by category and name.

        A file that is in several of its categories is there once, under the first of them.
        """
        known = self._collections.get(name)
        if known is None:
            found: dict[str, Document] = {}
            for member in self._members(name):
                for document in self.member(member):
                    if found.get(document.path, document) >= document:
                        found[document.path] = document
            known = self._collections[name] = tuple(sorted(found.values()))
        return known

    def member(self, member: Member) -> Sequence[Document]:
        """Return the documents of a member of a collection."""
        if member.category is None:
            return self.collection(member.collection or "")
        shelf = self.shelves[member.category]
        if member.pattern is None:
            return shelf.all()
        if is_pattern(member.pattern):
            return shelf.matching(Pattern.parse(member.pattern))
        return shelf.named(member.pattern)

    def too_large(self, name: str) -> TooLarge | None:
        """Return why a collection cannot be listed in full, if one of its categories cannot."""
        problems = (
            self.shelves[member.category].problem
            for member in self._members(name)
            if member.category is not None
        )
        return next((problem for problem in problems if problem is not None), None)

    def is_current(self) -> bool:
        """Return whether no directory has changed, so that the documents are the same."""
        return all(folder_state(path) == state for path, state in self._folders.items())

    def empty(self) -> Iterator[Diagnostic]:
        """Find categories and members that hold no document."""
        for name, shelf in self.shelves.items():
            if not shelf.names and not shelf.missing and shelf.problem is None:
                message = f"the category `{name}` holds no document"
                hint = "look at its directory and patterns"
                yield shelf.category.place().problem(EMPTY_GUIDE_MEMBER, message, hint)
        for collection in self.config.collections.values():
            for member in collection.members:
                if self._fits_nothing(member):
                    message = f"`{member.text}` fits no document now"
                    near = closest(
                        member.pattern or "", self.shelves[member.category or ""].names[:500]
                    )
                    hint = f"did you mean `{member.category}/{near}`?" if near else None
                    yield member.place().problem(EMPTY_GUIDE_MEMBER, message, hint)

    def _fits_nothing(self, member: Member) -> bool:
        if member.category is None or member.pattern is None:
            return False
        shelf = self.shelves[member.category]
        return not (shelf.missing or shelf.problem or self.member(member))

    def _members(self, name: str) -> Iterator[Member]:
        """Yield the members of a collection and of those inside, each collection once."""
        seen = {name}
        left = [name]
        while left:
            for member in self.config.collections[left.pop()].members:
                if member.collection is None:
                    yield member
                elif member.collection not in seen:
                    seen.add(member.collection)
                    left.append(member.collection)


def folder_state(path: str) -> FolderState:
    """Look at a directory's state."""
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns
