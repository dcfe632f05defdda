"""The index of a guide: which documents there are, by category, at one moment.

It is made from the names in the tree alone; no document is read for it. Looking up a `guide://` URI
finds its document, or what may have been meant.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fast_agent.diagnostics.rules import EMPTY_GUIDE_MEMBER
from fast_agent.resources.guide.pattern import (
    CATEGORY,
    CATEGORY_DOCUMENT,
    COLLECTION,
    DOCUMENT,
    HELP,
    Pattern,
    is_pattern,
)
from fast_agent.resources.problem import AmbiguousName, NotFound, TooLarge
from fast_agent.resources.uri import Uri
from fast_agent.text.wording import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.guide.config import Category, GuideConfig, Member
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


class CategoryDocuments:
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
        shelves: Mapping[str, CategoryDocuments],
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
                hint = "check its directory and patterns"
                yield shelf.category.place().problem(EMPTY_GUIDE_MEMBER, message, hint)
        for collection in self.config.collections.values():
            for member in collection.members:
                if self._fits_nothing(member):
                    message = f"`{member.text}` matches no document"
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


_KINDS = ("help", "collection", "category", "document")
_MAX_COMPARED = 100
_MAX_LONGER = 5  # an extension and a letter
_MAX_CLOSE = 5


def find_exact(index: GuideIndex, uri: Uri) -> Document | None:
    """Find a document that a URI names in full, so that no other document could change the answer.

    Args:
        index: Where to look.
        uri: A `guide://` URI of any form.

    Returns:
        The document; None where there is none, or where the URI needs the whole index.
    """
    segments = uri.segments
    if len(segments) < 3 or segments[0] not in {"category", "document"}:
        return None
    shelf = index.shelves.get(segments[1])
    name = "/".join(segments[2:])
    if shelf is None or (segments[0] == "category" and is_pattern(name)):
        return None
    return shelf.documents.get(name)


def find(index: GuideIndex, uri: Uri) -> Sequence[Document]:
    """Find the documents that a URI names.

    Args:
        index: Where to look.
        uri: A `guide://` URI of any form but `guide://help`.

    Returns:
        One document or more.

    Raises:
        NotFound: There is none.
        Ambiguous: The name lacks its extension and several documents have it.
        TooLarge: The category holds more than is served.
    """
    kind, *rest = uri.segments
    if kind == "collection" and len(rest) == 1:
        return _collection(index, uri, rest[0])
    if kind == "category" and rest:
        return _category(index, uri, rest[0], "/".join(rest[1:]))
    if kind == "document" and len(rest) > 1:
        return [_document(index, uri, rest[0], "/".join(rest[1:]))]
    raise NotFound(uri.text, tuple(_forms(index, kind, rest)))


def _collection(index: GuideIndex, uri: Uri, name: str) -> Sequence[Document]:
    if name not in index.config.collections:
        near = _near(name, index.config.collections)
        also = ("category",) if name in index.shelves else ()
        raise NotFound(
            uri.text,
            [*(_text(kind, name) for kind in also), *(_text("collection", one) for one in near)],
            what="collection",
        )
    return _require_any(_collected(index, uri, name), uri)


def _category(index: GuideIndex, uri: Uri, name: str, document: str) -> Sequence[Document]:
    shelf = index.shelves.get(name)
    if shelf is None:
        near = _near(name, index.shelves)
        also = ("collection",) if name in index.config.collections and not document else ()
        raise NotFound(
            uri.text,
            [
                *(_text(kind, name) for kind in also),
                *(_text("category", one, document) for one in near),
            ],
            what="category",
        )
    _check_size(shelf.problem, uri)
    if not document:
        return _require_any(shelf.all(), uri)
    if is_pattern(document):
        found = {one.name: one for one in shelf.matching(Pattern.parse(document))}
        exact = shelf.documents.get(document)
        if exact is not None:
            found[document] = exact
        return _require_any([*found.values()], uri)
    one = _single(shelf.named(document), uri)
    if one is None:
        raise NotFound(uri.text, tuple(_close(index, [shelf], document)), what="document")
    return [one]


def _document(index: GuideIndex, uri: Uri, context: str, name: str) -> Document:
    """Find one document: in the category of this name, and only then in the collection."""
    shelf = index.shelves.get(context)
    if shelf is None and context not in index.config.collections:
        near = _near(context, (*index.shelves, *index.config.collections))
        close = [_text("document", one, name) for one in near]
        raise NotFound(uri.text, close, what="category or collection")
    if shelf is not None:
        _check_size(shelf.problem, uri)
        if (one := _single(shelf.named(name), uri)) is not None:
            return one
    collected = _collected(index, uri, context) if context in index.config.collections else ()
    exact = [one for one in collected if one.name == name]
    if (
        one := _single(exact or [one for one in collected if _stem(one.name) == name], uri)
    ) is not None:
        return one
    if shelf is not None and is_pattern(name) and shelf.matching(Pattern.parse(name)):
        # only a category takes patterns
        raise NotFound(uri.text, [_text("category", context, name)], what="document")
    shelves = [index.shelves[one] for one in dict.fromkeys(one.category for one in collected)]
    raise NotFound(
        uri.text,
        tuple(_close(index, [*([shelf] if shelf else []), *shelves], name)),
        what="document",
    )


def _check_size(problem: TooLarge | None, uri: Uri) -> None:
    """Refuse what cannot be listed in full: a part of it would pass for the whole."""
    if problem is not None:
        raise TooLarge(uri.text, problem.count, problem.limit, unit=problem.unit)


def _collected(index: GuideIndex, uri: Uri, name: str) -> Sequence[Document]:
    _check_size(index.too_large(name), uri)
    return index.collection(name)


def _require_any(documents: Sequence[Document], uri: Uri) -> Sequence[Document]:
    if not documents:
        raise NotFound(uri.text, what="document in")
    return documents


def _single(documents: Sequence[Document], uri: Uri) -> Document | None:
    if len(documents) > 1:
        raise AmbiguousName(uri.text, sorted(one.uri.text for one in documents))
    return documents[0] if documents else None


def _stem(name: str) -> str:
    stem, dot, extension = name.rpartition(".")
    return stem if dot and "/" not in extension else name


def _forms(index: GuideIndex, kind: str, rest: Sequence[str]) -> Iterator[str]:
    """Guess which form of URI was meant."""
    near = closest(kind, _KINDS)
    if near == "document" and len(rest) == 1:
        near = "category" if rest[0] in index.shelves else "collection"
    if near == "help":
        pass
    elif near is not None and rest:
        yield _text(near, *rest)
    elif near == "collection":
        yield from (_text("collection", name) for name in index.config.collections)
    elif near is not None:
        yield from (_text("category", name) for name in index.shelves)
    elif kind in index.shelves:
        yield _text("category", kind, *rest)
    yield HELP.text


def _close(index: GuideIndex, shelves: Sequence[CategoryDocuments], name: str) -> Iterator[str]:
    """Find documents that may have been meant, few of many: a request must stay cheap."""
    reported: set[str] = set()
    for document in _candidates(index, shelves, name):
        uri = document.uri.text
        if uri not in reported:
            reported.add(uri)
            yield uri
        if len(reported) == _MAX_CLOSE:
            return


def _candidates(
    index: GuideIndex, shelves: Sequence[CategoryDocuments], name: str
) -> Iterator[Document]:
    wanted = _last(name)
    for shelf in dict.fromkeys((*shelves, *index.shelves.values())):
        same = [one for one in shelf.names if wanted in one.casefold() and _last(one) == wanted]
        yield from (shelf.documents[one] for one in same[:_MAX_CLOSE])
    folder, slash, last = name.rpartition("/")
    for shelf in shelves:
        beside = [
            one.removeprefix(folder + slash)
            for one in shelf.beginning(folder + slash)
            if abs(len(one) - len(name)) <= _MAX_LONGER and "/" not in one[len(folder) + 1 :]
        ]
        for near in _near(last, beside):
            yield shelf.documents[folder + slash + near]


def _last(name: str) -> str:
    """The name without folders and extension, in any letter case."""
    return _stem(name.rpartition("/")[2]).casefold()


def _near(word: str, names: Iterable[str]) -> Sequence[str]:
    few = [one for _, one in zip(range(_MAX_COMPARED), names, strict=False)]
    stems = {_stem(one): one for one in reversed(few)}
    near = closest(word, few) or stems.get(closest(_stem(word), stems) or "")
    return () if near is None else (near,)


def _text(kind: str, *names: str) -> str:
    return Uri.of(
        "guide", (kind, *(part for name in names if name for part in name.split("/")))
    ).text


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
        index: The current guide.
        template: One of the guide's templates.
        argument: The argument's name.
        value: What is written of it so far.
        given: The other arguments, those that are known.

    Returns:
        Values that start with the typed text, then those that contain it, each sorted.

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
