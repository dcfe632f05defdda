"""What a Python file defines, read from its text without running it."""

from __future__ import annotations

import ast
import warnings
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.diagnostics.tool_rules import (
    FUNCTION_FILE_SYNTAX,
    FUNCTION_NOT_CALLABLE,
    FUNCTION_PARAMETERS,
    HOOK_SIGNATURE,
    function_error,
    syntax_error,
)
from fast_agent.text.source import SourceError, read_source
from fast_agent.trust.function_path import HOOK_PARAMETERS, missing_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from fast_agent.trust.function_path import FunctionPath, Role

_Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
_PLAIN_VALUES = (
    ast.Constant,
    ast.List,
    ast.Tuple,
    ast.Dict,
    ast.Set,
    ast.JoinedStr,
    ast.ListComp,
    ast.DictComp,
    ast.SetComp,
)

MOST_KEPT = 64
"""Most files whose outlines are kept."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The names a file defines.

    Args:
        definitions: For each name the nodes that define it, in order.
        complete: False where names may come from elsewhere, such as `from x import *`.
    """

    definitions: dict[str, list[ast.AST]]
    complete: bool

    @property
    def functions(self) -> list[str]:
        """Names that a card could mean, in order."""
        return [
            name
            for name, nodes in self.definitions.items()
            if not name.startswith("_")
            and not isinstance(nodes[-1], (*_PLAIN_VALUES, ast.ClassDef))
        ]


class Outlines:
    """The outlines of the files asked for last; one that reads as before is not parsed again."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: OrderedDict[Path, tuple[str, Outline]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, path: FunctionPath, file: Path) -> Outline:
        """Tell what a file defines now; see `outline_of`.

        Raises:
            CardError: The file cannot be read or is no Python.
        """
        text = _text_of(path, file)
        known = self._known.pop(file, None)
        if known is None or known[0] != text:
            known = text, _parsed(path, file, text)
        self._known[file] = known
        if len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)
        return known[1]


def outline_of(path: FunctionPath, file: Path) -> Outline:
    """Read a file's text.

    Args:
        path: The function that is asked for.
        file: The file.

    Returns:
        What it defines.

    Raises:
        CardError: The file cannot be read or is no Python.
    """
    return _parsed(path, file, _text_of(path, file))


def _text_of(path: FunctionPath, file: Path) -> str:
    try:
        return read_source(file).text
    except SourceError as problem:
        msg = f"`{path.file}` cannot be read: {problem.message}"
        raise function_error(FUNCTION_FILE_SYNTAX, msg, hint=problem.hint) from problem


def _parsed(path: FunctionPath, file: Path, text: str) -> Outline:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, str(file))
    except SyntaxError as problem:
        raise syntax_error(problem, path.file) from problem
    except (RecursionError, MemoryError, ValueError) as problem:
        msg = f"`{path.file}` cannot be parsed: {problem}"
        raise function_error(FUNCTION_FILE_SYNTAX, msg) from problem
    definitions: dict[str, list[ast.AST]] = {}
    complete = True
    for name, node in _defined(tree.body):
        if name in ("*", "__getattr__"):
            complete = False
        definitions.setdefault(name, []).append(node)
    return Outline(definitions, complete)


def check_outline(path: FunctionPath, outline: Outline, role: Role) -> None:
    """Check what can be known of a function without running its file.

    Args:
        path: The function.
        outline: What its file defines.
        role: What it is used as.

    Raises:
        CardError: The function is missing, no function, or cannot be called as it would be.
    """
    nodes = outline.definitions.get(path.name)
    if nodes is None:
        if outline.complete:
            raise missing_name(path, outline.functions)
        return
    if len(nodes) > 1:
        # Which one holds depends on what runs.
        return
    node = nodes[0]
    if isinstance(node, _PLAIN_VALUES):
        raise function_error(FUNCTION_NOT_CALLABLE, f"`{path}` is not a function but a value")
    if isinstance(node, ast.ClassDef):
        raise function_error(FUNCTION_NOT_CALLABLE, f"`{path}` is not a function but a class")
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _undecorated(node):
        if role == "tool":
            _check_tool(path, node)
        else:
            _check_hook(path, node, HOOK_PARAMETERS[role])


def _undecorated(node: _Function) -> bool:
    """Tell whether the parameters are those written; `tool` leaves a function as it is."""
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)
        if name != "tool":
            return False
    return True


def _check_tool(path: FunctionPath, node: _Function) -> None:
    arguments = node.args
    unnamed = [argument.arg for argument in arguments.posonlyargs]
    if arguments.vararg is not None:
        unnamed.append(f"*{arguments.vararg.arg}")
    if unnamed:
        msg = f"`{unnamed[0]}` of `{path.name}` cannot be given by name"
        hint = "a model names its arguments; use plain parameters"
        raise function_error(FUNCTION_PARAMETERS, msg, hint=hint)


def _check_hook(path: FunctionPath, node: _Function, given: tuple[str, ...]) -> None:
    wanted = ", ".join(given)
    hint = f"write `async def {path.name}({wanted})`"
    if not isinstance(node, ast.AsyncFunctionDef):
        msg = f"`{path}` is not a coroutine function (`async def`)"
        raise function_error(HOOK_SIGNATURE, msg, hint=hint)
    arguments = node.args
    positional = len(arguments.posonlyargs) + len(arguments.args)
    needed = positional - len(arguments.defaults)
    needs_keyword = any(default is None for default in arguments.kw_defaults)
    most = positional if arguments.vararg is None else len(given)
    if not needed <= len(given) <= most or needs_keyword:
        msg = f"`{path}` cannot be called with ({wanted})"
        raise function_error(HOOK_SIGNATURE, msg, hint=hint)


def _defined(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """Go through the statements of a module and what is nested in them, functions left out."""
    for statement in body:
        match statement:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                statement.body = []  # nobody asks for it, and it is most of what would be kept
                yield name, statement
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    yield (alias.asname or alias.name.partition(".")[0]), statement
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _targets(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from _targets(target, value)
            case _:
                yield from _nested(statement)


def _targets(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    else:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                yield node.id, node


def _nested(statement: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    for item in ast.iter_child_nodes(statement):
        if isinstance(item, ast.stmt):
            yield from _defined([item])
        elif isinstance(item, ast.ExceptHandler | ast.match_case):
            yield from _defined(item.body)
        else:
            for node in ast.walk(item):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id, node
