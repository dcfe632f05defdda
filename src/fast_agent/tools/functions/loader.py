"""Loading functions that cards name, by running their files."""

from __future__ import annotations

import builtins
import sys
from importlib.machinery import ModuleSpec
from importlib.util import resolve_name
from pathlib import Path
from threading import RLock
from traceback import walk_tb
from types import ModuleType
from typing import TYPE_CHECKING
from weakref import finalize

from fast_agent.diagnostics.rules import (
    FUNCTION_FILE_IMPORT,
    FUNCTION_FILE_SYNTAX,
    FUNCTION_NOT_CALLABLE,
)
from fast_agent.errors import CardError, TrustError
from fast_agent.text.source import SourceError, read_source
from fast_agent.text.span import Span
from fast_agent.tools.worker_threads import WorkerThreads
from fast_agent.trust.function_path import (
    find_function_file,
    function_error,
    missing_name,
    parse_function_path,
    syntax_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Check = Callable[[Path, str], None]
    from collections.abc import Callable
    from types import TracebackType

    from fast_agent.trust.function_path import FunctionPath


class FunctionLoader:
    """Loads functions for one load of cards.

    Within one loader a file is run once, whatever the number of cards that name it. A reload makes
    a new loader, which runs the files as they are then. The modules stay known to the interpreter
    as long as their loader lives; function tools keep theirs alive.

    Args:
        workspace: The directory the program works in.
        threads: Where the synchronous ones of its functions run; None makes threads for them.
    """

    def __init__(
        self,
        workspace: Path,
        threads: WorkerThreads | None = None,
    ) -> None:
        self.workspace = workspace
        self.threads = threads or WorkerThreads()
        self._directories: dict[tuple[Path, Check | None], CodeDirectory] = {}
        packages: list[str] = []
        self._packages = packages
        self._forget = finalize(self, _forget_all, packages)

    def load(self, text: str, directory: Path, check: Check | None = None) -> Callable[..., object]:
        """Load a function.

        Args:
            text: `file.py:name`.
            directory: The card's directory.
            check: Called with each file and its text before it runs; raises if it may not run.

        Returns:
            The function.

        Raises:
            CardError: It cannot be loaded; its diagnostic says where and why.
        """
        path = parse_function_path(text)
        file = find_function_file(path, directory, self.workspace)
        module = self._run(path, file, check)
        try:
            function = getattr(module, path.name)
        except AttributeError:
            raise missing_name(path, public_callables(module)) from None
        if not callable(function):
            kind = type(function).__name__
            raise function_error(
                FUNCTION_NOT_CALLABLE, f"`{path}` is not a function but a `{kind}`"
            )
        return function

    def close(self) -> None:
        """Take the modules out of the interpreter's list; safe to call twice."""
        self._forget()

    def _run(self, path: FunctionPath, file: Path, check: Check | None) -> ModuleType:
        try:
            return self._directory(file.parent, check).load(file.stem)
        except SourceError as problem:
            msg = f"`{path.file}` cannot be read: {problem.message}"
            raise function_error(FUNCTION_FILE_SYNTAX, msg, hint=problem.hint) from problem
        except SyntaxError as problem:
            raise syntax_error(problem, _shown(path, file, problem.filename)) from problem
        except (CardError, TrustError):
            raise
        except (Exception, SystemExit) as problem:
            raise _import_error(path, file, problem) from problem

    def _directory(self, directory: Path, check: Check | None) -> CodeDirectory:
        code = self._directories.get((directory, check))
        if code is None:
            package = f"_card_code_{id(self):x}_{len(self._directories)}"
            code = CodeDirectory(directory, package, check)
            self._directories[directory, check] = code
            self._packages.append(package)
        return code


def public_callables(module: ModuleType) -> list[str]:
    """List what a module defines that could be a function of a card."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and callable(value)
        and getattr(value, "__module__", module.__name__) == module.__name__
    ]


def _forget_all(packages: list[str]) -> None:
    for package in packages:
        forget(package)


def _import_error(path: FunctionPath, file: Path, problem: BaseException) -> CardError:
    where, line = _innermost(problem.__traceback__, file.parent)
    text = str(problem)
    said = f"{type(problem).__name__}: {text}" if text else type(problem).__name__
    hint = None
    if isinstance(problem, ImportError) and (problem.name or "").split(".")[0] == "fast_agent":
        hint = "public names are in `fast_agent`, those of hooks in `fast_agent.hooks` and `.types`"
    elif isinstance(problem, ModuleNotFoundError):
        hint = "install it where `fast-agent` is installed, or put the module next to the file"
    shown = _shown(path, file, where)
    source_line: str | None = None
    if where is not None:
        try:
            source_line = read_source(Path(where)).line(line)
        except SourceError:
            source_line = None
    start = len(source_line) - len(source_line.lstrip()) + 1 if source_line else 1
    width = len(source_line.strip()) if source_line else 1
    return function_error(
        FUNCTION_FILE_IMPORT,
        f"`{path.file}` failed while it was imported: {said}",
        hint=hint,
        path=shown,
        span=Span.at(line, start, max(1, width)),
        source_line=source_line,
    )


def _innermost(trace: TracebackType | None, directory: Path) -> tuple[str | None, int]:
    """Find the innermost line of the directory's own code."""
    found: tuple[str | None, int] = (None, 1)
    for frame, line in walk_tb(trace):
        name = frame.f_code.co_filename
        if name.endswith(".py") and Path(name).is_relative_to(directory):
            found = (name, line)
    return found


def _shown(path: FunctionPath, file: Path, where: str | None) -> str:
    """Return a file's path as the card names it, or relative to the card."""
    if where is None or Path(where) == file:
        return path.file
    inner = Path(where)
    if inner.is_relative_to(file.parent):
        return str(Path(path.file).parent / inner.relative_to(file.parent))
    return where


class CodeDirectory:
    """The modules of one directory.

    Its files may import each other, as `import sibling` or `from . import sibling`. Modules of the
    standard library come first, then neighbouring files, then installed modules.

    Args:
        directory: The directory.
        package: A module name nothing else has.
        check: Called with each file and its text before it runs; raises if it may not run.
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
        """Load a module, or return it if it is loaded.

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
        # The code finds `__import__` here, which is how neighbouring files are found.
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
        globals: Mapping[str, object] | None = None,  # noqa: A002 (the names of `import`)
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
