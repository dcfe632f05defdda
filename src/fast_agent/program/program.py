"""Program: agents from cards and from Python, checked together, made live by `run`."""

from __future__ import annotations

import logging
import os
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol

import fast_agent.decorators as decorators
from fast_agent.cards.load_set import check_set
from fast_agent.config.home import home_directory, working_directory
from fast_agent.diagnostics.rules import FULL_WINDOW
from fast_agent.errors import CardError, ConfigError, FastAgentError, ModelError, RunError
from fast_agent.program.sources import (
    Configuration,
    ProgramSecrets,
    ProgramServers,
    RootReader,
    SecretSources,
    card_origin,
)
from fast_agent.prompt.named_file import card_inputs
from fast_agent.registry.admission import Admission
from fast_agent.registry.expected import shared_options
from fast_agent.registry.registry import CODE, Registry
from fast_agent.runtime.card_probes import card_probes
from fast_agent.steps.steps import NULL_STEPS, start_at
from fast_agent.telemetry import is_wanted
from fast_agent.trust.gate import Gate, TrustOptions, ask_at_terminal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager

    from fast_agent.agent_app import AgentApp
    from fast_agent.agents.events import Listener
    from fast_agent.agents.live_agent import TurnCarrier
    from fast_agent.agents.runtime_options import RuntimeOptions
    from fast_agent.cards.agent_config import AgentConfig, ChildHistory, FileAccess, RequestParams
    from fast_agent.cards.card import Card
    from fast_agent.cards.load_set import LoadSet, Probe
    from fast_agent.config.settings import Settings
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.registry.card_root import CardRoot
    from fast_agent.registry.registry import Snapshot
    from fast_agent.registry.reload import Reload, Reloader
    from fast_agent.registry.watch import CardWatch
    from fast_agent.sessions.journal import Journal
    from fast_agent.steps.steps import Steps
    from fast_agent.telemetry.tracing import Tracing
    from fast_agent.tools.human import Human
    from fast_agent.trust.approvals import Approvals
    from fast_agent.trust.context import GivenOptions

log = logging.getLogger(__name__)


class NewCarrier(Protocol):
    """Opens what has the turns of a run of the program run elsewhere."""

    def __call__(self, human: Human | None) -> AbstractAsyncContextManager[TurnCarrier]:
        """Open it.

        Args:
            human: Asks the user, or None.
        """
        ...


class Program:
    """A program's agents.

    Args:
        name: The program's name, for people.
        config_path: The configuration file; None searches for one.
        cwd: The directory the program works in; None is the working directory.
        environ: The environment; None is the process's own.
        ignore_config: Use no configuration file at all.
        trust: How what no user named is treated; None asks at the terminal, where there is one.
        deps: A value, or a list of values, that function tools get by `Deps[Type]` in every run;
            the values of a run come first.

    Attributes:
        configuration: What it is configured with.
        servers: Its MCP servers.
        known_secrets: What no text that leaves it may hold.
        new_carrier: Opens what has turns run elsewhere; None runs them in this process.
    """

    def __init__(
        self,
        name: str = "fast-agent",
        *,
        config_path: str | Path | None = None,
        cwd: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        ignore_config: bool = False,
        trust: TrustOptions | None = None,
        deps: object = None,
    ) -> None:
        self.name = name
        self._deps = deps
        self._cwd = working_directory() if cwd is None else Path(cwd).resolve()
        self._environ = dict(os.environ) if environ is None else dict(environ)
        self._registry: Registry | None = None
        self._live_roots: Reloader | None = None
        home = home_directory(self._environ)
        options = TrustOptions(asker=ask_at_terminal) if trust is None else trust
        self.gate = Gate(home, self._cwd, self._environ, options)
        self.configuration = Configuration(
            self._cwd,
            self._environ,
            None if config_path is None else Path(config_path),
            self.gate,
            lambda: self.admission,
            is_ignored=ignore_config,
        )
        self.servers = ProgramServers(self._cwd, home, self._environ, self.configuration, self.gate)
        self.known_secrets = ProgramSecrets(self._environ, self._secret_sources)
        self.admission = Admission(
            self.gate, self._environ, self._cwd, self._providers_of, self._given
        )
        self._roots = RootReader(
            self._cwd, self._environ, self.gate, self.configuration.agents_in_place
        )
        self._reconsidering = Lock()
        self._model: str | None = None
        self._reported: set[str] = set()
        self.new_carrier: NewCarrier | None = None
        self._functions: list[Callable[..., object]] = []

    @property
    def approvals(self) -> Approvals:
        """What the user answered about found sets."""
        return self.gate.approvals

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
        return self.configuration.settings

    @property
    def snapshot(self) -> Snapshot:
        """The agents now, and where they came from."""
        return self._agents.snapshot

    def mark_reported(self, notes: Iterable[Diagnostic]) -> None:
        """Record which warnings a user was shown, so that turns do not repeat them.

        Args:
            notes: The warnings.
        """
        self._reported |= {note.path for note in notes if note.code == FULL_WINDOW.code}

    @property
    def load_set(self) -> LoadSet:
        """The agents now."""
        return self.snapshot.load_set

    def add_server(self, server: ServerSpec) -> None:
        """Add an MCP server to those of the configuration, before cards that use it are loaded."""
        if self._registry is not None:
            raise ConfigError(
                "servers are added before cards are loaded",
                hint=f"declare `{server.name}` before the agents",
            )
        self.servers.added.append(server)

    def add_card(self, card: Card) -> None:
        """Add an agent made in Python, as the decorators do.

        Raises:
            CardError: Its name is taken.
        """
        self._agents.add(card)
        if self._functions:
            self._agents.add_functions(self._functions)

    def add_function(self, function: Callable[..., object], agent: str | None) -> None:
        """Add a function tool to an agent made in Python; None adds it to all of them.

        Raises:
            CardError: The agent's type has no function tools.
        """
        if agent is None:
            self._functions.append(function)
        self._agents.add_functions((function,), agent)

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
        found: Iterable[str | Path] = (),
        root: Path | None = None,
        optional: Iterable[str | Path] = (),
    ) -> tuple[str, ...]:
        """Load cards in one step, and add tools and servers to one agent.

        Args:
            cards: What to load.
            tools: Cards whose agents become tools of the receiver.
            servers: Names of MCP servers the receiver gets.
            receiver: The agent that gets them; None is the default agent.
            multi_card: Whether a file may hold several cards.
            found: Those of the paths that were found, not named by a user. What cards from there
                bring runs only once a user approved it: `fast-agent trust`.
            root: The root of the set they belong to; None for the project each is in, as for
                those outside of it.
            optional: Those of the paths that may be directories without a card.

        Returns:
            The names of all agents loaded, in load order.

        Raises:
            CardError: With every problem of every card.
            ConfigError: With every problem of the configuration.
        """
        cards, tools, found = tuple(cards), tuple(tools), tuple(found)
        roots = self.expect(
            cards=cards,
            tools=tools,
            servers=servers,
            multi_card=multi_card,
            found=found,
            root=root,
            optional=optional,
            receiver=receiver,
        )
        self._roots.forget()
        try:
            reloader = self._reloader
        except ConfigError as error:
            loads = [root.load for root in roots.values()]
            problems = [problem for load in loads for problem in load.diagnostics]
            problems += check_set(
                [card for load in loads for card in load.cards],
                probes=self._plain_probes(),
                unread=[name for load in loads for name in load.unread],
            )
            raise ConfigError(
                error.message, hint=error.hint, diagnostics=(*error.diagnostics, *problems)
            ) from error
        try:
            return reloader.load(
                roots,
                tools={self._roots.key(path) for path in tools},
                servers=tuple(servers),
                receiver=receiver,
                both={self._roots.key(path) for path in cards},
                found={self._roots.key(path) for path in found},
            )
        except CardError as error:
            # Values of `${NAME}` stand in the report of cards that never came into the set.
            self.known_secrets.hide_values_of(
                card for root in roots.values() for card in root.load.cards
            )
            error.hide(self.redact)
            raise

    def expect(
        self,
        *,
        cards: Iterable[str | Path] = (),
        tools: Iterable[str | Path] = (),
        servers: Iterable[str] = (),
        multi_card: bool = False,
        found: Iterable[str | Path] = (),
        root: Path | None = None,
        optional: Iterable[str | Path] = (),
        model: str | None = None,
        receiver: str | None = None,
        shared: Iterable[str] = (),
        reaching: Iterable[str] = (),
    ) -> dict[str, CardRoot]:
        """Read cards that are about to be loaded, so that one question covers all of a project.

        Args:
            cards: What is going to be loaded, as for `load`.
            tools: Cards whose agents become tools.
            servers: Names of MCP servers that are used whatever cards say.
            multi_card: Whether a file may hold several cards.
            found: Those of the paths that were found, not named by a user.
            root: The root of the set they belong to; None for the project each is in.
            optional: Those of the paths that may be directories without a card.
            model: The model of every agent, over their cards.
            receiver: The agent that gets tools and servers; None is the default one.
            shared: Options that reach every agent, such as `--shell`.
            reaching: Options that bring the receiver servers the program does not know yet:
                `--stdio NAME`, `--url NAME`.

        Returns:
            What was read, by what it is known by.
        """
        cards, tools = tuple(cards), tuple(tools)
        roots = self._roots.read(
            (*cards, *tools), multi_card=multi_card, found=found, root=root, optional=optional
        )
        servers = tuple(servers)
        added = {spec.name: spec.as_option() for spec in self.servers.added}
        named = [added.get(name, f"--servers {name}") for name in servers]
        self.admission.expected.add(
            roots,
            servers,
            tools=map(self._roots.key, tools),
            receiver=receiver,
            shared=shared,
            reaching=(*named, *reaching),
            model=model,
        )
        self._model = model or self._model
        return roots

    def _given(self) -> GivenOptions:
        """Return what the user gave, which found sets may reach and are compared with."""
        from fast_agent.models.check import select_model
        from fast_agent.models.spec import parse_model_spec
        from fast_agent.trust.context import GivenOptions

        user = self.configuration.user
        environ = self._environ
        model = select_model(None, user, environ, cwd=self._cwd, flag=self._model).text
        made = () if self._registry is None else self._registry.snapshot.roots.get(CODE, ())
        return GivenOptions(
            parse_model=parse_model_spec,
            environ=environ,
            cwd=self._cwd,
            settings=user,
            agents={card.config.name: card.config for card in made},
            default_model=model,
        )

    def _providers_of(self, config: AgentConfig) -> frozenset[str]:
        """Return the providers of the models an agent may ask; none where they are not known."""
        from fast_agent.models.check import select_model
        from fast_agent.models.spec import parse_models

        settings = self.settings
        chosen = select_model(config, settings, self._environ, cwd=self._cwd, flag=self._model)
        try:
            specs = parse_models(chosen.text, settings.model_aliases, settings.endpoints)
        except ModelError:
            return frozenset()
        return frozenset(spec.provider for spec in specs)

    def reload(self) -> Reload:
        """Read again the cards that changed since they were loaded, all or none of them.

        Returns:
            What changed, or what is wrong; then the previous agents stay.
        """
        return self._reloader.run(retry=True)

    def reconsider(self) -> Reload:
        """Decide again about what was found, and take in what may act now.

        Configuration and cards are read again, as after an approval. No user is asked.

        Returns:
            What changed, or what is wrong; then the previous agents stay.

        Raises:
            ConfigError: With every problem of the configuration; then the previous one stays.
        """
        with self._reconsidering:
            if self.configuration.reread():
                self._agents.expect(self.server_names, self.probes())
            self.admission.decisions.decide()
            return self._reloader.run(anew=True)

    def attach(self, receiver: str, agents: Iterable[str]) -> tuple[str, ...]:
        """Attach others to an agent as tools; a reload keeps them.

        Args:
            receiver: The agent that gets them.
            agents: The agents it gets; itself, and those it has, are skipped.

        Returns:
            The names of those that are new to it.

        Raises:
            CardError: There is no such agent, or they would call each other in a ring.
        """
        return self._agents.attach(receiver, agents)

    def watch(self, on_reload: Callable[[Reload], None]) -> CardWatch:
        """Reload whenever cards, or files they stand on, change: `with fast.watch(print):`.

        Args:
            on_reload: Called in the watcher's thread for each reload that changed something or was
                refused.
        """
        from fast_agent.registry.watch import CardWatch

        return CardWatch(self._reloader, on_reload)

    @asynccontextmanager
    async def run(
        self,
        *,
        model: str | None = None,
        params: RequestParams | None = None,
        shell: bool = False,
        files: FileAccess | None = None,
        fetch: bool = False,
        human: Human | None = None,
        listener: Listener | None = None,
        notify: Callable[[str], None] = log.warning,
        trust_cards: bool = False,
        child_history: ChildHistory | None = None,
        steps: Steps = NULL_STEPS,
        journal: Journal | None = None,
        grows: bool = False,
        adjust: Callable[[RuntimeOptions], RuntimeOptions] | None = None,
        partial_set: bool = False,
        deps: object = None,
        is_traced: bool = True,
    ) -> AsyncGenerator[AgentApp]:
        """Make the agents live: `async with fast.run() as app:`.

        Args:
            model: The model of every agent, over cards and configuration.
            params: Request parameters over those of cards and configuration.
            shell: Whether every agent may run commands.
            files: What every agent may do with files of the workspace; None leaves it to the cards.
            fetch: Whether every agent may fetch web pages.
            human: Asks the user, or None.
            listener: Hears of the events of every turn, or None.
            notify: Called with each line a user should see, such as a fallback model.
            trust_cards: Whether cards that a smart agent reaches by their path may run code.
            child_history: What called agents start with and where their messages go, over the
                cards of all that call them.
            steps: What carries out the steps of the run, such as a recorder in card tests.
            journal: Where turns are written down as they go, and where earlier histories come
                from: the `journal` of an open session. None keeps them in memory only.
            grows: Whether cards may be loaded or reloaded while the agents are live.
            adjust: Changes what the agents are given around them, for programs with edges of
                their own; None changes nothing.
            partial_set: Whether it may run without the default agent, where that may not act.
            deps: A value, or a list of values, that function tools get by `Deps[Type]`; they come
                before those of the program.
            is_traced: Whether turns are traced, where the environment or the program asks for it.

        Raises:
            TrustError: The default agent came with a project, and may not act.
            CardError: The agents do not agree with each other.
            ConfigError: The configuration is wrong.
            RunError: No asyncio event loop is running, as under trio.
        """
        _require_asyncio()
        from fast_agent.agent_app import AgentApp
        from fast_agent.agents.runtime_options import RuntimeOptions as Options
        from fast_agent.runtime.runtime import BUILDERS, Runtime
        from fast_agent.tools.tool import as_dependencies
        from fast_agent.workflows import WORKFLOWS

        shared = shared_options(shell=shell, files=files, fetch=fetch)
        self._begin(notify, shared, partial_set=partial_set)
        options = Options(
            workspace=self._cwd,
            environ=self._environ,
            model=model,
            servers=tuple(self.servers.added),
            place_server=partial(self.place_server, workspace=self._cwd),
            shell=shell,
            files=files,
            fetch=fetch,
            protected=self._is_protected,
            human=human,
            listener=listener,
            trust_cards=trust_cards,
            admit=self.admission.reached,
            steps=steps,
            journal=journal,
            redact=self.redact,
            authorizations=self.servers.authorizations,
            skills=self.admission.skills,
            reads_project=partial(self.admission.reads_project, any_tools=bool(shared)),
            deps=(*as_dependencies(deps), *as_dependencies(self._deps)),
            reported=self._reported,
        )
        if params is not None:
            options = replace(options, params=params)
        if child_history is not None:
            options = replace(options, child_history=child_history)
        if adjust is not None:
            options = adjust(options)
        builders = {**BUILDERS, **WORKFLOWS}
        try:
            async with (
                self.traced(notify) if is_traced else nullcontext() as tracing,
                # Nothing is carried elsewhere that is recorded, replayed, or pinned for elsewhere.
                self._carried(options.human, wanted=steps is NULL_STEPS) as carrier,
                Runtime(
                    self.load_set,
                    self.settings,
                    options if tracing is None else replace(options, tracing=tracing.listener_of),
                    builders=builders,
                    allow_new_servers=grows,
                    carrier=carrier,
                ) as runtime,
            ):
                before = start_at(steps.top)
                try:
                    yield AgentApp(
                        runtime,
                        lambda: self.snapshot,
                        lambda: self.settings,
                        options,
                        notify,
                        self._talk,
                    )
                finally:
                    start_at(before)
                runtime.finish_scripts()
        except FastAgentError as error:
            error.hide(self.redact)
            raise

    def _carried(
        self, human: Human | None, *, wanted: bool
    ) -> AbstractAsyncContextManager[TurnCarrier | None]:
        """Open what has turns run elsewhere, where the program wants that."""
        if self.new_carrier is None or not wanted:
            return nullcontext()
        return self.new_carrier(human)

    def traced(self, notify: Callable[[str], None]) -> AbstractAsyncContextManager[Tracing | None]:
        """Make traces of the events that the listener given here hears.

        Args:
            notify: Called with a line if tracing was requested but cannot start.

        Returns:
            The listener; None where neither the program nor the environment asks for traces.
        """
        if not is_wanted(self._environ):
            return nullcontext()
        from fast_agent.telemetry.tracing import traced

        def is_workflow(agent: str) -> bool:
            card = self.load_set.cards.get(agent)
            return card is not None and card.config.type not in {"agent", "smart"}

        return traced(self._environ, redact=self.redact, is_workflow=is_workflow, notify=notify)

    def _is_protected(self, path: Path) -> bool:
        """Return whether writes to a file are asked about separately."""
        from fast_agent.runtime.protected_files import ProtectedFiles

        return ProtectedFiles(self, home_directory(self._environ), self._cwd).holds(path)

    async def _talk(self, app: AgentApp, agent: str | None) -> None:
        """Start a conversation at the terminal, a room above this module."""
        del app, agent
        raise RunError("this program has no terminal", hint="make it with `FastAgent`")

    def _begin(
        self, notify: Callable[[str], None], shared: tuple[str, ...], *, partial_set: bool
    ) -> None:
        """Decide about what was found, before anything is live.

        Args:
            notify: Called with a line for each thing left out.
            shared: Options that reach every agent, such as `--shell`.
            partial_set: Whether the default agent may be missing.
        """
        if shared:
            self.admission.expected.add({}, (), shared=shared)
        self.admission.decisions.decide()
        if not partial_set:
            self.admission.require(None)
        if not self.names() and not (partial_set and self.admission.waiting):
            self.admission.require_some(())
            decorators.agent(self, "agent", default=True)
        for card in self.load_set.cards.values():
            if card.config.source is None:
                self.admission.check_use(card.config)
        self._agents.check()
        for line in self.admission.decisions.unreported():
            notify(line)
        self.admission.decisions.begin()

    def names(self) -> list[str]:
        """Name the agents a user can talk to, in load order."""
        return [name for name, card in self.load_set.cards.items() if not card.config.tool_only]

    def redact(self, text: str) -> str:
        """Return text with a mark instead of each secret the program knows."""
        return self.known_secrets.redact(text)

    def secrets(self) -> frozenset[str]:
        """Return the secrets the program knows so far; nothing is read for it."""
        return self.known_secrets.all()

    def _secret_sources(self) -> SecretSources:
        snapshot = None if self._registry is None else self._registry.snapshot
        servers = self.servers
        return SecretSources(self.configuration.known, snapshot, servers.added, servers.tokens)

    def agent_origin(self, name: str) -> str | None:
        """Return the file of an agent's card, as people are shown it; None where it has none."""
        card = self.load_set.cards.get(name)
        return None if card is None else card_origin(card, self._cwd)

    def server_origin(self, name: str) -> str | None:
        """Return where an MCP server is declared; see `ProgramServers.origin`."""
        return self.servers.origin(name, self.load_set.cards.values())

    def place_server(self, spec: ServerSpec, *, workspace: Path) -> ServerSpec:
        """Choose the directory a server starts in; see `ProgramServers.placed`."""
        is_trusted = partial(self.admission.decisions.is_approved, workspace)
        return self.servers.placed(spec, workspace=workspace, is_trusted=is_trusted)

    def probes(self) -> tuple[Probe, ...]:
        """Return the checks of single cards by the rooms above the cards; none runs a card's code.

        Without a configuration that can be read, models go unchecked: their names may be aliases.
        """
        if self._model is not None:  # it takes the place of every card's model
            return self._plain_probes()
        try:
            settings = self.settings
        except ConfigError:
            return self._plain_probes()
        return card_probes(self._cwd, settings, self._environ)

    def _plain_probes(self) -> tuple[Probe, ...]:
        """Return the checks that need no configuration."""
        return card_probes(self._cwd, None, self._environ)

    @property
    def server_names(self) -> tuple[str, ...]:
        """Name the MCP servers cards may use."""
        return self.servers.names()

    @property
    def _agents(self) -> Registry:
        if self._registry is None:
            self._registry = Registry(self.server_names, self.probes())
        return self._registry

    @property
    def _reloader(self) -> Reloader:
        if self._live_roots is None:
            from fast_agent.registry.reload import Reloader

            inputs = partial(card_inputs, workspace=self._cwd)
            self._live_roots = Reloader(self._agents, inputs, self.admission)
        return self._live_roots


def _require_asyncio() -> None:
    from asyncio import get_running_loop

    try:
        get_running_loop()
    except RuntimeError:
        raise RunError(
            "agents run on asyncio, and no asyncio event loop is running here",
            hint="run the program with `asyncio.run` or `anyio.run`; trio is not supported",
        ) from None
