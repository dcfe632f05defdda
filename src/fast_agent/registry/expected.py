"""Expected: what a run is about to load, found and given, which decisions are made about."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.cards.load_set import default_card
from fast_agent.config.home import GUIDE_FILE, user_home, usual_skill_folders
from fast_agent.trust.origin import end_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from fast_agent.cards.agent_config import FileAccess
    from fast_agent.cards.card import Card
    from fast_agent.config.layer import FileLayer
    from fast_agent.registry.card_root import CardRoot
    from fast_agent.trust.context import GivenOptions
    from fast_agent.trust.effect import Effect, Holder
    from fast_agent.trust.effects.survey import RootSurvey
    from fast_agent.trust.found_set import FoundSet
    from fast_agent.trust.gate import Gate


def shared_options(
    *, shell: bool = False, files: FileAccess | None = None, fetch: bool = False
) -> tuple[str, ...]:
    """Return the options that add tools to every agent, as approvals name them."""
    options = ("--shell" if shell else "", f"--files {files}" if files else "",
               "--fetch" if fetch else "")  # fmt: skip
    return tuple(filter(None, options))


class ExpectedLoad:
    """What a run is about to load, so that one question covers all of a root.

    Args:
        gate: Knows what is the user's own.
        workspace: The directory the program works in.
        user: Returns what the user gave, but for agents and options.

    Attributes:
        roots: The cards, by what they are known by.
        layers: The found configuration files, by their root.
        shared: Options that reach every agent, such as `--shell`.
        reaching: Options that reach the receiver, such as `--servers docs`.
        model: The model of every agent, over their cards; None leaves it to them.
    """

    def __init__(self, gate: Gate, workspace: Path, user: Callable[[], GivenOptions]) -> None:
        self._gate = gate
        self._workspace = workspace
        self._user = user
        self.roots: dict[str, CardRoot] = {}
        self.layers: dict[Path, list[FileLayer]] = {}
        self.shared: tuple[str, ...] = ()
        self.reaching: tuple[str, ...] = ()
        self.model: str | None = None
        self._guides: dict[Path, list[FileLayer]] = {}
        self._tests: dict[Path, list[FileLayer]] = {}
        self._records = False
        self._tools: frozenset[str] = frozenset()
        self._receiver: str | None = None
        self._servers: frozenset[str] = frozenset()
        self._described: dict[Path, tuple[RootSurvey, FoundSet]] = {}

    def add(
        self,
        roots: Mapping[str, CardRoot],
        servers: Iterable[str],
        *,
        tools: Iterable[str] = (),
        receiver: str | None = None,
        shared: Iterable[str] = (),
        reaching: Iterable[str] = (),
        model: str | None = None,
    ) -> None:
        """Note what a run is about to load, so that one question covers all of a root.

        Args:
            roots: The cards, by what they are known by.
            servers: MCP servers that are used whatever cards say.
            tools: Those of the roots whose agents become tools of the receiver.
            receiver: The agent that gets tools and servers; None is the default one.
            shared: Options that reach every agent, such as `--shell`.
            reaching: Options that reach the receiver, such as `--servers docs`.
            model: The model of every agent, over their cards.
        """
        self.roots.update(roots)
        self._servers |= frozenset(servers)
        self.reaching = tuple(dict.fromkeys((*self.reaching, *reaching)))
        self._tools |= frozenset(tools)
        self._receiver = receiver or self._receiver
        self.shared = tuple(dict.fromkeys((*self.shared, *shared)))
        self.model = model or self.model

    def add_files(
        self,
        root: Path,
        *,
        guides: Iterable[FileLayer] = (),
        tests: Iterable[FileLayer] = (),
        records: bool = False,
    ) -> None:
        """Note guides and test files of a set that a run is about to read.

        Args:
            root: The root of the set.
            guides: Files of the name `.guide.yaml`.
            tests: Test files.
            records: Whether recordings are written.
        """
        real = Path(os.path.realpath(root))
        if self._gate.owns(real) or self._gate.options.without_found:
            return
        for known, files in ((self._guides, tuple(guides)), (self._tests, tuple(tests))):
            if files:
                known.setdefault(real, []).extend(files)
        self._records = self._records or records

    def paths(self) -> tuple[Path, ...]:
        """Return the roots of all sets that take part."""
        roots = [root.grant.root for root in self.roots.values() if root.grant is not None]
        more = self.skill_roots()
        return tuple(dict.fromkeys((*self.layers, *roots, *more, *self._guides, *self._tests)))

    def skill_roots(self) -> tuple[Path, ...]:
        """Return the roots of the found skills of the project, without those that are given."""
        if self._gate.options.without_found:
            return ()
        roots = dict.fromkeys(end_of(one.parents[1]) for one in self.skill_folders())
        return tuple(root for root in roots if not self._gate.owns(root))

    def skill_folders(self) -> tuple[Path, ...]:
        """Return the directories of found skills that exist in the project."""
        home = self._gate.own_home
        return tuple(
            one
            for one in self._usual_folders()
            if not (home and one.is_relative_to(home)) and not self._owns(one)
        )

    def _usual_folders(self) -> Iterator[Path]:
        home = user_home(self._gate.environ)
        folders = usual_skill_folders(self._workspace, home, with_own=False)
        return filter(os.path.lexists, folders)

    def _owns(self, folder: Path) -> bool:
        """Return whether a directory of skills in a project is the user's own.

        A link of the project that leads to one of the user's own directories is not.
        """
        place, real = folder.parents[1], end_of(folder)
        return real == end_of(place) / folder.relative_to(place) and self._gate.owns(real)

    def _own_folders(self) -> Iterator[Path]:
        """Yield the directories of the user that may lie inside a root."""
        if self._gate.own_home is not None:
            yield self._gate.own_home
        yield from filter(self._owns, self._usual_folders())

    def needs(self, effect: Effect) -> bool:
        """Return whether something in the run needs an effect."""
        if effect.holder.kind != "server":
            return True
        name = effect.holder.name
        return name in self._servers or any(name in card.config.servers for card in self.cards())

    def cards(self) -> Iterator[Card]:
        """Yield all cards."""
        return chain.from_iterable(root.load.cards for root in self.roots.values())

    def cards_of(self, path: Path) -> Iterator[Card]:
        """Yield the cards of a set that count, by the root of it."""
        given = {card.config.source for card in self.given_cards()}
        taken = self.given_names()
        for root in self.roots.values():
            if root.grant is None or root.grant.root != path:
                continue
            if not given and not taken:
                yield from root.load.cards
                continue
            for card in root.load.cards:
                source = card.config.source
                if card.config.name not in taken and (source is None or source not in given):
                    yield card

    def given_names(self) -> frozenset[str]:
        """Return the names of the agents a user gave."""
        return frozenset((*(one.config.name for one in self.given_cards()), *self._user().agents))

    def given_cards(self) -> Iterator[Card]:
        """Yield the cards a user gave."""
        for root in self.roots.values():
            if root.grant is None:
                yield from root.load.cards

    def describe(self, root: Path, *, keep: bool = False) -> FoundSet:
        """Work out what the set of a root would do, from the texts that were read.

        Args:
            root: The root.
            keep: Whether the next call may take what this one finds, where nothing else is expected
                by then: the cards are judged right after the configuration next to them. What
                is run or read is checked again when it is.
        """
        from fast_agent.trust.effects.survey import survey

        parts = self.surveyed(root)
        known = self._described.pop(root, None)
        found = known[1] if known is not None and known[0] == parts else survey(parts)
        if keep:
            self._described[root] = parts, found
        return found

    def surveyed(self, root: Path) -> RootSurvey:
        """Gather what the set of a root brings."""
        tools = {
            card.config.name
            for key in self._tools
            if key in self.roots
            for card in self.roots[key].load.cards
        }
        from fast_agent.trust.effects.survey import RootSurvey

        return RootSurvey(
            root=root,
            given=self.given(),
            cards=tuple(self.cards_of(root)),
            tool_cards=frozenset(tools),
            layers=tuple(self.layers.get(root, ())),
            guides=(*self._guides.get(root, ()), *_guides_of(self.layers.get(root, ()))),
            tests=tuple(self._tests.get(root, ())),
            records=self._records,
            own_folders=tuple(self._own_folders()),
        )

    def given(self) -> GivenOptions:
        """Return what the user gave, with the agents and the options of this run."""
        given = self._user()
        cards = {card.config.name: card.config for card in self.given_cards()}
        options = self.reaching
        receiver = self._receiver
        if receiver is None and (options or self._tools):
            receiver = self._usual_receiver(given)
        return replace(
            given,
            agents={**cards, **given.agents},
            options={} if receiver is None or not options else {receiver: options},
            shared=self.shared,
            receiver=receiver,
        )

    def _usual_receiver(self, given: GivenOptions) -> str | None:
        """Return the agent that tools and servers go to by default."""
        loads = [root.load for key, root in self.roots.items() if key not in self._tools]
        card = default_card([card for load in loads for card in load.cards])
        if card is not None:
            return card.config.name
        return next((name for name, one in given.agents.items() if one.default), None)

    def examine(self, root: Path, holder: Holder) -> Iterable[Effect]:
        """Work out the effects of a holder as its files are now."""
        from fast_agent.trust.effects.survey import effects_of

        return effects_of(self.surveyed(root), holder)


def _guides_of(layers: Iterable[FileLayer]) -> Iterator[FileLayer]:
    """Yield the guide that lies in a docroot which a configuration names."""
    from fast_agent.config.layer import read_layer
    from fast_agent.text.json_value import as_object

    for layer in layers:
        guide = as_object(as_object(layer.document.value).get("guide"))
        docroot = guide.get("docroot")
        if isinstance(docroot, str) and not guide.get("categories"):
            file = layer.directory / docroot / GUIDE_FILE
            found = read_layer(file, str(file), []) if file.is_file() else None
            if found is not None:
                yield found
