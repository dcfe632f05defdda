"""Decisions: what of found sets may act in this run, and which parts of them are left out."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cached_property
from itertools import chain
from threading import RLock
from typing import TYPE_CHECKING

from fast_agent.text.frozen import frozen
from fast_agent.trust.origin import end_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from fast_agent.errors import TrustError
    from fast_agent.registry.expected import ExpectedLoad
    from fast_agent.text.source import Signature
    from fast_agent.trust.context import GivenOptions
    from fast_agent.trust.effect import Effect, Holder, HolderKind
    from fast_agent.trust.effects.skill_effects import FoundSkills
    from fast_agent.trust.found_set import FoundSet, Provenance
    from fast_agent.trust.gate import Gate
    from fast_agent.trust.grant import Grant

log = logging.getLogger(__name__)


@frozen
class OmittedPart:
    """A card, server, setting, skill, guide or test file that may not act in this run.

    Args:
        name: Its name, as messages show it.
        reason: Why, in words that follow its name.
        found: The set that is not approved.
        effects: The effects that are not approved.
    """

    name: str
    reason: str
    found: FoundSet
    effects: tuple[Effect, ...]

    @property
    def line(self) -> str:
        """Return the line a user sees."""
        return f"{self.name} is left out: {self.reason}"


class Decisions:
    """What was decided about found sets: what of each may act, and which parts are left out.

    Args:
        gate: Decides about one set.
        workspace: The directory the program works in.
        expected: What the run is about to load.
        user: Returns what the user gave, but for agents and options.

    Attributes:
        sets: The sets, by their root.
        grants: What each may do, by its root.
        settings: The settings that are left out, by their dotted path.
        servers: The servers that are left out, by name.
        parts: The skills, guides and test files that are left out.
        closed_sets: The sets of other users, by root, whose skills and guides are left out.
        agents: The agents that are left out, by name.
        taken: Lines about what has the name of something given or built in.
        may_ask: Whether the user may be asked now.
    """

    def __init__(
        self, gate: Gate, workspace: Path, expected: ExpectedLoad, user: Callable[[], GivenOptions]
    ) -> None:
        self._gate = gate
        self._workspace = workspace
        self._expected = expected
        self._user = user
        self.sets: dict[Path, FoundSet] = {}
        self.grants: dict[Path, Grant] = {}
        self.settings: dict[str, OmittedPart] = {}
        self.servers: dict[str, OmittedPart] = {}
        self.parts: dict[Holder, OmittedPart] = {}
        self.closed_sets: dict[Path, OmittedPart] = {}
        self.agents: dict[str, OmittedPart] = {}
        self.taken: dict[str, None] = {}
        self.may_ask = True
        self.has_commands = False
        """Whether the user talks where `/trust` can be typed."""
        self._refusals: dict[tuple[Path, bool], dict[Holder, tuple[Effect, ...]]] = {}
        self._skills_of: tuple[tuple[FoundSkills, Grant], ...] | None = None
        self._decision = 0
        self._decided_at: tuple[Signature | None, object] | None = None
        self._reported: set[str] = set()
        self._reported_skills: set[str] = set()
        self._lock = RLock()

    @cached_property
    def _real_workspace(self) -> Path:
        return end_of(self._workspace)

    @property
    def places(self) -> tuple[str, ...]:
        """The files a change of may decide otherwise."""
        return (str(self._gate.approvals.path),) if self.sets else ()

    def lines(self) -> Iterator[str]:
        """Yield a line for each part that is left out, and for what `--trust` lets act."""
        for line in self._lines():
            self._reported.add(line)
            yield line

    def unreported(self) -> Iterator[str]:
        """Yield the lines that were not reported yet."""
        known = set(self._reported)
        yield from (line for line in self.lines() if line not in known)

    def notify(self, line: str, *, waits: bool = False) -> None:
        """Log a line, once.

        Args:
            line: The line.
            waits: Whether it is about what an approval would let act; where the user talks, the
                line then names `/trust`, since no question is asked in mid-conversation.
        """
        if line not in self._reported:
            self._reported.add(line)
            more = "; `/trust` shows and allows it" if waits and self.has_commands else ""
            # What waits for an approval must be readable: of it only the secrets were masked.
            log.warning("%s%s", line, more, extra={"is_whole": True})

    def log_skill(self, line: str) -> None:
        """Log a line about a skill that is left out, once until an approval lets it act."""
        self._reported_skills.add(line)
        self.notify(line, waits=True)

    def _lines(self) -> Iterator[str]:
        yield from self._gate.home_lines()
        yield from self.taken
        yield from self._left_out_lines()
        for path in self.sets:
            for holder, effects in self.eased_of(path).items():
                if holder.kind != "card" or holder.name not in self.agents:
                    for effect in effects:
                        yield (
                            f"{holder}: {effect.subject} ({effect.place}) is not approved; "
                            "the stricter value holds"
                        )
        digests = {one.found.digest for holder, one in self.parts.items() if holder.kind == "skill"}
        for digest in digests:
            yield (
                "skills act once you say yes at a terminal, or by `--trust`; in CI "
                f"FAST_AGENT_TRUST={digest} (exactly this set)"
            )
        if self.sets and self._gate.policy.everything:
            from fast_agent.trust.question import by_trust

            for found in self.sets.values():
                if found.effects and not found.is_remote:
                    names = [card.config.name for card in self._expected.cards_of(found.root)]
                    yield by_trust(names, found.effects)

    def _left_out_lines(self) -> Iterator[str]:
        answered: dict[Path, list[str]] = {}
        for one in self._left_out():
            if self._gate.was_declined_now(one.found):
                answered.setdefault(one.found.root, []).append(one.name)
            else:
                yield one.line
        for names in answered.values():  # the question has just said why
            yield f"left out, as you answered: {', '.join(names)}"

    def decide(self) -> None:
        """Decide about all that is expected, where that changed since it was last decided about.

        Agents made in Python and options of a run are known only when it starts.
        """
        options = self._gate.options
        if options.passive or options.without_found or not self._expected.paths():
            return
        if self._decided_at != self._basis():
            self.decide_now(may_ask=self.may_ask)

    def closed_parts(self) -> tuple[str, ...]:
        """Name the settings, servers, skills and other parts that are left out, as lines do."""
        return tuple(one.name for one in self._left_out())

    def _left_out(self) -> Iterator[OmittedPart]:
        parts = (self.settings, self.servers, self.closed_sets, self.parts, self.agents)
        return chain.from_iterable(part.values() for part in parts)

    def decision(self) -> int:
        """Return a number that differs when skills may be decided about otherwise."""
        if self.sets and self._decided_at is not None:
            stand = self._gate.stand
            if stand != self._decided_at[0]:
                self.decide_now(may_ask=False)
        return self._decision

    def closed(self, folder: Path) -> str | None:
        """Return why no skill of a directory may be used, in words that follow its name.

        Args:
            folder: The directory of the skill, without links.

        Returns:
            None if each skill is checked; empty if nothing needs to be reported.
        """
        options = self._gate.options
        if options.passive:
            return None
        usual = self._is_usual(folder)
        if options.without_found:
            return "" if usual else None
        self._decide_new(usual=usual)
        for name, one in self.settings.items():
            if usual and name.partition(".")[0] == "skills":
                return one.reason  # what the configuration says instead may not count
        for path, one in self.closed_sets.items():
            if folder.is_relative_to(path):
                return one.reason
        return None

    def has_skills(self, folder: Path) -> bool:
        """Return whether the skills of a directory came with a project, approved or not.

        Args:
            folder: The directory, without links.
        """
        options = self._gate.options
        if options.passive or options.without_found:
            return False
        self._decide_new(usual=self._is_usual(folder))
        return any(skills.holds(folder) for skills, _ in self.decided_skills())

    def _is_usual(self, folder: Path) -> bool:
        usual = map(end_of, self._expected.skill_folders())
        return any(map(folder.is_relative_to, usual))

    def _decide_new(self, *, usual: bool) -> None:
        """Decide about directories of skills that came after the start."""
        if usual and not self.sets.keys() >= set(self._expected.skill_roots()):
            self.decide_now(may_ask=False)

    def decided_skills(self) -> Sequence[tuple[FoundSkills, Grant]]:
        """Return the skills of each set, with what it may do."""
        with self._lock:
            if self._skills_of is None:
                from fast_agent.trust.effects.survey import found_skills

                self._skills_of = tuple(
                    (found_skills(self._expected.surveyed(path)), self.grants[path])
                    for path in self.sets
                )
            return self._skills_of

    def allows_guide(self, file: str) -> bool:
        """Return whether a guide of the working directory may be read.

        Args:
            file: Its name.
        """
        closed = self.closed_sets.get(self._real_workspace)
        return closed is None and self._part("guide", file) is None

    def check_test(self, file: str) -> None:
        """Check that a found test file may be run.

        Args:
            file: Its name.

        Raises:
            TrustError: It is left out.
        """
        one = self._part("test", file)
        if one is not None:
            raise self.refused(one, None)

    def _part(self, kind: HolderKind, name: str) -> OmittedPart | None:
        if not self.parts:
            return None
        from fast_agent.trust.effect import Holder

        return self.parts.get(Holder(kind, name))

    def check_read(self, root: Path, file: Path) -> None:
        """Check that a file which a found set names may be read.

        Args:
            root: The root of the set.
            file: The file.

        Raises:
            TrustError: It ends outside the root or in a secret, and that is not approved.
        """
        grant = self.grants.get(end_of(root))
        if grant is not None:
            grant.check_read(file)

    def provenance(self) -> Provenance:
        """Return which found sets take part in this run, and what they may do now."""
        from fast_agent.trust.found_set import Provenance

        sets = tuple(self.sets.values())
        allowed = [
            effect
            for path, found in self.sets.items()
            for effect in found.effects
            if self.grants[path].allows(effect)
        ]
        return Provenance.of(self._real_workspace, sets, allowed)

    def is_approved(self, directory: Path) -> bool:
        """Return whether the project around a directory is approved, or the user's own."""
        real = directory.resolve()
        gate = self._gate
        if gate.policy.everything or gate.owns(real):
            return True
        around = (one for one in self.sets.values() if real.is_relative_to(one.root))
        return any(map(gate.is_approved, around))

    def found_sets(self) -> tuple[FoundSet, ...]:
        """Work out what was found so far, without deciding about it."""
        return tuple([self._expected.describe(path) for path in self._expected.paths()])

    def sets_with(self, servers: tuple[str, ...]) -> tuple[FoundSet, ...]:
        """Work out the found sets as they act in a session with servers of an editor.

        Args:
            servers: Their names; they reach all but cards from addresses.
        """
        from fast_agent.trust.effects.survey import survey

        found: list[FoundSet] = []
        for path, known in self.sets.items():
            if not known.is_remote:
                parts = self._expected.surveyed(path)
                given = replace(parts.given, editor_servers=servers)
                found.append(survey(replace(parts, given=given)))
        return tuple(found)

    def begin(self) -> None:
        """Stop asking: a conversation is not interrupted by questions about projects."""
        self.may_ask = False

    def check_server(self, name: str) -> None:
        """Check that a server a user named may act.

        Raises:
            TrustError: It is left out.
        """
        one = self.servers.get(name)
        if one is not None:
            raise self.refused(one, None)

    def refused(self, one: OmittedPart, name: str | None) -> TrustError:
        """Make the error for what is left out."""
        from fast_agent.trust.question import refusal

        return refusal(one.found, one.effects, agent=name)

    def _basis(self) -> tuple[Signature | None, object]:
        """Return what a decision stands on, but for the files of the sets."""
        return self._gate.stand, (tuple(self._user().agents), self._expected.shared)

    def decide_now(self, *, may_ask: bool, keep: bool = False) -> None:
        """Decide about all sets.

        Args:
            may_ask: Whether the user may be asked.
            keep: Whether the next decision may take what this one finds; see
                `ExpectedLoad.describe`.
        """
        if not self._expected.paths():
            return
        with self._lock:
            self._decide_sets(may_ask=may_ask, keep=keep)
            self._group()
            self._skills_of = None
            self._decision += 1
            self._decided_at = self._basis()
        if self._reported_skills:
            self._reported -= self._reported_skills.difference(self._lines())
        if not self.may_ask:
            waiting = {one.line for one in self._left_out()}
            for line in self._lines():
                self.notify(line, waits=line in waiting)

    def _decide_sets(self, *, may_ask: bool, keep: bool) -> None:
        for path in self._expected.paths():
            found = self._expected.describe(path, keep=keep)
            needed = [effect for effect in found.effects if self._expected.needs(effect)]
            self.sets[path] = found
            self._refusals.clear()
            self.grants[path] = self._gate.decide(
                found,
                needed,
                may_ask=may_ask,
                examine=lambda one, at=path: self._expected.examine(at, one),
                cards=tuple(self._expected.cards_of(path)),
                workspace=self._workspace,
            )

    def _group(self) -> None:
        """Group what is not allowed by the part that is left out."""
        self.settings, self.servers = {}, {}
        self.parts, self.closed_sets = {}, {}
        from fast_agent.trust.effects.survey import found_skills

        for path, found in self.sets.items():
            parts = self._expected.surveyed(path)
            if self._gate.is_strange(found) and (parts.guides or found_skills(parts).any()):
                name = f"each skill and guide of `{path}`"
                self.closed_sets[path] = OmittedPart(
                    name, owner_problem(found), found, found.effects
                )
            for holder, effects in self.closed_of(path).items():
                one = OmittedPart(str(holder), acts(effects), found, effects)
                if holder.kind == "server":
                    self.servers[holder.name] = one
                elif holder.kind == "setting":
                    self.settings[holder.name] = one
                elif holder.kind != "card":
                    self.parts[holder] = one

    def closed_of(self, root: Path) -> dict[Holder, tuple[Effect, ...]]:
        """Group the effects of a set that are not allowed by what brings them.

        What would only weaken a bound is not among them: the stricter value holds instead.
        """
        return self._not_allowed(root, ease=False)

    def eased_of(self, root: Path) -> dict[Holder, tuple[Effect, ...]]:
        """Group the weaker bounds of a set that are not allowed by what brings them."""
        return self._not_allowed(root, ease=True)

    def _not_allowed(self, root: Path, *, ease: bool) -> dict[Holder, tuple[Effect, ...]]:
        known = self._refusals.get((root, ease))
        if known is not None:
            return known
        # Once for each decision: a set with a thousand cards is asked about by each of them.
        grouped: dict[Holder, list[Effect]] = {}
        for effect in self.grants[root].not_allowed(self.sets[root].effects):
            # A test file that wants more is not run at all: without the network it would only fail.
            if (effect.kind == "ease" and effect.holder.kind != "test") is ease:
                grouped.setdefault(effect.holder, []).append(effect)
        closed = {holder: tuple(effects) for holder, effects in grouped.items()}
        self._refusals[root, ease] = closed
        return closed


def owner_problem(found: FoundSet) -> str:
    """Return why a set of another user is ignored, in words that follow a name."""
    owner = f"belong to the user `{found.owner}`"
    return f"its files {owner if found.owner else 'may be changed by everyone'}"


def acts(effects: Sequence[Effect]) -> str:
    """Return why effects keep a part out, in words that follow its name."""
    first = effects[0]
    more = f" and {len(effects) - 1} more" if len(effects) > 1 else ""
    if first.refusal is not None:
        return f"{first.refusal} ({first.place})"
    if first.holder.kind == "skill":
        return f"`{first.kind}` is not approved: {first.subject}{more} ({first.place})"
    # What is used is a whole sentence.
    what = first.subject if first.kind == "use" else f"it would {first.kind} {first.subject}"
    return f"{what}{more} ({first.place}), which is not approved"
