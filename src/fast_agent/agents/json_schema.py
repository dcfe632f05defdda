"""JSON Schema: checking values of structured answers and of arguments for child agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from fast_agent.errors import RunError

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

    from fast_agent.text.json_value import JsonObject, JsonValue

MOST_PROBLEMS = 5


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
        """Say what is wrong with `value` and where; None when it fits."""
        from referencing.exceptions import Unresolvable

        try:
            errors = sorted(self._validator.iter_errors(value), key=lambda error: error.json_path)
        except Unresolvable as error:
            return f"the schema refers to `{error.ref}`, which is not in it"
        told = [f"{error.json_path}: {error.message}" for error in errors[:MOST_PROBLEMS]]
        return "; ".join(told) or None
