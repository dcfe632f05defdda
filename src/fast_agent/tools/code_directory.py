"""A directory of Python files, imported apart from everything else.

Each directory is a package of its own under a private name. Nothing is added to `sys.path`, so that
two directories may both hold a `tools.py`, and neither can stand in the way of an installed module.
Files are compiled from their text each time, never from `__pycache__`.
"""

from __future__ import annotations

import builtins
import sys
from importlib.machinery import ModuleSpec
from importlib.util import resolve_name
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING

from fast_agent.text.source import read_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    Check = Callable[[Path, str], None]


class CodeDirectory:
    """The modules of one directory.

    Its files may import each other, as `import sibling` or `from . import sibling`. Modules of the
    standard library come first, then the files beside, then what is installed.

    Args:
        directory: The directory.
        package: A module name nothing else has.
        check: Told of each file and its text before it is run; it raises for what may not be.
    """

    def __init__(self, directory: Path, package: str, check: Check | None = None) -> None:
        self._directory = directory
        self._check = check
        self._package = package
        self._lock = RLock()
        self._builtins = {**vars(builtins), "__import__": self._import}
        root = ModuleType(package)
        root.__path__ = []
        sys.modules[package] = root

    def load(self, *parts: str) -> ModuleType:
        """Load a module, or give it when it is loaded.

        Args:
            parts: Its dotted name within the directory, in parts; none for the directory itself.

        Returns:
            The module.

        Raises:
            ModuleNotFoundError: There is no such file.
            SourceError: The file cannot be read.
            SyntaxError: It is no Python.
            CardError: It may not be run.
            BaseException: What its code raises.
        """
        name = ".".join((self._package, *parts))
        with self._lock:
            loaded = sys.modules.get(name)
            return self._execute(name, parts) if loaded is None else loaded

    def _execute(self, name: str, parts: tuple[str, ...]) -> ModuleType:
        parent = self.load(*parts[:-1])
        file, is_package = self._file(parts)
        text = read_source(file).text
        if self._check is not None:
            self._check(file, text)
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None, origin=str(file), is_package=is_package)
        module.__file__ = str(file)
        module.__package__ = name if is_package else name.rpartition(".")[0]
        if is_package:
            module.__path__ = []
        # The code finds `__import__` here, which is how files beside it are found.
        vars(module)["__builtins__"] = self._builtins
        sys.modules[name] = module
        try:
            exec(compile(text, str(file), "exec", dont_inherit=True), vars(module))  # noqa: S102
        except BaseException:
            sys.modules.pop(name, None)
            raise
        setattr(parent, parts[-1], module)
        return module

    def _file(self, parts: tuple[str, ...]) -> tuple[Path, bool]:
        path = self._directory.joinpath(*parts)
        inside = path / "__init__.py"
        if inside.is_file():
            return inside, True
        beside = path.with_name(f"{path.name}.py")
        if beside.is_file():
            return beside, False
        name = ".".join(parts)
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    def _is_here(self, name: str) -> bool:
        if name in sys.stdlib_module_names:
            return False
        path = self._directory / name
        return (path / "__init__.py").is_file() or path.with_name(f"{name}.py").is_file()

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 (the names `import` gives)
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level:
            package = str((globals or {}).get("__package__") or self._package)
            absolute = resolve_name("." * level + name, package)
            parts = tuple(absolute.split("."))[1:]
        elif self._is_here(name.partition(".")[0]):
            parts = tuple(name.split("."))
        else:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = self.load(*parts)
        if not fromlist:
            return self.load(parts[0])
        self._load_submodules(module, parts, fromlist)
        return module

    def _load_submodules(
        self, module: ModuleType, parts: tuple[str, ...], names: Sequence[str]
    ) -> None:
        if hasattr(module, "__path__"):
            for name in names:
                if name != "*" and not hasattr(module, name):
                    try:
                        self.load(*parts, name)
                    except ModuleNotFoundError as missing:
                        # The statement itself says then that the name cannot be imported.
                        if missing.name != ".".join((*parts, name)):
                            raise


def forget(package: str) -> None:
    """Take the modules of a directory out of the interpreter's list."""
    inside = f"{package}."
    for name in [name for name in tuple(sys.modules) if name == package or name.startswith(inside)]:
        del sys.modules[name]
