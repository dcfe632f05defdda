"""The functions of a card: checked without running anything, or loaded to be used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from fast_agent.diagnostics.diagnostic import Diagnostic, Fix, Related
from fast_agent.diagnostics.tool_rules import (
    DUPLICATE_TOOL,
    FUNCTION_PARAMETERS,
    HOOK_SIGNATURE,
    SHELL_DIRECTORY,
    function_error,
)
from fast_agent.errors import CardError, ToolError
from fast_agent.trust.function_path import HOOK_PARAMETERS, find_function_file, parse_function_path

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import AgentConfig, FunctionRef, HookPoint
    from fast_agent.cards.card import Card
    from fast_agent.text.span import Span
    from fast_agent.tools.function import FunctionTool
    from fast_agent.tools.function_loader import FunctionLoader
    from fast_agent.tools.function_outline import Outlines
    from fast_agent.tools.hooks import Hook
    from fast_agent.tools.turn_hooks import TurnHooks
    from fast_agent.trust.function_path import Role


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


@dataclass(frozen=True, slots=True)
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

    It is called with a card and gives its problems. It may live as long as the program: of files
    it read it keeps little, and one that has changed is taken as it is now.

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
        from fast_agent.tools.function_outline import Outlines, check_outline

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
    from fast_agent.tools.hooks import Hook
    from fast_agent.tools.turn_hooks import TurnHooks

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
    from fast_agent.tools.function import FunctionTool

    try:
        return FunctionTool(function, threads=loader.threads, keep=loader)
    except ToolError as problem:
        raise function_error(FUNCTION_PARAMETERS, problem.message, hint=problem.hint) from problem


def _check_callable(use: _Use, function: object) -> None:
    """Check the signature of a hook that is there as a Python function."""
    if use.role == "tool":
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
            f"it is looked for in `{Path(card.path).parent}`" if card.path else None,
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
    span = _span(keys, card)
    line = _line(span, card)
    return Diagnostic(code, message, card.path, span, "warning", hint, source_line=line)


def _placed(problem: CardError, use: _Use, card: Card) -> Iterator[Diagnostic]:
    """Put diagnostics at the place in the card that names the function, or beside the card."""
    span = _span(use.keys, card)
    for diagnostic in problem.diagnostics:
        if diagnostic.path:
            here = Related(f"`{use.name}` is named here", card.path, span)
            path = Path(card.path).parent / diagnostic.path
            yield replace(diagnostic, path=str(path), related=(here,) if card.path else ())
        else:
            fix = diagnostic.fix
            fix = Fix(span, fix.replacement) if fix is not None and span is not None else None
            line = _line(span, card)
            yield replace(diagnostic, path=card.path, span=span, fix=fix, source_line=line)


def _span(keys: tuple[str | int, ...], card: Card) -> Span | None:
    return card.span_of(cast("str", keys[0]), *keys[1:])


def _line(span: Span | None, card: Card) -> str | None:
    return None if span is None else card.source_line(span.start.line)
