"""`confirm`: calls a card marks are made only when a person allows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from fast_agent.tools.human import HumanAnswer, HumanRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.app import FastAgent
    from fast_agent.tools.human import Human

    NewProgram: TypeAlias = Callable[..., FastAgent]

pytestmark = pytest.mark.anyio

FUNCTIONS = """\
def wipe(name: str) -> str:
    return f"wiped {name}"

def look(name: str) -> str:
    return f"saw {name}"
"""
HOOKS = """\
async def around(ctx, args, call_next):
    return await call_next({"name": args["name"].upper()})
"""


class Person:
    def __init__(self, answer: HumanAnswer) -> None:
        self.answer = answer
        self.asked: list[HumanRequest] = []

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        self.asked.append(request)
        return self.answer


YES = HumanAnswer(action="accept", content={"call": "yes"})
NO = HumanAnswer(action="accept", content={"call": "no"})
AWAY = HumanAnswer(action="cancel")


async def said(
    new_program: NewProgram, place: Path, call: str, human: Human | None, **fields: Any
) -> str:
    (place / "functions.py").write_text(FUNCTIONS)
    (place / "hooks.py").write_text(HOOKS)
    program = new_program()
    program.agent(
        "careful",
        model="passthrough",
        function_tools=["functions.py:wipe", "functions.py:look"],
        confirm=["wip?"],
        **fields,
    )
    async with program.run(human=human) as app:
        return await app(f'***CALL_TOOL {call} {{"name": "disk"}}')


@pytest.mark.spec("PERMISSION-1")
async def test_a_marked_call_is_made_when_the_person_says_yes(
    new_program: NewProgram, tmp_path: Path
) -> None:
    person = Person(YES)
    assert await said(new_program, tmp_path, "wipe", person) == "wiped disk"
    assert len(person.asked) == 1
    assert "`wipe`" in person.asked[0].message
    assert "disk" in person.asked[0].message
    assert person.asked[0].agent_name == "careful"


@pytest.mark.spec("PERMISSION-1")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (NO, "the user did not allow it"),
        (HumanAnswer(action="decline"), "the user did not allow it"),
        (AWAY, "it requires approval, and no user answered"),
    ],
)
async def test_it_is_not_made_otherwise(
    new_program: NewProgram, tmp_path: Path, answer: HumanAnswer, reason: str
) -> None:
    answered = await said(new_program, tmp_path, "wipe", Person(answer))
    assert answered == f"`wipe` was not run: {reason}"


@pytest.mark.spec("PERMISSION-1")
async def test_nobody_to_ask_allows_nothing(new_program: NewProgram, tmp_path: Path) -> None:
    answered = await said(new_program, tmp_path, "wipe", None)
    assert "was not run: it requires approval" in answered


@pytest.mark.spec("PERMISSION-1")
async def test_the_person_of_the_conversation_is_asked(
    new_program: NewProgram, tmp_path: Path
) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    program, person, other = new_program(), Person(YES), Person(NO)
    program.agent(
        "careful", model="passthrough", function_tools="functions.py:wipe", confirm="wipe"
    )
    async with program.run(human=other) as app:
        agent = app.agent("careful", app.new_conversation(human=person))
        assert await agent.send('***CALL_TOOL wipe {"name": "disk"}') == "wiped disk"
    assert (len(person.asked), other.asked) == (1, [])


async def test_other_calls_are_not_asked_about(new_program: NewProgram, tmp_path: Path) -> None:
    person = Person(NO)
    assert await said(new_program, tmp_path, "look", person) == "saw disk"
    assert person.asked == []


@pytest.mark.spec("PERMISSION-2")
async def test_the_person_is_asked_about_what_hooks_leave(
    new_program: NewProgram, tmp_path: Path
) -> None:
    person = Person(YES)
    answered = await said(new_program, tmp_path, "wipe", person, tool_hooks=["hooks.py:around"])
    assert answered == "wiped DISK"
    assert "DISK" in person.asked[0].message
