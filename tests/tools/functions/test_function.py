# No `from __future__ import annotations`: the hints of these functions are what is tested.
import asyncio
import enum
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Barrier, Event, current_thread, main_thread
from typing import Annotated, Any, Literal, NotRequired, Optional, Union

import anyio
import jsonschema
import pytest
from pydantic import BaseModel, Field
from tests.patience import until
from typing_extensions import TypedDict

from fast_agent.errors import ToolError
from fast_agent.messages.message import ToolCall, ToolResult
from fast_agent.tools.functions.function import FunctionTool, ToolOptions, tool
from fast_agent.tools.tool import ToolContext

pytestmark = pytest.mark.anyio


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: float = 0.0


class Person(BaseModel):
    name: str
    age: int = Field(ge=0)


class Query(TypedDict):
    text: str
    limit: NotRequired[int]


def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


async def call(made: FunctionTool, context: ToolContext, /, **arguments: Any) -> ToolResult:
    return await made.call(ToolCall("c1", made.spec.name, arguments), context)


def property_of(function: Callable[..., object], name: str) -> object:
    schema = FunctionTool(function).spec.input_schema
    properties = schema["properties"]
    assert isinstance(properties, dict)
    return properties[name]


@pytest.mark.spec("TOOL-3")
def test_name_description_and_schema_come_from_the_function() -> None:
    made = FunctionTool(add)
    assert made.spec.name == "add"
    assert made.spec.description == "Add two numbers."
    assert made.spec.input_schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first."},
            "b": {"type": "integer", "default": 2, "description": "The second."},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert made.source == "function"
    assert made.server_name is None
    assert made.repeatable
    assert made.function is add


def test_tool_says_how_it_is_offered_and_leaves_the_function_alone() -> None:
    @tool(name="plus", description="Sum.", title="Plus", repeatable=False)
    def function(a: int) -> int:
        return a

    made = FunctionTool(function)
    assert (made.spec.name, made.spec.description, made.spec.title) == ("plus", "Sum.", "Plus")
    assert not made.repeatable
    assert function(3) == 3
    assert FunctionTool(tool(add)).spec.name == "add"
    assert FunctionTool(add, ToolOptions(name="other")).spec.name == "other"


def test_hints_of_every_kind_have_a_schema_that_is_valid() -> None:
    def function(
        colour: Colour,
        point: Point,
        person: Person | None,
        query: Query,
        word: Literal["a", "b"],
        either: Union[int, str],  # noqa: UP007
        perhaps: Optional[float] = None,  # noqa: UP045
        pair: tuple[int, str] = (1, "a"),
        names: set[str] = frozenset(),  # pyright: ignore[reportArgumentType]
        table: dict[str, list[int]] | None = None,
        anything: Any = None,
    ) -> None: ...

    schema = FunctionTool(function).spec.input_schema
    jsonschema.Draft202012Validator.check_schema(schema)
    validator: Any = jsonschema.Draft202012Validator(schema)
    good = {
        "colour": "red",
        "point": {"x": 1},
        "person": {"name": "Ada", "age": 36},
        "query": {"text": "q"},
        "word": "a",
        "either": "x",
        "pair": [3, "b"],
        "names": ["n"],
        "table": {"t": [1]},
        "anything": {"what": "ever"},
    }
    validator.validate(good)
    for name, wrong in (("colour", "green"), ("word", "c"), ("pair", [1]), ("person", {"age": -1})):
        assert not validator.is_valid({**good, name: wrong}), name


def test_descriptions_come_from_annotated_text_field_and_docstring_in_that_order() -> None:
    def function(
        a: Annotated[int, "From the text."],
        b: Annotated[int, Field(description="From the field.", gt=0)],
        c: int = Field(default=3, description="From the default.", le=9),
        d: int = 4,
    ) -> None:
        """Do it.

        Args:
            a: Hidden.
            b: Hidden.
            c: Hidden.
            d: From the docstring.
        """

    assert property_of(function, "a") == {"type": "integer", "description": "From the text."}
    assert property_of(function, "b") == {
        "type": "integer",
        "exclusiveMinimum": 0,
        "description": "From the field.",
    }
    assert property_of(function, "c") == {
        "type": "integer",
        "maximum": 9,
        "default": 3,
        "description": "From the default.",
    }
    assert property_of(function, "d") == {
        "type": "integer",
        "default": 4,
        "description": "From the docstring.",
    }


async def test_arguments_arrive_as_the_hints_say(context: ToolContext) -> None:
    seen: list[object] = []

    def function(
        colour: Colour,
        point: Point,
        person: Person,
        pair: tuple[int, str],
        names: set[str],
        size: int,
        limit: int = Field(default=7, le=9),
    ) -> None:
        seen.extend([colour, point, person, pair, names, size, limit])

    result = await call(
        FunctionTool(function),
        context,
        colour="blue",
        point={"x": 1},
        person={"name": "Ada", "age": "36"},
        pair=[1, "a"],
        names=["n", "n"],
        size="12",
    )
    assert not result.is_error, result.text
    ada = Person(name="Ada", age=36)
    assert seen == [Colour.BLUE, Point(1), ada, (1, "a"), {"n"}, 12, 7]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, ["`a` is missing", '{"type": "integer"}']),
        ({"a": "many"}, ["`a`: input should be a valid integer", '"many"', '{"type": "integer"}']),
        ({"a": 1, "bb": 1}, ["`bb` is not an argument", "`a`, `b`"]),
        ({"aa": 1.5, "b": 1.5}, ["`a` is missing", "`b`: ", "`1.5`"]),
        ({"a": "x" * 5000}, ["xxx…"]),
    ],
)
async def test_wrong_arguments_are_named_with_what_is_expected(
    arguments: dict[str, Any], words: list[str], context: ToolContext
) -> None:
    result = await call(FunctionTool(add), context, **arguments)
    assert result.is_error
    assert result.text.startswith("wrong arguments for `add`:\n- ")
    assert len(result.text) < 500
    for word in words:
        assert word in result.text


async def test_a_misspelt_argument_is_suggested_and_a_nested_one_located(
    context: ToolContext,
) -> None:
    def greet(person: Person, greeting: str = "hello") -> None: ...

    result = await call(FunctionTool(greet), context, person={"name": 3}, greetin="hi")
    assert "`person.name`: input should be a valid string, got `3`" in result.text
    assert "`person.age` is missing" in result.text
    assert "`greetin` is not an argument; did you mean `greeting`?" in result.text


async def test_further_keywords_are_allowed_when_the_function_takes_them(
    context: ToolContext,
) -> None:
    def function(a: int, **more: int) -> dict[str, int]:
        return {"a": a, **more}

    made = FunctionTool(function)
    assert made.spec.input_schema["additionalProperties"] == {"type": "integer"}
    assert (await call(made, context, a=1, x="2")).structured == {"a": 1, "x": 2}
    assert (await call(made, context, a=1, x="two")).is_error


async def test_the_context_is_given_and_not_shown(context: ToolContext) -> None:
    def plain(a: int, ctx: ToolContext) -> str:
        return f"{a} {ctx.agent_name} {ctx.idempotency_key}"

    def optional(a: int, ctx: ToolContext | None = None) -> str:
        return f"{a} {ctx.agent_name if ctx else None}"

    def late(a: int, ctx: "ToolContext") -> str:
        return f"{a} {ctx.correlation_id}"

    plain_text = f"1 writer {context.idempotency_key}"
    for function, text in ((plain, plain_text), (optional, "1 writer"), (late, "1 r1")):
        made = FunctionTool(function)
        properties = made.spec.input_schema["properties"]
        assert isinstance(properties, dict)
        assert list(properties) == ["a"]
        assert (await call(made, context, a=1)).text == text
        assert (await call(made, context, a=1, ctx={"agent_name": "x"})).is_error


async def test_a_context_imported_for_type_checkers_only_is_given_too(context: ToolContext) -> None:
    late = defined_by("def late(a: 'int', ctx: 'ToolContext'): return ctx.agent_name", "late")
    assert (await call(FunctionTool(late), context, a=1)).text == "writer"


async def test_parameters_may_have_names_that_models_use(context: ToolContext) -> None:
    def function(schema: int, model_config: int, copy: int, _under: int, self: int) -> int:
        return schema + model_config + copy + _under + self

    made = FunctionTool(function)
    arguments = {"schema": 1, "model_config": 2, "copy": 3, "_under": 4, "self": 5}
    assert (await call(made, context, **arguments)).text == "15"


class Adder:
    """Adds what it was made with."""

    def __init__(self, amount: int) -> None:
        self.amount = amount

    def __call__(self, a: int) -> int:
        return a + self.amount

    def method(self, a: int) -> int:
        """A method."""
        return a + self.amount


async def test_methods_partials_and_callable_objects_are_functions(context: ToolContext) -> None:
    assert (await call(FunctionTool(Adder(3)), context, a=1)).text == "4"
    assert FunctionTool(Adder(3)).spec.name == "Adder"
    assert (await call(FunctionTool(Adder(3).method), context, a=1)).text == "4"
    assert FunctionTool(Adder(3).method).spec.description == "A method."
    bound = FunctionTool(partial(add, b=5))
    assert bound.spec.name == "add"
    assert bound.spec.description == "Add two numbers."
    assert (await call(bound, context, a=1)).text == "6"
    assert (await call(bound, context, a=1, b=1)).text == "2"
    first = FunctionTool(partial(add, 10))
    assert (await call(first, context, b=1)).text == "11"


async def test_what_a_function_raises_is_an_error_result_without_traceback(
    context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("the disk is full")

    async def fail_later() -> None:
        raise ToolError("the disk is full", hint="make room")

    with caplog.at_level(logging.WARNING):
        result = await call(FunctionTool(fail), context)
    assert result.is_error
    assert result.text == "ValueError: the disk is full"
    assert "Traceback" in caplog.text
    later = await call(FunctionTool(fail_later), context)
    assert later.is_error
    assert later.text == "the disk is full\nhint: make room"


async def test_a_function_cannot_end_the_program(context: ToolContext) -> None:
    async def leave() -> None:
        sys.exit(3)

    assert (await call(FunctionTool(leave), context)).text == "SystemExit: 3"
    assert (await call(FunctionTool(lambda: sys.exit(3)), context)).text == "SystemExit: 3"


async def test_a_result_a_model_cannot_be_given_is_an_error_result(context: ToolContext) -> None:
    result = await call(FunctionTool(opaque), context)
    assert result.is_error
    assert "`Opaque`" in result.text


@pytest.mark.spec("TOOL-3")
async def test_synchronous_functions_run_beside_the_loop(context: ToolContext) -> None:
    all_begun, free = Barrier(4, timeout=60), Event()

    def work() -> bool:
        all_begun.wait()
        return free.wait(60)

    answers: list[str] = []

    async def ask() -> None:
        answers.append((await call(FunctionTool(work), context)).text)

    async with anyio.create_task_group() as calls:
        for _ in range(3):
            calls.start_soon(ask)
        await until(lambda: all_begun.n_waiting == 3)
        all_begun.wait()
        free.set()
    assert answers == ["true"] * 3


@pytest.mark.spec("TOOL-3")
async def test_coroutine_functions_run_on_the_loop(context: ToolContext) -> None:
    async def where() -> bool:
        await anyio.lowlevel.checkpoint()
        return current_thread() is main_thread()

    class Object:
        async def __call__(self) -> bool:
            return current_thread() is main_thread()

    assert (await call(FunctionTool(where), context)).text == "true"
    assert (await call(FunctionTool(partial(where)), context)).text == "true"
    assert (await call(FunctionTool(Object()), context)).text == "true"
    assert (await call(FunctionTool(lambda: where()), context)).text == "true"  # noqa: PLW0108


async def test_cancelling_ends_a_coroutine_function_and_gives_up_on_another(
    context: ToolContext,
) -> None:
    ended: list[str] = []
    begun, free = Event(), Event()

    async def sleep() -> None:
        begun.set()
        try:
            await anyio.sleep(600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    def wait() -> None:
        begun.set()
        free.wait()

    for made in (FunctionTool(sleep), FunctionTool(wait)):
        begun.clear()
        async with anyio.create_task_group() as calls:
            calls.start_soon(call, made, context)
            await until(begun.is_set)
            calls.cancel_scope.cancel()
    assert ended == ["cancelled"]
    free.set()


class Opaque: ...


def opaque() -> Opaque:
    return Opaque()


def star(*numbers: int) -> None: ...
def by_position(a: int, /) -> None: ...
def unusable(a: int, b: Opaque) -> None: ...
def no_schema(a: Callable[[int], int]) -> None: ...


def defined_by(text: str, name: str) -> Callable[..., object]:
    names: dict[str, Any] = {}
    exec(text, names)
    return names[name]


UNRESOLVED = defined_by("def unresolved(a: 'Nowhere') -> None: ...", "unresolved")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (star, "`*numbers` of `star` cannot be given by name"),
        (by_position, "`a` of `by_position` cannot be given by name"),
        (unusable, "the type of `b` of `unusable` cannot be used"),
        (UNRESOLVED, "a type hint of `unresolved` cannot be resolved: `Nowhere` is not defined"),
        (no_schema, "the type of `a` of `no_schema` cannot be used"),
        (Point, "`Point` is a class"),
    ],
)
def test_a_function_that_cannot_be_a_tool_says_which_parameter(
    function: Callable[..., object], words: str
) -> None:
    with pytest.raises(ToolError) as caught:
        FunctionTool(function)
    assert words in caught.value.message
    assert "\n" not in caught.value.message


def test_a_name_no_provider_takes_is_made_to_fit() -> None:
    assert FunctionTool(add, ToolOptions(name="größe")).spec.name.startswith("gr_")
