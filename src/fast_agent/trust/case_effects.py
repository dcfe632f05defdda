"""The effects of a found test file, worked out from its text alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from fast_agent.config.case_fields import RECORDINGS
from fast_agent.text.environment import has_variable
from fast_agent.text.json_value import as_list, as_object
from fast_agent.trust.card_effects import names_in
from fast_agent.trust.config_effects import site_of
from fast_agent.trust.effect import Holder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.config.layer import FileLayer
    from fast_agent.text.json_value import JsonValue
    from fast_agent.trust.context import Context
    from fast_agent.trust.effect import Effect
    from fast_agent.trust.site import Keys, Site


def case_effects(layer: FileLayer, context: Context, *, records: bool) -> tuple[Effect, ...]:
    """Work out the effects of a test file. `${NAME}` has no meaning in it.

    Args:
        layer: The file.
        context: What its set is looked at with.
        records: Whether this run writes recordings.
    """
    name = PurePath(layer.source.path).name
    site = site_of(layer, Holder("test", name), context)
    return tuple(_effects(site, layer.document.value, records=records))


def _effects(site: Site, value: JsonValue, *, records: bool) -> Iterator[Effect]:
    values = as_object(value)
    for index, card in enumerate(names_in(values.get("cards"))):
        yield from _reads(site, card, ("cards", index))
    model = values.get("model")
    if isinstance(model, str) and not has_variable(model):
        yield from site.model(model, ("model",), site.directory)
    folder = values.get("recordings")
    if isinstance(folder, str):
        yield from _tape(site, folder, ("recordings",), records=records)
    else:
        yield from _tape(site, RECORDINGS, (), records=records)
    cases = values.get("cases")
    for index, case in enumerate(as_list(cases)):
        if isinstance(case, Mapping):
            recording = case.get("recording")
            if isinstance(recording, str):
                keys = ("cases", index, "recording")
                yield from _tape(site, recording, keys, records=records)
            if case.get("network") is True:
                yield site.eases("network", False, True, ("cases", index, "network"))


def _tape(site: Site, text: str, keys: Keys, *, records: bool) -> Iterator[Effect]:
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
