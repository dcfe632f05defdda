"""Decorators: agents made in Python, by the functions that are the methods of `FastAgent`.

Each takes the fields of one card type and holds them to the rules of a card. All are usable as
decorators, which leave the function as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from fast_agent.cards.agent_config import (  # noqa: TC001
    ChildHistory,
    FunctionRef,
    HistorySource,
)
from fast_agent.cards.agents_as_tools import AgentsAsToolsOptions  # noqa: TC001
from fast_agent.cards.document import CardDocument
from fast_agent.cards.request_params import RequestParams  # noqa: TC001
from fast_agent.cards.validate import Origin, validate_card
from fast_agent.errors import CardError
from fast_agent.text.json_value import JsonObject  # noqa: TC001
from fast_agent.text.source import Source
from fast_agent.text.yaml_document import YamlDocument

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import AgentConfig, CardType, FileAccess
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
            from fast_agent.tools.function import tool as mark_tool

            mark_tool(**options)(target)
        program.add_function(target, agent)
        return target

    return give if function is None else give(function)


ServersOfCard: TypeAlias = (
    "Sequence[str | Mapping[str, Any]] | Mapping[str, str | Mapping[str, Any]]"
)
"""MCP servers an agent brings, by name or in a list."""


def agent(
    self: CardReceiver,
    name: str = "default",
    instruction: str = DEFAULT_INSTRUCTION,
    *,
    description: str | None = None,
    default: bool | None = None,
    tool_only: bool | None = None,
    agents: Sequence[str] | None = None,
    servers: Sequence[str] | None = None,
    mcp_connect: ServersOfCard | None = None,
    tools: Mapping[str, Sequence[str]] | None = None,
    resources: Mapping[str, Sequence[str]] | None = None,
    prompts: Mapping[str, Sequence[str]] | None = None,
    skills: Sequence[str] | None = None,
    resource_tools: bool | None = None,
    model: str | Sequence[str] | None = None,
    use_history: bool | None = None,
    trim_tool_history: bool | None = None,
    compaction: bool | Mapping[str, Any] | None = None,
    request_params: RequestParams | Mapping[str, Any] | None = None,
    human_input: bool | None = None,
    api_key: str | None = None,
    messages: str | Sequence[str] | None = None,
    function_tools: Sequence[FunctionRef] | None = None,
    tool_hooks: Sequence[FunctionRef] | Mapping[str, FunctionRef] | None = None,
    shell: bool | None = None,
    files: FileAccess | None = None,
    fetch: bool | None = None,
    cwd: str | None = None,
    tool_input_schema: JsonObject | None = None,
    confirm: str | Sequence[str] | None = None,
    history_source: HistorySource | None = None,
    history_merge_target: HistorySource | None = None,
    child_history: Mapping[str, ChildHistory] | None = None,
    max_parallel: int | None = None,
    child_timeout_sec: float | None = None,
    max_display_instances: int | None = None,
    queue: str | None = None,
    agents_as_tools_options: AgentsAsToolsOptions | None = None,
) -> DeclaredAgent:
    """Add an agent of type `agent`; usable as a decorator, which leaves the function as it is.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: Its system prompt; placeholders are filled when a turn needs it.
        description: What it does, for agents that use it as a tool.
        default: Whether it is the one a person talks to first.
        tool_only: Whether it is offered to other agents only.
        agents: Agents it may call as tools.
        servers: MCP servers of the configuration it uses.
        mcp_connect: MCP servers it brings: URLs and command lines, or mappings with `target`,
            `headers` and `env`; by name, or in a list.
        tools: Tool names or patterns it may call, by server; other servers offer all.
        resources: The same for resources.
        prompts: The same for prompts.
        skills: Skill directories; an empty list means none.
        resource_tools: Whether it gets the tools that list and read resources.
        model: Its model, such as `anthropic.claude-sonnet-5`; of a list, the next answers where
            one fails.
        use_history: Whether it remembers earlier turns.
        trim_tool_history: Whether its model is given only the last tool call of each earlier turn.
        compaction: When its conversation is summarized to fit the context window, such as
            `{"share": 0.8}`; False is never.
        request_params: Parameters of its model requests.
        human_input: Whether it may ask the person.
        api_key: The key of its model's provider.
        messages: History files its conversation starts with.
        function_tools: Python functions, or `file.py:name`.
        tool_hooks: Functions around tool calls, or functions by point of the turn.
        shell: Whether it may run commands.
        files: Whether it may read files of the workspace, or write them too.
        fetch: Whether it may fetch web pages.
        cwd: Where its commands run.
        tool_input_schema: JSON Schema of its arguments when it is a tool.
        confirm: Tools a person has to allow each call of.
        history_source: What its children start with.
        history_merge_target: Where its children's messages go.
        child_history: The two for single children.
        max_parallel: Most children at work at once.
        child_timeout_sec: Longest run of a child, in seconds.
        max_display_instances: How many children are shown in full.
        queue: The workers that run its steps on Temporal, by the name of their queue.
        agents_as_tools_options: The fields on children as one value; the single ones go before it.

    Raises:
        CardError: A field is wrong, or the name is taken.
    """
    return _add(self, "agent", locals())


def smart(
    self: CardReceiver,
    name: str = "smart",
    instruction: str = "Help with what you are asked.",
    **fields: Unpack[AgentFields],
) -> DeclaredAgent:
    """Add an agent of type `smart`, which writes, checks and runs cards; usable as a decorator.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What is put below the packaged system prompt.
        **fields: The same as those of `agent`.

    Raises:
        CardError: A field is wrong, or the name is taken.
    """
    return _add(self, "smart", locals())


def chain(
    self: CardReceiver,
    name: str,
    instruction: str | None = None,
    *,
    sequence: Sequence[str],
    cumulative: bool | None = None,
    continue_with_final: bool | None = None,
    **fields: Unpack[MemberFields],
) -> DeclaredAgent:
    """Add a chain: each agent gets the answer of the one before it; usable as a decorator.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What it is for; no model is given it.
        sequence: The agents, in order.
        cumulative: Whether each agent sees the request and every answer so far.
        continue_with_final: Whether the conversation continues with the last agent of the chain.
        **fields: `description`, `default`, `tool_only`.

    Raises:
        CardError: A field is wrong, or the name is taken.
    """
    return _add(self, "chain", locals())


def parallel(
    self: CardReceiver,
    name: str,
    instruction: str | None = None,
    *,
    fan_out: Sequence[str],
    fan_in: str | None = None,
    include_request: bool | None = None,
    **fields: Unpack[MemberFields],
) -> DeclaredAgent:
    """Add agents that work at the same time on the same message; usable as a decorator.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What it is for; no model is given it.
        fan_out: The agents that work at the same time.
        fan_in: The agent that joins the answers; None puts them under headings.
        include_request: Whether `fan_in` is given the request too.
        **fields: `description`, `default`, `tool_only`.

    Raises:
        CardError: A field is wrong, or the name is taken.
    """
    return _add(self, "parallel", locals())


def evaluator_optimizer(
    self: CardReceiver,
    name: str,
    instruction: str | None = None,
    *,
    generator: str,
    evaluator: str,
    min_rating: Literal["POOR", "FAIR", "GOOD", "EXCELLENT"] | None = None,
    max_refinements: int | None = None,
    refinement_instruction: str | None = None,
    **fields: Unpack[SeededFields],
) -> DeclaredAgent:
    """Add an agent that lets a text be written, rated and rewritten; usable as a decorator.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What it is for; no model is given it.
        generator: The agent that writes.
        evaluator: The agent that rates.
        min_rating: The rating that is good enough.
        max_refinements: Most rounds of rewriting.
        refinement_instruction: The message to the generator when it rewrites.
        **fields: `description`, `default`, `tool_only`, `messages`.

    Raises:
        CardError: A field is wrong, or the name is taken.
    """
    return _add(self, "evaluator_optimizer", locals())


def router(
    self: CardReceiver,
    name: str,
    instruction: str = ROUTER_INSTRUCTION,
    *,
    agents: Sequence[str],
    hand_off: bool | None = None,
    **fields: Unpack[RouterFields],
) -> DeclaredAgent:
    """Add an agent that sends each message to the agent it belongs to; usable as a decorator.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: How to choose.
        agents: The agents to choose from; their descriptions distinguish them.
        hand_off: Whether the chosen agent is given what was said to the router before.
        **fields: `description`, `default`, `tool_only`, `messages`, and of its own model: `model`,
            `use_history`, `request_params`, `human_input`, `api_key`, `servers`, `tools`,
            `resources`, `prompts`.

    Raises:
        CardError: A field is wrong, or the name is taken.
    """
    return _add(self, "router", locals())


def orchestrator(
    self: CardReceiver,
    name: str,
    instruction: str = PLANNER_INSTRUCTION,
    *,
    agents: Sequence[str],
    plan_type: Literal["full", "iterative"] | None = None,
    plan_iterations: int | None = None,
    **fields: Unpack[OrchestratorFields],
) -> DeclaredAgent:
    """Add an agent that plans, has others do the tasks, and puts the results together.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What is to be heeded in planning.
        agents: The agents that do the tasks.
        plan_type: The whole plan first, or step by step.
        plan_iterations: Maximum number of plans asked of the model; -1 means no limit.
        **fields: `description`, `default`, `tool_only`, `messages`, `history_source`,
            `history_merge_target`, `child_history`, and of its own model: `model`, `use_history`,
            `request_params`, `human_input`, `api_key`.

    Raises:
        CardError: A field is wrong, or the name is taken.
    """
    return _add(self, "orchestrator", locals())


def iterative_planner(
    self: CardReceiver,
    name: str,
    instruction: str = PLANNER_INSTRUCTION,
    *,
    agents: Sequence[str],
    plan_iterations: int | None = None,
    **fields: Unpack[PlannerFields],
) -> DeclaredAgent:
    """Add an agent that plans one step, reads its result, and plans the next.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What is to be heeded in planning.
        agents: The agents that do the tasks.
        plan_iterations: Maximum number of plans asked of the model; -1 means no limit.
        **fields: `description`, `default`, `tool_only`, `messages`, `history_source`,
            `history_merge_target`, `child_history`, and of its own model: `model`,
            `request_params`, `api_key`.

    Raises:
        CardError: A field is wrong, or the name is taken.
    """
    return _add(self, "iterative_planner", locals())


def maker(
    self: CardReceiver,
    name: str,
    instruction: str | None = None,
    *,
    worker: str,
    k: int | Literal["auto"] | None = None,
    max_samples: int | None = None,
    match_strategy: Literal["exact", "normalized", "structured"] | None = None,
    red_flag_max_length: int | None = None,
    steps: int | None = None,
    target_success: float | None = None,
    calibration_samples: int | None = None,
    **fields: Unpack[SeededFields],
) -> DeclaredAgent:
    """Add an agent that has one small step done again and again until a vote is clear.

    Args:
        self: The program.
        name: Its name, unique in the program.
        instruction: What it is for; no model is given it.
        worker: The agent that is asked again and again.
        k: How many votes an answer must be ahead by; `auto` measures.
        max_samples: Most answers asked for.
        match_strategy: When two answers count as the same.
        red_flag_max_length: Answers longer than this many characters are thrown away.
        steps: How many such steps the whole task has, for `k="auto"`.
        target_success: How likely all of them shall be right, for `k="auto"`.
        calibration_samples: Answers `k="auto"` measures on.
        **fields: `description`, `default`, `tool_only`, `messages`.

    Raises:
        CardError: A field is wrong, or the name is taken.
    """
    return _add(self, "MAKER", locals())


def _add(program: CardReceiver, card_type: CardType, given: dict[str, Any]) -> DeclaredAgent:
    """Make a card of a decorator's arguments, by name, and add it."""
    fields: dict[str, Any] = {**given, **given.get("fields", {})}
    fields.pop("self")
    fields.pop("fields", None)
    name, instruction = fields.pop("name"), fields.pop("instruction")
    options: AgentsAsToolsOptions | None = fields.pop("agents_as_tools_options", None)
    if options is not None:
        for field, value in asdict(options).items():
            if fields.get(field) is None:
                fields[field] = value
    child_history: Mapping[str, ChildHistory] | None = fields.pop("child_history", None)
    own_params = _own_params(fields)
    card = code_card(card_type, name, instruction, fields)
    config = card.config
    if own_params is not None:
        config = replace(config, request_params=own_params)
    if child_history is not None:
        config = replace(config, child_history=dict(child_history))
    program.add_card(replace(card, config=config))
    return DeclaredAgent(program, name)


def _own_params(fields: dict[str, Any]) -> RequestParams | None:
    """Take a ready value of request parameters out of `fields`; a mapping is left to the check."""
    value = fields.get("request_params")
    if value is None or isinstance(value, Mapping):
        return None
    del fields["request_params"]
    return value


class AgentFields(TypedDict, total=False):
    """The fields of the types `agent` and `smart`, in addition to name and instruction."""

    description: str
    default: bool
    tool_only: bool
    agents: Sequence[str]
    servers: Sequence[str]
    mcp_connect: ServersOfCard
    tools: Mapping[str, Sequence[str]]
    resources: Mapping[str, Sequence[str]]
    prompts: Mapping[str, Sequence[str]]
    skills: Sequence[str]
    resource_tools: bool
    model: str | Sequence[str]
    use_history: bool
    trim_tool_history: bool
    compaction: bool | Mapping[str, Any]
    request_params: RequestParams | Mapping[str, Any]
    human_input: bool
    api_key: str
    messages: str | Sequence[str]
    function_tools: Sequence[FunctionRef]
    tool_hooks: Sequence[FunctionRef] | Mapping[str, FunctionRef]
    shell: bool
    files: FileAccess
    fetch: bool
    cwd: str
    tool_input_schema: JsonObject
    confirm: str | Sequence[str]
    history_source: HistorySource
    history_merge_target: HistorySource
    child_history: Mapping[str, ChildHistory]
    max_parallel: int
    child_timeout_sec: float
    max_display_instances: int
    queue: str
    agents_as_tools_options: AgentsAsToolsOptions


class MemberFields(TypedDict, total=False):
    """The fields every type has, in addition to name and instruction."""

    description: str
    default: bool
    tool_only: bool


class SeededFields(MemberFields, total=False):
    """Those, and the messages its conversation starts with."""

    messages: str | Sequence[str]


class PlannerFields(SeededFields, total=False):
    """The fields an `iterative_planner` shares with other types."""

    model: str | Sequence[str]
    request_params: RequestParams | Mapping[str, Any]
    api_key: str
    history_source: HistorySource
    history_merge_target: HistorySource
    child_history: Mapping[str, ChildHistory]
    agents_as_tools_options: AgentsAsToolsOptions


class OrchestratorFields(PlannerFields, total=False):
    """The fields an `orchestrator` shares with other types."""

    use_history: bool
    human_input: bool


class RouterFields(SeededFields, total=False):
    """The fields a `router` shares with other types."""

    servers: Sequence[str]
    tools: Mapping[str, Sequence[str]]
    resources: Mapping[str, Sequence[str]]
    prompts: Mapping[str, Sequence[str]]
    model: str | Sequence[str]
    use_history: bool
    request_params: RequestParams | Mapping[str, Any]
    human_input: bool
    api_key: str


_FUNCTIONS = ("function_tools", "tool_hooks")


def code_card(
    card_type: CardType, name: str, instruction: str | None, fields: Mapping[str, object]
) -> Card:
    """Make a card from Python values.

    Args:
        card_type: Its type.
        name: Its name.
        instruction: Its instruction, taken as it is; None leaves it to the type.
        fields: Its other fields as a card would have them; None is unset. Functions may be
            callables.

    Returns:
        The card.

    Raises:
        CardError: With everything that is wrong.
    """
    given = {key: value for key, value in fields.items() if value is not None}
    functions = {key: given.pop(key) for key in _FUNCTIONS if _holds_callable(given.get(key))}
    written = {"type": card_type, "name": name, **_plain(given)}
    if instruction is not None:
        written["instruction"] = instruction
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


def _plain(value: object) -> Any:
    """Return a value as a card file would hold it: sequences as lists."""
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        return {key: _plain(item) for key, item in mapping.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    return value


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
