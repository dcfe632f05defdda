"""Agent server: agents as the tools and prompts of an MCP server, with its resources.

The server's own tools load cards and read them again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast
from weakref import WeakKeyDictionary

from anyio import to_thread

from fast_agent.errors import CardError, SessionError, SessionInUseError, TrustError
from fast_agent.resources.catalog import Catalog, page
from fast_agent.resources.problem import RequestRefused, bad_params, shown
from fast_agent.resources.provider import Addition, Answer, ServedTool, ToolAnswer
from fast_agent.resources.service import ResourceService, ServerInfo, object_of, text_of
from fast_agent.resources.session import CAPABILITIES_KEY, Change
from fast_agent.rpc.message import IN_USE, INTERNAL_ERROR, NOTHING, RemoteError, RpcError, encode
from fast_agent.serve.agent_call import AgentCall, ResumableCall, ResumableCalls
from fast_agent.serve.agent_generation import Drain
from fast_agent.serve.agent_tools import (
    ExposedAgents,
    answer_of_problem,
    prompt_messages,
    without_paths,
)
from fast_agent.serve.resource_server import ResourceServer
from fast_agent.telemetry import caller_trace
from fast_agent.text.redaction import redacted
from fast_agent.tools.human import HumanAnswer, asker

if TYPE_CHECKING:
    from collections.abc import Sequence

    import mcp_types as types
    from anyio.abc import TaskGroup

    from fast_agent.program.program import Program
    from fast_agent.resources.session import Session
    from fast_agent.rpc.message import Request
    from fast_agent.serve.agent_call import Report
    from fast_agent.serve.agent_conversation import ServedConversation
    from fast_agent.serve.agent_generation import Generation, Generations
    from fast_agent.serve.agent_scopes import ConversationPool
    from fast_agent.serve.resource_server import Channel
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.human import HumanRequest

LOAD_TOOL = "load_agents"
RELOAD_TOOL = "reload"
_PATH: JsonObject = {"type": "string", "description": "a card's file, or a directory of cards"}
_LOADS: JsonObject = {
    "type": "object",
    "properties": {"path": _PATH},
    "required": ["path"],
    "additionalProperties": False,
}
_NOTHING: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}


class AdminTools:
    """What a client may change about the agents, as far as the operator lets it.

    Args:
        program: The agents.
        roots: The directories cards may be loaded from; none offers no loading.
        reload: Whether reading the cards again is offered.
        trust: Whether unapproved code of loaded cards may run.
    """

    def __init__(
        self,
        program: Program,
        roots: Sequence[str | Path] = (),
        *,
        reload: bool = False,
        trust: bool = False,
    ) -> None:
        self._program = program
        self._roots = tuple(Path(realpath(program.workspace / root)) for root in roots)
        self._reload = reload
        self._trust = trust

    @property
    def names(self) -> frozenset[str]:
        """The names of the tools that are offered."""
        return frozenset(tool.name for tool in self.tools())

    def tools(self) -> Sequence[ServedTool]:
        """The tools that are offered."""
        found: list[ServedTool] = []
        if self._roots:
            about = "Load agents from cards; they become tools of this server."
            found.append(ServedTool(LOAD_TOOL, about, _LOADS, self.load, "Load agents"))
        if self._reload:
            about = "Read the cards again that changed since they were loaded."
            found.append(ServedTool(RELOAD_TOOL, about, _NOTHING, self.reload, "Reload agents"))
        return found

    async def call(self, name: str, arguments: JsonObject) -> ToolAnswer:
        """Call one; the files are read in another thread."""
        return await to_thread.run_sync(self.load if name == LOAD_TOOL else self.reload, arguments)

    def load(self, arguments: JsonObject) -> ToolAnswer:
        """Load the cards at a path."""
        path = arguments.get("path")
        if not isinstance(path, str) or not path or len(arguments) != 1:
            return ToolAnswer.of_text("the one argument is `path`, a string", is_error=True)
        try:
            found, root = self._find_below(path)
            # What code they bring runs only where the operator approved it.
            unread = () if self._trust else (found,)
            names = list(self._program.load(cards=(found,), found=unread, root=root))
            self._check_left_out(found, names)
        except (CardError, TrustError) as error:
            return answer_of_problem(error)
        text = "loaded " + ", ".join(f"`{name}`" for name in names)
        return ToolAnswer(({"type": "text", "text": text},), structured={"agents": names})

    def _check_left_out(self, path: Path, names: Sequence[str]) -> None:
        """Report to a client which cards wait for the operator, if it gets none of them."""
        waiting = self._program.admission.left_out_in(path)
        if waiting and not names:
            listed = ", ".join(f"`{name}`" for name in waiting)
            raise TrustError(
                f"{listed} may not act until the operator approves "
                f"{'it' if len(waiting) == 1 else 'them'}"
            )

    def reload(self, arguments: JsonObject) -> ToolAnswer:  # noqa: ARG002
        """Read changed cards again."""
        done = self._program.reload()
        lines = [done.line or "nothing changed"]
        lines += [f"{one.severity}: {one.path or ''}: {one.message}" for one in done.problems]
        structured: JsonObject = {
            "version": done.version,
            "added": list(done.added),
            "updated": list(done.updated),
            "removed": list(done.removed),
        }
        text = without_paths("\n".join(lines))
        block: JsonObject = {"type": "text", "text": text}
        return ToolAnswer((block,), is_error=done.refused, structured=structured)

    def _find_below(self, path: str) -> tuple[Path, Path]:
        """Find a path below a root, whatever links and dots are in it; and the root."""
        if "://" not in path and "\0" not in path:
            for root in self._roots:
                with suppress(OSError, UnicodeError):  # no file can have such a name
                    found = Path(realpath(root / path))
                    if found.is_relative_to(root) and found.exists():
                        return found, root
        raise CardError(
            f"there are no cards at `{shown(path)}` that may be loaded",
            hint="give a path below a directory that the server allows",
        )


SERVER_NAME = "fast-agent-mcp"
SESSION_ID = "fast-agent/session"
"""The entry of `_meta` with the session a request without a connection belongs to."""
_PAGE = 100
_CALL = "tools/call"
_PROMPT = "prompts/get"
_OF_AGENTS = frozenset({_CALL, _PROMPT, "tools/list", "prompts/list"})
_LISTS_CHANGED: JsonObject = {"listChanged": True}
_CAPABILITIES: JsonObject = {"tools": _LISTS_CHANGED, "prompts": _LISTS_CHANGED}


log = logging.getLogger(__name__)
Ask: TypeAlias = Callable[[str, "JsonObject"], Awaitable["JsonObject"]]
"""Sends a request of the server to its client, in whatever way the protocol has; raises
`RemoteError` if the client answers with an error, or cannot answer."""
_ACTIONS = frozenset({"accept", "decline", "cancel"})
_WORDS: JsonObject = {
    "type": "object",
    "properties": {"text": {"type": "string", "title": "Answer"}},
    "required": ["text"],
}


class ServedResources(NamedTuple):
    """What is served in addition to agents.

    Args:
        catalog: Resources.
        additions: What their providers add.
    """

    catalog: Catalog
    additions: Sequence[Addition] = ()


class ConnectedClient(NamedTuple):
    """A client that opened with a handshake.

    Args:
        own: The conversation of its connection; None if connections have none.
        can: The capabilities it declared.
    """

    own: ServedConversation | None
    can: JsonValue


class AgentServer(ResourceServer):
    """Serves agents, as long as `open_server` holds it open.

    Args:
        tasks: Where calls wait that are answered over several requests.
        generations: The agents.
        scopes: The conversations.
        admin: The server's own tools.
        new_id: Returns unguessable ids.
        resources: What is served in addition.
        info: How the server calls itself.
        grace_seconds: How long calls may take to end once the server is asked to stop.
    """

    streams = True
    own_methods = frozenset({_CALL, _PROMPT})

    def __init__(
        self,
        tasks: TaskGroup,
        generations: Generations,
        scopes: ConversationPool,
        admin: AdminTools,
        *,
        new_id: Callable[[], str],
        info: ServerInfo,
        resources: ServedResources | None = None,
        grace_seconds: float = 10.0,
    ) -> None:
        resources = resources or ServedResources(Catalog(()))
        own = Addition(
            methods={"tools/list": self._list_tools, "prompts/list": self._list_prompts},
            capabilities=_CAPABILITIES,
        )
        super().__init__(ResourceService(resources.catalog, info, (*resources.additions, own)))
        self.grace_seconds = grace_seconds
        self.scopes = scopes
        self._tasks = tasks
        self._generations = generations
        self._admin = admin
        self._drain = Drain(lambda: scopes.in_use > 0, scopes.cancel_all, grace_seconds)
        self._resumable = ResumableCalls(new_id)
        self._loaded: Callable[[], None] = _nothing
        self._clients: dict[Session, ConnectedClient] = {}
        self._doors: WeakKeyDictionary[Generation, ExposedAgents] = WeakKeyDictionary()

    def import_models(self) -> None:
        """Import in a thread what the first call needs."""
        self._generations.current.app.runtime.import_models()

    def stop(self, then: Callable[[float], None]) -> None:
        """Take the word to stop: calls under way are answered, new ones are refused."""
        self.stopping = True
        self._drain.begin(then)

    def cancel_all(self) -> None:
        """Cancel calls under way; see `ResourceServer.cancel_all`."""
        self.scopes.cancel_all()

    def when_loaded(self, then: Callable[[], None]) -> None:
        """Register an action to run after a client loaded cards, such as watching them too."""
        self._loaded = then

    async def cards_changed(self) -> None:
        """Switch to the current cards, and notify clients that tools and prompts changed."""
        await self._generations.newest()
        await self.scopes.follow()
        changed = Change(tools=True, prompts=True)
        newest = self._generations.current
        for session in self.service.following.sessions:
            own = self._conversation_of(session)
            if own is None or own.generation is newest:
                session.notify(changed)

    async def open(self, session: Session, params: JsonObject) -> None:
        """Start the conversation of a new connection; see `ResourceServer.open`."""
        own = await self.scopes.connect()
        self._clients[session] = ConnectedClient(own, params.get("capabilities"))

    async def close(self, session: Session) -> None:
        """Close a session and its conversation; see `ResourceServer.close`."""
        client = self._clients.pop(session, None)
        if client is not None and client.own is not None:
            await self.scopes.disconnect(client.own)
        await super().close(session)

    async def answer(self, session: Session, request: Request, channel: Channel) -> Answer:
        """Answer a request; see `ResourceServer.answer`."""
        try:
            return await self._answer_of(session, request, channel)
        except SessionInUseError as error:
            seconds = error.retry_after
            when = "later" if seconds is None else f"in {seconds} s"
            text = f"another server is using the conversation; try again {when}"
            data: JsonObject | None = None if seconds is None else {"retryAfter": seconds}
            raise RpcError(IN_USE, text, data) from error
        except SessionError as error:
            text, redact = without_paths(error.message), self.scopes.redact
            raise RpcError(INTERNAL_ERROR, text if redact is None else redact(text)) from error

    async def _answer_of(self, session: Session, request: Request, channel: Channel) -> Answer:
        method, params = request.method, request.params
        if method in _OF_AGENTS and self._conversation_of(session) is None:
            await self._generations.newest()
        if method == _CALL:
            return await self._called(session, params, channel)
        if method == _PROMPT:
            return await self._prompted(session, params, channel)
        return await super().answer(session, request, channel)

    def _conversation_of(self, session: Session) -> ServedConversation | None:
        """Return the conversation of a client's connection; None if it has none."""
        client = self._clients.get(session)
        return None if client is None else client.own

    async def _called(self, session: Session, params: JsonObject, channel: Channel) -> Answer:
        name = text_of(params, "name")
        arguments = NOTHING if params.get("arguments") is None else object_of(params, "arguments")
        if name in self._admin.names:
            return await self._administered(session, params, channel, name, arguments)
        # Answers that calls under way wait for are still taken.
        if self.stopping and "requestState" not in params:
            raise RequestRefused(INTERNAL_ERROR, "the server is about to stop")
        held = await self._held(session, params, channel)
        own = self._conversation_of(session) if held is None else held[1]
        exposed = self._exposed_by(own)
        if name not in exposed:
            if any(tool.name == name for tool in self.service.tools()):
                return await to_thread.run_sync(self.service.call, session, _CALL, params)
            raise bad_params(f"unknown tool `{shown(name)}`")
        call = AgentCall(self.scopes, own, name, exposed[name], arguments)
        report = _report_of(params, channel)
        with caller_trace(params.get("_meta")):
            if session.era == "modern":
                answer = await self._exchanged(call, params, channel, report)
            else:
                client = self._clients.get(session)
                human = ServedClient.of(channel.request, None if client is None else client.can)
                answer = Answer((await call.run(report, human)).data)
        return self._sealed(answer, session, None if held is None else held[0])

    def _sealed(self, answer: Answer, session: Session, session_id: str | None) -> Answer:
        """Add what the protocol wants on the answer of a call."""
        kind = answer.data.get("resultType")
        if session_id is not None:
            answer = answer.with_fields(Answer({"_meta": {SESSION_ID: session_id}}))
        answer = self.service.seal(answer, session)
        return answer if kind is None else answer.with_fields(Answer({"resultType": kind}))

    async def _exchanged(
        self, call: AgentCall, params: JsonObject, channel: Channel, report: Report | None
    ) -> Answer:
        """Answer a call of a client that cannot be asked while it waits."""
        token = params.get("requestState")
        if token is not None:
            exchange = self._resumable.find(token, call.name)
            exchange.report = report
            answers = params.get("inputResponses")
            exchange.submit_answers(answers if isinstance(answers, Mapping) else NOTHING)
            questions = await self._resumable.resume(exchange, channel.owner)
        else:
            self._resumable.end_for(call)
            exchange = ResumableCall(call)
            meta = cast("JsonObject", params["_meta"])  # it was admitted
            human = ServedClient.of(exchange.ask, meta.get(CAPABILITIES_KEY))
            if human is None:
                return Answer((await call.run(report)).data)
            exchange.report = report
            questions = await self._resumable.begin(self._tasks, exchange, human, channel.owner)
        if questions is not None:
            return Answer(questions)
        if exchange.refusal is not None:
            raise exchange.refusal
        if exchange.answer is None:
            raise bad_params("the call was cancelled: the client did not answer in time")
        return Answer(exchange.answer.data)

    async def _administered(
        self,
        session: Session,
        params: JsonObject,
        channel: Channel,
        name: str,
        arguments: JsonObject,
    ) -> Answer:
        held = await self._held(session, params, channel, begin=False)
        answer: ToolAnswer = await self._admin.call(name, arguments)
        if not answer.is_error:
            self._loaded()
            await self.scopes.renew(self._conversation_of(session) if held is None else held[1])
            await self.cards_changed()
        return self.service.seal(Answer(answer.data), session)

    async def _prompted(self, session: Session, params: JsonObject, channel: Channel) -> Answer:
        name = text_of(params, "name")
        held = await self._held(session, params, channel, begin=False)
        own = self._conversation_of(session) if held is None else held[1]
        agent = self._exposed_by(own).of_prompt(name)
        if agent is None:
            raise bad_params(f"there is no prompt `{shown(name)}`")
        messages: list[JsonObject] = []
        if self.scopes.scope == "shared" or own is not None:
            async with self.scopes.used(own) as conversation:
                if conversation.begun:
                    await conversation.prepare()
                    messages = prompt_messages(conversation.agent(agent).history)
        redact = self.scopes.redact
        if redact is not None:
            messages = [cast("JsonObject", redacted(one, redact)) for one in messages]
        found: JsonObject = {
            "description": f"What was said to the agent `{agent}` and what it answered.",
            "messages": messages,
        }
        return self.service.seal(Answer(found), session)

    async def _held(
        self, session: Session, params: JsonObject, channel: Channel, *, begin: bool = True
    ) -> tuple[str, ServedConversation] | None:
        """Find the conversation named by a request of the newest protocol, or start one."""
        if session.era != "modern":
            return None
        meta = params.get("_meta")
        named = meta.get(SESSION_ID) if isinstance(meta, Mapping) else None
        if named is None and not begin:
            return None
        return await self.scopes.named(named, channel.owner)

    def _exposed_by(self, own: ServedConversation | None) -> ExposedAgents:
        generation = self._generations.current if own is None else own.generation
        known = self._doors.get(generation)
        load_set = generation.app.load_set
        if known is None or known.load_set is not load_set:
            taken = {*self._admin.names, *(tool.name for tool in self.service.tools())}
            known = self._doors[generation] = ExposedAgents(load_set, taken, self.scopes.redact)
        return known

    def _list_tools(self, session: Session, params: JsonObject) -> Answer:
        exposed = self._exposed_by(self._conversation_of(session)).agents
        found = {name: one.tool for name, one in exposed.items()}
        for tool in (*self._admin.tools(), *self.service.tools()):
            found[tool.name] = encode(tool.data)
        return _listed("tools/list", "tools", found, params)

    def _list_prompts(self, session: Session, params: JsonObject) -> Answer:
        exposed = self._exposed_by(self._conversation_of(session)).agents
        found = {name: one.prompt for name, one in exposed.items()}
        return _listed("prompts/list", "prompts", found, params)


def _listed(method: str, key: str, found: Mapping[str, bytes], params: JsonObject) -> Answer:
    names = sorted(found)
    part = page(method, names, params.get("cursor"), _PAGE)
    return Answer.of_list(key, [found[name] for name in names[part.start : part.end]], part.cursor)


def _nothing() -> None:
    """Do nothing."""


def _report_of(params: JsonObject, channel: Channel) -> Report | None:
    """Return the way to report progress to a client; None if it did not ask for that."""
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, Mapping) else None
    if not isinstance(token, (str, int)) or isinstance(token, bool):
        return None

    async def report(steps: float, message: str) -> None:
        progress: JsonObject = {"progressToken": token, "progress": steps, "message": message}
        await channel.notify("notifications/progress", progress)

    return report


class ServedClient:
    """The user behind a client, and the model it offers.

    Args:
        ask: Asks the client.
        can: The capabilities it declared.
    """

    def __init__(self, ask: Ask, can: JsonObject) -> None:
        self._ask = ask
        self._elicitation = _declared(can, "elicitation")
        self._sampling = _declared(can, "sampling")

    @classmethod
    def of(cls, ask: Ask, can: JsonValue) -> ServedClient | None:
        """Return one for a client that can be asked anything; None for any other."""
        if not isinstance(can, Mapping):
            return None
        client = cls(ask, can)
        return None if client._elicitation is None and client._sampling is None else client

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        """Ask the user; a client that cannot show the question answers `cancel`."""
        if self._elicitation is None:
            return HumanAnswer(action="cancel")
        question = _question(request)
        params: JsonObject
        if request.url is not None:
            if self._elicitation.get("url") is None:
                return HumanAnswer(action="cancel")
            params = {
                "mode": "url",
                "message": question,
                "url": request.url,
                "elicitationId": str(id(request)),
            }
        else:
            form = _WORDS if request.schema is None else request.schema
            params = {"mode": "form", "message": question, "requestedSchema": form}
        try:
            answer = await self._ask("elicitation/create", params)
        except RemoteError as error:
            log.warning("the client could not be asked: %s", error.message)
            return HumanAnswer(action="cancel")
        action, content = answer.get("action"), answer.get("content")
        if action not in _ACTIONS or not (content is None or isinstance(content, Mapping)):
            log.warning("the client's answer to a question is malformed")
            return HumanAnswer(action="cancel")
        return HumanAnswer(
            action=cast("Literal['accept', 'decline', 'cancel']", action),
            content=None if content is None else dict(content),
        )

    def offers_model(self, params: types.CreateMessageRequestParams) -> bool:
        """Whether its model can answer a sampling request."""
        if self._sampling is None:
            return False
        return not params.tools or self._sampling.get("tools") is not None

    async def sample(
        self, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        """Answer a sampling request with the agent's model."""
        import mcp_types as types  # here, since only who has a server that samples has it loaded
        from pydantic import ValidationError

        asked = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        try:
            answer = await self._ask("sampling/createMessage", asked)
            if params.tools:
                return types.CreateMessageResultWithTools.model_validate(answer, by_name=False)
            return types.CreateMessageResult.model_validate(answer, by_name=False)
        except RemoteError as error:
            code = types.INTERNAL_ERROR if error.code is None else error.code
            return types.ErrorData(code=code, message=error.message, data=error.data)
        except ValidationError:
            return types.ErrorData(code=types.INTERNAL_ERROR, message="the answer is malformed")


def _declared(can: JsonObject, name: str) -> JsonObject | None:
    value = can.get(name)
    return value if isinstance(value, Mapping) else None


def _question(request: HumanRequest) -> str:
    """Describe who asks; files of this machine are not shown to a client."""
    return f"{asker(request)}:\n{request.message}"
