"""FunctionTool: a Python function a model can call, with its schema read from the signature."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from inspect import (
    Parameter,
    Signature,
    cleandoc,
    isawaitable,
    isclass,
    iscoroutinefunction,
    isroutine,
    signature,
    unwrap,
)
from json import dumps
from logging import getLogger
from types import MappingProxyType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from fast_agent.errors import ToolError
from fast_agent.models.model import ToolSpec
from fast_agent.text.suggestion import closest
from fast_agent.tools.result import error_result, result_of, said
from fast_agent.tools.tool import ToolContext
from fast_agent.tools.tool_name import function_tool_name
from fast_agent.tools.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import CoreSchema, ErrorDetails

    from fast_agent.messages.message import ToolCall, ToolResult
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.tool import ToolSource


log = getLogger(__name__)

F = TypeVar("F", bound=Callable[..., object])

_OPTIONS = "__fast_agent_tool__"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """What `tool` says of a function.

    Args:
        name: The tool's name; None takes the function's.
        description: What models read; None takes the docstring's text before `Args:`.
        title: Name for people, or None.
        repeatable: Whether it may be called again when a crash left its outcome unknown.
    """

    name: str | None = None
    description: str | None = None
    title: str | None = None
    repeatable: bool = True


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    repeatable: bool = True,
) -> Callable[[F], F]: ...
def tool(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    repeatable: bool = True,
) -> F | Callable[[F], F]:
    """Say how a function is offered as a tool; the function itself stays as it is.

    Args:
        function: The function, when the decorator is written without parentheses.
        name: The tool's name; without it, the function's.
        description: What models read; without it, the docstring's text before `Args:`.
        title: Name for people.
        repeatable: False for a function that must not be called again when a crash left its
            outcome unknown, such as one that sends a message.

    Returns:
        The function, or a decorator.
    """
    options = ToolOptions(name=name, description=description, title=title, repeatable=repeatable)

    def mark(target: F) -> F:
        setattr(target, _OPTIONS, options)
        return target

    return mark if function is None else mark(function)


class FunctionTool:
    """A function as a tool: schema from its hints, arguments checked, its value made a result.

    A coroutine function runs on the event loop and is cancelled with its turn. Any other function
    runs in a worker thread, so that one that waits holds up nobody; one whose calls are quick is
    waited for a moment, which is less than being told of its end costs. When its turn is cancelled
    it is given up on and runs to its end unheard.

    Args:
        function: The function.
        options: Name, description and so on; None takes what `tool` said of it.
        threads: Where synchronous functions run; None makes threads of its own.
        keep: Anything that must live as long as the tool, such as the loader of the function's
            file.

    Raises:
        ToolError: The function cannot be a tool; the message names what is wrong with it.
    """

    __slots__ = (
        "_asynchronous",
        "_context_name",
        "_function",
        "_keep",
        "_parameters",
        "_repeatable",
        "_spec",
        "_threads",
    )

    def __init__(
        self,
        function: Callable[..., object],
        options: ToolOptions | None = None,
        *,
        threads: WorkerThreads | None = None,
        keep: object = None,
    ) -> None:

        options = options or options_of(function)
        name = options.name or name_of(function)
        self._function = function
        docstring = parse_docstring(_docstring(function))
        self._parameters = parameters_of(function, name, docstring.parameters)
        self._context_name = self._parameters.context
        self._asynchronous = iscoroutinefunction(function) or iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 (an object's own `async __call__`)
        )
        self._repeatable = options.repeatable
        self._threads = threads or WorkerThreads()
        self._keep = keep
        self._spec = ToolSpec(
            function_tool_name(name),
            docstring.description if options.description is None else options.description,
            self._parameters.schema,
            title=options.title,
        )

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        return self._spec

    @property
    def source(self) -> ToolSource:
        """Always `function`."""
        return "function"

    @property
    def server_name(self) -> str | None:
        """Always None."""
        return None

    @property
    def repeatable(self) -> bool:
        """Whether it may be called again when a crash left its outcome unknown."""
        return self._repeatable

    @property
    def function(self) -> Callable[..., object]:
        """The function itself."""
        return self._function

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Check the arguments, call the function, and make a result of what it returns.

        Args:
            call: The call.
            context: Given to the parameter that asks for a `ToolContext`.

        Returns:
            The result; wrong arguments and what the function raises are error results.
        """
        try:
            given = self._parameters.check(call.arguments)
        except ToolError as problem:
            return error_result(call.id, problem.message)
        if self._context_name is not None:
            given[self._context_name] = context
        try:
            if self._asynchronous:
                value = await cast("Awaitable[object]", self._function(**given))
                return result_of(call.id, value)
            outcome = await self._threads.run(partial(self._run, call.id, given))
            if isinstance(outcome, _Pending):
                return result_of(call.id, await outcome.value)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the boundary of a tool call)
            return self._failed(call.id, error)
        return outcome

    def _run(self, call_id: str, given: dict[str, object]) -> ToolResult | _Pending:
        """Call a synchronous function and make its result; in a worker thread."""
        try:
            value = self._function(**given)
            # Such as a lambda around a coroutine function: awaited on the loop.
            if isawaitable(value):
                return _Pending(cast("Awaitable[object]", value))
            return result_of(call_id, value)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the boundary of a tool call)
            return self._failed(call_id, error)

    def _failed(self, call_id: str, error: BaseException) -> ToolResult:
        log.warning("function tool `%s` failed", self._spec.name, exc_info=error)
        return error_result(call_id, said(error))


@dataclass(frozen=True, slots=True)
class _Pending:
    value: Awaitable[object]


def options_of(function: Callable[..., object]) -> ToolOptions:
    """Give what `tool` said of a function, or the defaults."""
    found = getattr(function, _OPTIONS, None)
    return found if isinstance(found, ToolOptions) else ToolOptions()


def name_of(function: Callable[..., object]) -> str:
    """Give the name of a function, of what a partial wraps, or of a callable object's class."""
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    name: Any = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _docstring(function: Callable[..., object]) -> str | None:
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    return unwrap(function).__doc__


_PARAMETERS = frozenset({"args", "arguments", "parameters", "params", "keyword args"})
_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Params|Keyword Args|Returns?|Yields?|Raises|Examples?|Notes?"
    r"|Attributes|Warnings?|See Also|References|Todo)\s*:\s*",
    re.IGNORECASE,
)
_ENTRY = re.compile(r"\*{0,2}(?P<name>[^\W\d]\w*)\s*(\([^)]*\)\s*)?:(?:\s+(?P<text>.*))?")


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring taken apart.

    Args:
        description: The text before the first section, such as `Args:`.
        parameters: What the `Args:` section says of each parameter.
    """

    description: str
    parameters: Mapping[str, str]


def parse_docstring(text: str | None) -> Docstring:
    """Take a docstring apart.

    Args:
        text: The docstring as written, or None.

    Returns:
        Its parts; empty ones where there is nothing.
    """
    lines = cleandoc(text or "").splitlines()
    headings = [
        (index, found.group(1).lower())
        for index, line in enumerate(lines)
        if (found := _SECTION.fullmatch(line))
    ]
    first = headings[0][0] if headings else len(lines)
    parameters: dict[str, str] = {}
    ends = [*(index for index, _ in headings), len(lines)][1:]
    for (start, title), end in zip(headings, ends, strict=True):
        if title in _PARAMETERS:
            parameters |= _entries(lines[start + 1 : end])
    return Docstring("\n".join(lines[:first]).strip(), MappingProxyType(parameters))


def _entries(lines: list[str]) -> dict[str, str]:
    """Read `name (type): text` entries; what is indented deeper than the first continues one."""
    depth = min((_indent(line) for line in lines if line.strip()), default=0)
    entries: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        if not line.strip():
            continue
        entry = _ENTRY.fullmatch(line.strip()) if _indent(line) == depth else None
        if entry is not None:
            current = entries.setdefault(entry["name"], [])
            current.append((entry["text"] or "").strip())
        elif current is not None:
            current.append(line.strip())
    return {name: " ".join(filter(None, parts)) for name, parts in entries.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


_LONGEST_INPUT = 80
_LONGEST_SCHEMA = 300
_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL)
_CONFIG = ConfigDict(arbitrary_types_allowed=False, defer_build=False)


class _PlainSchema(GenerateJsonSchema):
    """Leaves out the titles pydantic makes of parameter names: they only cost tokens."""

    def field_title_should_be_set(self, schema: CoreSchema | Any) -> bool:  # noqa: ARG002
        return False


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a function can be called with.

    Args:
        function: The function's name, for messages.
        schema: JSON Schema of the arguments object.
        context: The parameter that takes the `ToolContext`, which models do not see, or None.
        validate: Gives keyword arguments for arguments; raises pydantic's ValidationError.
    """

    function: str
    schema: JsonObject
    context: str | None
    validate: Callable[[dict[str, object]], dict[str, object]]

    def check(self, arguments: JsonObject) -> dict[str, object]:
        """Check the arguments of a call and turn them into what the hints say.

        Args:
            arguments: JSON object, as the model gave it.

        Returns:
            Keyword arguments for the function, without the context.

        Raises:
            ToolError: They are wrong; the message names each wrong argument and what it must be.
        """
        try:
            return self.validate(dict(arguments))
        except ValidationError as problem:
            raise ToolError(self._explain(problem)) from problem

    def _explain(self, problem: ValidationError) -> str:
        errors = problem.errors(include_url=False, include_context=False)
        told = [self._explain_one(error) for error in errors]
        return "\n".join([f"wrong arguments for `{self.function}`:", *(f"- {one}" for one in told)])

    def _explain_one(self, error: ErrorDetails) -> str:
        where = ".".join(str(part) for part in error["loc"])
        properties = cast("Mapping[str, JsonObject]", self.schema.get("properties", {}))
        top = str(error["loc"][0]) if error["loc"] else ""
        expected = (
            self._brief(properties[top]) if (top,) == error["loc"] and top in properties else ""
        )
        match error["type"]:
            case "missing_keyword_only_argument" | "missing":
                return f"`{where}` is missing{expected}"
            case "unexpected_keyword_argument" | "extra_forbidden":
                near = closest(top, properties) if len(error["loc"]) == 1 else None
                known = ", ".join(f"`{name}`" for name in properties) or "none"
                rest = f"; did you mean `{near}`?" if near else f"; the arguments are: {known}"
                return f"`{where}` is not an argument{rest}"
            case _:
                message = error["msg"][:1].lower() + error["msg"][1:]
                return f"`{where}`: {message}, got {_shown(error['input'])}{expected}"

    def _brief(self, schema: JsonObject) -> str:
        """Say what an argument must be, where that is short and refers to nothing else."""
        definitions = cast("Mapping[str, JsonObject]", self.schema.get("$defs", {}))
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        facts = {
            key: value
            for key, value in definitions.get(name, schema).items()
            if key not in ("description", "default", "title")
        }
        text = dumps(facts, ensure_ascii=False)
        fits = facts and "$ref" not in text and len(text) <= _LONGEST_SCHEMA
        return f"; it must be {text}" if fits else ""


def parameters_of(
    function: Callable[..., object], name: str, documented: Mapping[str, str]
) -> Parameters:
    """Read the parameters of a function.

    Args:
        function: A function, method, partial, or object with `__call__`.
        name: Its name, for messages.
        documented: What the docstring says of each parameter.

    Returns:
        Its parameters.

    Raises:
        ToolError: It cannot be a tool; the message names the parameter that is wrong.
    """
    hints = _hints(function, name)
    context: str | None = None
    shown: list[Parameter] = []
    for parameter in _signature(function, name).parameters.values():
        hint: object = hints.get(parameter.name, Any)
        if _is_context(hint):
            context = parameter.name
            continue
        if parameter.kind in _BY_POSITION:
            stars = "*" if parameter.kind is Parameter.VAR_POSITIONAL else ""
            msg = f"`{stars}{parameter.name}` of `{name}` cannot be given by name"
            raise ToolError(msg, hint="a model names its arguments; use plain parameters")
        kind = parameter.kind
        if kind is Parameter.POSITIONAL_OR_KEYWORD:
            kind = Parameter.KEYWORD_ONLY
        shown.append(parameter.replace(annotation=hint, kind=kind))
    adapter, schema = _adapt(shown, name)
    _describe(schema, shown, documented)
    validate = cast(
        "Callable[[dict[str, object]], dict[str, object]]", adapter.validator.validate_python
    )
    return Parameters(name, schema, context, validate)


def _signature(function: Callable[..., object], name: str) -> Signature:
    if isclass(function):
        raise ToolError(f"`{name}` is a class, not a function")
    try:
        return signature(function)
    except (TypeError, ValueError):
        raise ToolError(
            f"the parameters of `{name}` cannot be read", hint="wrap it in a `def`"
        ) from None


def _hints(function: Callable[..., object], name: str) -> dict[str, object]:
    target: object = function
    while isinstance(target, partial):
        target = cast("partial[object]", target).func
    if not isroutine(target):
        target = getattr(type(target), "__call__", target)  # noqa: B004 (the method, for its hints)
    try:
        try:
            return get_type_hints(target, include_extras=True)
        except NameError as missing:
            # Often imported for type checkers only, which is all its name is needed for.
            if missing.name != ToolContext.__name__:
                raise
            names = {ToolContext.__name__: ToolContext}
            return get_type_hints(target, localns=names, include_extras=True)
    except NameError as missing:
        msg = f"a type hint of `{name}` cannot be resolved: `{missing.name}` is not defined"
        hint = "import it at the top of the file, not under `if TYPE_CHECKING`"
        raise ToolError(msg, hint=hint) from missing
    except (TypeError, SyntaxError, AttributeError) as wrong:
        raise ToolError(f"a type hint of `{name}` is wrong: {wrong}") from wrong


def _is_context(hint: object) -> bool:
    if get_origin(hint) in (Union, UnionType, Annotated):
        return any(_is_context(part) for part in get_args(hint))
    return isclass(hint) and issubclass(hint, ToolContext)


def _adapt(shown: list[Parameter], name: str) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    try:
        return _adapter(shown)
    except (PydanticUserError, PydanticInvalidForJsonSchema, TypeError) as problem:
        for parameter in shown:
            try:
                _adapter([parameter])
            except (PydanticUserError, PydanticInvalidForJsonSchema, TypeError) as wrong:
                hint = "use what JSON can hold: text, numbers, lists, dicts, dataclasses, models"
                what = f"the type of `{parameter.name}` of `{name}`"
                msg = f"{what} cannot be used: {_first(wrong)}"
                raise ToolError(msg, hint=hint) from wrong
        raise ToolError(f"`{name}` cannot be a tool: {_first(problem)}") from problem


def _adapter(shown: list[Parameter]) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    def collect(**arguments: object) -> dict[str, object]:
        return arguments

    # pydantic reads a function by its signature and its annotations: this one has the parameters a
    # model sees, and gives back the arguments it was called with, checked and with defaults.
    collect.__signature__ = Signature(shown)
    collect.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    adapter = TypeAdapter(cast("type[Any]", collect), config=_CONFIG)
    return adapter, adapter.json_schema(schema_generator=_PlainSchema)


def _describe(
    schema: dict[str, Any], shown: list[Parameter], documented: Mapping[str, str]
) -> None:
    """Add descriptions: the text in `Annotated[..., "text"]`, else what the docstring says."""
    properties: dict[str, dict[str, Any]] = schema.setdefault("properties", {})
    for parameter in shown:
        if parameter.name in properties:
            texts = [part for part in _metadata(parameter.annotation) if isinstance(part, str)]
            text = texts[0] if texts else documented.get(parameter.name)
            if text:
                properties[parameter.name].setdefault("description", text)


def _metadata(hint: object) -> tuple[object, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _shown(value: object) -> str:
    try:
        text = dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = type(value).__name__
    return f"`{text}`" if len(text) <= _LONGEST_INPUT else f"`{text[:_LONGEST_INPUT]}…`"


def _first(problem: BaseException) -> str:
    line = str(problem).partition("\n")[0]
    return line[:1].lower() + line[1:]
