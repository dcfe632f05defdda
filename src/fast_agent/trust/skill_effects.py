"""The effects of found skills: what comes with them, offered to agents that could run it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.config.home import SKILL_FOLDERS
from fast_agent.text.environment import has_variable
from fast_agent.trust.card_effects import has_tools, names_in
from fast_agent.trust.digest import MAX_BYTES, MAX_FILES, tree_digests
from fast_agent.trust.effect import Holder
from fast_agent.trust.site import Site, placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.text.json_value import JsonValue
    from fast_agent.trust.context import Context
    from fast_agent.trust.effect import Effect

SKILL_FILE: Final = "SKILL.md"
TOO_MANY: Final = (
    f"it has more than {MAX_FILES:,} files or {MAX_BYTES >> 20} MiB, which nobody can have read"
)

_SHELL: Final = "--shell"


@dataclass(frozen=True, slots=True)
class Offer:
    """An agent that gets the skills of a directory, and could act on them.

    Args:
        agent: Its name.
        folder: The directory, which holds skills or is one.
        is_given: Whether the person gave the agent.
        has_shell: Whether it may run commands.
    """

    agent: str
    folder: Path
    is_given: bool
    has_shell: bool


def skill_effects(context: Context) -> tuple[Effect, ...]:
    """Work out the effects of the skills of a set.

    A skill is text, and reading it is free. It acts where it is offered to an agent with a shell,
    or to one of the person's that has tools.

    Args:
        context: What the set is looked at with.
    """
    offers: dict[Path, list[Offer]] = {}
    ends: dict[Path, Path] = {}
    for offer in _offers(context):
        # A thousand agents are offered the same few directories.
        if offer.folder not in ends:
            ends[offer.folder] = Path(os.path.realpath(offer.folder))
        offers.setdefault(ends[offer.folder], []).append(offer)
    found: list[Effect] = []
    for folder, own in offers.items():
        if _is_of_set(folder, context):
            for skill in skills_in(folder):
                found.extend(_one_skill(skill, own, context))
    return tuple(found)


def skills_in(folder: Path) -> Iterator[Path]:
    """Yield the directories of skills in a directory, or the directory itself where it is one."""
    if (folder / SKILL_FILE).is_file():
        yield folder
        return
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    yield from (entry for entry in entries if (entry / SKILL_FILE).is_file())


def _one_skill(skill: Path, offers: Iterable[Offer], context: Context) -> Iterator[Effect]:
    digests = tree_digests(skill, context.root)
    refusal = TOO_MANY if digests is None else None
    site = Site(
        context,
        Holder("skill", skill.name),
        context.root.name(skill / SKILL_FILE),
        skill,
        lambda keys, near: 1,  # noqa: ARG005 - the whole skill acts
    )
    for offer in offers:
        if offer.has_shell:
            subject = f"skill `{skill.name}` for `{offer.agent}`, which has a shell"
            yield site.effect("run", subject, (), files=digests, refusal=refusal)
        if offer.is_given:
            subject = f"skill `{skill.name}` is offered to your agent `{offer.agent}`"
            yield site.effect("use", subject, (), files=digests, refusal=refusal)


def _offers(context: Context) -> Iterator[Offer]:
    given = context.given
    everyone = _SHELL in given.shared
    for card in context.cards.values():
        if everyone or _has_shell(card):
            for folder in _folders_of_card(card, context):
                yield Offer(card.config.name, folder, is_given=False, has_shell=True)
    for config in given.agents.values():
        if has_tools(config, context):
            shell = everyone or config.shell
            for folder in _folders_of_given(config, context):
                yield Offer(config.name, folder, is_given=True, has_shell=shell)


def _has_shell(card: Card) -> bool:
    return (card.written or {}).get("shell") not in {None, False}


def _folders_of_card(card: Card, context: Context) -> Iterator[Path]:
    values: Mapping[str, JsonValue] = card.written or {}
    if values.get("skills") is None:
        yield from _usual_folders(context)
        return
    directory = card.config.directory or context.given.cwd
    for name in names_in(values["skills"]):
        place = None if has_variable(name) else placed(name, directory)
        if place is not None:
            yield place


def _folders_of_given(config: AgentConfig, context: Context) -> Iterator[Path]:
    if config.skills is None:
        yield from _usual_folders(context)
    else:
        # The person named these directories.
        return


def _usual_folders(context: Context) -> Iterator[Path]:
    if context.skill_folders:
        yield from context.skill_folders
    elif context.given.settings.skills.directories is None:
        yield from (context.given.cwd / name for name in SKILL_FOLDERS)


def _is_of_set(folder: Path, context: Context) -> bool:
    """Return whether a directory of skills belongs to the set, not to the person or another set."""
    named = context.given.settings.skills.directories or ()
    if any(Path(os.path.realpath(one)) == folder for one in named):
        return False
    # What a configuration names elsewhere is a `read` of that directory: nothing of it is read,
    # not even to digest it, before a person allowed that.
    return folder.is_relative_to(context.root.path)
