"""Parameters of a Python function as a JSON Schema, and the check of arguments against it.

pydantic does both. Importing it takes a while, so this module is imported only where a function
tool is made.
"""

from __future__ import annotations

from functools import partial
from inspect import Parameter, Signature, isclass, isroutine, signature
from json import dumps
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from fast_agent.errors import ToolError
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest
from fast_agent.tools.tool import ToolContext, dependency_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic_core import CoreSchema, ErrorDetails

    from fast_agent.text.json_value import JsonObject

_MAX_INPUT = 80
_MAX_SCHEMA = 300
_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL)
_CONFIG = ConfigDict(arbitrary_types_allowed=False, defer_build=False)


class _PlainSchema(GenerateJsonSchema):
    """Leaves out the titles pydantic makes of parameter names: they only cost tokens."""

    def field_title_should_be_set(self, schema: CoreSchema | Any) -> bool:  # noqa: ARG002
        return False


@frozen
class Parameters:
    """What a function can be called with.

    Args:
        function: The function's name, for messages.
        schema: JSON Schema of the arguments object.
        context: The parameter that takes the `ToolContext`, which models do not see, or None.
        dependencies: By parameter the program fills, its class and whether it accepts None.
        validate: Gives keyword arguments for arguments; raises pydantic's ValidationError.
    """

    function: str
    schema: JsonObject
    context: str | None
    dependencies: Mapping[str, tuple[type, bool]]
    validate: Callable[[dict[str, object]], dict[str, object]]

    def check(self, arguments: JsonObject) -> dict[str, object]:
        """Check the arguments of a call and turn them into what the hints say.

        Args:
            arguments: JSON object, as the model gave it.

        Returns:
            Keyword arguments for the function, without the context and the dependencies.

        Raises:
            ToolError: They are wrong; the message names each wrong argument and what it must be.
        """
        try:
            return self.validate(dict(arguments))
        except ValidationError as problem:
            raise ToolError(self._explain(problem)) from problem

    def _explain(self, problem: ValidationError) -> str:
        errors = problem.errors(include_url=False, include_context=False)
        explained = [self._explain_one(error) for error in errors]
        return "\n".join(
            [f"wrong arguments for `{self.function}`:", *(f"- {one}" for one in explained)]
        )

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
        """Return what an argument must be, if that is short and refers to nothing else."""
        definitions = cast("Mapping[str, JsonObject]", self.schema.get("$defs", {}))
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        facts = {
            key: value
            for key, value in definitions.get(name, schema).items()
            if key not in ("description", "default", "title")
        }
        text = dumps(facts, ensure_ascii=False)
        fits = facts and "$ref" not in text and len(text) <= _MAX_SCHEMA
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
    dependencies: dict[str, tuple[type, bool]] = {}
    shown: list[Parameter] = []
    for parameter in _signature(function, name).parameters.values():
        hint: object = hints.get(parameter.name, Any)
        if _is_context(hint):
            context = parameter.name
            continue
        wanted = dependency_type(hint, parameter.name, name)
        if wanted is not None:
            dependencies[parameter.name] = wanted
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
    return Parameters(name, schema, context, dependencies, validate)


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
    # model sees, and returns the arguments it was called with, checked and with defaults.
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
    return f"`{text}`" if len(text) <= _MAX_INPUT else f"`{text[:_MAX_INPUT]}…`"


def _first(problem: BaseException) -> str:
    line = str(problem).partition("\n")[0]
    return line[:1].lower() + line[1:]
