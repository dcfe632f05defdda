"""Edition: one set of cards and what is made from it; a turn ends with the one it began with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fast_agent.cards.fields import FIELDS_OF
from fast_agent.cards.load_set import LoadSet
from fast_agent.errors import RunError
from fast_agent.text.suggestion import closest

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Sequence

    from fast_agent.agents.agent import Agent
    from fast_agent.cards.card import Card
    from fast_agent.messages.message import Message
    from fast_agent.runtime.blueprint import Blueprint, Builder
    from fast_agent.runtime.context import RuntimeContext


class GenerationCards(Mapping[str, "Card"]):
    """The cards of an edition, also after it went over to a later one.

    Blueprints live as long as their agents do not change; with the cards themselves, each would
    hold all those of the time it was made.

    Args:
        edition: The edition.
    """

    __slots__ = ("_edition",)

    def __init__(self, edition: CardGeneration) -> None:
        self._edition = edition

    def __getitem__(self, name: str) -> Card:
        return self._edition.load_set.cards[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._edition.load_set.cards)

    def __len__(self) -> int:
        return len(self._edition.load_set.cards)


class CardGeneration:
    """The cards at one time, and their blueprints.

    Blueprints keep the edition they were made in, so that an agent whose turn is under way finds
    the children its card spoke of. Those of agents that did not change pass on to later editions.

    Args:
        load_set: The cards; they were checked.
        context: What blueprints are made with; its cards and its `clone` become the edition's.
        builders: How cards are built, by type.
        blueprints: Those made before that hold for these cards too.
    """

    __slots__ = ("__weakref__", "_blueprints", "_builders", "context", "load_set")

    def __init__(
        self,
        load_set: LoadSet,
        context: RuntimeContext,
        builders: Mapping[str, Builder],
        blueprints: Mapping[str, Blueprint],
    ) -> None:
        self.load_set = load_set
        self._builders = builders
        self._blueprints = dict(blueprints)
        cards = GenerationCards(self)
        self.context = replace(context, cards=cards, clone=self.clone)

    def card(self, name: str) -> Card:
        """Return a card.

        Raises:
            RunError: There is none of that name.
        """
        card = self.load_set.cards.get(name)
        if card is None:
            near = closest(name, self.load_set.cards)
            hint = f"did you mean `{near}`?" if near else _those(self.load_set.cards)
            raise RunError(f"no agent is named `{name}`", hint=hint)
        return card

    def blueprint(self, name: str) -> Blueprint:
        """Return the blueprint of a card, made now if it was not needed before.

        Raises:
            RunError: There is no such card, or there is no builder for its type.
            FastAgentError: The card cannot be run.
        """
        blueprint = self._blueprints.get(name)
        if blueprint is None:
            card = self.card(name)
            builder = self._builders.get(card.config.type)
            if builder is None:
                known = ", ".join(f"`{kind}`" for kind in self._builders)
                raise RunError(
                    f"agent `{name}` is of type `{card.config.type}`;"
                    f" only cards of type {known} can be built here"
                )
            blueprint = self._blueprints[name] = builder(card, self.context)
        return blueprint

    def clone(self, name: str, messages: Iterable[Message] | None = None) -> Agent:
        """Make an instance of a card for one caller; see `Runtime.clone`."""
        return self.blueprint(name).instance(messages)

    def after(
        self, load_set: LoadSet, changed: Collection[str], context: RuntimeContext
    ) -> CardGeneration:
        """Make the edition that follows.

        What was needed before is recreated at once, so that a card that cannot be run is found
        before anything changes.

        Args:
            load_set: The cards there are now.
            changed: The agents that differ now.
            context: What blueprints are made with from now on.

        Raises:
            FastAgentError: A card cannot be run.
        """
        kept = {
            name: blueprint
            for name, blueprint in self._blueprints.items()
            if name in load_set.cards and name not in changed
        }
        edition = CardGeneration(load_set, context, self._builders, kept)
        for name in self._blueprints:
            if name in load_set.cards and name in changed:
                edition.blueprint(name)
        return edition

    def upgrade_to(self, newest: CardGeneration) -> None:
        """Go over to a later edition, once no turn needs what this one alone has."""
        self.load_set = newest.load_set
        self.context = newest.context
        self._blueprints = newest._blueprints


def _those(names: Collection[str], most: int = 8) -> str | None:
    """List the agents there are, the first of them if they are many."""
    shown = ", ".join(f"`{name}`" for name in tuple(names)[:most])
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"there are {shown}{more}" if names else None


def with_granted(load_set: LoadSet, servers: Sequence[str], barred: Container[str] = ()) -> LoadSet:
    """Add servers to every agent a user can talk to, whose type uses servers.

    Args:
        load_set: The cards.
        servers: The names of the servers.
        barred: The names of agents that get none.

    Returns:
        The cards with them; the same set where there are none.
    """
    if not servers:
        return load_set
    cards = load_set.cards.items()
    return LoadSet.of([one if name in barred else _granted(one, servers) for name, one in cards])


def _granted(card: Card, servers: Sequence[str]) -> Card:
    config = card.config
    if config.tool_only or "servers" not in FIELDS_OF[config.type]:
        return card
    names = tuple(dict.fromkeys((*config.servers, *servers)))
    return replace(card, config=replace(config, servers=names))
