"""Admission: lets the cards and settings of found sets into the program that may act."""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from fast_agent.cards.card import CardLoad
from fast_agent.cards.load_set import default_card
from fast_agent.cards.placeholder import PROJECT_FILES
from fast_agent.cards.set_check import referred_names
from fast_agent.config.layer import without
from fast_agent.config.load import FoundPart
from fast_agent.config.providers import PROVIDERS, split_models
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import CHANGED_CODE, REACHED_CODE, UNTRUSTED_CODE
from fast_agent.errors import CardError
from fast_agent.registry.decisions import Decisions, OmittedPart, acts, owner_problem
from fast_agent.registry.expected import ExpectedLoad
from fast_agent.text.environment import VariableNames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card, FileLoad
    from fast_agent.config.layer import FileLayer
    from fast_agent.config.settings import Settings
    from fast_agent.registry.card_root import CardRoot
    from fast_agent.text.json_value import Keys
    from fast_agent.text.source import Signature
    from fast_agent.trust.context import GivenOptions
    from fast_agent.trust.effect import Effect, Holder
    from fast_agent.trust.gate import Gate
    from fast_agent.trust.grant import Grant

    ProvidersOf = Callable[[AgentConfig], frozenset[str]]
    from fast_agent.text.json_value import JsonObject
    from fast_agent.trust.effects.skill_effects import FoundSkills

log = logging.getLogger(__name__)


class Admission:
    """Lets in what of found sets may act, before anything of them does.

    Args:
        gate: Decides about one set.
        environ: The environment.
        providers_of: Returns the providers of the models an agent may ask; asked once the
            configuration is known.
        given: Returns what the user gave, but for agents and options.
    """

    def __init__(
        self,
        gate: Gate,
        environ: Mapping[str, str],
        workspace: Path,
        providers_of: ProvidersOf,
        given: Callable[[], GivenOptions],
    ) -> None:
        self._gate = gate
        self._environ = environ
        self._workspace = workspace
        self._providers_of = providers_of
        self._user = given
        self.expected = ExpectedLoad(gate, workspace, given)
        """What the run is about to load."""
        self.decisions = Decisions(gate, workspace, self.expected, given)
        """What was decided about it."""
        self.hides_home = False
        """Whether a found configuration is read instead of the one in the home."""
        self._admitted_at: Signature | None = None
        self._taken_keys: dict[str, tuple[Keys, ...]] = {}
        self._files: dict[str, tuple[FileLoad, Grant, FileLoad]] = {}
        self._default: str | None = None
        self.waiting: dict[str, AgentConfig] = {}
        """Those of the agents left out that a user can talk to once they are approved."""
        self.skills = SkillAdmission(self.decisions)
        """Decides about the skills of directories that no user named."""

    @property
    def left_out(self) -> Mapping[str, OmittedPart]:
        """What is left out, by the name of its agent."""
        return self.decisions.agents

    def moved(self) -> bool:
        """Return whether it may decide otherwise than when it was last asked."""
        return bool(self.decisions.sets) and self._gate.stand != self._admitted_at

    def decide_layers(self, layers: Sequence[FileLayer]) -> Mapping[str, FoundPart]:
        """Decide about found configuration files, with the cards next to them."""
        strange: dict[Path, list[FileLayer]] = {}
        given: list[FileLayer] = []
        for layer in layers:
            if layer.root is not None and not self._gate.owns(layer.root):
                strange.setdefault(layer.root, []).append(layer)
            else:
                given.append(layer)
        strange = {root: self._with_free_names(own, given) for root, own in strange.items()}
        options = self._gate.options
        self.hides_home = bool(strange)
        self.expected.layers = {} if options.without_found else strange
        if not options.passive and not options.without_found:
            self.decisions.decide_now(may_ask=self.decisions.may_ask, keep=True)
        return {
            layer.path: self._part(layer, root) for root, own in strange.items() for layer in own
        }

    def bounded(self, settings: Settings) -> Settings:
        """Return a configuration in which no found file undoes a bound of the user's own."""
        if not self.hides_home or self._gate.options.passive:
            return settings
        from fast_agent.trust.effects.easing import with_bounds_of

        eased = {
            effect.subject.partition(":")[0]
            for path in self.expected.layers
            for effect in self.decisions.sets[path].effects
            if (effect.kind, effect.holder.kind) == ("ease", "setting")
            and self.decisions.grants[path].allows(effect)
        }
        return with_bounds_of(self._user().settings, settings, eased)

    def _with_free_names(
        self, strange: Sequence[FileLayer], given: Sequence[FileLayer]
    ) -> list[FileLayer]:
        """Leave out of found files what has the name of something given or built in."""
        from fast_agent.trust.taken_names import TakenNames

        options = (one for one in self.expected.reaching if not one.startswith("--servers "))
        servers = frozenset(option.rpartition(" ")[2] for option in options)
        taken = TakenNames(self._user().parse_model, tuple(given), servers)
        free: list[FileLayer] = []
        for layer in strange:
            lines = taken.settings(layer)
            self._taken_keys[layer.path] = tuple(lines)
            self.decisions.taken.update(dict.fromkeys(lines.values()))
            free.append(without(layer, lines))
        return free

    def admit(self, roots: Mapping[str, CardRoot], *, again: bool = False) -> dict[str, CardLoad]:
        """Return the loads that roots contribute to the registry.

        Args:
            roots: The roots, by what they are known by.
            again: Whether they were loaded before: the last good set stays until the new one is
                approved.

        Raises:
            CardError: By `again`, something new in them is not approved.
        """
        self.expected.roots.update(roots)
        if self._gate.options.passive or not self._has_found:
            return {key: root.load for key, root in roots.items()}
        self._admitted_at = self._gate.stand
        before = set(self.decisions.agents)
        self.decisions.decide_now(may_ask=self.decisions.may_ask and not again)
        loads = {key: self._granted(root) for key, root in self.expected.roots.items()}
        self._default = self._choose_default(loads)
        left_out = self._find_left_out(loads)
        if again:
            _refuse_new({name: one for name, one in left_out.items() if name not in before}, loads)
        self.decisions.agents = left_out
        configs = (card.config for load in loads.values() for card in load.cards)
        self.waiting = {
            one.name: one for one in configs if one.name in left_out and not one.tool_only
        }
        return {key: self._filtered(loads[key], self.expected.roots[key]) for key in roots}

    def reached(self, path: Path, load: CardLoad) -> CardLoad:
        """Return cards that a model named, as they may act: they count as found, also here.

        Args:
            path: Where they are, absolute and without links.
            load: The cards.

        Raises:
            CardError: They would do something that is not approved; contains every problem.
        """
        from fast_agent.trust.effects.easing import without_easing
        from fast_agent.trust.effects.survey import RootSurvey, survey
        from fast_agent.trust.origin import root_of

        root, given = root_of(path), {card.config.source for card in self.expected.given_cards()}
        cards = tuple([card for card in load.cards if card.config.source not in given])
        if not cards or self._gate.owns(root):
            return load
        layers = tuple(self.expected.layers.get(root, ()))
        user = replace(self.expected.given(), shared=())  # `--shell` reaches no card below a turn
        found = survey(RootSurvey(root=root, given=user, cards=cards, layers=layers))
        grant = self._gate.grant(found)
        closed: dict[str, list[Effect]] = {card.config.name: [] for card in cards}
        eased: dict[str, list[Effect]] = {card.config.name: [] for card in cards}
        for effect in found.effects:
            if effect.holder.kind == "card" and not grant.allows(effect):
                (eased if effect.kind == "ease" else closed)[effect.holder.name].append(effect)
        strange = found.effects if self._gate.is_strange(found) else ()
        problems = [
            Diagnostic(
                REACHED_CODE.code,
                f"`{card.config.name}` was not named by the user: {acts(effects)}",
                card.path,
                hint=_REACHED_HINT,
            )
            for card in cards
            if (effects := closed[card.config.name] or strange)
        ]
        if problems:
            raise CardError(problems[0].message, hint=problems[0].hint, diagnostics=problems)

        def admitted(card: Card) -> Card:
            if card not in cards:
                return card
            config = without_easing(card.config, eased[card.config.name])
            return replace(card, config=replace(config, grant=grant))

        files = [replace(file, cards=tuple(map(admitted, file.cards))) for file in load.files]
        return CardLoad.of(files)

    def left_out_in(self, path: Path) -> tuple[str, ...]:
        """Name the agents of a file or directory that are left out."""
        real = path.resolve()
        return tuple(
            card.config.name
            for card in self.expected.cards()
            if card.config.name in self.decisions.agents
            and card.config.source is not None
            and card.config.source.resolve().is_relative_to(real)
        )

    def left_out_from(self, address: str) -> tuple[str, ...]:
        """Name the agents of a card from an address that are left out."""
        root = self.expected.roots.get(address)
        cards = () if root is None or not root.remote else root.load.cards
        return tuple(
            card.config.name for card in cards if card.config.name in self.decisions.agents
        )

    def require(self, agent: str | None) -> None:
        """Check that the agent a user asked for may act.

        Args:
            agent: Its name; None is the default one.

        Raises:
            TrustError: It is left out; nothing answers in its place.
        """
        name = self._default if agent is None else agent
        one = None if name is None else self.decisions.agents.get(name)
        if one is not None:
            raise self.decisions.refused(one, name)

    def require_some(self, names: Iterable[str]) -> None:
        """Check that anything is left to be served.

        Raises:
            TrustError: Everything is left out.
        """
        if self.decisions.agents and not any(True for _ in names):
            raise self.decisions.refused(next(iter(self.decisions.agents.values())), None)

    def check_use(self, config: AgentConfig) -> None:
        """Check that an agent made in Python uses nothing that is left out.

        Raises:
            TrustError: It does.
        """
        used = self._unusable(config)
        if used is not None:
            raise self.decisions.refused(used, config.name)

    def check_model(self, text: str) -> None:
        """Check that a model spec goes through no setting that is left out.

        Args:
            text: The value of `--model`: a spec, or several with commas between.

        Raises:
            TrustError: It does; nothing answers in its place.
        """
        closed = self._closed_model(text)
        if closed is not None:
            raise self.decisions.refused(closed, None)

    def reads_project(self, config: AgentConfig, *, any_tools: bool) -> bool:
        """Return whether an agent may have the instructions of the project it works in.

        They are found text: harmless to an agent without tools, part of what was decided for a card
        of the project, and for any other agent as good as the project is its user's own.

        Args:
            config: The agent.
            any_tools: Whether options such as `--shell` give every agent tools.
        """
        acts = any_tools or config.type == "smart" or any(
            getattr(config, name)
            for name in (
                "servers", "mcp_connect", "function_tools", "shell", "files", "fetch", "agents",
            )
        )  # fmt: skip
        if config.grant is not None or not acts or self._gate.owns(self._workspace):
            return True
        there = [name for name in PROJECT_FILES if (self._workspace / name).exists()]
        if there:
            self.decisions.notify(
                f"`{there[0]}` is left out of agent `{config.name}`, which has tools:"
                " `fast-agent trust --own` counts this directory as yours"
            )
        return False

    def lacks(self, receiver: str | None) -> bool:
        """Return whether the agent that is to get tools or servers is left out.

        Args:
            receiver: Its name; None is the default agent.
        """
        return (receiver or self._default) in self.decisions.agents

    @property
    def waiting_default(self) -> str | None:
        """The default agent where it is left out; nothing else answers in its place."""
        return self._default if self._default in self.waiting else None

    @property
    def _has_found(self) -> bool:
        return bool(self.expected.paths())

    def _part(self, layer: FileLayer, root: Path) -> FoundPart:
        from fast_agent.trust.grant import Grant

        options = self._gate.options
        value = layer.document.value
        if options.without_found:
            keys = tuple(value) if isinstance(value, dict) else ()
            return FoundPart(Grant(root), {}, tuple((key,) for key in keys))
        if options.passive:
            taken = self._taken_keys.get(layer.path, ())
            return FoundPart(Grant(root), VariableNames(self._environ), taken)
        from fast_agent.trust.effects.easing import dropped

        left_out = [keys for one in self.decisions.closed_of(root) for keys in dropped(one, value)]
        left_out += self._taken_keys.get(layer.path, ())
        place = (layer.directory / PurePath(layer.source.path).name).resolve()
        for effects in self.decisions.eased_of(root).values():
            left_out += [one.keys for one in effects if root / one.path == place]
        if self._gate.is_strange(self.decisions.sets[root]) and isinstance(value, dict):
            left_out = [(key,) for key in value]
        return FoundPart(self.decisions.grants[root], self._environ, tuple(filter(None, left_out)))

    def _granted(self, root: CardRoot) -> CardLoad:
        if root.grant is None:
            return root.load
        place = root.grant.root
        grant = self.decisions.grants[place]
        closed, eased = self.decisions.closed_of(place), self.decisions.eased_of(place)
        files = [self._file(file, grant, root, closed, eased) for file in root.load.files]
        return CardLoad.of(files)

    def _file(
        self,
        file: FileLoad,
        grant: Grant,
        root: CardRoot,
        closed: Mapping[Holder, object],
        eased: Mapping[Holder, tuple[Effect, ...]],
    ) -> FileLoad:
        """Attach grants to the cards of a file, and variable values if they may act."""
        if not file.cards:
            return file
        path = root.path if file.candidate is None else file.candidate.path
        known = self._files.get(path)
        if known is not None and known[0] is file and known[1] == grant:
            return known[2]
        from fast_agent.trust.effect import Holder

        opened = file
        if not closed or not any(Holder("card", one.config.name) in closed for one in file.cards):
            from fast_agent.cards.load import with_variables

            opened = with_variables(file, self._environ, multi_card=root.multi_card)
        cards: list[Card] = []
        for card in opened.cards:
            config = card.config.with_grant(grant)
            if config.function_tools:
                from fast_agent.trust.taken_names import taken_tools, with_free_tools

                self.decisions.taken.update(dict.fromkeys(taken_tools(card)))
                config = with_free_tools(config)
            bounds = eased.get(Holder("card", config.name)) if eased else None
            if bounds:
                from fast_agent.trust.effects.easing import without_easing

                config = without_easing(config, bounds)
            cards.append(card.with_config(config))
        admitted = opened.with_cards(cards)
        self._files[path] = (file, grant, admitted)
        return admitted

    def _find_left_out(self, loads: Mapping[str, CardLoad]) -> dict[str, OmittedPart]:
        """Find the cards that may not act, and all that refer to them."""
        left_out: dict[str, OmittedPart] = {}
        given = self.expected.given_names()
        for key, load in loads.items():
            grant = self.expected.roots[key].grant
            if grant is None:
                continue
            for card in self._closed_cards(load, grant.root):
                own = None if card.config.name in given else self._own_reason(card, grant)
                if own is not None:
                    left_out[card.config.name] = own
        cards = [card for load in loads.values() for card in load.cards]
        waiting = bool(left_out or self.decisions.servers or self.decisions.settings)
        while waiting:
            waiting = False
            for card in cards:
                config = card.config
                if config.name in left_out or (config.grant is not None and config.name in given):
                    continue
                used = self._unusable(config) or _left_out_of(config, left_out)
                if used is not None:
                    left_out[config.name] = replace(
                        used, name=f"`{config.name}`", reason=f"it uses {used.name}"
                    )
                    waiting = True
        return left_out

    def _closed_cards(self, load: CardLoad, root: Path) -> Iterable[Card]:
        """Return the cards of a set of which something is not allowed."""
        if self._gate.is_strange(self.decisions.sets[root]):
            return load.cards
        closed = {one.name for one in self.decisions.closed_of(root) if one.kind == "card"}
        return [one for one in load.cards if one.config.name in closed] if closed else ()

    def _own_reason(self, card: Card, grant: object) -> OmittedPart | None:
        config = card.config
        from fast_agent.trust.effect import Holder
        from fast_agent.trust.grant import Grant

        if not isinstance(grant, Grant):
            return None
        found = self.decisions.sets[grant.root]
        if self._gate.is_strange(found):
            return OmittedPart(f"`{config.name}`", owner_problem(found), found, found.effects)
        effects = self.decisions.closed_of(grant.root).get(Holder("card", config.name))
        return (
            None
            if effects is None
            else OmittedPart(f"`{config.name}`", acts(effects), found, effects)
        )

    def _unusable(self, config: AgentConfig) -> OmittedPart | None:
        """Return a part of a configuration that an agent uses and that is left out."""
        for name in config.servers:
            if name in self.decisions.servers:
                return self.decisions.servers[name]
        return self._unusable_setting(config) if self.decisions.settings else None

    def _unusable_setting(self, config: AgentConfig) -> OmittedPart | None:
        """Return a setting that an agent would use and that is left out."""
        from fast_agent.cards.fields import FIELDS_OF

        settings = self.decisions.settings
        has_shell = config.shell or "--shell" in self.expected.shared
        if has_shell and "shell" in settings:
            return settings["shell"]
        if "model" not in FIELDS_OF[config.type]:
            return None
        text = self.expected.model or config.model_text
        if text is None and "default_model" in settings:
            return settings["default_model"]
        closed = self._closed_model(text or "")
        if closed is not None:
            return closed
        providers = self._providers_of(config)
        asks_one = not providers.isdisjoint(PROVIDERS)
        for path, one in settings.items():
            section = path.partition(".")[0]
            if section in providers or (asks_one and section == "request_params"):
                return one
        return None

    def _closed_model(self, text: str) -> OmittedPart | None:
        """Return the aliases or the endpoint that a model spec needs and that are left out."""
        settings = self.decisions.settings
        if "model_aliases" in settings:
            from fast_agent.trust.effects.config_effects import names_found_alias

            layers = tuple(chain.from_iterable(self.expected.layers.values()))
            if names_found_alias(text, layers, self._user()):
                return settings["model_aliases"]
        for one in split_models(text):
            closed = settings.get(f"endpoints.{one.partition('.')[0].partition('/')[0]}")
            if closed is not None:
                return closed
        return None

    def _filtered(self, load: CardLoad, root: CardRoot) -> CardLoad:
        given = self.expected.given_names()
        strange = root.grant is not None
        if not self.decisions.agents and not (strange and given):
            return load
        files: list[FileLoad] = []
        for file in load.files:
            kept = [
                card
                for card in file.cards
                if card.config.name not in self.decisions.agents
                and not (strange and card.config.name in given)
            ]
            if given and strange:
                # What was found does not become the agent a user talks to.
                kept = [_not_default(card) for card in kept]
            if strange:
                self._note_taken(file, given)
            gone = {card.config.name for card in file.cards} - {one.config.name for one in kept}
            if gone:
                notes = [one for one in file.diagnostics if one.severity != "error"]
                file = replace(file, cards=tuple(kept), diagnostics=tuple(notes))  # noqa: PLW2901
            elif kept != list(file.cards):
                file = replace(file, cards=tuple(kept))  # noqa: PLW2901
            files.append(file)
        return CardLoad.of(files)

    def _note_taken(self, file: FileLoad, given: frozenset[str]) -> None:
        """Note the cards of a found file whose names are taken."""
        from fast_agent.trust.taken_names import taken_line

        for card in file.cards:
            if card.config.name in given:
                self.decisions.taken[taken_line("agent", card.config.name, card.path)] = None

    def _choose_default(self, loads: Mapping[str, CardLoad]) -> str | None:
        given = [
            card for key, load in loads.items() if self.expected.roots[key].grant is None
            for card in load.cards
        ]  # fmt: skip
        card = default_card(given or [card for load in loads.values() for card in load.cards])
        return None if card is None else card.config.name


def _not_default(card: Card) -> Card:
    if not card.config.default:
        return card
    return replace(card, config=replace(card.config, default=False))


def _left_out_of(config: AgentConfig, left_out: Mapping[str, OmittedPart]) -> OmittedPart | None:
    return next((left_out[name] for name in referred_names(config) if name in left_out), None)


_REACHED_HINT: Final = (
    "the user allows it: by `--card`, `fast-agent trust`, or `fast-agent trust --own` for their "
    "own directory"
)


def _refuse_new(left_out: Mapping[str, OmittedPart], loads: Mapping[str, CardLoad]) -> None:
    """Keep the last good set where something new is not approved."""
    if not left_out:
        return
    cards = {card.config.name: card for load in loads.values() for card in load.cards}
    problems = [
        Diagnostic(
            CHANGED_CODE if name in cards else UNTRUSTED_CODE,
            one.line,
            cards[name].path if name in cards else "",
            hint="review it and approve it with `/trust`, or with `fast-agent trust`",
        )
        for name, one in left_out.items()
    ]
    raise CardError(problems[0].message, hint=problems[0].hint, diagnostics=problems)


class SkillAdmission:
    """Decides about skills one by one, when they are listed and when they are read.

    Args:
        decisions: What was decided about found sets.
    """

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions

    def stamp(self) -> int:
        """Return a number that differs when a decision may be another one."""
        return self._decisions.decision()

    def is_found(self, folder: str) -> bool:
        """Return whether the skills of a directory came with a project, approved or not.

        Args:
            folder: The directory, absolute and without links.
        """
        return self._decisions.has_skills(Path(folder))

    def refuses(self, folder: str, frontmatter: JsonObject | None) -> bool:
        """Return whether a skill is left out, as its files are at this moment.

        Args:
            folder: Its directory, absolute and without links.
            frontmatter: The fields of its `SKILL.md`; None where they could not be read.
        """
        skill = Path(folder)
        reason = self._decisions.closed(skill)
        if reason is not None:
            if reason:
                self._decisions.log_skill(f"skill `{skill.name}` is left out: {reason}")
            return True
        for skills, grant in self._decisions.decided_skills():
            line = self._line(skill, skills, grant, frontmatter) if skills.holds(skill) else None
            if line is not None:
                self._decisions.log_skill(line)
                return True
        return False

    def approved_fields(self, folder: str, frontmatter: JsonObject) -> frozenset[str] | None:
        """Return the fields of a found skill that a user approved, as its files are now.

        Args:
            folder: Its directory, absolute and without links.
            frontmatter: The fields of its `SKILL.md`, which are those that would be obeyed.

        Returns:
            None where the skill was not found, but given.
        """
        from fast_agent.trust.effects.skill_effects import eased_subject

        skill, approved, is_found = Path(folder), set[str](), False
        for skills, grant in self._decisions.decided_skills():
            if skills.holds(skill):
                is_found = True
                eased = [one for one in skills.of(skill) if one.kind == "ease"]
                allowed = {one.subject for one in eased if grant.allows(one)}
                approved |= {
                    name
                    for name, value in frontmatter.items()
                    if eased_subject(skill.name, name, value) in allowed
                }
        return frozenset(approved) if is_found else None

    def _line(
        self, skill: Path, skills: FoundSkills, grant: Grant, frontmatter: JsonObject | None
    ) -> str | None:
        """Return the line about a skill that is left out; None if it may be used."""
        closed = [
            effect
            for effect in skills.of(skill)
            if effect.kind != "ease" and not grant.allows(effect)
        ]
        if closed:
            holder = closed[0].holder
            own = [effect for effect in closed if effect.holder == holder]
            return f"{holder} is left out: {acts(own)}"
        from fast_agent.resources.skill.frontmatter import KNOWN_SKILL_FIELDS

        unknown = [name for name in frontmatter or () if name not in KNOWN_SKILL_FIELDS]
        if unknown:
            return (
                f"skill `{skill.name}` is left out: `{unknown[0]}` is not a field that a found "
                f"skill may have ({skills.place_of(skill)})"
            )
        return None
