"""Structured answers over four wires, held against the request types of the providers' own SDKs."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import pytest
from anthropic.types.message_create_params import MessageCreateParams
from google.genai.types import Schema as GoogleSchema
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter
from tests.models.conftest import KEY, AnthropicWire, OpenAIWire
from tests.models.schemas import BAD, GOOD, Schema

from fast_agent.agents.output import JsonOutput, JsonSchema
from fast_agent.cards.agent_config import RequestParams
from fast_agent.errors import ModelError, RunError
from fast_agent.messages.message import Message
from fast_agent.models.check import Endpoint
from fast_agent.models.model import ModelRequest, OutputSchema
from fast_agent.models.providers.provider import NO_RETRIES, ProviderModel
from fast_agent.models.providers.strict_schema import answer_form

if TYPE_CHECKING:
    from tests.models.conftest import StartWire

pytestmark = pytest.mark.anyio

_adapter = cache(TypeAdapter[Any])
"""One for each type: making one takes a fifth of a second."""

WIRES = {
    "generic": ("m", "/v1"),
    "openai": ("gpt-5", "/v1"),
    "anthropic": ("claude-sonnet-5-5", ""),
    "google": ("gemini-2.5-pro", ""),
}


async def asked(start_wire: StartWire, provider: str, schema: Schema) -> Schema:
    """Return the body of the request a schema makes."""
    wire = start_wire(OpenAIWire.error(400, "enough"))
    model, path = WIRES[provider]
    endpoint = Endpoint(provider=provider, model=model, api_key=KEY, base_url=wire.url + path)
    made = ProviderModel(endpoint, retry=NO_RETRIES)
    shape = OutputSchema("A name", schema)
    with pytest.raises(ModelError, match="enough"):
        await made.request(ModelRequest("", [Message.user("x")], output_schema=shape))
    await made.aclose()
    [seen] = wire.seen
    return seen.body


def check_strict(node: object, *, all_required: bool) -> None:
    """Hold a schema to the rules of strict mode; their sources are in `strict_schema`."""
    if isinstance(node, list):
        for one in cast("list[object]", node):
            check_strict(one, all_required=all_required)
    if not isinstance(node, dict):
        return
    schema = cast("Schema", node)
    banned = {"oneOf", "allOf", "not", "if", "patternProperties", "prefixItems", "default"}
    assert not banned & set(schema)
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False
        fields = set(schema["properties"])
        assert (
            set(schema["required"]) == fields if all_required else fields >= set(schema["required"])
        )
    assert schema.keys() & {"type", "enum", "const", "anyOf", "$ref"}
    for key in ("properties", "$defs"):
        for one in schema.get(key, {}).values():
            check_strict(one, all_required=all_required)
    for key in ("items", "anyOf"):
        check_strict(schema.get(key), all_required=all_required)


def check_body(provider: str, body: Schema) -> None:
    match provider:
        case "generic":
            _adapter(CompletionCreateParamsNonStreaming).validate_python(body)
            shape = body["response_format"]["json_schema"]
            check_root(shape["schema"], strict=shape.get("strict", False))
        case "openai":
            _adapter(ResponseCreateParamsNonStreaming).validate_python(body)
            shape = body["text"]["format"]
            check_root(shape["schema"], strict=shape.get("strict", False))
        case "anthropic":
            _adapter(MessageCreateParams).validate_python(body)
            if "tools" in body:
                [tool] = body["tools"]
                assert tool["input_schema"]["type"] == "object" or "$ref" in tool["input_schema"]
            else:
                shape = body["output_config"]["format"]["schema"]
                assert shape["type"] == "object"
                check_strict(shape, all_required=False)
        case _:
            config = body["generationConfig"]
            assert config["responseMimeType"] == "application/json"
            if "responseSchema" in config:
                GoogleSchema.model_validate(config["responseSchema"])
            else:
                assert isinstance(config["responseJsonSchema"], dict)


def check_root(schema: Schema, *, strict: bool) -> None:
    assert schema.get("type") == "object" or "$ref" in schema
    if strict:
        assert schema["type"] == "object"
        check_strict(schema, all_required=True)


@pytest.mark.spec("ANSWER-1")
@pytest.mark.parametrize("name", GOOD)
async def test_forty_schemas_over_four_wires(start_wire: StartWire, name: str) -> None:
    for provider in WIRES:
        check_body(provider, await asked(start_wire, provider, GOOD[name][0]))


def filled(schema: Schema, value: Any, root: Schema) -> Any:
    """Return a value as a provider in strict mode does: every field there, null where left out."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    for branch in schema.get("anyOf", ()):
        bare = filled(branch, value, root)
        fits = JsonSchema({**branch, "$defs": root.get("$defs", {})}, "x").problems(bare) is None
        if fits:
            return bare
    if isinstance(value, list):
        return [filled(schema.get("items", {}), one, root) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Schema]", schema.get("properties", {}))
        given = cast("Schema", value)
        return {key: filled(one, given.get(key), root) for key, one in fields.items()}
    return value


@pytest.mark.spec("ANSWER-1")
@pytest.mark.parametrize("name", GOOD)
def test_an_answer_comes_back_in_the_form_that_was_asked_for(name: str) -> None:
    schema, value = GOOD[name]
    for all_required in (True, False):
        form = answer_form(schema, all_required=all_required, may_recur=all_required)
        sent = cast("Schema", form.schema)
        given: object = {"answer": value} if form.is_wrapped else value
        if form.is_strict and all_required:
            given = filled(sent, given, sent)
        if form.is_strict:
            assert JsonSchema(sent, "x").problems(cast("Any", given)) is None
        assert json.loads(form.restore(json.dumps(given))) == value
        assert JsonOutput(schema).parse(form.restore(json.dumps(given))) == value


@pytest.mark.spec("ANSWER-1")
@pytest.mark.parametrize("name", BAD)
def test_twenty_bad_schemas_are_refused(name: str) -> None:
    with pytest.raises(RunError, match="is not valid"):
        JsonOutput(BAD[name])


def test_there_are_forty_and_twenty() -> None:
    assert (len(GOOD), len(BAD)) == (40, 20)


async def test_an_open_object_is_the_arguments_of_a_tool_at_anthropic(
    start_wire: StartWire,
) -> None:
    use = {"type": "tool_use", "id": "t", "name": "final_answer", "input": {"answer": [{"k": 1}]}}
    wire = start_wire(AnthropicWire.answer(use, stop="tool_use"))
    endpoint = Endpoint(
        provider="anthropic", model="claude-sonnet-5-5", api_key=KEY, base_url=wire.url
    )
    model = ProviderModel(endpoint)
    schema: Schema = {"type": "array", "items": {"type": "object"}}
    limit = RequestParams(max_tokens=100)
    shape = OutputSchema("rows", schema)
    request = ModelRequest("", [Message.user("x")], params=limit, output_schema=shape)
    response = await model.request(request)
    await model.aclose()
    assert json.loads(response.message.text) == [{"k": 1}]
