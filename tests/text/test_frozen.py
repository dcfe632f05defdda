"""Frozen values are what a frozen, slotted dataclass makes, whoever constructs them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import KW_ONLY, FrozenInstanceError, dataclass, fields, replace
from typing import Any

import pytest

from fast_agent.text.frozen import frozen


@frozen
class Pair:
    first: int
    second: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        return self.first + sum(self.second)


@dataclass(frozen=True, slots=True)
class StandardPair:
    first: int
    second: tuple[int, ...] = ()


@frozen
class Named:
    _: KW_ONLY
    name: str
    size: int = 3


@frozen
class NamedMore(Named):
    more: bool


@dataclass(frozen=True, slots=True)
class NamedElsewhere(Named):
    place: str = "here"


def test_values_hold_what_they_are_given() -> None:
    assert (Pair(1).first, Pair(1).second) == (1, ())
    assert Pair(second=(2, 3), first=1).total == 6
    assert Named(name="a") == Named(name="a", size=3)
    assert NamedMore(name="a", more=True).more
    assert NamedElsewhere(name="a").place == "here"
    assert [one.name for one in fields(Pair(1))] == ["first", "second"]


def test_values_do_not_change() -> None:
    for value, name in ((Pair(1), "first"), (NamedMore(name="a", more=True), "name")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, 2)
        with pytest.raises(FrozenInstanceError):
            delattr(value, name)
    with pytest.raises((AttributeError, TypeError)):
        setattr(Pair(1), "third", 3)  # noqa: B010 (what a type checker would refuse)
    assert not hasattr(Pair(1), "__dict__")


def test_values_are_of_the_class_itself() -> None:
    for value in (Pair(1), replace(Pair(1), first=2), copy.copy(Pair(1)), copy.deepcopy(Pair(1))):
        assert type(value) is Pair
    assert type(pickle.loads(pickle.dumps(Pair(1)))) is Pair
    assert type(NamedMore(name="a", more=False)) is NamedMore
    assert type(NamedElsewhere(name="a")) is NamedElsewhere


def test_values_are_equal_by_their_fields() -> None:
    assert Pair(1, (2,)) == Pair(1, (2,))
    assert Pair(1, (2,)) != Pair(1)
    assert len({Pair(1), Pair(1), Pair(2)}) == 2
    assert pickle.loads(pickle.dumps(Pair(1, (2,)))) == Pair(1, (2,))
    assert repr(Pair(1, (2,))) == "Pair(first=1, second=(2,))"


@pytest.mark.parametrize(
    ("given", "named"),
    [((), {}), ((1, (), 3), {}), ((1,), {"first": 1}), ((1,), {"third": 3})],
)
def test_wrong_arguments_are_refused_as_the_standard_class_refuses_them(
    given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError) as ours:
        Pair(*given, **named)
    with pytest.raises(TypeError) as standard:
        StandardPair(*given, **named)
    assert str(ours.value) == str(standard.value).replace("StandardPair", "Pair")
