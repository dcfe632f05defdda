"""Where a guide's configuration comes from: the section `guide`, a `.guide.yaml`, or neither."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.config.guide import GUIDE, CategorySettings, GuideSettings
from fast_agent.config.home import GUIDE_FILE, is_never_served
from fast_agent.config.layer import FileLayer, Place, read_layer
from fast_agent.config.reading import LayerReader
from fast_agent.diagnostics.rules import WRONG_DOCROOT
from fast_agent.errors import os_reason
from fast_agent.resources.guide.config import guide_config, refusal
from fast_agent.resources.guide.pattern import is_pattern
from fast_agent.resources.problem import InvalidUri
from fast_agent.resources.uri import Uri
from fast_agent.schema.reader import built

if TYPE_CHECKING:
    from fast_agent.config.settings import Settings
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.guide.config import GuideConfig, PlaceOf

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
    return guide_config(_settings_of_folders(root), root, shown, _nowhere(shown))


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


def _nowhere(shown: str) -> PlaceOf:
    def place_of(*_keys: str | int, key: bool = False) -> Place:  # noqa: ARG001
        return Place(shown)

    return place_of
