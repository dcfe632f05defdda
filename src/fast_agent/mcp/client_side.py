"""What this client does for servers: answers their sampling, elicitation and roots requests."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, runtime_checkable

import anyio

from fast_agent.cards.agent_config import RequestParams
from fast_agent.errors import FastAgentError, ToolError
from fast_agent.mcp.content import block, from_sdk, one_line, opens_safely, to_wire, wire
from fast_agent.messages.message import (
    AudioContent,
    ImageContent,
    Message,
    TextContent,
    ToolCall,
    ToolResult,
)
from fast_agent.models.model import ToolSpec
from fast_agent.text.frozen import frozen
from fast_agent.tools.human import HumanRequest, schema_problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp.client import ClientRequestContext
    from mcp.types import (
        CreateMessageRequestParams,
        CreateMessageResult,
        CreateMessageResultWithTools,
        ElicitRequestFormParams,
        ElicitRequestParams,
        ElicitRequestURLParams,
        ElicitResult,
        ErrorData,
        ListRootsResult,
        SamplingMessage,
    )

    from fast_agent.mcp.oauth.authorization import Authorizations
    from fast_agent.mcp.open_calls import OpenCall, OpenCalls
    from fast_agent.mcp.server import Root, ServerSpec
    from fast_agent.messages.message import Content
    from fast_agent.models.model import ModelResponse
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.human import Human

SAMPLING_REFUSED = -1
"""The protocol's error code for a sampling request the user declined."""
_INTERNAL_ERROR = -32603
_INVALID_PARAMS = -32602


@frozen(kw_only=True)
class SamplingRequest:
    """What a server wants of a model. All of it is the server's own text: untrusted.

    Args:
        server_name: The server that asks.
        agent_names: The agents with a call open at that server: one, unless several use it at once.
        system: The system prompt the server wants.
        messages: The conversation, the message to answer last.
        params: Request parameters.
        tools: Tools the model may call; the server runs them.
        tool_choice: `auto`, `required` or `none`.
        model_hints: Names or families of models the server would like, best first.
        model: The model the configuration sets for this server; None leaves it to the runtime.
    """

    server_name: str
    agent_names: tuple[str, ...]
    system: str
    messages: tuple[Message, ...]
    params: RequestParams
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    model_hints: tuple[str, ...] = ()
    model: str | None = None


class Sampler(Protocol):
    """What answers sampling requests: the runtime, with the model of an agent."""

    async def sample(self, request: SamplingRequest) -> tuple[str, ModelResponse]:
        """Answer one request.

        Args:
            request: What the server wants.

        Returns:
            The name of the model that answered, and its answer.

        Raises:
            FastAgentError: There is no answer; the server gets the message.
        """
        ...


@runtime_checkable
class SamplingHuman(Protocol):
    """A user who brings a model: the client of a server of agents. Its answers go before ours."""

    def offers_model(self, params: CreateMessageRequestParams) -> bool:
        """Whether the model can answer a request."""
        ...

    async def sample(
        self, params: CreateMessageRequestParams
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        """Answer the request with the model."""
        ...


class SamplingApproval(Protocol):
    """Asks whether a server may have a model's answer."""

    async def approve(self, request: SamplingRequest) -> bool:
        """Return whether the request may be served."""
        ...


async def answer_sampling(
    params: CreateMessageRequestParams,
    *,
    server_name: str,
    model: str | None,
    agent_names: tuple[str, ...],
    sampler: Sampler,
    approval: SamplingApproval | None,
) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
    """Serve one `sampling/createMessage`; what goes wrong is an error for the server."""
    from mcp.types import ErrorData

    try:
        request = replace(read_request(params, server_name, agent_names), model=model)
    except ToolError as problem:
        return ErrorData(code=_INVALID_PARAMS, message=problem.message)
    try:
        if approval is not None and not await approval.approve(request):
            return ErrorData(code=SAMPLING_REFUSED, message="the request was declined")
        model, response = await sampler.sample(request)
        return write_response(model, response.message, with_tools=bool(request.tools))
    except FastAgentError as problem:
        _log.warning("sampling for server `%s` failed: %s", server_name, problem.message)
        return ErrorData(code=_INTERNAL_ERROR, message=problem.message)


def read_request(
    params: CreateMessageRequestParams, server_name: str, agent_names: tuple[str, ...]
) -> SamplingRequest:
    """Turn the parameters of `sampling/createMessage` into the project's values.

    Raises:
        ToolError: A content block is not what the protocol allows.
    """
    preferences = params.model_preferences
    hints = preferences.hints if preferences is not None and preferences.hints else []
    tools = tuple(
        ToolSpec(
            name=tool.name,
            description=tool.description or "",
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            title=tool.title,
        )
        for tool in params.tools or ()
    )
    choice = params.tool_choice.mode if params.tool_choice is not None else None
    return SamplingRequest(
        server_name=server_name,
        agent_names=agent_names,
        system=params.system_prompt or "",
        messages=tuple(_message(message) for message in params.messages),
        params=RequestParams(
            max_tokens=params.max_tokens,
            temperature=params.temperature,
            stop_sequences=tuple(params.stop_sequences) if params.stop_sequences else None,
        ),
        tools=() if choice == "none" else tools,
        tool_choice=choice or "auto",
        model_hints=tuple(hint.name for hint in hints if hint.name),
    )


def write_response(
    model: str, message: Message, *, with_tools: bool
) -> CreateMessageResult | CreateMessageResultWithTools:
    """Turn a model's answer into the result of `sampling/createMessage`.

    Raises:
        ToolError: The answer holds nothing the protocol can carry.
    """
    from mcp.types import CreateMessageResult, CreateMessageResultWithTools

    blocks = [
        to_wire(block)
        for block in message.content
        if isinstance(block, TextContent | ImageContent | AudioContent)
    ]
    fields: dict[str, Any] = {
        "role": "assistant",
        "model": model,
        "stopReason": message.stop_reason or "endTurn",
    }
    if with_tools:
        calls = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
            for call in message.tool_calls
        ]
        return CreateMessageResultWithTools.model_validate({**fields, "content": [*blocks, *calls]})
    # Without tools the protocol carries exactly one block.
    if len(blocks) != 1:
        blocks = [{"type": "text", "text": message.text}]
    return CreateMessageResult.model_validate({**fields, "content": blocks[0]})


def _message(message: SamplingMessage) -> Message:
    content: list[Content] = []
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    for part in message.content_as_list:
        fields = wire(part)
        match fields.get("type"):
            case "tool_use":
                arguments = cast("Mapping[str, Any]", fields.get("input") or {})
                calls.append(ToolCall(fields["id"], fields["name"], arguments))
            case "tool_result":
                results.append(_result(fields, cast("Sequence[Any]", getattr(part, "content", ()))))
            case _:
                content.append(from_sdk(part))
    return Message(
        message.role, tuple(content), tool_calls=tuple(calls), tool_results=tuple(results)
    )


def _result(fields: Mapping[str, Any], blocks: Sequence[Any]) -> ToolResult:
    return ToolResult(
        id=str(fields["toolUseId"]),
        content=tuple(from_sdk(block) for block in blocks),
        is_error=bool(fields.get("isError")),
        structured=fields.get("structuredContent"),
    )


ADDRESS_LIMIT = 5
"""Most addresses a user is asked to open for one request."""
_MORE: Final = "more"
_MORE_FORM: Final[JsonObject] = {
    "type": "object",
    "properties": {_MORE: {"type": "string", "enum": ["yes", "no"]}},
    "required": [_MORE],
}
_log = logging.getLogger(__name__)


@frozen(kw_only=True)
class ClientSide:
    """What an app can offer to servers; what is None is not offered.

    Args:
        sampler: Answers sampling requests.
        approval: Asks before a sampling request is served.
        human: Asks the user. A server may ask questions even without one, and gets `decline`.
        authorizations: The tokens of remote servers.
    """

    sampler: Sampler | None = None
    approval: SamplingApproval | None = None
    human: Human | None = None
    authorizations: Authorizations | None = None


class ServerRequests:
    """The callbacks of one connection, in the shape the SDK wants."""

    def __init__(self, spec: ServerSpec, offered: ClientSide, calls: OpenCalls) -> None:
        self._spec = spec
        self._offered = offered
        self._calls = calls
        self._granting = anyio.Lock()

    @property
    def authorizations(self) -> Authorizations | None:
        """The tokens of remote servers, where this program keeps any."""
        return self._offered.authorizations

    def options(self) -> dict[str, Any]:
        """Return the SDK client's keyword arguments; an omitted one is not declared."""
        from mcp.types import SamplingCapability, SamplingToolsCapability

        options: dict[str, Any] = {}
        if self._spec.sampling and self._offered.sampler is not None:
            options["sampling_callback"] = self.sampling
            options["sampling_capabilities"] = SamplingCapability(tools=SamplingToolsCapability())
        if self._spec.elicitation:
            options["elicitation_callback"] = self.elicitation
        if self._spec.roots:
            options["list_roots_callback"] = self.roots
        return options

    async def sampling(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK passes it by name
        params: CreateMessageRequestParams,
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        """Answer `sampling/createMessage`."""
        sampler = self._offered.sampler
        if sampler is None:  # not declared then; a server that asks all the same gets an error
            from mcp.types import INVALID_REQUEST, ErrorData

            return ErrorData(code=INVALID_REQUEST, message="sampling is not offered")
        human = self._calls.human(None)
        with self._calls.paused():
            if not await self._grants_answer():
                from mcp.types import ErrorData

                limit = self._spec.sampling_limit
                text = f"this call had {limit} model answers, and the user did not allow more"
                return ErrorData(code=SAMPLING_REFUSED, message=text)
            if (
                isinstance(human, SamplingHuman)
                and self._spec.sampling_model is None
                and human.offers_model(params)
            ):
                return await human.sample(params)
            return await answer_sampling(
                params,
                server_name=self._spec.name,
                model=self._spec.sampling_model,
                agent_names=self._calls.agent_names,
                sampler=sampler,
                approval=self._offered.approval,
            )

    async def _grants_answer(self) -> bool:
        """Return whether the server may have another model answer, and count it if so."""
        limit = self._spec.sampling_limit
        # One at a time: of requests that come together, one asks the user for all.
        async with self._granting:
            call = self._calls.charged(limit)
            if call is None:
                return True  # the sampler refuses what no agent's call is open for
            if call.model_answers >= limit + call.granted_answers and not await self._asks(call):
                return False
            call.model_answers += 1
            return True

    async def _asks(self, call: OpenCall) -> bool:
        """Ask the user whether a call may have more model answers; a no is not asked again."""
        if call.refuses_answers:
            return False
        limit, name = self._spec.sampling_limit, self._spec.name
        human = self._calls.human(self._offered.human)
        if human is not None:
            request = HumanRequest(
                message=f"server `{name}` had {call.model_answers} model answers for one call of "
                f"agent `{call.agent_name}`, at its cost, and wants more\n"
                f"let it have {limit} more?",
                agent_name=call.agent_name or "",
                server_name=name,
                schema=_MORE_FORM,
            )
            answer = await human.ask(request)
            if answer.action == "accept" and (answer.content or {}).get(_MORE) == "yes":
                call.granted_answers += limit
                return True
        call.refuses_answers = True
        _log.warning(
            "server `%s` wanted more than %d model answers for one call of agent `%s`; %s "
            "(hint: `sampling: {max_answers: N}` of the server allows more)",
            name,
            call.model_answers,
            call.agent_name,
            "no user is connected" if human is None else "the user did not allow it",
        )
        return False

    async def elicitation(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK passes it by name
        params: ElicitRequestParams,
    ) -> ElicitResult | ErrorData:
        """Answer `elicitation/create`."""
        with self._calls.paused():
            return await answer_elicitation(
                params,
                server_name=self._spec.name,
                agent_name=", ".join(self._calls.agent_names),
                human=self._calls.human(self._offered.human),
            )

    async def open_addresses(self, addresses: Sequence[ElicitRequestURLParams]) -> bool:
        """Ask the user to open addresses, one after another; False as soon as one is refused."""
        if not self._spec.elicitation:
            return False
        with self._calls.paused():
            for params in addresses[:ADDRESS_LIMIT]:
                answer = await answer_elicitation(
                    params,
                    server_name=self._spec.name,
                    agent_name=", ".join(self._calls.agent_names),
                    human=self._calls.human(self._offered.human),
                )
                if answer.action != "accept":
                    return False
        return len(addresses) <= ADDRESS_LIMIT

    async def roots(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK passes it by name
    ) -> ListRootsResult | ErrorData:
        """Answer `roots/list`."""
        return answer_roots(self._spec.roots)


MESSAGE_LIMIT = 4_000
SAMPLING_ATTEMPTS = 3
"""How often a user is asked for an answer that fits the form."""


async def answer_elicitation(
    params: ElicitRequestParams, *, server_name: str, agent_name: str, human: Human | None
) -> ElicitResult:
    """Serve one `elicitation/create`.

    Args:
        params: The question.
        server_name: The server that asks.
        agent_name: The agent or agents it asks for, as people are shown them.
        human: Asks the user, or None; then the answer is `decline`.
    """
    from mcp.types import ElicitRequestURLParams, ElicitResult

    if human is None:
        return ElicitResult(action="decline")
    if isinstance(params, ElicitRequestURLParams):
        return await _open(params, server_name, agent_name, human)
    return await _fill(params, server_name, agent_name, human)


async def _open(
    params: ElicitRequestURLParams, server_name: str, agent_name: str, human: Human
) -> ElicitResult:
    from mcp.types import ElicitResult

    if not opens_safely(params.url):
        _log.warning("server `%s` asked to open `%s`: declined", server_name, one_line(params.url))
        return ElicitResult(action="decline")
    answer = await human.ask(
        HumanRequest(
            message=block(params.message, MESSAGE_LIMIT),
            agent_name=agent_name,
            server_name=server_name,
            url=params.url,
        )
    )
    return ElicitResult(action=answer.action)


async def _fill(
    params: ElicitRequestFormParams, server_name: str, agent_name: str, human: Human
) -> ElicitResult:
    from mcp.types import ElicitResult

    schema = params.requested_schema
    wrong = form_problem(schema)
    if wrong is not None:
        _log.warning(
            "server `%s` asked with a form that is not a JSON Schema: %s", server_name, wrong
        )
        return ElicitResult(action="decline")
    question = block(params.message, MESSAGE_LIMIT)
    message = question
    for _ in range(SAMPLING_ATTEMPTS):
        answer = await human.ask(
            HumanRequest(
                message=message, agent_name=agent_name, server_name=server_name, schema=schema
            )
        )
        if answer.action != "accept":
            return ElicitResult(action=answer.action)
        content: dict[str, Any] = dict(answer.content or {})
        problem = answer_problem(content, schema)
        if problem is None:
            return ElicitResult(action="accept", content=content)
        message = f"{question}\n\nthe answer does not fit: {problem}"
    return ElicitResult(action="cancel")


def form_problem(schema: JsonObject) -> str | None:
    """Return what is wrong with a form's schema, or None."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as problem:
        return one_line(problem.message)
    return None


def answer_problem(content: JsonObject, schema: JsonObject) -> str | None:
    """Return where an answer violates the form's schema, or None."""
    # A form's fields are all it asks for; a user's shell has no business sending others.
    problem = schema_problem(content, {**schema, "additionalProperties": False})
    return None if problem is None else one_line(problem)


def answer_roots(roots: Sequence[Root]) -> ListRootsResult:
    """Serve one `roots/list`."""
    from mcp.types import ListRootsResult

    return ListRootsResult.model_validate(
        {
            "roots": [
                {"uri": root.uri, **({"name": root.name} if root.name else {})} for root in roots
            ]
        }
    )
