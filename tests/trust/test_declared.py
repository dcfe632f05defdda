"""Every field of every table declares what it can make a found file do."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, get_args

import pytest

from fast_agent.cards.fields import FIELDS, Field
from fast_agent.config.case_fields import CASE_FILE
from fast_agent.config.fields import SETTINGS
from fast_agent.config.providers import QUERY_KEYS
from fast_agent.config.settings import GUIDE
from fast_agent.resources.skill.frontmatter import FIELDS as FRONTMATTER
from fast_agent.resources.skill.frontmatter import SKILL_FIELDS
from fast_agent.schema.kinds import (
    AnyOf,
    EffectKind,
    Entry,
    ListOf,
    MapOf,
    Record,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.schema.kinds import Effects, Kind


def entries(kind: Kind) -> Iterator[Entry]:
    """Every entry of a table, nested ones too."""
    match kind:
        case Record(entries=own):
            for entry in own:
                yield entry
                yield from entries(entry.kind)
        case ListOf(item):
            yield from entries(item)
        case MapOf(value):
            yield from entries(value)
        case AnyOf(kinds):
            for one in kinds:
                yield from entries(one)
        case _:
            pass


def declared() -> Iterator[tuple[str, Effects]]:
    for field in FIELDS:
        yield field.name, field.effects
        yield from ((entry.name, entry.effects) for entry in entries(field.kind))
    for table in (SETTINGS, GUIDE, CASE_FILE):
        yield from ((entry.name, entry.effects) for entry in entries(table))
    for keys in QUERY_KEYS.values():
        yield from ((name, key.effects) for name, key in keys.items())
    yield from SKILL_FIELDS.items()


@pytest.mark.spec("TR-E2.1")
def test_what_is_declared_is_an_effect() -> None:
    known = set(get_args(EffectKind))
    found = list(declared())
    assert len(found) > 150
    assert [name for name, effects in found if not known.issuperset(effects)] == []
    assert [name for name, effects in found if len(set(effects)) != len(effects)] == []


@pytest.mark.spec("TR-E2.1")
@pytest.mark.parametrize("table", [Field, Entry])
def test_a_field_that_declares_nothing_fails(table: type) -> None:
    parameter = inspect.signature(table).parameters["effects"]
    assert parameter.default is inspect.Parameter.empty
    with pytest.raises(TypeError, match="effects"):
        Entry("name", Text(), "one that declares nothing")  # type: ignore[call-arg]


@pytest.mark.spec("TR-E2.1")
def test_a_skill_has_the_fields_of_the_table_only() -> None:
    assert tuple(SKILL_FIELDS) == FRONTMATTER
