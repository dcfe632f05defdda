"""Asking a user: the seam between tools or MCP servers that ask and the shell that can.

A form is a flat JSON Schema that a user is asked to fill in, field by field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast

from fast_agent.errors import ToolError
from fast_agent.steps.steps import Codec, Step, here
from fast_agent.text.frozen import frozen
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jsonschema.exceptions import ValidationError

    from fast_agent.text.json_value import JsonObject, JsonValue

Choice: TypeAlias = "tuple[JsonValue, str]"
"""A value and how it is shown."""
_SIMPLE = ("string", "integer", "number", "boolean")
_YES = frozenset({"y", "yes", "true"})
_NO = frozenset({"n", "no", "false"})
_MAX_FIELDS = 50


@frozen(kw_only=True)
class FormField:
    """One field of a form.

    Args:
        name: Its key in the answer.
        label: Its title, or its name.
        description: What it means; empty where nothing is said.
        kind: `string`, `integer`, `number`, `boolean`, or `array` for several of the choices.
        choices: The values it may have; none where it is free.
        required: Whether the answer must have it.
        default: Its value when nothing is answered, or None.
        schema: Its JSON Schema.
    """

    name: str
    label: str
    description: str
    kind: str
    choices: tuple[Choice, ...]
    required: bool
    default: JsonValue
    schema: JsonObject

    def parse(self, text: str) -> JsonValue:
        """Read what a user typed.

        Args:
            text: A value, or a choice by its number, value or label; for several choices these
                with commas between them.

        Returns:
            The value.

        Raises:
            ToolError: It does not fit; the message says what would.
        """
        value = self._several(text) if self.kind == "array" else self._parse_one(text.strip())
        problem = schema_problem(value, self.schema)
        if problem is not None:
            raise ToolError(problem)
        return value

    def _several(self, text: str) -> list[JsonValue]:
        return [self._choose(part.strip()) for part in text.split(",") if part.strip()]

    def _parse_one(self, text: str) -> JsonValue:
        if self.choices:
            return self._choose(text)
        word = text.lower()
        try:
            match self.kind:
                case "integer":
                    return int(text)
                case "number":
                    return float(text)
                case "boolean" if word in _YES | _NO:
                    return word in _YES
                case "boolean":
                    raise ToolError("answer `yes` or `no`")
                case _:
                    return text
        except ValueError:
            kind = "a whole number" if self.kind == "integer" else "a number"
            raise ToolError(f"this must be {kind}") from None

    def _choose(self, text: str) -> JsonValue:
        for value, label in self.choices:
            if text in (value, label):
                return value
        if text.isdecimal() and 1 <= int(text) <= len(self.choices):
            return self.choices[int(text) - 1][0]
        raise ToolError(f"choose one by its number, from 1 to {len(self.choices)}")


def form_fields(schema: JsonObject) -> tuple[FormField, ...]:
    """Read a form.

    Args:
        schema: JSON Schema of an object whose properties are strings, numbers, booleans, or
            choices from a list.

    Returns:
        Its fields, in order.

    Raises:
        ToolError: It is not a flat form.
    """
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, Mapping) or not properties:
        raise ToolError("`schema` must be of type `object` with `properties`")
    if len(properties) > _MAX_FIELDS:
        raise ToolError(f"`schema` has more than {_MAX_FIELDS} fields")
    required = schema.get("required", ())
    names = required if isinstance(required, Sequence) else ()
    return tuple([_field(name, value, name in names) for name, value in properties.items()])


def schema_problem(value: JsonValue, schema: JsonObject) -> str | None:
    """Return where a value violates a schema, or None."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import (
        SchemaError,
        best_match,  # pyright: ignore[reportUnknownVariableType]
    )

    checker = Draft202012Validator.FORMAT_CHECKER
    try:
        Draft202012Validator.check_schema(schema)
        found = cast(
            "Iterable[ValidationError]",
            Draft202012Validator(schema, format_checker=checker).iter_errors(value),  # pyright: ignore[reportUnknownMemberType]
        )
        error = cast("ValidationError | None", best_match(found))
    except SchemaError as problem:
        return f"the form is wrong: {problem.message}"
    if error is None:
        return None
    place = ".".join(str(step) for step in error.absolute_path)
    return f"`{place}`: {error.message}" if place else error.message


def _field(name: str, value: JsonValue, required: bool) -> FormField:
    if not isinstance(value, Mapping):
        raise ToolError(f"`schema.properties.{name}` must be an object")
    kind = value.get("type", "string" if "enum" in value or "oneOf" in value else None)
    if kind == "array":
        choices = _choices(value.get("items"))
        fits = bool(choices)
    else:
        choices = _choices(value)
        fits = kind in _SIMPLE
    if not fits:
        msg = f"`schema.properties.{name}` must be a string, number, boolean or choice"
        raise ToolError(msg)
    title, description = value.get("title"), value.get("description")
    return FormField(
        name=name,
        label=title if isinstance(title, str) else name,
        description=description if isinstance(description, str) else "",
        kind=str(kind),
        choices=choices,
        required=required,
        default=value.get("default"),
        schema=value,
    )


def _choices(value: JsonValue) -> tuple[Choice, ...]:
    if not isinstance(value, Mapping):
        return ()
    values, labels = value.get("enum"), value.get("enumNames")
    if isinstance(values, list | tuple):
        shown = (
            labels if isinstance(labels, list | tuple) and len(labels) == len(values) else values
        )
        return tuple([(one, str(label)) for one, label in zip(values, shown, strict=True)])
    titled = value.get("oneOf", value.get("anyOf"))
    if isinstance(titled, list | tuple):
        return tuple(
            [
                (one["const"], str(one.get("title", one["const"])))
                for one in titled
                if isinstance(one, Mapping) and "const" in one
            ]
        )
    return ()


@frozen(kw_only=True)
class HumanRequest:
    """A question.

    Args:
        message: The question, as it is to be shown; untrusted when `server_name` is set.
        agent_name: The agent that asks or for which a server asks.
        server_name: The MCP server that asks, or None when the agent itself does.
        schema: JSON Schema (flat object) of the answer, or None for free text.
        url: An address to open instead of a form, or None.
    """

    message: str
    agent_name: str
    server_name: str | None = None
    schema: JsonObject | None = None
    url: str | None = None


@frozen(kw_only=True)
class HumanAnswer:
    """An answer; `content` is set only on `accept` (free text under the key `text`)."""

    action: Literal["accept", "decline", "cancel"]
    content: JsonObject | None = None


class Origins(Protocol):
    """Where agents and servers come from, as the user who is asked may know."""

    def agent_origin(self, name: str) -> str | None:
        """Return the file of an agent's card; None where it has none."""
        ...

    def server_origin(self, name: str) -> str | None:
        """Return where a server is declared: a file, an option; None where that is not known."""
        ...


def asker(request: HumanRequest, origins: Origins | None = None) -> str:
    """Return who asks and where that came from, as one visible line: `agent `ann` (ann.md) asks`.

    Args:
        request: The question.
        origins: Knows the files of agents and servers; None leaves them out, as for a user on
            another machine.
    """
    names = request.agent_name.split(", ")
    agents = [named(name, None if origins is None else origins.agent_origin(name))
              for name in names]  # fmt: skip
    who = f"agent{'' if len(agents) == 1 else 's'} {', '.join(agents)}"
    server = request.server_name
    if server is None:
        return f"{who} asks"
    origin = None if origins is None else origins.server_origin(server)
    return f"server {named(server, origin)} asks, for {who}"


def named(name: str, origin: str | None) -> str:
    """Return a name with where it comes from, visible: `` `ann` (ann.md) ``."""
    return f"`{visible(name)}`" if origin is None else f"`{visible(name)}` ({visible(origin)})"


def question_to_json(request: HumanRequest) -> JsonObject:
    """Write a question for another process."""
    return {
        "message": request.message,
        "agent_name": request.agent_name,
        "server_name": request.server_name,
        "schema": request.schema,
        "url": request.url,
    }


def question_from_json(question: JsonObject) -> HumanRequest:
    """Read what `question_to_json` wrote."""
    server, url = question["server_name"], question["url"]
    return HumanRequest(
        message=str(question["message"]),
        agent_name=str(question["agent_name"]),
        server_name=None if server is None else str(server),
        schema=cast("JsonObject | None", question["schema"]),
        url=None if url is None else str(url),
    )


class Human(Protocol):
    """A way to reach a user. Where there is none, callers hold None instead."""

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        """Ask and wait for the answer."""
        ...


async def ask_human(human: Human, request: HumanRequest, name: str) -> HumanAnswer:
    """Ask a user as a step of the run: a run that continues in another process asks once.

    Args:
        human: Asks the user.
        request: The question.
        name: Where in the turn it is asked, such as the id of the call.
    """
    place = here()
    if place.silent:
        return await human.ask(request)
    asked: JsonObject = {"message": request.message, "schema": request.schema}
    if request.url is not None:
        asked = {**asked, "url": request.url}

    async def work() -> HumanAnswer:
        return await human.ask(request)

    step = Step("human", name, asked, request.agent_name)
    return await place.steps.wait_for(step, work, _ANSWER)


def _written(answer: HumanAnswer) -> JsonValue:
    content = {} if answer.content is None else {"content": answer.content}
    return {"action": answer.action, **content}


def _read(value: JsonValue) -> HumanAnswer:
    answer = cast("JsonObject", value)
    action = answer["action"]
    if action not in {"accept", "decline", "cancel"}:
        raise ValueError(f"an answer cannot be {action!r}")
    return HumanAnswer(
        action=cast("Literal['accept', 'decline', 'cancel']", action),
        content=cast("JsonObject | None", answer.get("content")),
    )


_ANSWER: Final = Codec(_written, _read)
