"""Survey: the found set of one root, from the texts of what a run loads of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from fast_agent.config.case_fields import RECORDINGS
from fast_agent.config.home import SECRETS_NAMES
from fast_agent.text.environment import has_variable
from fast_agent.text.frozen import frozen
from fast_agent.text.json_value import as_list, as_object
from fast_agent.text.source import SourceError, read_source
from fast_agent.trust.address import shown_address
from fast_agent.trust.context import Context
from fast_agent.trust.digest import text_digest
from fast_agent.trust.effect import Holder
from fast_agent.trust.effects.card_effects import CardEffects, card_effects, names_in
from fast_agent.trust.effects.config_effects import (
    base_urls,
    config_effects,
    default_model,
    guide_reads,
    model_aliases,
    server_names,
    site_of,
)
from fast_agent.trust.effects.skill_effects import FoundSkills
from fast_agent.trust.found_set import FoundSet
from fast_agent.trust.free_models import talking
from fast_agent.trust.origin import Root, address_of_root, ownership_of
from fast_agent.trust.site import placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fast_agent.cards.card import Card
    from fast_agent.config.layer import FileLayer
    from fast_agent.text.json_value import JsonValue
    from fast_agent.text.source import Source
    from fast_agent.trust.context import GivenOptions
    from fast_agent.trust.effect import Effect
    from fast_agent.trust.site import Keys, Site


_SECRETS: Final = tuple(os.sep + name for name in SECRETS_NAMES)

REMOTE: Final = "a card from a web address may do no more than connect and send"


@frozen(kw_only=True)
class RootSurvey:
    """What a run loads of one root.

    Args:
        root: The root, without links.
        given: What the user gave.
        cards: Its cards.
        tool_cards: The names of those that are offered to the receiver as tools.
        layers: Its configuration files, the weakest first.
        guides: Its guides: files of the name `.guide.yaml`.
        tests: Its test files.
        records: Whether this run writes recordings.
        own_folders: Directories of the user that may lie inside the root, such as the home.
    """

    root: Path
    given: GivenOptions
    cards: tuple[Card, ...] = ()
    tool_cards: frozenset[str] = frozenset()
    layers: tuple[FileLayer, ...] = ()
    guides: tuple[FileLayer, ...] = ()
    tests: tuple[FileLayer, ...] = ()
    records: bool = False
    own_folders: tuple[Path, ...] = ()


def survey(parts: RootSurvey) -> FoundSet:
    """Work out what a set would do, and digest its files; nothing of it acts.

    Args:
        parts: What the run loads of it.
    """
    sources = _sources(parts)
    context = _context(parts, sources)
    skills = FoundSkills(context)
    effects = dict.fromkeys((*_effects(parts, context), *skills.effects()))
    if address_of_root(parts.root) is not None:
        effects = dict.fromkeys(map(_remote, effects))
    for path in _talking_files(parts, context, effects):
        del sources[path]
    sources.update(_named(parts, context))
    read = dict.fromkeys(skills.files(effects))
    whose = ownership_of(
        {**read, **{path: source.signature for path, source in sources.items()}},
        str(context.root.path),
    )
    kept: dict[str, str] = {}
    files: dict[str, str] = {}
    name_of = context.root.file_name
    for path, source in sources.items():
        text = source.text
        name = path if "://" in path else name_of(path)
        files[name] = text_digest(text)
        if not path.endswith(_SECRETS):
            kept[name] = text
    return FoundSet(
        context.root.path,
        files,
        tuple(effects),
        kept,
        talking(parts.cards, context),
        whose.owner,
        whose.open_path is not None,
        context.root,
        tuple([card.config.name for card in parts.cards]),
    )


def effects_of(parts: RootSurvey, holder: Holder) -> tuple[Effect, ...]:
    """Work out the effects of one part of a set again, with its files as they are at this moment.

    Args:
        parts: What the run loads of it.
        holder: The part.
    """
    context = _context(parts, _sources(parts))
    match holder.kind:
        case "card":
            card = context.cards.get(holder.name)
            return () if card is None else card_effects(card, context)
        case "server" | "setting":
            found = config_effects(parts.layers, context)
        case "skill":
            found = tuple(FoundSkills(context).effects())
        case _:
            found = tuple(_effects(parts, context))
    return tuple([one for one in found if one.holder == holder])


def _remote(effect: Effect) -> Effect:
    """Close what cannot be approved of a card from an address."""
    if effect.kind in {"connect", "send"} or effect.refusal is not None:
        return effect
    return replace(effect, refusal=REMOTE)


def found_skills(parts: RootSurvey) -> FoundSkills:
    """Return the skills of a set, to be asked about one by one.

    Args:
        parts: What the run loads of it.
    """
    return FoundSkills(_context(parts, _sources(parts)))


def _effects(parts: RootSurvey, context: Context) -> Iterator[Effect]:
    for card in parts.cards:
        yield from card_effects(card, context)
    yield from config_effects(parts.layers, context)
    for layer in parts.guides:
        site = site_of(layer, guide_holder(layer, context.root), context)
        yield from guide_reads(site, as_object(layer.document.value), ())
    for layer in parts.tests:
        yield from case_effects(layer, context, records=parts.records)


def _context(parts: RootSurvey, files: Iterable[str]) -> Context:
    own = (one for one in files if "://" not in one and not one.endswith(_SECRETS))
    return Context(
        root=Root.of(parts.root, parts.given.environ, own),
        given=parts.given,
        cards={card.config.name: card for card in parts.cards},
        servers=server_names(parts.layers),
        aliases=model_aliases(parts.layers),
        base_urls=base_urls(parts.layers),
        default_model=default_model(parts.layers),
        tool_cards=parts.tool_cards,
        skill_folders=tuple(_skill_folders(parts)),
        own_folders=parts.own_folders,
    )


def _named(parts: RootSurvey, context: Context) -> Iterator[tuple[str, Source]]:
    """Yield the files that instructions of the set include, by absolute path."""
    for card in parts.cards:
        if "{{" in (card.config.instruction or ""):
            for file in CardEffects(card, context).named_files():
                if context.root.is_free(file):
                    with suppress(SourceError):
                        yield str(file), read_source(file)


def _skill_folders(parts: RootSurvey) -> Iterator[Path]:
    for layer in parts.layers:
        folders = as_object(as_object(layer.document.value).get("skills")).get("directories")
        for folder in as_list(folders):
            place = placed(folder, layer.directory) if isinstance(folder, str) else None
            if place is not None:
                yield place


def guide_holder(layer: FileLayer, root: Root) -> Holder:
    """Return what is left out where a `.guide.yaml` may not be read.

    Args:
        layer: The file.
        root: The root of its set.
    """
    name = os.path.basename(layer.source.path)  # noqa: PTH119
    return Holder("guide", root.name(layer.directory / name))


def _talking_files(parts: RootSurvey, context: Context, effects: Iterable[Effect]) -> Iterator[str]:
    """Yield the guides and test files that have no effect, as absolute paths.

    Whether a run loads them does not change what is approved.
    """
    acting = {effect.path for effect in effects}
    for layer in (*parts.guides, *parts.tests):
        place = layer.directory / os.path.basename(layer.source.path)  # noqa: PTH119
        if context.root.name(place) not in acting:
            yield str(place)


def _sources(parts: RootSurvey) -> dict[str, Source]:
    """Return the files of a set as they were read, by absolute path."""
    sources: dict[str, Source] = {}
    for card in parts.cards:
        if card.document is None:
            continue
        if card.config.source is not None:
            sources[str(card.config.source)] = card.document.source
        elif card.config.remote is not None:
            sources[shown_address(card.config.remote)] = card.document.source
    for layer in (*parts.layers, *parts.guides, *parts.tests):
        name = os.path.basename(layer.source.path)  # noqa: PTH119
        sources[str(layer.directory / name)] = layer.source
    return sources


def case_effects(layer: FileLayer, context: Context, *, records: bool) -> tuple[Effect, ...]:
    """Work out the effects of a test file. `${NAME}` has no meaning in it.

    Args:
        layer: The file.
        context: The context its set is surveyed with.
        records: Whether this run writes recordings.
    """
    name = PurePath(layer.source.path).name
    site = site_of(layer, Holder("test", name), context)
    return tuple(_case_effects(site, layer.document.value, records=records))


def _case_effects(site: Site, value: JsonValue, *, records: bool) -> Iterator[Effect]:
    values = as_object(value)
    for index, card in enumerate(names_in(values.get("cards"))):
        yield from _reads(site, card, ("cards", index))
    model = values.get("model")
    if isinstance(model, str) and not has_variable(model):
        yield from site.model(model, ("model",), site.directory)
    folder = values.get("recordings")
    if isinstance(folder, str):
        yield from _recordings(site, folder, ("recordings",), records=records)
    else:
        yield from _recordings(site, RECORDINGS, (), records=records)
    cases = values.get("cases")
    for index, case in enumerate(as_list(cases)):
        if isinstance(case, Mapping):
            recording = case.get("recording")
            if isinstance(recording, str):
                keys = ("cases", index, "recording")
                yield from _recordings(site, recording, keys, records=records)
            data = case.get("data")
            if isinstance(data, str):
                yield from _reads(site, data, ("cases", index, "data"))
            if case.get("network") is True:
                yield site.eases("network", False, True, ("cases", index, "network"))


def _recordings(site: Site, text: str, keys: Keys, *, records: bool) -> Iterator[Effect]:
    yield from _reads(site, text, keys)
    if records:
        yield site.writes(site.directory / text, text, keys, {})


def _reads(site: Site, text: str, keys: Keys) -> Iterator[Effect]:
    """Yield what reading a path does; `${` in it is only text."""
    place = site.directory / text
    root = site.context.root
    if place.is_dir() and root.holds(place):
        return
    if not root.is_free(place):
        yield site.effect("read", root.name(place), keys, near=text)
