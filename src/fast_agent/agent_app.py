"""AgentApp: the live agents of a program, as `FastAgent.run` yields them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast, overload

from anyio import Lock, create_task_group

from fast_agent.cards.fields import FIELDS_OF
from fast_agent.cards.set_check import references
from fast_agent.errors import FastAgentError, ModelError, RunError
from fast_agent.models.check import check_model, check_selection, select_model
from fast_agent.models.spec import model_aliases
from fast_agent.text.wording import closest, did_you_mean
from fast_agent.tools.tool import as_dependencies

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from fast_agent.agents.agent import Agent
    from fast_agent.agents.conversation import Conversation
    from fast_agent.agents.events import Listener
    from fast_agent.agents.runtime_options import RuntimeOptions
    from fast_agent.cards.agent_config import HistorySource, HistoryTarget
    from fast_agent.cards.card import Card
    from fast_agent.cards.load_set import LoadSet
    from fast_agent.config.settings import Settings
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.mcp.listing import ListedPrompt
    from fast_agent.messages.message import Message, ToolResult
    from fast_agent.models.model import ToolSpec, Usage
    from fast_agent.registry.registry import Snapshot
    from fast_agent.runtime.runtime import Runtime
    from fast_agent.sessions.journal import Journal
    from fast_agent.steps.steps import Steps
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.human import Human

T = TypeVar("T")


class AgentApp:
    """Live agents: `await app("hello")`, `await app.writer.send("hi")`, `app["writer"]`.

    Args:
        runtime: The agents.
        snapshot: Gives the cards there are now; the runtime was made from them.
        settings: Gives the configuration there is now; the runtime was made from it.
        options: What the program gave.
        notify: Called with each line a user should see.
        talk: Lets a user talk with the agents at the terminal, from an agent on or the default one.
    """

    def __init__(
        self,
        runtime: Runtime,
        snapshot: Callable[[], Snapshot],
        settings: Callable[[], Settings],
        options: RuntimeOptions,
        notify: Callable[[str], None],
        talk: Callable[[AgentApp, str | None], Awaitable[None]],
    ) -> None:
        self._runtime = runtime
        self._snapshot = snapshot
        self._current_settings = settings
        self._taken = snapshot()
        self._refused = 0, 0
        self._lock = Lock(fast_acquire=True)
        self._settings: Settings = settings()
        self._options = options
        self._notify = notify
        self._talk = talk
        self._ready: set[str] = set()
        self._reported: set[str] = set()

    @property
    def version(self) -> int:
        """The version of the registry its agents are made from."""
        return self._taken.version

    async def refresh(self) -> bool:
        """Change to the cards and configuration there are now; called between turns.

        Agents whose cards changed, and those that depend on them, are recreated and remember what
        they did. A turn under way ends as it began.

        Returns:
            Whether anything changed.

        Raises:
            FastAgentError: An agent cannot be made from its new card; all stay as they were, until
                the cards change again.
        """
        if not self._is_behind():
            return False
        async with self._lock:
            if not self._is_behind():
                return False
            now, settings = self._snapshot(), self._current_settings()
            other = None if settings is self._settings else settings
            changed = now.changed_since(self._taken.version)
            try:
                await self._runtime.refresh(now.load_set, changed, other)
            except BaseException:
                self._refused = now.version, id(settings)
                raise
            self._taken, self._settings = now, settings
            self._ready.clear()
            return True

    def _is_behind(self) -> bool:
        """Whether there are other cards, or there is another configuration, than it was made of."""
        version, settings = self._snapshot().version, self._current_settings()
        if version == self._taken.version and settings is self._settings:
            return False
        return (version, id(settings)) != self._refused

    def new_conversation(
        self,
        *,
        listener: Listener | None = None,
        journal: Journal | None = None,
        human: Human | None = None,
        deps: object = None,
        steps: Steps | None = None,
    ) -> Conversation:
        """Start another conversation with the same agents; see `Runtime.new_conversation`.

        Close it with `async with`, or with `await conversation.aclose()`.

        `deps` is a value or a list of values for function tools, before those of the program.
        """
        return self._runtime.new_conversation(
            listener=listener,
            journal=journal,
            human=human,
            deps=as_dependencies(deps),
            steps=steps,
        )

    def agent(self, name: str, conversation: Conversation | None = None) -> Agent:
        """Return an agent by its name, in a separate conversation or in that of the app.

        Raises:
            RunError: There is none.
            ModelError: Its model, or that of an agent it uses, cannot be used; with every problem.
            FastAgentError: Its card cannot be run.
        """
        self._check_models(name)
        return self._runtime.agent(name) if conversation is None else conversation.agent(name)

    @property
    def load_set(self) -> LoadSet:
        """The cards its agents are made from."""
        return self._taken.load_set

    @property
    def runtime(self) -> Runtime:
        """The agents' runtime: servers, usage, clones."""
        return self._runtime

    @property
    def usage(self) -> Usage:
        """What all agents used together."""
        return self._runtime.usage

    async def __call__(self, message: str | Message, agent: str | None = None) -> str:
        """Send a message to an agent, the default one unless named, and return the answer's text.

        Raises:
            FastAgentError: The agent cannot be run, or its turn could not be finished.
        """
        return await self.send(message, agent)

    async def interactive(self, agent: str | None = None) -> None:
        """Start a conversation with the agents at the terminal: `await app.interactive()`.

        Returns when the user leaves. Sessions are not kept; `fast-agent go` keeps them.

        Args:
            agent: The agent to talk to first; None is the default one.

        Raises:
            RunError: There is no terminal, or no such agent.
        """
        await self._talk(self, agent)

    async def send(self, message: str | Message, agent: str | None = None) -> str:
        """Send a message and return the answer, like calling the app."""
        return await self[self.default_name if agent is None else agent].send(message)

    async def call(
        self,
        agent: str,
        message: str | Message,
        *,
        caller: str | None = None,
        history_source: HistorySource | None = None,
        history_merge_target: HistoryTarget | None = None,
        conversation: Conversation | None = None,
    ) -> str:
        """Call an agent as another one would call it as a tool, and return the answer's text.

        The call runs on a fresh copy of the agent. What it starts with and where its messages go is
        what the caller's card says for its children, unless it is given here.

        Args:
            agent: The agent; the caller need not have it among its `agents`.
            message: What to send.
            caller: The agent in whose place the call is made; None is the default one.
            history_source: What the copy starts with; `orchestrator` is the caller's conversation.
            history_merge_target: Where its new messages go.
            conversation: The conversation it belongs to; None is the app's own.

        Raises:
            FastAgentError: The agent cannot be run, or its turn could not be finished.
        """
        from fast_agent.cards.agent_config import ChildHistory

        parent = self.default_name if caller is None else caller
        for name in (parent, agent):
            self._check_models(name)
        wanted = ChildHistory(source=history_source, merge_target=history_merge_target)
        turn = await self._runtime.call(
            parent, agent, message, wanted=wanted, warn=self._notify, conversation=conversation
        )
        return turn.text

    @overload
    async def map(
        self,
        agent: str,
        messages: Iterable[str | Message],
        shape: None = None,
        *,
        concurrency: int = 10,
    ) -> list[str]: ...
    @overload
    async def map(
        self,
        agent: str,
        messages: Iterable[str | Message],
        shape: type[T],
        *,
        concurrency: int = 10,
    ) -> list[T]: ...
    @overload
    async def map(
        self,
        agent: str,
        messages: Iterable[str | Message],
        shape: JsonObject,
        *,
        concurrency: int = 10,
    ) -> list[JsonValue]: ...
    async def map(
        self,
        agent: str,
        messages: Iterable[str | Message],
        shape: type[T] | JsonObject | None = None,
        *,
        concurrency: int = 10,
    ) -> list[str] | list[T] | list[JsonValue]:
        """Send each message to an agent in a separate conversation, several at a time.

        Args:
            agent: The agent.
            messages: What to send.
            shape: What each answer is to be a value of, as for `Agent.structured`; None gives their
                texts.
            concurrency: Most conversations at a time.

        Returns:
            The answers, in the order of the messages.

        Raises:
            ValueError: `concurrency` is less than 1.
            FastAgentError: The first failure; the other conversations are cancelled then.
        """
        if concurrency < 1:
            raise ValueError("`concurrency` must be at least 1")
        self._check_models(agent)
        waiting = list(enumerate(messages))
        waiting.reverse()
        answers: list[object] = [None] * len(waiting)
        failed: list[FastAgentError] = []

        async def work() -> None:
            while waiting:
                index, message = waiting.pop()
                try:
                    answers[index] = await self._answer(agent, message, shape)
                except FastAgentError as error:  # raised when the others have ended
                    failed.append(error)
                    group.cancel_scope.cancel()
                    return

        async with create_task_group() as group:
            for _ in range(min(concurrency, len(waiting))):
                group.start_soon(work)
        if failed:
            raise failed[0]
        return cast("list[str]", answers)

    async def _answer(
        self, agent: str, message: str | Message, shape: type[T] | JsonObject | None
    ) -> object:
        async with self.new_conversation() as conversation:
            instance = conversation.agent(agent)
            if shape is None:
                return await instance.send(message)
            return await instance.structured(message, cast("type[T]", shape))

    async def list_tools(self, agent: str | None = None) -> tuple[ToolSpec, ...]:
        """Return the tools an agent can call, as its model sees them.

        Args:
            agent: The agent; None is the default one.

        Raises:
            RunError: The agent has no tools, as workflows have none.
            FastAgentError: The agent cannot be run, or one of its servers cannot be reached.
        """
        return await self[self._owner(agent)].list_tools()

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        agent: str | None = None,
        human: Human | None = None,
    ) -> ToolResult:
        """Call a tool of an agent as its model would; hooks and permissions apply.

        Args:
            name: The tool's name, as listed by `list_tools`.
            arguments: JSON object of its arguments.
            agent: The agent; None is the default one.
            human: Asks the user, for a tool that asks; None is the program's.

        Returns:
            The result; what goes wrong in the tool is an error result.

        Raises:
            RunError: There is no such tool, or it is an agent: use `call` for those.
            FastAgentError: The agent cannot be run, or one of its servers cannot be reached.
        """
        return await self[self._owner(agent)].call_tool(name, arguments, human=human)

    async def list_prompts(self, agent: str | None = None) -> dict[str, tuple[ListedPrompt, ...]]:
        """Return the prompts an agent's MCP servers offer it, by server.

        Args:
            agent: The agent; None is the default one.

        Raises:
            FastAgentError: The agent cannot be run, or one of its servers cannot be reached.
        """
        servers = self._runtime.server_prompts(self._owner(agent))
        return {server.server_name: await server.prompts() for server in servers}

    async def get_prompt(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        agent: str | None = None,
    ) -> tuple[Message, ...]:
        """Return the messages of a prompt, to be sent or loaded into a history.

        Args:
            server: A server of the agent.
            name: The prompt's name there.
            arguments: What it is filled with.
            agent: The agent; None is the default one.

        Raises:
            RunError: The agent has no such server.
            ToolError: The server has no such prompt, or the card's filter does not allow it.
        """
        owner = self._owner(agent)
        servers = {one.server_name: one for one in self._runtime.server_prompts(owner)}
        if server not in servers:
            hint = did_you_mean(closest(server, servers), "list it under `servers`")
            raise RunError(f"agent `{owner}` has no server `{server}`", hint=hint)
        return await servers[server].get(name, arguments, agent_name=owner)

    def _owner(self, agent: str | None) -> str:
        name = self.default_name if agent is None else agent
        return self[name].name

    async def choose_model(self, name: str, spec: str | None) -> None:
        """Switch an agent to another model from its next turn on.

        Args:
            name: The agent.
            spec: The model; None goes back to that of its card.

        Raises:
            RunError: There is no such agent, or it uses no model itself.
            ModelError: There is no such model, or it cannot be used; nothing changes then.
        """
        card = self._card_with_model(name)
        if card is None:
            raise RunError(f"no agent with a model is named `{name}`")
        if spec is not None and (problems := self._model_problems(card, spec)):
            raise ModelError(problems[0].message, hint=problems[0].hint, diagnostics=problems)
        await self._runtime.choose_model(name, spec)
        self._ready.clear()

    def model_choices(self, name: str) -> tuple[str, ...]:
        """Name models that can answer for an agent: those of the cards, then those with an alias.

        `choose_model` accepts others, too.

        Args:
            name: The agent; one that uses no model itself has no choices.
        """
        card = self._card_with_model(name)
        if card is None:
            return ()
        named = [one.config.model for one in self.load_set.cards.values()]
        named += [self._settings.default_model, *model_aliases(self._settings.model_aliases)]
        choices = dict.fromkeys(one for one in named if isinstance(one, str))
        return tuple(one for one in choices if not self._model_problems(card, one))

    def model_of(self, name: str) -> str | None:
        """Return the model that an agent asks, as it was written; None if it uses none itself."""
        return None if self._card_with_model(name) is None else self._runtime.model_of(name).text

    def _card_with_model(self, name: str) -> Card | None:
        card = self.load_set.cards.get(name)
        return card if card is not None and "model" in FIELDS_OF[card.config.type] else None

    def _model_problems(self, card: Card, spec: str) -> tuple[Diagnostic, ...]:
        return check_model(
            spec,
            self._settings,
            self._options.environ,
            api_key=card.config.api_key,
            directory=self._options.workspace,
            agent=card.config.name,
        )

    @property
    def default_name(self) -> str:
        """The name of the agent a user talks to first.

        Raises:
            RunError: There is none.
        """
        name = self.load_set.default
        if name is None:
            raise RunError("there is no agent to talk to", hint="load a card without `tool_only`")
        return name

    def goes_on_with(self, name: str) -> str:
        """Return the agent a conversation continues with once an agent has answered.

        Args:
            name: The agent that answered. A chain hands on to its last agent, unless its card
                says `continue_with_final: false`; any other agent is talked to again.

        Returns:
            The name of that agent.
        """
        card = self.load_set.cards.get(name)
        while card is not None and card.config.sequence and card.config.continue_with_final:
            name = card.config.sequence[-1]
            card = self.load_set.cards.get(name)
        return name

    def agent_names(self) -> list[str]:
        """Name the agents a user can talk to, in load order; `tool_only` ones are not listed."""
        return [name for name, card in self.load_set.cards.items() if not card.config.tool_only]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(self)}>"

    def __iter__(self) -> Iterator[str]:
        return iter(self.agent_names())

    def __contains__(self, name: object) -> bool:
        return name in self.load_set.cards

    def __getitem__(self, name: str) -> Agent:
        """Return an agent by its name, `tool_only` ones too.

        Raises:
            RunError: There is none.
            ModelError: Its model, or that of an agent it uses, cannot be used; with every problem.
            FastAgentError: Its card cannot be run.
        """
        return self.agent(name)

    def __dir__(self) -> list[str]:
        """Name the agents, and what programs use, for completion."""
        agents = map(_attribute, self.load_set.cards)
        return [*_PUBLIC, *(name for name in agents if name.isidentifier())]

    def __getattr__(self, name: str) -> Agent:
        """Return an agent by its name, with `_` for what Python does not allow in names."""
        if name.startswith("__"):
            raise AttributeError(name)
        matches = [one for one in self.load_set.cards if one == name]
        matches = matches or [one for one in self.load_set.cards if _attribute(one) == name]
        if len(matches) == 1:
            return self[matches[0]]
        if matches:
            hint = "use `app[…]` with one of " + ", ".join(f"`{one}`" for one in matches)
            raise AttributeError(f"`{name}` may be several agents; {hint}")
        near = closest(name, self.load_set.cards)
        hint = f"; did you mean `{near}`?" if near else ""
        raise AttributeError(f"no agent is named `{name}`{hint}")

    def _check_models(self, name: str) -> None:
        """See, before its first turn, that an agent and all it uses have a usable model."""
        if name in self._ready or name not in self.load_set.cards:
            return
        if self._options.steps.replays:
            return
        problems: list[Diagnostic] = []
        reached = [name]
        for one in reached:
            card = self.load_set.cards[one]
            reached.extend(
                other.name for other in references(card.config) if other.name not in reached
            )
            if "model" not in FIELDS_OF[card.config.type]:
                continue
            selection = select_model(
                card.config,
                self._settings,
                self._options.environ,
                cwd=self._options.workspace,
                flag=self._runtime.wanted_model(one),
            )
            found = check_selection(
                selection,
                self._settings,
                self._options.environ,
                api_key=card.config.api_key,
                agent=one,
            )
            problems.extend(problem for problem in found if problem not in problems)
            if (
                selection.notice is not None
                and not found
                and selection.notice not in self._reported
            ):
                self._reported.add(selection.notice)
                self._notify(selection.notice)
        if problems:
            raise ModelError(
                problems[0].message, hint=problems[0].hint, diagnostics=tuple(problems)
            )
        self._ready.update(reached)


_PUBLIC = (
    "agent",
    "agent_names",
    "call",
    "call_tool",
    "choose_model",
    "default_name",
    "get_prompt",
    "interactive",
    "list_prompts",
    "list_tools",
    "map",
    "new_conversation",
    "refresh",
    "send",
    "usage",
)


def _attribute(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)
