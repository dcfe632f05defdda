"""The arguments of a call of a tool the runtime brings, checked against its spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from fast_agent.errors import ToolError
from fast_agent.text.suggestion import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.models.model import ToolSpec
    from fast_agent.text.json_value import JsonObject, JsonValue

_WORDS = {"string": "a string", "integer": "a whole number", "boolean": "true or false"}


def object_schema(required: Iterable[str] = (), **properties: tuple[str, str]) -> JsonObject:
    """Write the JSON Schema of some arguments.

    Args:
        required: Those that must be given.
        properties: Type and description of each.
    """
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {
            name: {"type": kind, "description": text} for name, (kind, text) in properties.items()
        },
        "additionalProperties": False,
    }
    return {**schema, "required": list(required)} if required else schema


class ToolArguments:
    """The arguments of one call.

    Args:
        spec: The tool.
        given: What the model gave. What is null counts as left out.

    Raises:
        ToolError: There is one the tool does not have, or one it needs is missing.
    """

    def __init__(self, spec: ToolSpec, given: JsonObject) -> None:
        properties = cast("Mapping[str, JsonObject]", spec.input_schema.get("properties", {}))
        for name in given:
            if name not in properties:
                near = closest(name, properties)
                hint = did_you_mean(near, _named(properties))
                raise ToolError(f"`{name}` is not an argument of `{spec.name}`", hint=hint)
        self._given = {name: value for name, value in given.items() if value is not None}
        for name in cast("Iterable[str]", spec.input_schema.get("required", ())):
            if name not in self._given:
                raise ToolError(f"`{name}` is missing", hint=_describe_argument(name, properties))

    def text(self, name: str) -> str | None:
        """Return a string, or None if it is left out.

        Raises:
            ToolError: It is not a string.
        """
        value = self._given.get(name)
        if value is not None and not isinstance(value, str):
            raise _wrong(name, "string")
        return value

    def required_text(self, name: str) -> str:
        """Return a string that is not blank.

        Raises:
            ToolError: It is not a string, blank, or left out.
        """
        value = self.text(name)
        if value is None or not value.strip():
            raise ToolError(f"`{name}` is empty")
        return value

    def whole(self, name: str, default: int, *, least: int = 0) -> int:
        """Return a whole number, `default` if it is left out.

        Raises:
            ToolError: It is none, or less than `least`.
        """
        value = self._given.get(name, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(name, "integer")
        if value < least:
            raise ToolError(f"`{name}` must be at least {least}")
        return value

    def flag(self, name: str) -> bool:
        """Return a truth value; false if it is left out.

        Raises:
            ToolError: It is none.
        """
        value = self._given.get(name, False)
        if not isinstance(value, bool):
            raise _wrong(name, "boolean")
        return value

    def mapping(self, name: str) -> JsonObject:
        """Return an object; an empty one if it is left out.

        Raises:
            ToolError: It is none.
        """
        value = self._given.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise ToolError(f"`{name}` must be an object")
        return value


def _wrong(name: str, kind: str) -> ToolError:
    return ToolError(f"`{name}` must be {_WORDS[kind]}")


def _describe_argument(name: str, properties: Mapping[str, JsonObject]) -> str:
    return f"it is {properties[name].get('description', 'required')}"


def _named(properties: Mapping[str, JsonObject]) -> str:
    return "its arguments are " + ", ".join(f"`{name}`" for name in properties)
