"""Context: what the effects of a found set are worked out against."""

from __future__ import annotations

import os
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias

from fast_agent.config.providers import split_models
from fast_agent.config.settings import NO_SETTINGS
from fast_agent.errors import ModelError
from fast_agent.text.environment import with_defaults
from fast_agent.text.frozen import frozen
from fast_agent.trust.digest import code_digests, file_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from fast_agent.cards.agent_config import AgentConfig, RequestParams
    from fast_agent.cards.card import Card
    from fast_agent.config.settings import Settings
    from fast_agent.trust.origin import Root


def _none() -> Mapping[str, str]:
    return MappingProxyType({})


def _no_agents() -> Mapping[str, AgentConfig]:
    return MappingProxyType({})


def _no_options() -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({})


def _no_cards() -> Mapping[str, Card]:
    return MappingProxyType({})


class ModelOptions(Protocol):
    """The options of a model spec that name files."""

    @property
    def path(self) -> str | None:
        """A model file that native code reads."""
        ...

    @property
    def file(self) -> str | None:
        """A script or a history."""
        ...


class ParsedModel(Protocol):
    """A model spec, taken apart; `fast_agent.models.spec.ModelSpec` is one."""

    @property
    def provider(self) -> str:
        """A provider of the table, an offline model, or `local`."""
        ...

    @property
    def endpoint(self) -> str | None:
        """A name of `endpoints` of the configuration, or None."""
        ...

    @property
    def options(self) -> ModelOptions:
        """What the model is made with."""
        ...

    @property
    def params(self) -> RequestParams:
        """Request parameters from its query."""
        ...


ParseModel: TypeAlias = "Callable[[str, Mapping[str, str], Collection[str]], ParsedModel]"
"""Takes a model spec apart, given the aliases and endpoints of the configuration; raises
`ModelError`."""


@frozen(kw_only=True)
class GivenOptions:
    """What the user gave this run: what a found set may reach, and is compared with.

    Args:
        parse_model: Takes model specs apart.
        environ: The environment. Of its values only `PATH` and the places of homes are used; of the
            others nothing but whether they are set.
        cwd: The working directory, absolute.
        settings: The configuration without what was found.
        agents: The given agents by name, those built in too.
        options: Options that reach single agents, such as `--servers docs`, by agent.
        shared: Options that reach every agent, such as `--shell`.
        editor_servers: The names of servers that an editor provides to the agents of a session.
        default_model: The model of cards that name none.
        receiver: The agent that tool cards are offered to; None where there is none.
    """

    parse_model: ParseModel
    environ: Mapping[str, str] = field(default_factory=_none, repr=False)
    cwd: Path = Path()
    settings: Settings = NO_SETTINGS
    agents: Mapping[str, AgentConfig] = field(default_factory=_no_agents)
    options: Mapping[str, tuple[str, ...]] = field(default_factory=_no_options)
    shared: tuple[str, ...] = ()
    editor_servers: tuple[str, ...] = ()
    receiver: str | None = None
    default_model: str = "local"


@frozen(kw_only=True)
class Context:
    """The context the parts of one set are surveyed with.

    Args:
        root: The root of the set.
        given: What the user gave.
        cards: The cards of the set by name.
        servers: The names of the servers of its configuration.
        aliases: The model aliases of its configuration, as written.
        base_urls: The addresses of providers in its configuration, as written; those of its
            endpoints are at `endpoints.NAME`.
        default_model: The model its configuration names for cards without one, as written.
        tool_cards: Those of the cards that are offered to the receiver as tools.
        skill_folders: The directories of skills its configuration names, absolute.
        own_folders: Directories of the user that may lie inside the root, such as the home.
        parsed: The model specs taken apart so far.
        talking: Whether each of these only talks, so far.
        folders: The digests of directories of Python files found so far.
        parents: The directories of cards, by their path.
        digests: The digests of other files found so far.
    """

    root: Root
    given: GivenOptions
    cards: Mapping[str, Card] = field(default_factory=_no_cards)
    servers: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = field(default_factory=_none)
    base_urls: Mapping[str, str] = field(default_factory=_none)
    default_model: str | None = None
    tool_cards: frozenset[str] = frozenset()
    skill_folders: tuple[Path, ...] = ()
    own_folders: tuple[Path, ...] = ()
    parsed: dict[str, ParsedModel | None] = field(
        default_factory=dict[str, "ParsedModel | None"], repr=False, compare=False
    )
    talking: dict[str, bool] = field(default_factory=dict[str, bool], repr=False, compare=False)
    parents: dict[str, Path] = field(default_factory=dict[str, Path], repr=False, compare=False)
    folders: dict[Path, Mapping[str, str] | None] = field(
        default_factory=dict[Path, "Mapping[str, str] | None"], repr=False, compare=False
    )
    digests: dict[Path, str | None] = field(
        default_factory=dict[Path, "str | None"], repr=False, compare=False
    )

    def models(self, text: str) -> tuple[ParsedModel | None, ...]:
        """Take a model apart and those that answer where it fails, each as `model` does."""
        return tuple([self.model(one) for one in split_models(text)])

    def model(self, text: str) -> ParsedModel | None:
        """Take a model spec apart, as it is where no variable with a default is set.

        Returns:
            The spec; None where it is not one, or cannot be read before its variables have values.
        """
        if text not in self.parsed:
            aliases = {**self.given.settings.model_aliases, **self.aliases}
            plain = {name: with_defaults(spec) for name, spec in aliases.items()}
            try:
                endpoints = [*self.given.settings.endpoints, *self.endpoints]
                self.parsed[text] = self.given.parse_model(with_defaults(text), plain, endpoints)
            except ModelError:
                self.parsed[text] = None
        return self.parsed[text]

    def folder(self, file: Path) -> Path:
        """Return the directory of a card: one object for all the cards in it."""
        text = str(file).rpartition(os.sep)[0]
        if text not in self.parents:
            self.parents[text] = file.parent
        return self.parents[text]

    @property
    def endpoints(self) -> frozenset[str]:
        """The names of the endpoints of its configuration."""
        mark = "endpoints."
        return frozenset(
            name.removeprefix(mark) for name in self.base_urls if name.startswith(mark)
        )

    def code(self, folder: Path) -> Mapping[str, str] | None:
        """Return the digests of the Python files of a directory, computed once."""
        if folder not in self.folders:
            self.folders[folder] = code_digests(folder, self.root)
        return self.folders[folder]

    def digest(self, file: Path) -> str | None:
        """Return the digest of a file, computed once; None where it is too large."""
        if file not in self.digests:
            self.digests[file] = file_digest(file)
        return self.digests[file]
