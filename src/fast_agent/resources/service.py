"""The service: a table of methods over the core, for both eras of the protocol and any edge.

It answers plain data and JSON bytes and knows no transport. An edge opens a `Session` for each
client, hands every request to `answer` (or, where it settles the protocol itself, to `call`), and
turns a `ResourceError` into an error with `problem.error_object`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from fast_agent.errors import ResourceError
from fast_agent.resources.catalog import page
from fast_agent.resources.following import Subscriptions
from fast_agent.resources.problem import MODERN_VERSIONS, bad_params, shown
from fast_agent.resources.provider import EMPTY, Answer, ToolAnswer
from fast_agent.resources.session import LEVELS, Session, admit, negotiate, unknown_method
from fast_agent.rpc.message import NOTHING, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fast_agent.resources.catalog import Catalog
    from fast_agent.resources.following import StartWatch
    from fast_agent.resources.provider import Addition, Method, ServedTool
    from fast_agent.text.json_value import JsonObject, JsonValue

_LISTS = frozenset({"resources/list", "resources/templates/list"})
_MAX_PAGES = 64


class ServerInfo(NamedTuple):
    """How the server calls itself.

    Args:
        name: For programs.
        version: The project's.
        title: For people, or None.
        instructions: What a client's model should know of it, or None.
    """

    name: str
    version: str
    title: str | None = None
    instructions: str | None = None

    @property
    def data(self) -> JsonObject:
        """MCP's `Implementation`."""
        data = {"name": self.name, "version": self.version}
        return data if self.title is None else {**data, "title": self.title}


class ResourceService:
    """Answers MCP requests about resources.

    Args:
        catalog: What is served.
        info: Who serves it.
        additions: Methods, tools and capabilities that providers contribute.
        watch: Starts watching places on disk; None for the default of `resources.watch`.
    """

    def __init__(
        self,
        catalog: Catalog,
        info: ServerInfo,
        additions: Iterable[Addition] = (),
        *,
        watch: StartWatch | None = None,
    ) -> None:
        self.catalog = catalog
        self.info = info
        self.additions = tuple(additions)
        prompts = any("prompts" in addition.capabilities for addition in self.additions)
        self.following = Subscriptions(catalog, watch, self._tools_json, prompts=prompts)
        self._methods: dict[str, Method] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "completion/complete": self._complete,
        }
        if any(addition.tools() for addition in self.additions):
            self._methods |= {"tools/list": self._list_tools, "tools/call": self._call_tool}
        for addition in self.additions:
            self._methods |= addition.methods
        stamp = {"io.modelcontextprotocol/serverInfo": info.data}
        tail: JsonObject = {"resultType": "complete", "_meta": stamp}
        self._tail = Answer(tail)
        self._cached_tail = Answer({"ttlMs": 0, "cacheScope": "private", **tail})
        self._pages: dict[tuple[str, str | None, bool], tuple[object, Answer]] = {}

    @property
    def methods(self) -> frozenset[str]:
        """Every method that `call` answers, and `subscriptions/listen`, which `listen` does."""
        return _LISTS | {"subscriptions/listen"} | self._methods.keys()

    def open(self, send: Callable[[str, JsonObject], None], protocol: str | None = None) -> Session:
        """Start serving a client.

        Args:
            send: Takes a notification to the client, as `Session` says.
            protocol: The version, where the edge settles it; None to settle it here.
        """
        return self.following.open(Session(send, protocol))

    def close(self, session: Session) -> Sequence[tuple[int | str, Answer]]:
        """Stop serving a client.

        Returns:
            The last answers of its open `subscriptions/listen` requests by request id, for an edge
            that ends gracefully.
        """
        ids = tuple(session.listens)
        self.following.close(session)
        return [(one, self.seal(self.following.ended(one), session)) for one in ids]

    def answer(
        self, session: Session, method: str, params: JsonObject, request_id: int | str | None = None
    ) -> Answer | None:
        """Answer a request as the client's protocol has it.

        Args:
            session: The client.
            method: The request's method.
            params: Its parameters; an empty object where it has none.
            request_id: Its id.

        Returns:
            The result, or None for a `subscriptions/listen` that now stays open.

        Raises:
            ResourceError: The request cannot be answered.
        """
        self.admit(session, method, params)
        if method == "subscriptions/listen":
            self.listen(session, params, request_id)
            return None
        return self.call(session, method, params)

    def admit(
        self, session: Session, method: str, params: JsonObject, *, served: bool = False
    ) -> None:
        """Settle the client's protocol with a request, for an edge that answers it itself.

        Args:
            session: The client.
            method: The request's method.
            params: Its parameters.
            served: Whether the edge answers the method.

        Raises:
            ResourceError: The request belongs to another protocol, or comes before `initialize`.
        """
        admit(session, method, params)
        waiting = session.opened == "handshake" and session.protocol is None
        served = served or method in self.methods
        if waiting and served and method not in {"initialize", "ping"}:
            raise bad_params("the session is not initialized; send `initialize` first")

    def call(self, session: Session, method: str, params: JsonObject) -> Answer:
        """Answer a request whose protocol is settled; otherwise like `answer`."""
        if method.endswith("/list") and session.era == "handshake":
            self.following.show_lists(session)
        if method in _LISTS:
            return self._listed(session, method, params)
        function = self._methods.get(method)
        if function is None:
            raise unknown_method(method)
        return self.seal(function(session, params), session)

    def listen(self, session: Session, params: JsonObject, request_id: int | str | None) -> None:
        """Open a `subscriptions/listen` stream; its acknowledgement is sent before this returns.

        Raises:
            RequestRefused: The parameters are wrong or there are too many streams.
        """
        if request_id is None:
            raise bad_params("`subscriptions/listen` needs a request id")
        self.following.listen(session, params, request_id)

    def notice(self, session: Session, method: str, params: JsonObject) -> None:
        """Handle a notification from the client; those without meaning here are ignored."""
        if method == "notifications/cancelled":
            request_id = params.get("requestId")
            if isinstance(request_id, (int, str)):
                self.following.close_stream(session, request_id)

    def log(self, level: str, message: str) -> None:
        """Send a log message to clients that set a logging level, such as about a skill left out.

        Args:
            level: One of MCP's: `warning`.
            message: What to say; never an absolute path.
        """
        for session in self.following.sessions:
            session.log(level, self.info.name, message)

    def tools(self) -> Sequence[ServedTool]:
        """The current tools, by name."""
        found = {tool.name: tool for addition in self.additions for tool in addition.tools()}
        return tuple(found[name] for name in sorted(found))

    def _tools_json(self) -> bytes:
        return encode([tool.data for tool in self.tools()])

    def seal(self, answer: Answer, session: Session) -> Answer:
        """Add what the newest protocol wants on every result."""
        if session.era != "modern":
            return answer
        return answer.with_fields(self._cached_tail if answer.cacheable else self._tail)

    def capabilities(self, *, modern: bool) -> JsonObject:
        """What `initialize` and `server/discover` declare."""
        found: dict[str, JsonValue] = {
            "resources": {"subscribe": True, "listChanged": True},
            "completions": {},
        }
        if not modern:
            found["logging"] = {}
        if "tools/list" in self._methods:
            found["tools"] = {"listChanged": True}
        extensions: dict[str, JsonValue] = {}
        for addition in self.additions:
            extensions |= addition.extensions
            found |= addition.capabilities
        if extensions:
            found["extensions"] = extensions
        return found

    def instructions(self) -> str | None:
        """The server's own words and those of the additions, a paragraph each."""
        parts = (self.info.instructions, *(addition.instructions for addition in self.additions))
        return "\n\n".join(part for part in parts if part) or None

    def _described(self, fields: JsonObject, *, modern: bool) -> JsonObject:
        data = {**fields, "capabilities": self.capabilities(modern=modern)}
        instructions = self.instructions()
        return data if instructions is None else {**data, "instructions": instructions}

    def _initialize(self, session: Session, params: JsonObject) -> Answer:
        session.protocol = negotiate(params)
        session.client = cast("JsonObject", params["clientInfo"])
        fields: JsonObject = {"protocolVersion": session.protocol, "serverInfo": self.info.data}
        return Answer(self._described(fields, modern=False))

    def _discover(self, session: Session, params: JsonObject) -> Answer:  # noqa: ARG002
        fields: JsonObject = {"supportedVersions": list(MODERN_VERSIONS)}
        return Answer(self._described(fields, modern=True), cacheable=True)

    def _ping(self, session: Session, params: JsonObject) -> Answer:  # noqa: ARG002
        return EMPTY

    def _set_level(self, session: Session, params: JsonObject) -> Answer:
        level = params.get("level")
        if level not in LEVELS:
            raise bad_params(f"`level` is none of {', '.join(LEVELS)}")
        session.level = cast("str", level)
        return EMPTY

    def _listed(self, session: Session, method: str, params: JsonObject) -> Answer:
        """Answer a list of the catalog; its pages are kept until the catalog changes."""
        cursor = params.get("cursor")
        templates = method == "resources/templates/list"
        listing = self.catalog.templates() if templates else self.catalog.listing()
        key = (method, cursor if isinstance(cursor, str) else None, session.era == "modern")
        known = self._pages.get(key)
        if known is not None and known[0] is listing:
            return known[1]
        size = self.catalog.limits.page
        if isinstance(listing, tuple):
            found = page(method, [one.template for one in listing], cursor, size)
            items = [one.json for one in listing[found.start : found.end]]
            answer = Answer.of_list("resourceTemplates", items, found.cursor)
        else:
            found = page(method, listing.uris, cursor, size)
            part = listing.entries(listing.uris[found.start : found.end])
            answer = Answer.of_list("resources", [one.json for one in part], found.cursor)
        answer = self.seal(answer, session)
        if len(self._pages) >= _MAX_PAGES:
            self._pages.clear()
        self._pages[key] = (listing, answer)
        return answer

    def _read(self, session: Session, params: JsonObject) -> Answer:  # noqa: ARG002
        contents = self.catalog.read(text_of(params, "uri"))
        return Answer.of_list("contents", [content.json for content in contents])

    def _subscribe(self, session: Session, params: JsonObject) -> Answer:
        self.following.subscribe(session, text_of(params, "uri"))
        return EMPTY

    def _unsubscribe(self, session: Session, params: JsonObject) -> Answer:
        self.following.unsubscribe(session, text_of(params, "uri"))
        return EMPTY

    def _complete(self, session: Session, params: JsonObject) -> Answer:  # noqa: ARG002
        ref, argument = object_of(params, "ref"), object_of(params, "argument")
        if ref.get("type") != "ref/resource":
            raise bad_params("there are no prompts here; `ref.type` can be `ref/resource`")
        template = text_of(ref, "uri", "ref.uri")
        given: JsonObject = {}
        if params.get("context") is not None:
            context = object_of(params, "context")
            if context.get("arguments") is not None:
                given = object_of(context, "arguments", "context.arguments")
        values = self.catalog.complete(
            template,
            text_of(argument, "name", "argument.name"),
            text_of(argument, "value", "argument.value"),
            {key: value for key, value in given.items() if isinstance(value, str)},
        )
        most = min(self.catalog.limits.completions, 100)
        completion: JsonObject = {
            "values": values[:most],
            "total": len(values),
            "hasMore": len(values) > most,
        }
        return Answer({"completion": completion})

    def _list_tools(self, session: Session, params: JsonObject) -> Answer:  # noqa: ARG002
        tools = self.tools()
        found = page(
            "tools/list",
            [tool.name for tool in tools],
            params.get("cursor"),
            self.catalog.limits.page,
        )
        part = tools[found.start : found.end]
        return Answer.of_list("tools", [encode(tool.data) for tool in part], found.cursor)

    def _call_tool(self, session: Session, params: JsonObject) -> Answer:  # noqa: ARG002
        name = text_of(params, "name")
        arguments = NOTHING if params.get("arguments") is None else object_of(params, "arguments")
        tool = next((tool for tool in self.tools() if tool.name == name), None)
        if tool is None:
            raise bad_params(f"unknown tool `{shown(name)}`")
        try:
            answer = tool.call(arguments)
        except ResourceError as problem:
            answer = ToolAnswer.of_problem(problem)
        return Answer(answer.data)


def text_of(params: JsonObject, key: str, path: str | None = None) -> str:
    """Take a string out of parameters.

    Args:
        params: Where from.
        key: Which.
        path: What to call it in the refusal, where that is not `key`.

    Raises:
        RequestRefused: It is missing or of another type.
    """
    value = params.get(key)
    if not isinstance(value, str):
        raise bad_params(f"`{path or key}` is missing or not a string")
    return value


def object_of(params: JsonObject, key: str, path: str | None = None) -> JsonObject:
    """Return an object from parameters; otherwise like `text_of`."""
    value = params.get(key)
    if not isinstance(value, Mapping):
        raise bad_params(f"`{path or key}` is missing or not an object")
    return value
