"""The functions of a card: checked without running anything, or loaded to be used."""

from __future__ import annotations

import ast
import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from inspect import Parameter, isclass, signature
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from fast_agent.diagnostics.diagnostic import Diagnostic, Fix, RelatedPlace
from fast_agent.diagnostics.rules import (
    DUPLICATE_TOOL,
    FUNCTION_FILE_SYNTAX,
    FUNCTION_NOT_CALLABLE,
    FUNCTION_PARAMETERS,
    HOOK_SIGNATURE,
    SHELL_DIRECTORY,
)
from fast_agent.errors import CardError, ToolError
from fast_agent.text.frozen import frozen
from fast_agent.text.source import SourceError, read_source
from fast_agent.trust.function_path import (
    HOOK_PARAMETERS,
    find_function_file,
    function_error,
    missing_name,
    parse_function_path,
    syntax_error,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.cards.agent_config import AgentConfig, FunctionRef, HookPoint
    from fast_agent.cards.card import Card
    from fast_agent.text.span import Span
    from fast_agent.tools.functions.function import FunctionTool
    from fast_agent.tools.functions.loader import FunctionLoader
    from fast_agent.tools.hooks import Hook, TurnHooks
    from fast_agent.trust.function_path import FunctionPath, Role


class _Use(NamedTuple):
    """One function of a card."""

    function: FunctionRef
    role: Role
    keys: tuple[str | int, ...]
    point: HookPoint | None = None

    @property
    def name(self) -> str:
        if isinstance(self.function, str):
            return self.function
        return getattr(self.function, "__name__", type(self.function).__name__)


@frozen
class CardFunctions:
    """The loaded functions of a card.

    Args:
        tools: Its function tools, in order.
        tool_hooks: Hooks around every tool call, the outermost first.
        turn_hooks: Hooks of the turn, or None.
        diagnostics: What was wrong; with an error among them the rest is not to be used.
    """

    tools: tuple[FunctionTool, ...] = ()
    tool_hooks: tuple[Hook, ...] = ()
    turn_hooks: TurnHooks | None = None
    diagnostics: tuple[Diagnostic, ...] = ()


class FunctionCheck:
    """Checks the functions and the shell directory of cards without running any of their code.

    It is called with a card and returns its problems. It may live as long as the program: it
    keeps little of files it read, and reads a changed file again.

    Args:
        workspace: The directory the program works in.
    """

    __slots__ = ("_outlines", "_workspace")

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._outlines: Outlines | None = None

    def __call__(self, card: Card) -> Iterator[Diagnostic]:
        """Check a card.

        Args:
            card: The card.

        Yields:
            A diagnostic for each problem.
        """
        config = card.config
        if config.remote is not None:
            # A remote card may not name files; that is reported where cards are validated.
            return
        directory = config.directory or self._workspace
        if config.shell:
            yield from _check_shell(card, directory)
        for use in _uses(config):
            try:
                self._check(use, directory)
            except CardError as problem:
                yield from _placed(problem, use, card)

    def _check(self, use: _Use, directory: Path) -> None:
        if not isinstance(use.function, str):
            _check_callable(use, use.function)
            return

        if self._outlines is None:
            self._outlines = Outlines()
        path = parse_function_path(use.function)
        file = find_function_file(path, directory, self._workspace)
        check_outline(path, self._outlines.of(path, file), use.role)


def load_functions(card: Card, loader: FunctionLoader) -> CardFunctions:
    """Load the functions of a card; this runs the files they are in.

    Args:
        card: The card.
        loader: The loader of this load.

    Returns:
        The functions, and every problem.
    """
    uses = list(_uses(card.config))
    if not uses:
        return CardFunctions()
    from fast_agent.tools.hooks import Hook, TurnHooks

    tools: dict[str, FunctionTool] = {}
    tool_hooks: list[Hook] = []
    turn_hooks: dict[HookPoint, list[Hook]] = {}
    diagnostics: list[Diagnostic] = []
    for use in uses:
        try:
            function = _load(use, card.config, loader)
            if use.role == "tool":
                tool = _tool(function, loader)
                if tool.spec.name in tools:
                    diagnostics.append(_duplicate(use, tool.spec.name, card))
                tools.setdefault(tool.spec.name, tool)
                continue
            _check_callable(use, function)
        except CardError as problem:
            diagnostics.extend(_placed(problem, use, card))
            continue
        hook = Hook(use.name, cast("Callable[..., Awaitable[object]]", function), keep=loader)
        if use.point is None:
            tool_hooks.append(hook)
        else:
            turn_hooks.setdefault(use.point, []).append(hook)
    hooks = TurnHooks(turn_hooks) if turn_hooks else None
    return CardFunctions(tuple(tools.values()), tuple(tool_hooks), hooks, tuple(diagnostics))


def _uses(config: AgentConfig) -> Iterator[_Use]:
    for index, function in enumerate(config.function_tools):
        yield _Use(function, "tool", ("function_tools", index))
    hooks = config.tool_hooks
    if isinstance(hooks, Mapping):
        for point, functions in hooks.items():
            for index, function in enumerate(functions):
                yield _Use(function, "turn_hook", ("tool_hooks", point, index), point)
    else:
        for index, function in enumerate(hooks):
            yield _Use(function, "tool_hook", ("tool_hooks", index))


def _load(use: _Use, config: AgentConfig, loader: FunctionLoader) -> Callable[..., object]:
    if isinstance(use.function, str):
        check = None if config.grant is None else config.grant.check_import
        return loader.load(use.function, config.directory or loader.workspace, check)
    return use.function


def _tool(function: Callable[..., object], loader: FunctionLoader) -> FunctionTool:
    from fast_agent.tools.functions.function import FunctionTool

    try:
        return FunctionTool(function, threads=loader.threads, keep=loader)
    except ToolError as problem:
        raise function_error(FUNCTION_PARAMETERS, problem.message, hint=problem.hint) from problem


def _check_callable(use: _Use, function: object) -> None:
    """Check the signature of a tool or a hook that is there as a Python function.

    Type hints of tools are read when the tool is made: pydantic takes a while to import.
    """
    if not callable(function):
        msg = f"`{function!r}` is not a function"
        hint = "pass a function, or text of the form `file.py:name`"
        raise function_error(FUNCTION_NOT_CALLABLE, msg, hint=hint)
    if use.role == "tool":
        if isclass(function):
            raise function_error(FUNCTION_PARAMETERS, f"`{use.name}` is a class, not a function")
        for parameter in _parameters(function):
            if parameter.kind is Parameter.VAR_POSITIONAL:
                raise _unnamed(f"*{parameter.name}", use.name)
        return
    from fast_agent.tools.hooks import wrong_hook

    wanted = HOOK_PARAMETERS[use.role]
    wrong = wrong_hook(function, wanted)
    if wrong is not None:
        name = use.name.rpartition(":")[2]
        hint = f"write `async def {name}({', '.join(wanted)})`"
        raise function_error(HOOK_SIGNATURE, f"`{use.name}` {wrong}", hint=hint)


def _check_shell(card: Card, directory: Path) -> Iterator[Diagnostic]:
    cwd = card.config.cwd
    if cwd is not None and not (directory / cwd).is_dir():
        yield _warning(
            SHELL_DIRECTORY,
            f"there is no directory `{cwd}` for shell commands",
            f"it is searched for in `{Path(card.path).parent}`" if card.path else None,
            ("cwd",),
            card,
        )


def _duplicate(use: _Use, name: str, card: Card) -> Diagnostic:
    message = f"there is already a function tool `{name}`; this one is never called"
    hint = 'give it another name with `@tool(name="…")`'
    return _warning(DUPLICATE_TOOL, message, hint, use.keys, card)


def _warning(
    code: str, message: str, hint: str | None, keys: tuple[str | int, ...], card: Card
) -> Diagnostic:
    problem = Diagnostic(code, message, severity="warning", hint=hint)
    return card.placed(problem, _span(keys, card))


def _placed(problem: CardError, use: _Use, card: Card) -> Iterator[Diagnostic]:
    """Locate diagnostics at the place in the card that names the function, or near the card."""
    span = _span(use.keys, card)
    for diagnostic in problem.diagnostics:
        if diagnostic.path:
            here = RelatedPlace(f"`{use.name}` is named here", card.path, span)
            path = Path(card.path).parent / diagnostic.path
            yield replace(diagnostic, path=str(path), related=(here,) if card.path else ())
        else:
            fix = diagnostic.fix
            fix = Fix(span, fix.replacement) if fix is not None and span is not None else None
            yield card.placed(replace(diagnostic, fix=fix), span)


def _span(keys: tuple[str | int, ...], card: Card) -> Span | None:
    return card.span_of(cast("str", keys[0]), *keys[1:])


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

MAX_KEPT = 64
"""Most files whose outlines are kept."""


@frozen
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
        """Return the current definitions of a file.

        Args:
            path: The function that is asked for.
            file: The file.

        Raises:
            CardError: The file cannot be read or is no Python.
        """
        text = _text_of(path, file)
        known = self._known.pop(file, None)
        if known is None or known[0] != text:
            known = text, _parsed(path, file, text)
        self._known[file] = known
        if len(self._known) > MAX_KEPT:
            self._known.popitem(last=False)
        return known[1]


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
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_undecorated(node):
        if role == "tool":
            _check_tool(path, node)
        else:
            _check_hook(path, node, HOOK_PARAMETERS[role])


def _is_undecorated(node: _Function) -> bool:
    """Return whether the parameters are those written; `tool` leaves a function unchanged."""
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
        raise _unnamed(unnamed[0], path.name)


def _parameters(function: Callable[..., object]) -> Iterable[Parameter]:
    try:
        return signature(function).parameters.values()
    except (TypeError, ValueError):  # said where the tool is made
        return ()


def _unnamed(parameter: str, function: str) -> CardError:
    msg = f"`{parameter}` of `{function}` cannot be given by name"
    hint = "a model names its arguments; use plain parameters"
    return function_error(FUNCTION_PARAMETERS, msg, hint=hint)


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
                statement.body = []  # it is never asked for, and would be most of what is kept
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
