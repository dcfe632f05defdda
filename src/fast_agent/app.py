"""FastAgent: agents from cards and from Python, checked together, made live by `run`."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from fast_agent.cards.code_card import code_card
from fast_agent.cards.load_set import check_set
from fast_agent.config.home import home_directory, working_directory
from fast_agent.config.load import load_settings
from fast_agent.errors import ConfigError
from fast_agent.registry.card_root import CardReader, read_roots
from fast_agent.registry.registry import Registry
from fast_agent.registry.reload import Reloader
from fast_agent.runtime.card_inputs import card_inputs
from fast_agent.runtime.card_probes import card_probes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.agent_app import AgentApp
    from fast_agent.cards.agent_config import (
        CardType,
        ChildHistory,
        FunctionRef,
        HistorySource,
    )
    from fast_agent.cards.agent_fields import AgentFields
    from fast_agent.cards.load_set import LoadSet, Probe
    from fast_agent.cards.request_params import RequestParams
    from fast_agent.config.settings import Settings
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.registry.registry import Snapshot
    from fast_agent.registry.reload import Reload
    from fast_agent.runtime.events import Listener
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.human import Human

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger(__name__)

DEFAULT_INSTRUCTION = """\
You are a helpful assistant. Today is {{currentDate}}.

{{serverInstructions}}
{{agentSkills}}
"""
"""The instruction of the agent there is when no card gives one."""


class FastAgent:
    """A program's agents.

    Args:
        name: The program's name, for people.
        config_path: The configuration file; None looks for one.
        cwd: The directory the program works in; None is the working directory.
        environ: The environment; None is the process's own.
        ignore_config: Use no configuration file at all.
    """

    def __init__(
        self,
        name: str = "fast-agent",
        *,
        config_path: str | Path | None = None,
        cwd: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        ignore_config: bool = False,
    ) -> None:
        self.name = name
        self._config_path = None if config_path is None else Path(config_path)
        self._cwd = working_directory() if cwd is None else Path(cwd).resolve()
        self._environ = dict(os.environ) if environ is None else dict(environ)
        self._ignore_config = ignore_config
        self._settings: Settings | None = None
        self._registry: Registry | None = None
        self._live_roots: Reloader | None = None
        self._extra_servers: list[ServerSpec] = []

    @property
    def workspace(self) -> Path:
        """The directory the program works in, absolute."""
        return self._cwd

    @property
    def settings(self) -> Settings:
        """The configuration, read when first asked for.

        Raises:
            ConfigError: With every problem of every file and variable.
        """
        if self._settings is None:
            if self._ignore_config:
                from fast_agent.config.settings import Settings

                self._settings = Settings()
            else:
                self._settings = self._checked_settings()
        return self._settings

    def _checked_settings(self) -> Settings:
        settings = load_settings(
            cwd=self._cwd,
            environ=self._environ,
            home=home_directory(self._environ),
            config_path=self._config_path,
            shown_from=working_directory(),
        )
        if settings.default_model or settings.model_aliases:
            from fast_agent.models.check import check_settings

            problems = check_settings(settings, self._environ, cwd=self._cwd)
            if problems:
                first = problems[0]
                raise ConfigError(first.message, hint=first.hint, diagnostics=problems)
        return settings

    @property
    def snapshot(self) -> Snapshot:
        """The agents now, and where they came from."""
        return self._agents.snapshot

    @property
    def load_set(self) -> LoadSet:
        """The agents now."""
        return self.snapshot.load_set

    def add_server(self, server: ServerSpec) -> None:
        """Add an MCP server to those of the configuration, before cards that use it are loaded."""
        if self._registry is not None:
            raise ConfigError("servers are added before cards are loaded")
        self._extra_servers.append(server)

    def agent(
        self,
        name: str = "default",
        instruction: str = DEFAULT_INSTRUCTION,
        *,
        description: str | None = None,
        default: bool | None = None,
        tool_only: bool | None = None,
        agents: Sequence[str] | None = None,
        servers: Sequence[str] | None = None,
        tools: Mapping[str, Sequence[str]] | None = None,
        resources: Mapping[str, Sequence[str]] | None = None,
        prompts: Mapping[str, Sequence[str]] | None = None,
        skills: Sequence[str] | None = None,
        resource_tools: bool | None = None,
        model: str | None = None,
        use_history: bool | None = None,
        request_params: RequestParams | Mapping[str, Any] | None = None,
        human_input: bool | None = None,
        api_key: str | None = None,
        messages: str | Sequence[str] | None = None,
        function_tools: Sequence[FunctionRef] | None = None,
        tool_hooks: Sequence[FunctionRef] | Mapping[str, FunctionRef] | None = None,
        shell: bool | None = None,
        cwd: str | None = None,
        tool_input_schema: JsonObject | None = None,
        history_source: HistorySource | None = None,
        history_merge_target: HistorySource | None = None,
        child_history: Mapping[str, ChildHistory] | None = None,
        max_parallel: int | None = None,
        child_timeout_sec: float | None = None,
        max_display_instances: int | None = None,
    ) -> Callable[[F], F]:
        """Add an agent of type `agent`; usable as a decorator, which leaves the function as it is.

        Args:
            name: Its name, unique in the program.
            instruction: Its system prompt; placeholders are filled when a turn needs it.
            description: What it does, for agents that use it as a tool.
            default: Whether it is the one a person talks to first.
            tool_only: Whether it is offered to other agents only.
            agents: Agents it may call as tools.
            servers: MCP servers of the configuration it uses.
            tools: Tool names or patterns it may call, by server; other servers offer all.
            resources: The same for resources.
            prompts: The same for prompts.
            skills: Skill directories; an empty list means none.
            resource_tools: Whether it gets the tools that list and read resources.
            model: Its model, such as `anthropic.claude-sonnet-5`.
            use_history: Whether it remembers earlier turns.
            request_params: Parameters of its model requests.
            human_input: Whether it may ask the person.
            api_key: The key of its model's provider.
            messages: History files its conversation starts with.
            function_tools: Python functions, or `file.py:name`.
            tool_hooks: Functions around tool calls, or functions by point of the turn.
            shell: Whether it may run commands.
            cwd: Where its commands run.
            tool_input_schema: JSON Schema of its arguments when it is a tool.
            history_source: What its children start with.
            history_merge_target: Where its children's messages go.
            child_history: The two for single children.
            max_parallel: Most children at work at once.
            child_timeout_sec: Longest run of a child, in seconds.
            max_display_instances: How many children are shown in full.

        Raises:
            CardError: A field is wrong, or the name is taken.
        """
        fields = {key: value for key, value in locals().items() if key not in _NOT_FIELDS}
        return self._add("agent", name, instruction, fields, child_history)

    def smart(
        self,
        name: str = "smart",
        instruction: str = "Help with what you are asked.",
        **fields: Unpack[AgentFields],
    ) -> Callable[[F], F]:
        """Add an agent of type `smart`, which writes, checks and runs cards; usable as a decorator.

        Args:
            name: Its name, unique in the program.
            instruction: What is put below the packaged system prompt.
            **fields: The same as those of `agent`.

        Raises:
            CardError: A field is wrong, or the name is taken.
        """
        given: dict[str, Any] = dict(fields)
        child_history = given.pop("child_history", None)
        return self._add("smart", name, instruction, given, child_history)

    def _add(
        self,
        card_type: CardType,
        name: str,
        instruction: str,
        fields: dict[str, Any],
        child_history: Mapping[str, ChildHistory] | None,
    ) -> Callable[[F], F]:
        own_params = _own_params(fields)
        card = code_card(card_type, name, instruction, fields)
        config = card.config
        if own_params is not None:
            config = replace(config, request_params=own_params)
        if child_history is not None:
            config = replace(config, child_history=dict(child_history))
        self._agents.add(replace(card, config=config))
        return _unchanged

    def load_agents(self, *paths: str | Path, multi_card: bool = False) -> list[str]:
        """Load cards from files, directories and web addresses, at once and all or nothing.

        Loading a path again removes the agents that are gone from it.

        Args:
            paths: What to load; relative paths start at the program's directory.
            multi_card: Whether a file may hold several cards.

        Returns:
            The names of the agents loaded, in load order.

        Raises:
            CardError: With every problem of every card.
            ConfigError: With every problem of the configuration.
        """
        return list(self.load(cards=paths, multi_card=multi_card))

    def load(
        self,
        *,
        cards: Iterable[str | Path] = (),
        tools: Iterable[str | Path] = (),
        servers: Iterable[str] = (),
        receiver: str | None = None,
        multi_card: bool = False,
    ) -> tuple[str, ...]:
        """Load cards in one step, and give one agent more tools and servers.

        Args:
            cards: What to load.
            tools: Cards whose agents become tools of the receiver.
            servers: Names of MCP servers the receiver gets.
            receiver: The agent that gets them; None is the default agent.
            multi_card: Whether a file may hold several cards.

        Returns:
            The names of all agents loaded, in load order.

        Raises:
            CardError: With every problem of every card.
            ConfigError: With every problem of the configuration.
        """
        tools = tuple(tools)
        roots = read_roots(self._reader, (*cards, *tools), multi_card=multi_card)
        try:
            reloader = self._reloader
        except ConfigError as error:
            loads = [root.load for root in roots.values()]
            found = [problem for load in loads for problem in load.diagnostics]
            found += check_set(
                [card for load in loads for card in load.cards],
                probes=self._plain_probes(),
                unread=[name for load in loads for name in load.unread],
            )
            raise ConfigError(
                error.message, hint=error.hint, diagnostics=(*error.diagnostics, *found)
            ) from error
        return reloader.load(
            roots,
            tools={self._reader.key(path) for path in tools},
            servers=tuple(servers),
            receiver=receiver,
        )

    def reload(self) -> Reload:
        """Read again the cards that changed since they were loaded, all or none of them.

        Returns:
            What changed, or what is wrong; then the agents are those of before.
        """
        return self._reloader.run()

    @asynccontextmanager
    async def run(
        self,
        *,
        model: str | None = None,
        params: RequestParams | None = None,
        shell: bool = False,
        human: Human | None = None,
        listener: Listener | None = None,
        notify: Callable[[str], None] = log.warning,
        trust_cards: bool = False,
    ) -> AsyncGenerator[AgentApp]:
        """Make the agents live: `async with fast.run() as app:`.

        Args:
            model: The model of every agent, over cards and configuration.
            params: Request parameters over those of cards and configuration.
            shell: Whether every agent may run commands.
            human: The way to a person, or None.
            listener: Hears of the events of every turn, or None.
            notify: Told what a person should know, such as a fallback model; one line each.
            trust_cards: Whether cards that a smart agent reaches by their path may run code.

        Raises:
            CardError: The agents do not agree with each other.
            ConfigError: The configuration is wrong.
        """
        from fast_agent.agent_app import AgentApp
        from fast_agent.runtime.runtime import BUILDERS, Runtime
        from fast_agent.runtime.surroundings import Surroundings
        from fast_agent.workflows.builders import WORKFLOWS

        if not self.names():
            self.agent("agent", default=True)(_unchanged)
        self._agents.check()
        surroundings = Surroundings(
            workspace=self._cwd,
            environ=self._environ,
            model=model,
            servers=tuple(self._extra_servers),
            shell=shell,
            human=human,
            listener=listener,
            trust_cards=trust_cards,
        )
        if params is not None:
            surroundings = replace(surroundings, params=params)
        builders = {**BUILDERS, **WORKFLOWS}
        async with Runtime(
            self.load_set, self.settings, surroundings, builders=builders
        ) as runtime:
            yield AgentApp(runtime, self.load_set, self.settings, surroundings, notify)
            runtime.finish_scripts()

    def names(self) -> list[str]:
        """Name the agents a person can talk to, in load order."""
        return [name for name, card in self.load_set.cards.items() if not card.config.tool_only]

    def probes(self) -> tuple[Probe, ...]:
        """Give the checks of single cards by the rooms above the cards; none runs a card's code.

        Without a configuration that can be read, models go unchecked: their names may be aliases.
        """
        try:
            settings = self.settings
        except ConfigError:
            return self._plain_probes()
        return card_probes(self._cwd, settings, self._environ)

    def _plain_probes(self) -> tuple[Probe, ...]:
        """Give the checks that need no configuration."""
        return card_probes(self._cwd, None, self._environ)

    @property
    def server_names(self) -> tuple[str, ...]:
        """Name the MCP servers cards may use."""
        return (*self.settings.mcp.servers, *(server.name for server in self._extra_servers))

    @property
    def _agents(self) -> Registry:
        if self._registry is None:
            self._registry = Registry(self.server_names, self.probes())
        return self._registry

    @property
    def _reloader(self) -> Reloader:
        if self._live_roots is None:
            self._live_roots = Reloader(self._agents, partial(card_inputs, workspace=self._cwd))
        return self._live_roots

    @property
    def _reader(self) -> CardReader:
        return CardReader(self._cwd, self._environ, _fetch)


def _fetch(address: str) -> str:
    from fast_agent.registry.remote_card import fetch_card

    return fetch_card(address)


_NOT_FIELDS = frozenset({"self", "name", "instruction", "child_history"})


def _unchanged(function: F) -> F:
    return function


def _own_params(fields: dict[str, Any]) -> RequestParams | None:
    """Take a ready value of request parameters out of `fields`; a mapping is left to the check."""
    value = fields.get("request_params")
    if value is None or isinstance(value, Mapping):
        return None
    del fields["request_params"]
    return value


__all__ = ["DEFAULT_INSTRUCTION", "FastAgent"]
