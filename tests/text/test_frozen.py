"""Frozen values are what a frozen, slotted dataclass makes, whoever constructs them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import KW_ONLY, FrozenInstanceError, dataclass, field, fields, replace
from inspect import signature
from typing import Any, ClassVar

import pytest

from fast_agent.text.frozen import frozen, replaced


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


def test_a_copy_has_other_values_in_some_fields() -> None:
    for value in (Named(name="a"), NamedMore(name="a", more=True), NamedElsewhere(name="a")):
        for _ in range(2):
            copy = replaced(value, name="b")
            assert (copy.name, copy.size, value.name) == ("b", 3, "a")
            assert type(copy) is type(value)
            assert replaced(copy, name="a") == value
            with pytest.raises(FrozenInstanceError):
                setattr(copy, "name", "c")  # noqa: B010 - an assignment is a type error
    with pytest.raises(AttributeError):
        replaced(Named(name="a"), weight=1)


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


@frozen(kw_only=True)
class Everything:
    """A class with every kind of field."""

    plain: int
    listed: list[int] = field(default_factory=list[int])
    hidden: str = field(default="", repr=False, compare=False)
    counted: list[int] = field(default_factory=list[int], init=False, hash=False)
    stated: str = field(default="stated", init=False)

    def __post_init__(self) -> None:
        self.counted.append(self.plain)


@frozen
class Checked:
    size: int

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("a size is not negative")

    def __repr__(self) -> str:
        return "own text"

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checked)


@frozen
class Nothing:
    """A class without fields."""


@frozen
class Unmade:
    """A class of which no value is made but in one test."""

    first: int
    second: str = "x"


@frozen
class Linked:
    others: list[Linked]


def test_fields_of_every_kind_are_set() -> None:
    value = Everything(plain=1)
    assert (value.listed, value.counted, value.stated) == ([], [1], "stated")
    assert value.listed is not Everything(plain=1).listed
    assert Everything(plain=1, hidden="a") == Everything(plain=1, hidden="b")
    assert Everything(plain=1) != Everything(plain=2)
    assert repr(Everything(plain=1, listed=[2])) == (
        "Everything(plain=1, listed=[2], counted=[1], stated='stated')"
    )
    assert replace(value, plain=2).plain == 2
    with pytest.raises(TypeError):
        Everything(plain=1, stated="other")  # type: ignore[call-arg]


def test_a_class_keeps_the_methods_it_writes_itself() -> None:
    assert Checked(1) == Checked(2)
    assert repr(Checked(1)) == "own text"
    assert hash(Checked(1)) == 7
    with pytest.raises(ValueError, match="not negative"):
        Checked(-1)
    with pytest.raises(FrozenInstanceError):
        Checked(1).size = 2  # type: ignore[misc]


def test_a_default_that_can_change_is_refused() -> None:
    with pytest.raises(ValueError, match="default of `found` can change"):

        @frozen
        class Changeable:
            found: list[str] = []  # noqa: RUF012 (what is refused)


def test_names_of_the_class_are_no_fields() -> None:
    @frozen
    class Numbered:
        kind: ClassVar[str] = "number"
        value: int = 0

    assert [one.name for one in fields(Numbered)] == ["value"]
    assert (Numbered.kind, Numbered(3).kind) == ("number", "number")
    assert Numbered.__match_args__ == ("value",)


def test_values_without_fields_are_equal() -> None:
    assert Nothing() == Nothing()
    assert len({Nothing(), Nothing()}) == 1
    assert repr(Nothing()) == "Nothing()"
    assert Nothing() != Pair(1)


def test_a_class_shows_its_parameters_before_its_first_value() -> None:
    assert list(signature(Unmade).parameters) == ["first", "second"]
    assert signature(Unmade).parameters["second"].default == "x"
    assert Unmade(1).second == "x"
    assert list(signature(Unmade).parameters) == ["first", "second"]
    assert Unmade.__match_args__ == ("first", "second")


def test_a_value_in_itself_is_shown_once() -> None:
    value = Linked([])
    value.others.append(value)
    assert repr(value) == "Linked(others=[...])"


@frozen
class Reserved:
    """Fields with the names the compiled constructor uses itself."""

    made: int = 1
    open: int = 2
    become: int = 3
    missing: int = 4


def test_a_field_may_have_a_name_the_constructor_uses() -> None:
    assert Reserved() == Reserved(1, 2, 3, 4)
    assert (Reserved().made, Reserved().open, Reserved().become, Reserved(missing=5).missing) == (
        1,
        2,
        3,
        5,
    )
