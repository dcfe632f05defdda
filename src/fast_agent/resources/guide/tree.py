"""Looking at a guide's tree: what is there becomes an index, what is not served a diagnostic."""

from __future__ import annotations

import os
from bisect import bisect_left
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from fast_agent.config.home import is_never_served
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import (
    GUIDE_TREE_TOO_LARGE,
    MISSING_GUIDE_DIRECTORY,
    UNSERVED_GUIDE_FILE,
)
from fast_agent.resources.folder import Tree
from fast_agent.resources.guide.config import composed
from fast_agent.resources.guide.index import CategoryDocuments, Document, GuideIndex, folder_state
from fast_agent.resources.problem import InvalidUri, TooLarge
from fast_agent.text.safe_file import RefusedFileError
from fast_agent.text.wording import closest, did_you_mean
from fast_agent.trust.origin import names_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from fast_agent.resources.folder import Folder
    from fast_agent.resources.guide.config import Category, GuideConfig
    from fast_agent.resources.resource import Limits

_SURE_LENGTH = 150
"""Names up to this many characters fit into a URI however they are encoded."""

_MAX_REPORTED = 100
_RECENT_NS = 50_000_000


def build_index(
    config: GuideConfig, folder: Folder, limits: Limits, clock: Callable[[], int]
) -> GuideIndex:
    """Look at the tree.

    Args:
        config: The guide's configuration.
        folder: Its docroot.
        limits: What bounds the tree.
        clock: Nanoseconds since 1970, as the file system counts them.
    """
    sure = clock() - _RECENT_NS
    building = _TreeScan(config, folder, limits)
    shelves = {name: building.shelf(one) for name, one in config.categories.items()}
    states = {path: folder_state(path) for path in dict.fromkeys(building.folders())}
    # The clock of a file system ticks slowly: a directory that has just changed may change again
    # without a trace, so it is scanned again.
    folders = {path: None if state and state[2] > sure else state for path, state in states.items()}
    if building.has_none:  # above the docroot nothing is watched, and looking again is quick
        folders[folder.path] = None
    return GuideIndex(config, shelves, folders, tuple(building.problems))


class _TreeScan:
    """One scan of the tree in progress; each directory is walked once."""

    def __init__(self, config: GuideConfig, folder: Folder, limits: Limits) -> None:
        self.problems: list[Diagnostic] = []
        self._config = config
        self._folder = folder
        self._limits = limits
        self._trees: dict[str, Tree | TooLarge | RefusedFileError] = {}
        self._folders: dict[str, frozenset[str]] = {}
        self._unserved = 0
        self._left = limits.tree_files
        for top in _tops(config):
            self._trees[top] = self._walk(top)

    def folders(self) -> Iterator[str]:
        """Yield every directory that was walked or should have been, and those above it.

        A directory that is moved away and back is what it was, and only the one above it changes.
        """
        for top, tree in self._trees.items():
            names = top.split("/") if top else []
            for depth in range(len(names) + 1):
                yield self._absolute("/".join(names[:depth]))
            if isinstance(tree, Tree):
                for folder in tree.folders:
                    yield self._absolute(folder)

    @property
    def has_none(self) -> bool:
        """Whether there is no directory to walk, as where the docroot is gone."""
        return all(isinstance(tree, RefusedFileError) for tree in self._trees.values())

    def shelf(self, category: Category) -> CategoryDocuments:
        top = _nearest(category.dir, self._trees)
        tree = self._trees[top or ""]
        if isinstance(tree, RefusedFileError):
            self._missing(category, tree.message, self._siblings())
            return CategoryDocuments(category, {}, missing=True)
        if isinstance(tree, TooLarge):
            return self._too_large(category, tree)
        if category.dir != top and category.dir not in self._folders[top or ""]:
            reason = next(
                (one.reason for one in tree.skipped if one.path == category.dir), "does not exist"
            )
            self._missing(category, reason, tree.folders[:_MAX_REPORTED])
            return CategoryDocuments(category, {}, missing=True)
        documents = self._documents(category, tree)
        self._left -= len(documents)
        if self._left < 0:
            limit = self._limits.tree_files
            return self._too_large(
                category, TooLarge(self._config.shown, limit - self._left, limit, unit="documents")
            )
        return CategoryDocuments(category, documents)

    def _too_large(self, category: Category, problem: TooLarge) -> CategoryDocuments:
        message = f"the category `{category.name}` is too large: {problem.message}"
        hint = "name a directory that holds documents only"
        self.problems.append(category.place().problem(GUIDE_TREE_TOO_LARGE, message, hint))
        return CategoryDocuments(category, {}, problem)

    def _walk(self, top: str) -> Tree | TooLarge | RefusedFileError:
        try:
            tree = self._folder.walk(self._limits, top, _is_skipped)
        except (TooLarge, RefusedFileError) as refusal:
            return refusal
        self._folders[top] = frozenset(tree.folders)
        for skipped in tree.skipped:
            self._note(skipped.path, skipped.reason)
        if self._unserved > _MAX_REPORTED:
            message = f"{self._unserved - _MAX_REPORTED} more files are not served"
            self._report(self._config.shown, message)
        return tree

    def _documents(self, category: Category, tree: Tree) -> dict[str, Document]:
        files = tree.files
        prefix = f"{category.dir}/" if category.dir else ""
        found: dict[str, Document] = {}
        for index in range(bisect_left(files, (prefix,)), len(files)):
            path, stamp = files[index]
            if not path.startswith(prefix):
                break
            name = composed(path[len(prefix) :])
            if category.patterns and not any(one.matches(name) for one in category.patterns):
                continue
            if self._config.is_found and names_secret(PurePath(path)):
                self._note(
                    path, "is named as files with secrets are, and the user did not name the guide"
                )
                continue
            document = Document(category.name, name, path, stamp)
            if len(name) > _SURE_LENGTH and not _has_uri(document):
                self._note(path, "has a name too long for a URI")
            elif name in found:
                self._note(
                    path, "has the same name as another file, spelled with other code points"
                )
            else:
                found[name] = document
        return found

    def _siblings(self) -> Sequence[str]:
        """Return the directories that a missing one may have meant."""
        try:
            with os.scandir(self._folder.path) as found:
                return sorted(one.name for one in found if one.is_dir(follow_symlinks=False))
        except OSError:
            return ()

    def _missing(self, category: Category, reason: str, folders: Sequence[str]) -> None:
        near = closest(category.dir, folders)
        hint = did_you_mean(near, "make it, or name another with `dir`")
        message = f"the directory `{category.dir or '.'}` {reason}"
        self.problems.append(category.place().problem(MISSING_GUIDE_DIRECTORY, message, hint))

    def _note(self, path: str, reason: str) -> None:
        self._unserved += 1
        if self._unserved <= _MAX_REPORTED:
            self._report(f"{self._config.shown}/{path}", f"the file is not served: it {reason}")

    def _report(self, path: str, message: str) -> None:
        rule = UNSERVED_GUIDE_FILE
        self.problems.append(Diagnostic(rule.code, message, path, severity=rule.severity))

    def _absolute(self, path: str) -> str:
        return f"{self._folder.path}/{path}" if path else self._folder.path


def _is_skipped(name: str) -> bool:
    return name.startswith(".") or is_never_served(name)


def places(config: GuideConfig, root: str) -> tuple[str, ...]:
    """Return the directories that all documents are below, without reading them.

    Args:
        config: The guide's configuration.
        root: Where the docroot is, without links.

    Returns:
        Paths; the docroot alone where one of them is missing or is reached by a link.
    """
    found = tuple([f"{root}/{top}" if top else root for top in _tops(config)])
    there = all(os.path.realpath(one) == one and Path(one).is_dir() for one in found)
    return found if there else (root,)


def _tops(config: GuideConfig) -> list[str]:
    """Find the directories whose walks meet all others."""
    folders = {category.dir for category in config.categories.values()}
    tops: dict[str, None] = {}
    for folder in sorted(folders, key=lambda one: (one.count("/") + bool(one), one)):
        if _nearest(folder, tops) is None:
            tops[folder] = None
    return list(tops)


def _nearest(folder: str, tops: Container[str]) -> str | None:
    """Find the directory whose walk meets another: what is hidden is met only from itself."""
    while folder not in tops:
        above, _, name = folder.rpartition("/")
        if not folder or _is_skipped(name):
            return None
        folder = above
    return folder


def _has_uri(document: Document) -> bool:
    try:
        return bool(document.uri)
    except InvalidUri:
        return False
