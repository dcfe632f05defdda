"""Card reach: loading, checking and running cards that a model names by their path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fast_agent.cards.card_files import Candidate, is_configuration, list_directory
from fast_agent.cards.fields import FIELDS
from fast_agent.cards.load import CardLoad, load_cards
from fast_agent.cards.load_set import check_set
from fast_agent.cards.placeholder import parse_template
from fast_agent.config.home import from_home, home_directory
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import REACHED_CODE, REACHED_FILE, UNSET_VARIABLE
from fast_agent.errors import CardError, ModelError, ToolError, os_reason
from fast_agent.registry.registry import Registry
from fast_agent.runtime.card_probes import card_probes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from fast_agent.agents.runtime_options import RuntimeOptions
    from fast_agent.agents.turn_context import TurnContext
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.config.settings import Settings
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.runtime.context import InnerRuntime, MakeRuntime


AGENT_CARDS = "agent-cards"
TOOL_CARDS = "tool-cards"


_CODE = ("function_tools", "tool_hooks", "shell", "files", "fetch", "mcp_connect")
_OWN_FOLDERS = frozenset({".fast-agent", ".claude", ".agents"})


class ReachableCards:
    """The cards a smart agent can reach: those in the workspace, and those of the home directory.

    Unless the options trust them, cards see no environment variables, run no code, open no
    connections of their own, and name no files outside these places.

    Args:
        settings: The configuration.
        options: The options of the program.
        inner: Makes a runtime of the cards that are reached.
    """

    def __init__(self, settings: Settings, options: RuntimeOptions, inner: MakeRuntime) -> None:
        self._settings = settings
        self._inner = inner
        self._options = options
        self.home = home_directory(options.environ)
        places = (options.workspace, self.home / AGENT_CARDS, self.home / TOOL_CARDS)
        self._roots = AllowedRoots(places)
        self._servers = (*settings.mcp.servers, *(server.name for server in options.servers))
        self._probes = card_probes(options.workspace, settings, options.environ)

    @property
    def workspace(self) -> Path:
        """Where relative paths start."""
        return self._options.workspace

    @property
    def max_depth(self) -> int:
        """Deepest nesting of agents."""
        return self._options.max_depth

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment as cards see it that are only checked: names, each as its own value."""
        return {name: f"${{{name}}}" for name in self._options.environ}

    def locate(self, text: str) -> Path:
        """Find what a model calls a card.

        Args:
            text: A path of a file or a directory, relative to the workspace, or below the home
                directory's cards.

        Returns:
            The path, absolute, without links.

        Raises:
            ToolError: It is an address, or leads elsewhere; whether it exists is not revealed.
        """
        if "://" in text:
            raise ToolError("cards are reached by a path here, not by an address")
        if not text.strip() or not text.isprintable():
            raise ToolError("`agent_card_path` is not a path")
        path = self.workspace / from_home(text, self._options.environ)
        if not self._roots.holds(path):
            raise ToolError(
                f"`{text}` is not in the workspace or among the cards of the home directory",
                hint="use a path relative to the workspace; hidden files are left alone",
            )
        return path.resolve()

    def shown(self, path: Path) -> str:
        """Write a path as a model should name it."""
        workspace = self.workspace.resolve()
        return str(path.relative_to(workspace) if path.is_relative_to(workspace) else path)

    def check(self, path: Path) -> tuple[CardLoad, tuple[Diagnostic, ...]]:
        """Check the cards of a path, as `fast-agent check` does; nothing is run.

        Args:
            path: From `locate`.

        Returns:
            The cards, and every problem.
        """
        options = self._options
        environ = options.environ if options.trust_cards else self.variables
        load = self._load(path, environ)
        return load, (*load.diagnostics, *self.problems(load.cards, load.unread))

    def problems(self, cards: Sequence[Card], unread: Sequence[str] = ()) -> tuple[Diagnostic, ...]:
        """Check cards together; files that may not be read are not looked into."""
        refused = self._refused_files(cards)
        probes = () if refused else self._probes
        found = check_set(cards, servers=self._servers, probes=probes, unread=unread)
        return (*refused, *found)

    def refusals(self, cards: Sequence[Card]) -> tuple[Diagnostic, ...]:
        """Find what keeps cards from being run without a user's yes; none if they are trusted."""
        if self._options.trust_cards:
            return ()
        return tuple([problem for card in cards for problem in code_problems(card)])

    def load(self, path: Path) -> tuple[Card, ...]:
        """Load cards without checking them.

        Args:
            path: From `locate`.
        """
        return self._load(path, self.variables).cards

    @asynccontextmanager
    async def running(self, path: Path, turn: TurnContext) -> AsyncGenerator[InnerRuntime]:
        """Make the cards of a path live, apart from all others, for as long as this lasts.

        Args:
            path: From `locate`.
            turn: Where their turns stand.

        Raises:
            CardError: With every problem of the cards, or because they may not be run.
        """
        options = self._options
        load = self._load(path, options.environ if options.trust_cards else {})
        refused = (*self._refused_files(load.cards), *self.refusals(load.cards))
        if refused:
            raise CardError(refused[0].message, hint=refused[0].hint, diagnostics=refused)
        registry = self._registry_of(path, load)
        if options.admit is not None and not options.trust_cards:
            registry = self._registry_of(path, options.admit(path, load))
        # A model chose what runs here: it gets no more than its card says.
        inside = replace(
            options,
            shell=options.shell and options.trust_cards,
            files=options.files if options.trust_cards else None,
            fetch=options.fetch and options.trust_cards,
            tool_transform=options.tool_transform if options.trust_cards else None,
            extra_servers=(),
        )
        load_set = registry.snapshot.load_set
        async with self._inner(load_set, self._settings, inside, turn=turn) as runtime:
            yield runtime

    def _registry_of(self, path: Path, load: CardLoad) -> Registry:
        registry = Registry(self._servers, self._probes)
        try:
            registry.load({str(path): load})
        except CardError as error:
            if any(found.code == UNSET_VARIABLE for found in error.diagnostics):
                hint = "cards that a model reaches see no environment variables"
                raise CardError(error.message, hint=hint, diagnostics=error.diagnostics) from error
            raise
        return registry

    def _load(self, path: Path, environ: Mapping[str, str]) -> CardLoad:
        shown = self.shown(path)
        if not path.is_dir():
            return load_cards([shown], environ=environ, cwd=self.workspace)
        try:
            found = list_directory(str(path), shown)
        except OSError as error:
            reason = os_reason(error)
            raise ToolError(f"the directory `{shown}` cannot be read: {reason}") from None
        inside: list[str | Path | Candidate] = [
            one for one in found if self._roots.holds(Path(one.path))
        ]
        if not inside:
            raise ToolError(f"the directory `{shown}` holds no cards")
        return load_cards(inside, environ=environ, cwd=self.workspace)

    def _refused_files(self, cards: Sequence[Card]) -> tuple[Diagnostic, ...]:
        if self._options.trust_cards:
            return ()
        aliases, workspace = self._settings.model_aliases, self.workspace
        return tuple(
            [
                problem
                for card in cards
                for problem in file_problems(card, self._roots, workspace, aliases)
            ]
        )


class AllowedRoots:
    """The directories whose files may come before a model.

    Args:
        roots: The directories; their links are resolved once, here.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(root.resolve() for root in roots)

    def holds(self, path: Path) -> bool:
        """Whether a path leads to a place inside that is neither hidden nor configuration."""
        resolved = path.resolve()
        for root in self.roots:
            if resolved.is_relative_to(root):
                parts = resolved.relative_to(root).parts
                hidden = any(one.startswith(".") and one not in _OWN_FOLDERS for one in parts)
                return not hidden and not is_configuration(resolved.name)
        return False


def code_problems(card: Card) -> Iterator[Diagnostic]:
    """Find what of a card runs code or opens connections."""
    for field in _CODE:
        if getattr(card.config, field):
            message = f"`{card.config.name}` was not named by the user, and has `{field}`"
            yield _problem(card, REACHED_CODE, field, message)
    template = parse_template(card.config.instruction or "")
    if template.uses("url"):
        message = f"`{card.config.name}` was not named by the user, and fetches a web page"
        yield _problem(card, REACHED_CODE, "instruction", message)


def file_problems(
    card: Card, roots: AllowedRoots, workspace: Path, aliases: Mapping[str, str]
) -> Iterator[Diagnostic]:
    """Find the files a card names that it may not.

    Args:
        card: The card.
        roots: Where files may be.
        workspace: Where paths of a card without a file start.
        aliases: `model_aliases` of the configuration.
    """
    config = card.config
    directory = config.directory or workspace
    for field, name in _named_files(config, aliases):
        place = Path(name).expanduser() if name.startswith("~") else directory / name
        if not roots.holds(place):
            message = f"`{config.name}` names `{name}`, which it may not read"
            yield _problem(card, REACHED_FILE, field, message)


def _named_files(config: AgentConfig, aliases: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for field in FIELDS:
        if field.holds in {"path", "function"}:
            for name in _texts(getattr(config, field.name)):
                yield field.name, name.rpartition(":")[0] if field.holds == "function" else name
    for placeholder in parse_template(config.instruction or "").placeholders:
        if placeholder.name in {"file", "file_silent"}:
            yield "instruction", placeholder.argument
    if config.model_text is not None:
        yield from _files_of_model(config.model_text, aliases)


def _texts(value: object) -> Iterator[str]:
    """Yield the strings of a field, whatever its form."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[str, object]", value).values():
            yield from _texts(inner)
    elif isinstance(value, Sequence):
        for inner in cast("Sequence[object]", value):
            yield from _texts(inner)


def _files_of_model(model: str, aliases: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    from fast_agent.config.providers import split_models
    from fast_agent.models.spec import parse_model_spec

    for text in split_models(model):
        try:
            options = parse_model_spec(text, aliases).options
        except ModelError:  # the check of models reports it
            continue
        for name in (options.file, options.path):
            if name is not None:
                yield "model", name


def _problem(card: Card, rule: Rule, field: str, message: str) -> Diagnostic:
    hint = f"`fast-agent explain {rule.code}` says what to do"
    problem = Diagnostic(rule.code, message, severity=rule.severity, hint=hint)
    return card.placed(problem, card.span_of(field, key=field != "instruction"))
