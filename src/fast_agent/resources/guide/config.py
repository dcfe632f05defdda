"""The configuration of a guide, checked: categories, collections and what they refer to.

It comes from the section `guide`, from a `.guide.yaml`, or from neither.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from fast_agent.config.home import GUIDE_FILE, is_never_served
from fast_agent.config.layer import FileLayer, LayerReader, Place, read_layer
from fast_agent.config.settings import GUIDE, CategorySettings, GuideSettings
from fast_agent.diagnostics.rules import (
    GUIDE_COLLECTION_LOOP,
    UNKNOWN_GUIDE_MEMBER,
    WRONG_DOCROOT,
    WRONG_GUIDE_DIRECTORY,
    WRONG_GUIDE_NAME,
    WRONG_GUIDE_PATTERN,
)
from fast_agent.errors import ConfigError, os_reason
from fast_agent.resources.guide.pattern import Pattern, is_pattern
from fast_agent.resources.problem import InvalidUri
from fast_agent.resources.uri import Uri
from fast_agent.schema.reader import built
from fast_agent.text.frozen import frozen
from fast_agent.text.safe_file import RefusedFileError, confined_parts
from fast_agent.text.wording import closest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fast_agent.config.settings import CollectionSettings, Settings
    from fast_agent.diagnostics.diagnostic import Diagnostic


class PlaceOf(Protocol):
    """Says where a key of the guide's configuration is written."""

    def __call__(self, *keys: str | int, key: bool = False) -> Place:
        """Return the place of a value, or of the last key itself."""
        ...


@frozen
class Category:
    """A directory of documents.

    Args:
        name: As it is written in URIs.
        dir: Relative to the docroot, `/` between its parts; empty for the docroot itself.
        patterns: Which documents of it; none for all.
        description: What it is about, or None.
        place: Says where its directory is written.
    """

    name: str
    dir: str
    patterns: tuple[Pattern, ...]
    description: str | None
    place: Callable[[], Place]


@frozen
class Member:
    """What a collection holds: a whole category, some of its documents, or another collection.

    Args:
        text: As it is written.
        category: The category, or None.
        pattern: A name or pattern inside the category, or None for all of it.
        collection: The collection, or None.
        place: Says where it is written.
    """

    text: str
    category: str | None
    pattern: str | None
    collection: str | None
    place: Callable[[], Place]


@frozen
class Collection:
    """A choice of documents."""

    name: str
    members: tuple[Member, ...]
    description: str | None


@frozen
class GuideConfig:
    """A guide, ready to be indexed.

    Args:
        docroot: The directory all documents are below, absolute.
        shown: What messages to the operator call it.
        categories: By name, sorted.
        collections: By name, sorted; every member exists and there are no cycles.
        is_found: Whether no user named it: it then serves no file named as secrets are.
    """

    docroot: str
    shown: str
    categories: Mapping[str, Category]
    collections: Mapping[str, Collection]
    is_found: bool = False


def guide_config(
    settings: GuideSettings, docroot: str, shown: str, place_of: PlaceOf
) -> GuideConfig:
    """Check a guide's settings.

    Args:
        settings: What the configuration says.
        docroot: The directory all documents are below, absolute.
        shown: What messages call it.
        place_of: Says where a key is written.

    Returns:
        The configuration, with every reference resolved.

    Raises:
        ConfigError: A name, directory, pattern or member is invalid; reports every problem.
    """
    check = _Check(settings, place_of)
    categories = [check.category(*one) for one in settings.categories.items()]
    collections = [check.collection(*one) for one in settings.collections.items()]
    by_name = {one.name: one for one in sorted(collections, key=_name_of)}
    check.loops(by_name)
    if check.problems:
        raise refusal(check.problems)
    return GuideConfig(
        docroot, shown, {one.name: one for one in sorted(categories, key=_name_of)}, by_name
    )


def composed(text: str) -> str:
    """Convert a text to Unicode's composed form, which names in URIs have."""
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFC", text)


def _name_of(one: Category | Collection) -> str:
    return one.name


def refusal(problems: Sequence[Diagnostic]) -> ConfigError:
    """Make the error of problems, with the message of the first."""
    first = problems[0]
    where = f"`{first.path}`: " if first.path else ""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return ConfigError(f"{where}{first.message}{more}", hint=first.hint, diagnostics=problems)


class _Check:
    """One check, under way."""

    def __init__(self, settings: GuideSettings, place_of: PlaceOf) -> None:
        self.problems: list[Diagnostic] = []
        self._categories = {composed(name): name for name in settings.categories}
        self._collections = {composed(name): name for name in settings.collections}
        self._place_of = place_of

    def category(self, name: str, settings: CategorySettings) -> Category:
        key = self._name("category", name, self._categories[composed(name)])
        folder = name if settings.dir is None else settings.dir
        keys = ("categories", name) if settings.dir is None else ("categories", name, "dir")
        place = partial(self._place_of, *keys, key=settings.dir is None)
        patterns = tuple(
            Pattern.parse(composed(text), stem=True)
            for index, text in enumerate(settings.patterns or ())
            if self._pattern(text, partial(self._place_of, "categories", name, "patterns", index))
        )
        return Category(key, self._folder(folder, place), patterns, settings.description, place)

    def collection(self, name: str, settings: CollectionSettings) -> Collection:
        key = self._name("collection", name, self._collections[composed(name)])
        found = [
            self._member(text, partial(self._place_of, "collections", name, "members", index))
            for index, text in enumerate(settings.members)
        ]
        members = tuple(member for member in found if member is not None)
        return Collection(key, members, settings.description)

    def loops(self, collections: Mapping[str, Collection]) -> None:
        """Find rings of collections, each at the member that closes it."""
        done: set[str] = set()
        for start in collections:
            way = [start]
            left = [iter(collections[start].members)]
            while left and start not in done:
                member = next(left[-1], None)
                inner = None if member is None else member.collection
                if member is None:
                    left.pop()
                    done.add(way.pop())
                elif inner in way:
                    self._loop(member, way[way.index(inner) :])
                elif inner is not None and inner in collections and inner not in done:
                    way.append(inner)
                    left.append(iter(collections[inner].members))

    def _loop(self, member: Member, ring: Sequence[str]) -> None:
        shown = " → ".join(f"`{one}`" for one in (*ring, ring[0]))
        message = f"the collection `{ring[0]}` holds itself: {shown}"
        hint = "remove one of these members"
        self.problems.append(member.place().problem(GUIDE_COLLECTION_LOOP, message, hint))

    def _name(self, kind: str, name: str, same: str) -> str:
        section = "categories" if kind == "category" else "collections"
        try:
            Uri.of("guide", (kind, name))
            reason = "holds a wildcard" if is_pattern(name) else None
        except InvalidUri as problem:
            reason = problem.reason
        if same != name:
            reason = "equals another name in Unicode's composed form"
        if reason is not None:
            place = partial(self._place_of, section, name, key=True)
            message = f"`{name}` cannot name a {kind}: it {reason}"
            hint = "use letters, digits and hyphens"
            self.problems.append(place().problem(WRONG_GUIDE_NAME, message, hint))
        return composed(name)

    def _folder(self, text: str, place: Callable[[], Place]) -> str:
        if text.strip("/.") == "" and ".." not in text and not text.startswith("/"):
            return ""
        try:
            return "/".join(confined_parts(text))
        except RefusedFileError as refusal:
            message = f"the directory `{text}` {refusal.message}"
            hint = "name a directory below the docroot, relative to it"
            self.problems.append(place().problem(WRONG_GUIDE_DIRECTORY, message, hint))
            return ""

    def _pattern(self, text: str, place: Callable[[], Place]) -> bool:
        names = text.split("/")
        if "\\" not in text and not any(name in {"", ".", ".."} for name in names):
            return True
        message = f"the pattern `{text}` can match no document"
        hint = "write names with single `/` between them, relative to the category's directory"
        self.problems.append(place().problem(WRONG_GUIDE_PATTERN, message, hint))
        return False

    def _member(self, text: str, place: Callable[[], Place]) -> Member | None:
        categories, collections = self._categories, self._collections
        name = composed(text)
        if name in categories:
            return Member(text, name, None, None, place)
        if name in collections:
            return Member(text, None, None, name, place)
        head, slash, pattern = name.partition("/")
        if slash and head in categories:
            return (
                Member(text, head, pattern, None, place) if self._pattern(pattern, place) else None
            )
        if slash and head in collections:
            message = f"`{head}` is a collection; only a category takes a name or pattern after it"
            hint = f"write `{head}` alone, or name the category of the document"
        else:
            known = (*categories,) if slash else (*categories, *collections)
            kind = "category" if slash else "category or collection"
            message = f"there is no {kind} `{head}`"
            hint = _hint(head, known, slash + pattern)
        self.problems.append(place().problem(UNKNOWN_GUIDE_MEMBER, message, hint))
        return None


def _hint(word: str, known: Iterable[str], rest: str) -> str:
    names = tuple(known)
    near = closest(word, names)
    if near is not None:
        return f"did you mean `{near}{rest}`?"
    return f"there are: {', '.join(f'`{name}`' for name in names)}" if names else "define it first"


_TOP: Final = "documents"


def load_guide(path: Path, shown: str | None = None) -> GuideConfig:
    """Read the guide of a directory or of a file.

    Args:
        path: A directory of documents, which may hold a `.guide.yaml`, or such a file of any name.
            Without one, each folder is a category, and so are the files next to them, as
            `documents`.
        shown: What messages call it; the path itself when None.

    Returns:
        The guide's configuration, checked.

    Raises:
        ConfigError: It is not there, or something in it is wrong.
    """
    shown = str(path) if shown is None else shown
    if not path.is_dir():
        return _of_file(path.absolute(), shown, None)
    file = path / GUIDE_FILE
    if os.path.lexists(file):
        return _of_file(file.absolute(), os.path.join(shown, GUIDE_FILE), shown)  # noqa: PTH118
    root = _root(path, Place(shown))
    return guide_config(_settings_of_folders(root), root, shown, _place_without_span(shown))


def configured_guide(settings: Settings) -> GuideConfig | None:
    """Read the guide of the configuration.

    Args:
        settings: The configuration. A `guide` with a `docroot` alone is that directory's own.

    Returns:
        The guide's configuration, checked; None where none is configured.

    Raises:
        ConfigError: Something in it is wrong.
    """
    guide = settings.guide

    def place_of(*keys: str | int, key: bool = False) -> Place:
        found = settings.place_of("guide", *keys, key=key)
        return found or settings.place_of("guide") or Place("")

    if guide.docroot is None:
        if not guide.categories and not guide.collections:
            return None
        message = "`guide` lacks `docroot`"
        hint = "name the directory that the documents are below"
        raise refusal([place_of().problem(WRONG_DOCROOT, message, hint)])
    root = _root(guide.docroot, place_of("docroot"))
    found = any(
        isinstance(one, FileLayer) and one.root is not None and one.has(("guide",))
        for one in settings.layers
    )
    if not guide.categories and not guide.collections:
        return replace(load_guide(guide.docroot), is_found=found)
    config = guide_config(guide, root, str(guide.docroot), place_of)
    return replace(config, is_found=found)


def _of_file(file: Path, shown: str, inside: str | None) -> GuideConfig:
    """Read a `.guide.yaml`; one that was found in a directory must stay inside of it."""
    problems: list[Diagnostic] = []
    layer = read_layer(file, shown, problems)
    if layer is None:
        raise refusal(problems)
    reader = LayerReader(layer, layer.directory, None)
    settings: GuideSettings = built(GUIDE, reader.tree(GUIDE, layer.document.value))
    if reader.problems:
        raise refusal(reader.problems)
    place = layer.place(("docroot",)) if settings.docroot else Place(shown)
    root = _root(settings.docroot or file.parent, place)
    if inside is not None and not Path(root).is_relative_to(os.path.realpath(file.parent)):
        message = "`docroot` leads out of the directory that this file is in"
        hint = f"name the file itself, `{shown}`, to allow that"
        raise refusal([place.problem(WRONG_DOCROOT, message, hint)])
    if not settings.categories:
        settings = GuideSettings(
            docroot=settings.docroot,
            categories=_settings_of_folders(root).categories,
            collections=settings.collections,
        )

    def place_of(*keys: str | int, key: bool = False) -> Place:
        return layer.place(keys, key=key)

    below = os.path.dirname(shown) if inside is None else inside  # noqa: PTH120
    return guide_config(settings, root, below or ".", place_of)


def _settings_of_folders(root: str) -> GuideSettings:
    """Make categories of the folders of a docroot that has none configured."""
    categories: dict[str, CategorySettings] = {}
    loose = False
    with os.scandir(root) as found:
        for entry in sorted(found, key=lambda one: one.name):
            if entry.name.startswith(".") or is_never_served(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                if _can_name(entry.name):
                    categories[entry.name] = CategorySettings()
            elif entry.is_file(follow_symlinks=False):
                loose = True
    if loose and _TOP not in categories:
        categories[_TOP] = CategorySettings(dir=".", patterns=("*",))
    return GuideSettings(categories=categories)


def _can_name(name: str) -> bool:
    try:
        Uri.of("guide", ("category", name))
    except InvalidUri:
        return False
    return not is_pattern(name)


def _root(path: Path, place: Place) -> str:
    """Resolve a docroot, once: it may be a link now, and must not become one."""
    root = os.path.realpath(path)
    try:
        with os.scandir(root):
            return root
    except OSError as error:
        reason = os_reason(error)
        message = f"the docroot `{path.name}` cannot be read: {reason}"
        hint = "name the directory that the documents are below"
        raise refusal([place.problem(WRONG_DOCROOT, message, hint)]) from error


def _place_without_span(shown: str) -> PlaceOf:
    def place_of(*_keys: str | int, key: bool = False) -> Place:  # noqa: ARG001
        return Place(shown)

    return place_of
