"""Names of the release before: they work for one release, and warn."""

from __future__ import annotations

import sys
import warnings
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import ModuleType

_RENAMED: Final = {"Desk": "ConversationController", "Player": "Replayer"}
"""Public names, by what they are called now."""

_MODULES: Final = {
    "fast_agent.commands.desk": ("Desk",),
    "fast_agent.models.cassette": ("read_cassette",),
    "fast_agent.models.player": ("Player",),
    "fast_agent.models.recorder": ("Recorder",),
    "fast_agent.workflows.maker.ballot": ("Ballot",),
    "fast_agent.workflows.maker.sample": ("Sample",),
}
"""Modules that the documentation named, with the names it took from them."""


def renamed(name: str) -> object:
    """Return what had a name in `fast_agent`, with a warning.

    Raises:
        AttributeError: Nothing had.
    """
    if name not in _RENAMED:
        raise AttributeError(f"module 'fast_agent' has no attribute {name!r}")
    return _warned("fast_agent", name, 4)


def spec_of(path: str) -> ModuleSpec | None:
    """Return how to import a former module; None for every other."""
    return ModuleSpec(path, _FormerLoader()) if path in _MODULES else None


class _FormerLoader(Loader):
    """Fills a module with the names it had, which warn when they are used."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module."""
        path = module.__name__

        def moved(name: str) -> object:
            if name not in _MODULES[path]:
                raise AttributeError(f"module {path!r} has no attribute {name!r}")
            return _warned(path, name, 3)

        vars(module)["__getattr__"] = moved


def _warned(path: str, name: str, depth: int) -> object:
    now = _RENAMED.get(name, name)
    warnings.warn(
        f"`{path}.{name}` is `fast_agent.{now}` now; the former name goes with the next release",
        DeprecationWarning,
        stacklevel=depth,
    )
    return getattr(sys.modules["fast_agent"], now)
