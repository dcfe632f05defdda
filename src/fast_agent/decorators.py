"""Decorators: agents made in Python, by the functions that are the methods of `FastAgent`.

Each takes the fields of one card type and holds them to the rules of a card. All are usable as
decorators, which leave the function as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields as fields_of
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from fast_agent.cards.document import CardDocument
from fast_agent.cards.validate import Origin, validate_card
from fast_agent.errors import CardError
from fast_agent.text.source import Source, SourceError, read_source
from fast_agent.text.yaml_document import YamlDocument

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from fast_agent.agent_fields import (
        AgentFields,
        ChainFields,
        EvaluatorOptimizerFields,
        IterativePlannerFields,
        MakerFields,
        OrchestratorFields,
        ParallelFields,
        RouterFields,
    )
    from fast_agent.cards.agent_config import (
        AgentConfig,
        AgentsAsToolsOptions,
        CardType,
        FunctionRef,
    )
    from fast_agent.cards.card import Card

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_INSTRUCTION = """\
You are a helpful assistant. Today is {{currentDate}}.

{{serverInstructions}}
{{agentSkills}}
"""
"""The instruction of the default agent when no card defines one."""

ROUTER_INSTRUCTION = "Send each request to the agent that can serve it best."
"""The instruction of a router made without one."""

SMART_INSTRUCTION = "Help with what you are asked."
"""The instruction of a smart agent made without one."""

PLANNER_INSTRUCTION = "Plan how the agents can fulfil the request together."
"""The instruction of an orchestrator or iterative planner made without one."""


class CardReceiver(Protocol):
    """What takes the cards the decorators make."""

    def add_function(self, function: Callable[..., object], agent: str | None) -> None:
        """Add a function tool to an agent made in Python, or to all of them.

        Raises:
            CardError: The agent has no function tools.
        """
        ...

    def add_card(self, card: Card) -> None:
        """Add a card.

        Raises:
            CardError: Its name is taken.
        """
        ...


class DeclaredAgent:
    """An agent that was added: decorates a function, which it leaves as it is, and takes tools.

    Args:
        program: The program it was added to.
        name: Its name.
    """

    __slots__ = ("_program", "name")

    def __init__(self, program: CardReceiver, name: str) -> None:
        self._program = program
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def __call__(self, function: F) -> F:
        """Return the function as it is: the agent was added when it was declared."""
        return function

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, function: None = None, /, **options: Unpack[ToolFields]) -> Callable[[F], F]: ...
    def tool(
        self, function: F | None = None, /, **options: Unpack[ToolFields]
    ) -> F | Callable[[F], F]:
        """Add a function tool to this agent: `@writer.tool`, or `@writer.tool(timeout=5)`.

        Args:
            function: The function, when the decorator is written without parentheses.
            **options: As for `fast_agent.tool`.

        Raises:
            CardError: The agent's type has no function tools.
        """
        return _tool(self._program, self.name, function, options)


class ToolFields(TypedDict, total=False):
    """What `fast_agent.tool` says of a function."""

    name: str | None
    description: str | None
    title: str | None
    repeatable: bool
    timeout: float | None
    retries: int | None


@overload
def tool(self: CardReceiver, function: F, /) -> F: ...
@overload
def tool(
    self: CardReceiver, function: None = None, /, **options: Unpack[ToolFields]
) -> Callable[[F], F]: ...
def tool(
    self: CardReceiver, function: F | None = None, /, **options: Unpack[ToolFields]
) -> F | Callable[[F], F]:
    """Add a function tool to every agent made in Python: `@fast.tool`, or `@fast.tool(retries=2)`.

    Args:
        self: The program.
        function: The function, when the decorator is written without parentheses.
        **options: As for `fast_agent.tool`.
    """
    return _tool(self, None, function, options)


def _tool(
    program: CardReceiver, agent: str | None, function: F | None, options: ToolFields
) -> F | Callable[[F], F]:
    def give(target: F) -> F:
        if options:
            from fast_agent.tools.functions.function import tool as mark_tool

            mark_tool(**options)(target)
        program.add_function(target, agent)
        return target

    return give if function is None else give(function)


def agent(
    self: CardReceiver,
    name: str = "default",
    instruction: str | Path = DEFAULT_INSTRUCTION,
    **fields: Unpack[AgentFields],
) -> DeclaredAgent:
    """Add an agent of type `agent`; usable as a decorator, which leaves the function as it is.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: Its system prompt, or a file with it; placeholders are filled when a turn
            needs it.
        **fields: The other fields of the type: see `fast_agent.agent_fields.AgentFields`.

    Raises:
        CardError: A field is wrong or missing, or the name is taken.
    """
    return _add(self, "agent", name, instruction, fields)


def smart(
    self: CardReceiver,
    name: str = "smart",
    instruction: str | Path = SMART_INSTRUCTION,
    **fields: Unpack[AgentFields],
) -> DeclaredAgent:
    """Add an agent of type `smart`, which writes, checks and runs cards; usable as a decorator.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What is put below the packaged system prompt.
        **fields: The other fields of the type: see `fast_agent.agent_fields.AgentFields`.

    Raises:
        CardError: A field is wrong or missing, or the name is taken.
    """
    return _add(self, "smart", name, instruction, fields)


def chain(
    self: CardReceiver,
    name: str,
    instruction: str | Path | None = None,
    **fields: Unpack[ChainFields],
) -> DeclaredAgent:
    """Add a chain: each agent gets the answer of the one before it; usable as a decorator.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What it is for; no model is given it.
        **fields: The other fields of the type: see `fast_agent.agent_fields.ChainFields`.

    Raises:
        CardError: A field is wrong or missing, or the name is taken.
    """
    return _add(self, "chain", name, instruction, fields)


def parallel(
    self: CardReceiver,
    name: str,
    instruction: str | Path | None = None,
    **fields: Unpack[ParallelFields],
) -> DeclaredAgent:
    """Add agents that work at the same time on the same message; usable as a decorator.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What it is for; no model is given it.
        **fields: The other fields of the type: see `fast_agent.agent_fields.ParallelFields`.

    Raises:
        CardError: A field is wrong or missing, or the name is taken.
    """
    return _add(self, "parallel", name, instruction, fields)


def evaluator_optimizer(
    self: CardReceiver,
    name: str,
    instruction: str | Path | None = None,
    **fields: Unpack[EvaluatorOptimizerFields],
) -> DeclaredAgent:
    """Add an agent that lets a text be written, rated and rewritten; usable as a decorator.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What it is for; no model is given it.
        **fields: The other fields of the type: see
            `fast_agent.agent_fields.EvaluatorOptimizerFields`.

    Raises:
        CardError: A field is wrong or missing, or the name is taken.
    """
    return _add(self, "evaluator_optimizer", name, instruction, fields)


def router(
    self: CardReceiver,
    name: str,
    instruction: str | Path = ROUTER_INSTRUCTION,
    **fields: Unpack[RouterFields],
) -> DeclaredAgent:
    """Add an agent that sends each message to the agent it belongs to; usable as a decorator.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: How to choose.
        **fields: The other fields of the type: see `fast_agent.agent_fields.RouterFields`.

    Raises:
        CardError: A field is wrong or missing, or the name is taken.
    """
    return _add(self, "router", name, instruction, fields)


def orchestrator(
    self: CardReceiver,
    name: str,
    instruction: str | Path = PLANNER_INSTRUCTION,
    **fields: Unpack[OrchestratorFields],
) -> DeclaredAgent:
    """Add an agent that plans, has others do the tasks, and puts the results together.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What is to be heeded in planning.
        **fields: The other fields of the type: see `fast_agent.agent_fields.OrchestratorFields`.

    Raises:
        CardError: A field is wrong or missing, or the name is taken.
    """
    return _add(self, "orchestrator", name, instruction, fields)


def iterative_planner(
    self: CardReceiver,
    name: str,
    instruction: str | Path = PLANNER_INSTRUCTION,
    **fields: Unpack[IterativePlannerFields],
) -> DeclaredAgent:
    """Add an agent that plans one step, reads its result, and plans the next.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What is to be heeded in planning.
        **fields: The other fields of the type: see
            `fast_agent.agent_fields.IterativePlannerFields`.

    Raises:
        CardError: A field is wrong or missing, or the name is taken.
    """
    return _add(self, "iterative_planner", name, instruction, fields)


def maker(
    self: CardReceiver,
    name: str,
    instruction: str | Path | None = None,
    **fields: Unpack[MakerFields],
) -> DeclaredAgent:
    """Add an agent that has one small step done again and again until a vote is clear.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What it is for; no model is given it.
        **fields: The other fields of the type: see `fast_agent.agent_fields.MakerFields`.

    Raises:
        CardError: A field is wrong or missing, or the name is taken.
    """
    return _add(self, "MAKER", name, instruction, fields)


def _add(
    program: CardReceiver,
    card_type: CardType,
    name: str,
    instruction: str | Path | None,
    fields: Mapping[str, Any],
) -> DeclaredAgent:
    """Make a card of a decorator's arguments and add it."""
    given = dict(fields)
    options: AgentsAsToolsOptions | None = given.pop("agents_as_tools_options", None)
    if options is not None:
        given |= {key: one for key, one in _set(options).items() if given.get(key) is None}
    program.add_card(code_card(card_type, name, instruction, given))
    return DeclaredAgent(program, name)


def _read(name: str, path: Path) -> str:
    """Read the instruction of an agent from a file."""
    try:
        return read_source(path).text
    except SourceError as error:
        raise CardError(
            f"agent `{name}`: instruction `{path}` cannot be read: {error.message}", hint=error.hint
        ) from error


_FUNCTIONS = ("function_tools", "tool_hooks")


def code_card(
    card_type: CardType, name: str, instruction: str | Path | None, fields: Mapping[str, object]
) -> Card:
    """Make a card from Python values.

    Args:
        card_type: Its type.
        name: Its name.
        instruction: Its instruction, taken as it is, or a file with it; None leaves it to the type.
        fields: Its other fields as a card would have them; None is unset. Functions may be
            callables.

    Returns:
        The card.

    Raises:
        CardError: With everything that is wrong.
    """
    given = {key: value for key, value in fields.items() if value is not None}
    functions = {key: given.pop(key) for key in _FUNCTIONS if _holds_callable(given.get(key))}
    written = {"type": card_type, "name": name, **_card_value(given)}
    if instruction is not None:
        is_file = isinstance(instruction, Path)
        written["instruction"] = _read(name, instruction) if is_file else instruction
    document = CardDocument(Source("", ""), YamlDocument("", 1, written))
    card, found = validate_card(document, Origin(None), {})
    errors = [problem for problem in found if problem.severity == "error"]
    if errors:
        problems = tuple(
            replace(problem, message=f"agent `{name}`: {problem.message}", span=None, fix=None,
                    source_line=None)
            for problem in errors
        )  # fmt: skip
        raise CardError(problems[0].message, hint=problems[0].hint, diagnostics=problems)
    config: AgentConfig = card.config
    for key, value in functions.items():
        config = replace(config, **{key: _functions(value)})
    return replace(card, config=config, path="", document=None)


def _card_value(value: object) -> Any:
    """Return a value as a card file would hold it: sequences as lists, records as mappings."""
    if is_dataclass(value) and not isinstance(value, type):
        value = _set(value)
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        return {key: _card_value(item) for key, item in mapping.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_card_value(item) for item in cast("Sequence[object]", value)]
    return value


def _set(value: DataclassInstance) -> dict[str, object]:
    """Return the fields of a record that are set."""
    given = {one.name: getattr(value, one.name) for one in fields_of(value)}
    return {name: one for name, one in given.items() if one is not None}


def _holds_callable(value: object) -> bool:
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        return any(map(_holds_callable, mapping.values()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(callable(item) for item in cast("Sequence[object]", value))
    return callable(value)


def _functions(value: object) -> object:
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        return {point: _functions(functions) for point, functions in mapping.items()}
    if isinstance(value, str) or callable(value):
        return (cast("FunctionRef | Callable[..., Any]", value),)
    return tuple(cast("Sequence[FunctionRef]", value))
