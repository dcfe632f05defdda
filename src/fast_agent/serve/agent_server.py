"""Agent server: agents as the tools and prompts of an MCP server, beside its resources."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast
from weakref import WeakKeyDictionary

from anyio import CancelScope, to_thread

from fast_agent.resources.answer import Answer
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.changes import Change
from fast_agent.resources.era import MODERN_VERSIONS
from fast_agent.resources.opening import CAPABILITIES
from fast_agent.resources.paging import page
from fast_agent.resources.problem import RequestRefused, bad_params, shown
from fast_agent.resources.provider import Addition
from fast_agent.resources.service import ResourceService, ServerInfo, object_of, text_of
from fast_agent.rpc.encoding import NOTHING, encode
from fast_agent.rpc.message import INTERNAL_ERROR
from fast_agent.serve.agent_call import AgentCall, Begun
from fast_agent.serve.agent_departure import departure_of
from fast_agent.serve.agent_drain import Drain
from fast_agent.serve.agent_exchange import Exchange, Exchanges
from fast_agent.serve.agent_guests import Guests, is_askable
from fast_agent.serve.agent_tools import AgentDoors, prompt_messages
from fast_agent.serve.resource_server import ResourceServer, came_late, connection_of
from fast_agent.text.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anyio.abc import TaskGroup
    from starlette.types import ASGIApp

    from fast_agent.resources.provider import ToolAnswer
    from fast_agent.resources.session import Session
    from fast_agent.serve.agent_admin import AdminTools
    from fast_agent.serve.agent_conversation import Conversation
    from fast_agent.serve.agent_generation import Generation, Generations
    from fast_agent.serve.agent_progress import Report
    from fast_agent.serve.agent_scopes import Scopes
    from fast_agent.serve.plain_message import PlainMessage
    from fast_agent.serve.resource_server import Context
    from fast_agent.text.json_value import JsonObject

SERVER_NAME = "fast-agent-mcp"
SESSION_ID = "fast-agent/session"
"""The entry of `_meta` with the session a request without a connection belongs to."""

_PAGE = 100
_CALL = "tools/call"
_PROMPT = "prompts/get"
_OF_AGENTS = frozenset({_CALL, _PROMPT, "tools/list", "prompts/list"})
_LISTS_CHANGED: JsonObject = {"listChanged": True}
_CAPABILITIES: JsonObject = {"tools": _LISTS_CHANGED, "prompts": _LISTS_CHANGED}


class Served(NamedTuple):
    """What is served beside agents.

    Args:
        catalog: Resources.
        additions: What their providers add.
    """

    catalog: Catalog
    additions: Sequence[Addition] = ()


class AgentServer(ResourceServer):
    """Serves agents with the SDK's transports, as long as `open_server` holds it open.

    Args:
        tasks: Where calls wait that are answered over several requests.
        generations: The agents.
        scopes: The conversations.
        admin: The server's own tools.
        new_id: Gives ids that nobody can guess.
        beside: What is served besides.
        info: How the server calls itself.
        grace_seconds: How long calls may take to end once the server is asked to stop.

    Attributes:
        guests: The clients that opened with a handshake.
    """

    streams = True

    def __init__(
        self,
        tasks: TaskGroup,
        generations: Generations,
        scopes: Scopes,
        admin: AdminTools,
        *,
        new_id: Callable[[], str],
        info: ServerInfo,
        beside: Served | None = None,
        grace_seconds: float = 10.0,
    ) -> None:
        beside = beside or Served(Catalog(()))
        own = Addition(
            methods={"tools/list": self._list_tools, "prompts/list": self._list_prompts},
            capabilities=_CAPABILITIES,
        )
        super().__init__(ResourceService(beside.catalog, info, (*beside.additions, own)))
        self.grace_seconds = grace_seconds
        self.scopes = scopes
        self._tasks = tasks
        self._generations = generations
        self._admin = admin
        self._drain = Drain(lambda: scopes.in_use + self._late > 0, scopes.call_off, grace_seconds)
        self._exchanges = Exchanges(new_id)
        self._loaded: Callable[[], None] = _nothing
        self.guests = Guests(scopes)
        self._doors: WeakKeyDictionary[Generation, AgentDoors] = WeakKeyDictionary()

    def stop(self, then: Callable[[float], None]) -> None:
        """Take the word to stop: calls under way are answered, new ones are refused."""
        self._drain.begin(then)

    def when_loaded(self, then: Callable[[], None]) -> None:
        """Have something done after a client loaded cards, such as watching them too."""
        self._loaded = then

    async def cards_changed(self) -> None:
        """Take the cards there are now, and tell clients that tools and prompts are other ones."""
        await self._generations.newest()
        await self.scopes.follow()
        changed = Change(tools=True, prompts=True)
        newest = self._generations.current
        for session in self.service.following.sessions:
            own = self.guests.own(session)
            if own is None or own.generation is newest:
                session.tell(changed)

    def app(self, sdk: ASGIApp, path: str) -> ASGIApp:
        """Put in front of the SDK's application what answers plain requests and calls."""
        from fast_agent.serve.agent_requests import AgentRequests

        return AgentRequests(sdk, self, path)

    def notice(self, session: Session | None, method: str, params: JsonObject) -> None:
        """Take a notification: a call may be called off that never reached the SDK."""
        if method == "notifications/cancelled" and session is not None:
            self.guests.call_off(session, params)

    async def answer(self, session: Session, ctx: Context, params: JsonObject) -> Answer | None:
        """Answer a request; see `ResourceServer.answer`."""
        if ctx.protocol_version not in MODERN_VERSIONS:
            await self._connected(session, ctx, params)
        if ctx.method in _OF_AGENTS and self.guests.own(session) is None:
            await self._generations.newest()
        if ctx.method not in {_CALL, _PROMPT}:
            return await super().answer(session, ctx, params)
        self.service.admit(session, ctx.method, params, served=True)
        if ctx.method == _CALL:
            return await self._called(session, ctx, params)
        return await self._prompted(session, params)

    async def welcome(self, session: Session, params: JsonObject) -> None:
        """Begin the conversation of a new connection; see `ResourceServer.welcome`."""
        await self.guests.welcome(session, params.get("capabilities"))

    async def farewell(self, session: Session) -> None:
        """End a session and its conversation; see `ResourceServer.farewell`."""
        if session in self.guests:
            await self.guests.farewell(session)
        await super().farewell(session)

    async def list_plainly(self, session: Session, message: PlainMessage) -> Answer | None:
        """Answer a list of what agents add.

        Args:
            session: The client.
            message: The request.

        Raises:
            ResourceError: It cannot be answered.
        """
        if self.guests.own(session) is None:
            await self._generations.newest()
        ask = partial(self.service.answer, session, message.method, message.params, message.id)
        return await to_thread.run_sync(ask)

    async def begin_plainly(
        self, session: Session, message: PlainMessage, *, modern: bool
    ) -> Begun | None:
        """Begin a call that is answered by one JSON body.

        Args:
            session: The client.
            message: The call.
            modern: Whether it speaks the newest protocol.

        Returns:
            The call; None where it wants more than that, or is none of an agent.

        Raises:
            ResourceError: It cannot be answered.
        """
        params = message.params
        meta = params.get("_meta", NOTHING)
        if not isinstance(meta, Mapping) or "progressToken" in meta or "requestState" in params:
            return None
        if modern:
            if is_askable(meta.get(CAPABILITIES)):
                return None
            session.protocol = MODERN_VERSIONS[-1]
        else:
            guest = self.guests.find(session)
            if guest is None or guest.askable:
                return None
        name, arguments = params.get("name"), params.get("arguments", NOTHING)
        if not isinstance(name, str) or not isinstance(arguments, Mapping):
            return None
        own = self.guests.own(session)
        if own is None:
            await self._generations.newest()
        if name not in self._doors_of(own) or name in self._admin.names:
            return None
        return await self._begun(session, params, name, arguments)

    def sealed(self, answer: Answer, session: Session, begun: Begun) -> Answer:
        """Add what the protocol wants on the answer of a call."""
        kind = answer.data.get("resultType")
        if begun.session_id is not None:
            answer = answer.with_fields(Answer({"_meta": {SESSION_ID: begun.session_id}}))
        answer = self.service.seal(answer, session)
        return answer if kind is None else answer.with_fields(Answer({"resultType": kind}))

    async def _connected(self, session: Session, ctx: Context, params: JsonObject) -> None:
        """Begin the conversation of a new connection, and see what its client can be asked."""
        if session not in self.guests:
            can = params.get("capabilities") if ctx.method == "initialize" else None
            await self.guests.welcome(session, can)
            stack = connection_of(ctx.session).exit_stack
            stack.push_async_callback(self.guests.farewell, session)

    async def _called(self, session: Session, ctx: Context, params: JsonObject) -> Answer:
        name = text_of(params, "name")
        arguments = NOTHING if params.get("arguments") is None else object_of(params, "arguments")
        if name in self._admin.names:
            return await self._administered(session, params, name, arguments)
        late = came_late(ctx.request)
        begun = await self._begun(session, params, name, arguments, late=late)
        if begun is None:
            if any(tool.name == name for tool in self.service.tools()):
                return await to_thread.run_sync(self.service.call, session, _CALL, params)
            raise bad_params(f"there is no tool `{shown(name)}`")
        report = _report_of(ctx)
        if session.era == "modern":
            answer = await self._exchanged(begun.call, ctx, params, report)
        else:
            answer = await self._streamed(begun.call, ctx, report)
        return self.sealed(answer, session, begun)

    async def _begun(
        self,
        session: Session,
        params: JsonObject,
        name: str,
        arguments: JsonObject,
        *,
        late: bool = False,
    ) -> Begun | None:
        """Begin a call in its conversation; None where there is no agent of this name."""
        # Those that came before, and answers that calls under way wait for, are taken still.
        if self._drain.begun and not late and "requestState" not in params:
            raise RequestRefused(INTERNAL_ERROR, "the server is about to stop")
        held = await self._held(session, params)
        own = self.guests.own(session) if held is None else held[1]
        doors = self._doors_of(own)
        if name not in doors:
            return None
        call = AgentCall(self.scopes, own, name, doors[name], arguments)
        return Begun(call, None if held is None else held[0])

    async def _streamed(self, call: AgentCall, ctx: Context, report: Report | None) -> Answer:
        """Answer a call of a client that can be asked while it waits."""
        from fast_agent.serve.agent_client import ServedClient, through_session

        ask = through_session(ctx.session, ctx.request_id)
        human = ServedClient.of(ask, ctx.session.client_capabilities)
        with CancelScope() as scope:
            departure = departure_of(ctx.request)
            if departure is not None:
                departure.ends(scope)
            return Answer((await call.run(report, human)).data)
        raise RequestRefused(INTERNAL_ERROR, "the client has gone")

    async def _exchanged(
        self, call: AgentCall, ctx: Context, params: JsonObject, report: Report | None
    ) -> Answer:
        """Answer a call of a client that cannot be asked while it waits."""
        from fast_agent.serve.agent_client import ServedClient

        token = params.get("requestState")
        if token is not None:
            exchange = self._exchanges.find(token, call.name)
            exchange.report = report
            answers = params.get("inputResponses")
            exchange.take(answers if isinstance(answers, Mapping) else NOTHING)
            questions = await self._exchanges.go_on(exchange)
        else:
            exchange = Exchange(call)
            human = ServedClient.of(exchange.ask, ctx.session.client_capabilities)
            if human is None or self._exchanges.full:
                return Answer((await call.run(report)).data)
            exchange.report = report
            questions = await self._exchanges.begin(self._tasks, exchange, human)
        if questions is not None:
            return Answer(questions)
        if exchange.answer is None:
            raise bad_params("the call was given up, since its questions got no answer in time")
        return Answer(exchange.answer.data)

    async def _administered(
        self, session: Session, params: JsonObject, name: str, arguments: JsonObject
    ) -> Answer:
        held = await self._held(session, params, begin=False)
        answer: ToolAnswer = await self._admin.call(name, arguments)
        if not answer.is_error:
            self._loaded()
            await self.scopes.renew(self.guests.own(session) if held is None else held[1])
            await self.cards_changed()
        return self.service.seal(Answer(answer.data), session)

    async def _prompted(self, session: Session, params: JsonObject) -> Answer:
        name = text_of(params, "name")
        held = await self._held(session, params, begin=False)
        own = self.guests.own(session) if held is None else held[1]
        agent = self._doors_of(own).of_prompt(name)
        if agent is None:
            raise bad_params(f"there is no prompt `{shown(name)}`")
        messages: list[JsonObject] = []
        if self.scopes.scope == "shared" or own is not None:
            async with self.scopes.used(own) as conversation:
                if conversation.begun:
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
        self, session: Session, params: JsonObject, *, begin: bool = True
    ) -> tuple[str, Conversation] | None:
        """Find the conversation that a request of the newest protocol names, or begin one."""
        if session.era != "modern":
            return None
        meta = params.get("_meta")
        named = meta.get(SESSION_ID) if isinstance(meta, Mapping) else None
        if named is None and not begin:
            return None
        return await self.scopes.named(named)

    def _doors_of(self, own: Conversation | None) -> AgentDoors:
        generation = self._generations.current if own is None else own.generation
        known = self._doors.get(generation)
        load_set = generation.app.load_set
        if known is None or known.load_set is not load_set:
            taken = {*self._admin.names, *(tool.name for tool in self.service.tools())}
            known = self._doors[generation] = AgentDoors(load_set, taken, self.scopes.redact)
        return known

    def _list_tools(self, session: Session, params: JsonObject) -> Answer:
        doors = self._doors_of(self.guests.own(session)).doors
        found = {name: door.tool for name, door in doors.items()}
        for tool in (*self._admin.tools(), *self.service.tools()):
            found[tool.name] = encode(tool.data)
        return _listed("tools/list", "tools", found, params)

    def _list_prompts(self, session: Session, params: JsonObject) -> Answer:
        doors = self._doors_of(self.guests.own(session)).doors
        found = {name: door.prompt for name, door in doors.items()}
        return _listed("prompts/list", "prompts", found, params)


def _listed(method: str, key: str, found: Mapping[str, bytes], params: JsonObject) -> Answer:
    names = sorted(found)
    part = page(method, names, params.get("cursor"), _PAGE)
    return Answer.of_list(key, [found[name] for name in names[part.start : part.end]], part.cursor)


def _nothing() -> None:
    """Do nothing."""


def _report_of(ctx: Context) -> Report | None:
    """The way to tell a client of progress, where it asked for that."""
    meta = (ctx.params or {}).get("_meta")
    if not isinstance(meta, Mapping) or cast("JsonObject", meta).get("progressToken") is None:
        return None

    async def report(steps: float, message: str) -> None:
        await ctx.session.report_progress(steps, None, message)

    return report
