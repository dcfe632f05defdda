"""Output: the shape of a structured answer, and the value read from its text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeVar, cast

from fast_agent.errors import RunError
from fast_agent.models.model import OutputSchema

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from pydantic import TypeAdapter, ValidationError

    from fast_agent.text.json_value import JsonObject, JsonValue

MAX_PROBLEMS = 5


class JsonSchema:
    """A JSON Schema, compiled once.

    Args:
        schema: The schema; draft 2020-12 unless it says otherwise.
        what: What it is the schema of, for the message.

    Raises:
        RunError: It is not a valid schema.
    """

    def __init__(self, schema: JsonObject, what: str) -> None:
        from jsonschema import SchemaError
        from jsonschema.validators import validator_for
        from referencing import Registry

        wire = cast("dict[str, Any]", schema)
        kind = validator_for(wire)
        try:
            kind.check_schema(wire)
        except SchemaError as error:
            raise RunError(f"the schema of {what} is not valid: {error.message}") from error
        # An empty registry: a schema must not make this process fetch addresses.
        self._validator: Validator = kind(wire, registry=Registry())

    def problems(self, value: JsonValue) -> str | None:
        """Return what violates the schema in `value` and where; None if it is valid."""
        from referencing.exceptions import Unresolvable

        try:
            errors = sorted(self._validator.iter_errors(value), key=lambda error: error.json_path)
        except Unresolvable as error:
            return f"the schema refers to `{error.ref}`, which is not in it"
        lines = [f"{error.json_path}: {error.message}" for error in errors[:MAX_PROBLEMS]]
        return "; ".join(lines) or None


T = TypeVar("T")


class OutputShape(Protocol):
    """What a structured answer must look like."""

    @property
    def schema(self) -> OutputSchema:
        """The schema passed to the model."""
        ...

    def parse(self, text: str) -> object:
        """Read the value.

        Raises:
            ValueError: The text is not of this shape; the error says where.
        """
        ...


class TypedOutput(Generic[T]):
    """The shape of a Python type: a pydantic model, a dataclass, a TypedDict, or any other type.

    Args:
        kind: The type.

    Raises:
        RunError: No JSON Schema can be made of the type.
    """

    def __init__(self, kind: type[T]) -> None:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError

        name = getattr(kind, "__name__", "answer")
        try:
            self._adapter: TypeAdapter[T] = TypeAdapter(kind)
            schema = self._adapter.json_schema()
        except PydanticUserError as error:
            shown = getattr(kind, "__name__", repr(kind))
            reason = error.message.partition("\n")[0].partition(". Set")[0]
            if error.code == "schema-for-unknown-type":
                reason = f"no JSON Schema can be made for {reason.partition(' schema for ')[2]}"
            raise RunError(
                f"`{shown}` cannot be the type of a structured answer: {reason}",
                hint="use a pydantic model, a dataclass, a TypedDict or a JSON Schema",
            ) from error
        self._schema = OutputSchema(name, schema)

    @property
    def schema(self) -> OutputSchema:
        """The schema passed to the model."""
        return self._schema

    def parse(self, text: str) -> T:
        """Read the value.

        Raises:
            ValueError: The text is not of the type; each problem starts with its path.
        """
        from pydantic import ValidationError

        _check_numbers(text)
        try:
            return self._adapter.validate_json(unfenced(text))
        except ValidationError as error:
            raise ValueError(_problems(error)) from error


class JsonOutput:
    """The output type described by a JSON Schema.

    Args:
        schema: The JSON Schema.

    Raises:
        RunError: It is not a valid JSON Schema.
    """

    def __init__(self, schema: JsonObject) -> None:
        self._checked = JsonSchema(schema, "the structured answer")
        title = schema.get("title")
        self._schema = OutputSchema(title if isinstance(title, str) else "answer", schema)

    @property
    def schema(self) -> OutputSchema:
        """The schema passed to the model."""
        return self._schema

    def parse(self, text: str) -> JsonValue:
        """Read the value.

        Raises:
            ValueError: The text is not JSON or does not fit the schema.
        """
        try:
            value = cast("JsonValue", json.loads(unfenced(text), parse_constant=_refuse_number))
        except json.JSONDecodeError as error:
            reason = f"{error.msg[:1].lower()}{error.msg[1:]}"
            at = f"line {error.lineno}, column {error.colno}"
            raise ValueError(f"it is not JSON: {reason} at {at}") from error
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
        problems = self._checked.problems(value)
        if problems is not None:
            raise ValueError(problems)
        return value


def _check_numbers(text: str) -> None:
    """Refuse what Python's readers take for numbers, though JSON has no such numbers.

    Raises:
        ValueError: The text holds one.
    """
    if "NaN" in text or "Infinity" in text:
        with suppress(json.JSONDecodeError):
            json.loads(unfenced(text), parse_constant=_refuse_number)


def _refuse_number(word: str) -> NoReturn:
    msg = f"it is not JSON: `{word}` is not a number JSON can hold"
    raise ValueError(msg)


def shape_of(wanted: type[T] | JsonObject) -> TypedOutput[T] | JsonOutput:
    """Return the shape of a type or of a JSON Schema."""
    if isinstance(wanted, Mapping):
        return JsonOutput(wanted)
    return TypedOutput(wanted)


def correction(error: ValueError) -> str:
    """Return the message about an invalid structured answer for the model."""
    return (
        "That answer does not have the required form:\n"
        f"{error}\n"
        "Answer again with only the corrected JSON."
    )


def _problems(error: ValidationError) -> str:
    """List what is wrong with a value by the path of each field, without addresses of a library."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines: list[str] = []
    for one in found:
        path = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in one["loc"])
        lines.append(f"${path}: {one['msg'][:1].lower()}{one['msg'][1:]}")
    return "\n".join(lines)


def unfenced(text: str) -> str:
    """Return `text` without the code fence many models put around JSON."""
    stripped = text.strip()
    if not (stripped.startswith("```") and stripped.endswith("```")):
        return stripped
    first_line, _, rest = stripped.partition("\n")
    return rest.removesuffix("```").strip() if rest else first_line.strip("`")
