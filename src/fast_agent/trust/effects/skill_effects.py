"""The effects of found skills: what comes with them, offered to agents that could run it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cached_property
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.config.home import SKILL_FOLDERS, is_never_served, project_directories, user_home
from fast_agent.errors import FastAgentError
from fast_agent.text.environment import has_variable
from fast_agent.text.frontmatter import split_frontmatter
from fast_agent.text.frozen import frozen
from fast_agent.text.safe_file import RefusedFileError, read_confined
from fast_agent.text.source import Source, decode
from fast_agent.text.yaml_document import parse_yaml
from fast_agent.trust.digest import MAX_BYTES, MAX_FILES, tree_digests
from fast_agent.trust.effect import EASING_FIELDS, Holder
from fast_agent.trust.effects.card_effects import has_tools, names_in
from fast_agent.trust.origin import end_of, looks_secret
from fast_agent.trust.site import Site, placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fast_agent.cards.card import Card
    from fast_agent.text.json_value import JsonValue
    from fast_agent.trust.context import Context
    from fast_agent.trust.effect import Effect
    from fast_agent.trust.site import Keys

SKILL_FILE: Final = "SKILL.md"
TOO_MANY: Final = (
    f"it has more than {MAX_FILES:,} files or {MAX_BYTES >> 20} MiB, too much to have been reviewed"
)

_ACTING = re.compile("|".join(f"^[\"']?{field}" for field in EASING_FIELDS), re.MULTILINE)
_MAX_HEAD: Final = 1 << 20

_SHELL: Final = "--shell"
_WRITES: Final = "--files write"


@frozen
class Offer:
    """An agent that gets the skills of a directory.

    Args:
        agent: Its name.
        is_given: Whether the user gave the agent, and it has tools.
        power: What it has that a skill can steer, such as a shell; empty where it has nothing.
    """

    agent: str
    is_given: bool
    power: str


class FoundSkills:
    """The skills of a set, and what each would do.

    A skill is text, and reading it is free. It acts where it is offered to an agent that has a
    shell or writes files, or to one of the user's that has tools.

    Args:
        context: The context the set is surveyed with.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._usual = tuple(_usual_folders(context))
        self._usual_ends = frozenset(map(end_of, self._usual))
        named: dict[Path, list[Offer]] = {}
        for offer, folder in _named_offers(context):
            named.setdefault(end_of(folder), []).append(offer)
        self._named = named
        self._listed: dict[Path, tuple[Path, ...]] = {}
        folders = dict.fromkeys((*map(end_of, self._usual), *named))
        self._folders = tuple(filter(self._is_of_set, folders))

    @cached_property
    def _usual_offers(self) -> tuple[Offer, ...]:
        """The agents that get the skills of the usual directories: most of all there are."""
        return tuple(_usual_offers(self._context))

    def _offers(self, folder: Path) -> tuple[Offer, ...]:
        usual = self._usual_offers if folder in self._usual_ends else ()
        return (*usual, *self._named.get(folder, ()))

    def effects(self) -> Iterator[Effect]:
        """Yield the effects of all skills, and of the directories they are in."""
        for folder in self._usual:
            yield from self._link(folder)
        for folder in self._folders:
            for skill in self._skills(folder):
                yield from self._skill_effects(skill, self._offers(folder))

    def files(self, effects: Iterable[Effect]) -> Iterator[str]:
        """Yield the files that decide whose the skills are, as absolute paths.

        Args:
            effects: The effects of the set.
        """
        for folder in self._folders:
            yield from (str(skill / SKILL_FILE) for skill in self._skills(folder))
        for effect in effects:
            if effect.holder.kind == "skill":
                yield from (str(self._context.root.path / name) for name in effect.files)

    def any(self) -> bool:
        """Return whether there is a skill."""
        return any(self._skills(folder) for folder in self._folders)

    def holds(self, skill: Path) -> bool:
        """Return whether a skill belongs to the set.

        Args:
            skill: The directory of the skill, without links.
        """
        return any(skill.is_relative_to(folder) for folder in self._folders)

    def place_of(self, skill: Path) -> str:
        """Return the `SKILL.md` of a skill as approvals name it.

        Args:
            skill: The directory of the skill, without links.
        """
        return self._context.root.name(skill / SKILL_FILE)

    def of(self, skill: Path) -> tuple[Effect, ...]:
        """Work out the effects of one skill, with its files as they are at this moment.

        Args:
            skill: The directory of the skill, without links.
        """
        links = [
            effect
            for folder in self._usual
            if skill.is_relative_to(end_of(folder))
            for effect in self._link(folder)
        ]
        own = [
            offer
            for folder in self._folders
            if skill.is_relative_to(folder)
            for offer in self._offers(folder)
        ]
        return (*links, *(self._skill_effects(skill, own) if self._is_inside(skill) else ()))

    def _skills(self, folder: Path) -> tuple[Path, ...]:
        if folder not in self._listed:
            inside = self._is_inside(folder)
            self._listed[folder] = tuple(skills_in(folder)) if inside else ()
        return self._listed[folder]

    def _is_of_set(self, folder: Path) -> bool:
        """Return whether a directory of skills belongs to the set, not to the user."""
        context = self._context
        named = context.given.settings.skills.directories or ()
        if any(end_of(Path(one)) == folder for one in named):
            return False
        # What a configuration names elsewhere is a `read` of that directory, held by the setting.
        return self._is_inside(folder) or folder in map(end_of, _places(context))

    def _is_inside(self, folder: Path) -> bool:
        """Return whether a directory may be looked into.

        One that is elsewhere by a link is not read, not even to digest it, before that is allowed.
        """
        return folder.is_relative_to(self._context.root.path)

    def _link(self, folder: Path) -> Iterator[Effect]:
        """Yield the effect of a usual directory that is elsewhere by a link."""
        root = self._context.root
        end = end_of(folder)
        if root.is_wide or root.holds(end) or folder not in _places(self._context):
            return
        name = folder.relative_to(self._context.given.cwd).as_posix()
        site = Site(self._context, Holder("skill", name), name, folder, _no_line)
        yield site.effect("read", root.name(end), ())

    def _skill_effects(self, skill: Path, offers: Iterable[Offer]) -> Iterator[Effect]:
        context = self._context
        place = context.root.name(skill / SKILL_FILE)
        site = Site(context, Holder("skill", skill.name), place, skill, _first_line)
        for file in _secrets_in(skill):
            yield site.effect("read", context.root.name(file), ())
        known = tuple(offers)
        acting = [offer for offer in known if offer.power or offer.is_given]
        if not acting and not (known and acting_fields(skill)):
            return
        digests = tree_digests(skill, context.root)
        refusal = TOO_MANY if digests is None else None
        yield from _eased(site, digests, refusal)
        for offer in acting:
            if offer.power:
                subject = f"skill `{skill.name}` for `{offer.agent}`, which {offer.power}"
                yield site.effect("run", subject, (), files=digests, refusal=refusal)
            if offer.is_given:
                subject = f"skill `{skill.name}` is offered to your agent `{offer.agent}`"
                yield site.effect("use", subject, (), files=digests, refusal=refusal)


def skills_in(folder: Path) -> Iterator[Path]:
    """Yield the directories of skills below a directory, at any depth, and the directory itself.

    Links are not followed, and what is never served is not looked into.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not is_never_served(name))
        if SKILL_FILE in names:
            yield Path(place)


def _secrets_in(skill: Path) -> Iterator[Path]:
    """Yield the files of a skill that look secret."""
    for place, folders, names in os.walk(skill):
        folders[:] = sorted(name for name in folders if not is_never_served(name))
        for name in sorted(names):
            file = Path(place, name)
            if looks_secret(file.relative_to(skill).as_posix()) and not is_never_served(name):
                yield file


def acting_fields(skill: Path) -> Mapping[str, JsonValue]:
    """Read the fields of a skill that say how an agent works while it uses the skill.

    Args:
        skill: Its directory.

    Returns:
        Those there are. None of a file that is not plain YAML: what was approved would be unclear.
    """
    try:
        text = decode(read_confined(skill, SKILL_FILE, _MAX_HEAD).data)
        found = split_frontmatter(Source(SKILL_FILE, text)) if _ACTING.search(text) else None
        value = None if found is None else parse_yaml(found.text).value
    except (OSError, RefusedFileError, FastAgentError):
        return {}
    if not isinstance(value, Mapping):
        return {}
    return {name: value[name] for name in EASING_FIELDS if name in value}


def eased_subject(skill: str, field: str, value: JsonValue) -> str:
    """Name what an approval of a field allows.

    Args:
        skill: The skill.
        field: The field.
        value: Its value.
    """
    said = value if isinstance(value, str) else dumps(value, ensure_ascii=False, default=str)
    return f"skill `{skill}`: `{field}` → {said}"


def _eased(site: Site, digests: Mapping[str, str] | None, refusal: str | None) -> Iterator[Effect]:
    """Yield what the fields of a skill change in the turns that use it."""
    for field, value in acting_fields(site.directory).items():
        subject = eased_subject(site.directory.name, field, value)
        yield site.effect("ease", subject, (field,), files=digests, refusal=refusal)


def _no_line(keys: Keys, near: str) -> None:
    del keys, near


def _first_line(keys: Keys, near: str) -> int:
    del keys, near
    return 1  # the whole skill acts


def _usual_offers(context: Context) -> Iterator[Offer]:
    """Yield the agents that do not name skills."""
    given = context.given
    everyone = _shared_power(given.shared)
    for card in context.cards.values():
        if (card.written or {}).get("skills") is None:
            yield Offer(card.config.name, is_given=False, power=everyone or _card_power(card))
    for config in given.agents.values():
        if config.skills is None:  # else the user named them
            power = everyone or _power_text(shell=config.shell, writes=config.files == "write")
            yield Offer(config.name, is_given=has_tools(config, context), power=power)


def _named_offers(context: Context) -> Iterator[tuple[Offer, Path]]:
    """Yield the cards that name directories of skills, with each of these."""
    everyone = _shared_power(context.given.shared)
    for card in context.cards.values():
        written = (card.written or {}).get("skills")
        if written is None:
            continue
        offer = Offer(card.config.name, is_given=False, power=everyone or _card_power(card))
        directory = card.config.directory or context.given.cwd
        for name in names_in(written):
            place = None if has_variable(name) else placed(name, directory)
            if place is not None:
                yield offer, place


def _shared_power(shared: tuple[str, ...]) -> str:
    return _power_text(shell=_SHELL in shared, writes=_WRITES in shared)


def _card_power(card: Card) -> str:
    values: Mapping[str, JsonValue] = card.written or {}
    writes = values.get("files") not in {None, "read"}
    return _power_text(shell=values.get("shell") not in {None, False}, writes=writes)


def _power_text(*, shell: bool, writes: bool) -> str:
    return "has a shell" if shell else "writes files" if writes else ""


def _usual_folders(context: Context) -> Iterator[Path]:
    """Yield the directories of skills of agents that name none."""
    if context.skill_folders:
        yield from context.skill_folders
    elif context.given.settings.skills.directories is None:
        yield from _places(context)


def _places(context: Context) -> Iterator[Path]:
    """Yield the places of the project where skills are found, if a directory of it is the root."""
    given = context.given
    places = project_directories(given.cwd, user_home(given.environ))
    place = next((one for one in places if end_of(one) == context.root.path), None)
    if place is not None:
        own = tuple(map(end_of, context.own_folders))
        for name in SKILL_FOLDERS:
            if not any(map((context.root.path / name).is_relative_to, own)):
                yield place / name
