"""Steps with places: ids of turns and time-outs, in each life of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio
import pytest

from fast_agent.messages.message import Message
from fast_agent.steps.parts import StepRedactor
from fast_agent.steps.steps import Key, PlacedSteps, here

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.steps.steps import Codec, Kind, Step, Work
    from fast_agent.text.json_value import JsonValue

pytestmark = pytest.mark.anyio

T = TypeVar("T")


class Lives(PlacedSteps):
    """Steps that remember what they noted in `notes`, which outlives them."""

    def __init__(self, notes: dict[object, str], run: str | None = None) -> None:
        super().__init__(StepRedactor(), lambda _, __: None, run)
        self._notes = notes

    async def ask(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        del step, codec
        await self.stop_if_late()
        return await work()

    async def enter(self, agent: str) -> None: ...

    def part(self, digest: str) -> JsonValue:
        return digest

    def note(self, kind: Kind, name: str, value: Callable[[], str]) -> str:
        key = self.places.key(kind, name)
        return self._notes.setdefault(key, value())

    def noted_late(self, key: Key) -> bool | None:
        noted = self._notes.get(key)
        return None if noted is None else noted == "late"

    def note_late(self, key: Key, *, is_late: bool) -> None:
        self._notes[key] = "late" if is_late else "in time"

    def check(self) -> None: ...


def ids_of(steps: Lives) -> list[str]:
    fresh = iter(("one", "two", "three")).__next__
    found = [steps.new_id(fresh)]
    with steps.turn("ann", Message.user("hi"), None):
        found += [steps.new_id(fresh), steps.new_id(fresh)]
    return found


def test_ids_of_turns_are_made_of_the_run_and_their_places() -> None:
    first = ids_of(Lives({}, "run-1"))
    assert len({*first}) == 3
    assert all(one.startswith("turn-") for one in first)
    assert ids_of(Lives({}, "run-1")) == first
    assert not {*ids_of(Lives({}, "run-2"))} & {*first}


def test_a_member_of_a_workflow_is_not_at_the_place_of_a_call() -> None:
    steps = Lives({}, "run-1")
    made = steps.new_id(lambda: "fresh")
    with steps.turn("ann", Message.user("hi"), made):
        assert "@" not in here().path
    with steps.turn("ann", Message.user("hi"), "call-1"):
        assert "@call-1" in here().path


def test_what_is_silent_stays_silent_outside_of_its_turn() -> None:
    places = Lives({}).places
    with places.silence(), places.outside():
        assert here().silent
    with places.outside():
        assert not here().silent


def test_ids_of_turns_are_noted_where_a_run_has_no_id() -> None:
    notes: dict[object, str] = {}
    assert ids_of(Lives(notes)) == ["one", "two", "three"]
    assert len(notes) == 3


async def test_a_time_out_expires_in_each_life_as_in_the_first() -> None:
    notes: dict[object, str] = {}
    lives: list[list[str]] = []
    for _ in range(2):
        steps, did = Lives(notes), list[str]()

        async def hang(did: list[str] = did) -> None:
            did.append("asked")
            await anyio.sleep_forever()

        for name, seconds in (("long", 3600.0), ("short", 0.001)):
            with steps.deadline(name, seconds) as scope:
                if name == "short":
                    await steps.stop_if_late()
                    await hang()
            did.append(f"{name}: {scope.cancelled_caught}")
        lives.append(did)
    assert lives[0] == ["long: False", "asked", "short: True"]
    assert lives[1] == ["long: False", "short: True"]
    assert list(notes.values()) == ["in time", "late"]
