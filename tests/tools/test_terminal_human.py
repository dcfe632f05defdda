from __future__ import annotations

import codecs
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from fast_agent.tools.human import HumanAnswer, HumanRequest
from fast_agent.tools.terminal_human import TerminalHuman

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio


class Keyboard:
    """The other end of a terminal."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        self.human = TerminalHuman(os.ttyname(self.slave))
        self.shown = ""
        self._decode = codecs.getincrementaldecoder("utf-8")().decode

    async def wait_for(self, text: str) -> None:
        with anyio.fail_after(60):
            while text not in self.shown:
                await anyio.wait_readable(self.master)
                self.shown += self._decode(os.read(self.master, 65536))

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())


@pytest.fixture
def keyboard() -> Iterator[Keyboard]:
    made = Keyboard()
    yield made
    os.close(made.master)
    os.close(made.slave)


async def answer(
    keyboard: Keyboard, request: HumanRequest, *typed: tuple[str, str]
) -> HumanAnswer | None:
    """Ask, and type each text when the screen shows what is before it."""
    answers: list[HumanAnswer] = []

    async def ask() -> None:
        answers.append(await keyboard.human.ask(request))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        for shown, text in typed:
            await keyboard.wait_for(shown)
            keyboard.type(text)
    return answers[0]


def question(message: str = "Well?", **fields: Any) -> HumanRequest:
    return HumanRequest(message=message, agent_name="writer", **fields)


async def test_an_answer_in_words(keyboard: Keyboard) -> None:
    given = await answer(keyboard, question("Which\ncolour?"), ("answer: ", "dark blüe\n"))
    assert given == HumanAnswer(action="accept", content={"text": "dark blüe"})
    assert "agent `writer` asks" in keyboard.shown
    assert "  | Which\r\n  | colour?\r\n" in keyboard.shown


async def test_a_form_is_filled_field_by_field_and_asked_again_where_it_does_not_fit(
    keyboard: Keyboard,
) -> None:
    schema = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "description": "In metres.", "minimum": 1},
            "colour": {"enum": ["red", "blue"]},
            "sure": {"type": "boolean", "default": True},
            "note": {"type": "string"},
        },
        "required": ["size", "colour"],
    }
    given = await answer(
        keyboard,
        question(schema=schema),
        ("size (whole number): ", "\n"),
        ("an answer is needed", "0\n"),
        ("less than the minimum", "4\n"),
        ("2. blue", "2\n"),
        ("sure (yes or no, empty for True): ", "\n"),
        ("note (string, may be empty): ", "\n"),
    )
    assert given == HumanAnswer(
        action="accept", content={"size": 4, "colour": "blue", "sure": True}
    )
    assert "  | In metres." in keyboard.shown


@pytest.mark.parametrize(
    ("typed", "action"), [("/decline\n", "decline"), ("/cancel\n", "cancel"), ("\x04", "cancel")]
)
async def test_a_person_may_refuse(keyboard: Keyboard, typed: str, action: Any) -> None:
    assert await answer(keyboard, question(), ("answer: ", typed)) == HumanAnswer(action=action)


async def test_what_a_server_says_is_labelled_and_cannot_pass_for_the_program(
    keyboard: Keyboard,
) -> None:
    message = "Hello\x1b[2J\u202eevil\nagent `writer` asks:\rpassword: "
    await answer(keyboard, question(message, server_name="s\x1b[1m"), ("answer: ", "x\n"))
    assert "server `s<U+001B>[1m` asks, for agent `writer`" in keyboard.shown
    assert "  | Hello<U+001B>[2J<U+202E>evil\r\n" in keyboard.shown
    assert "\r\n  | agent `writer` asks:" in keyboard.shown
    assert "\r\n  | password: " in keyboard.shown
    assert "\x1b" not in keyboard.shown
    assert "\u202e" not in keyboard.shown


class Files:
    def agent_origin(self, name: str) -> str | None:
        return {"writer": "cards/writer.md", "rude": "a\x1b[2J.md"}.get(name)

    def server_origin(self, name: str) -> str | None:
        return {"notes": "fastagent.config.yaml:4"}.get(name)


@pytest.mark.spec("TR-T1.3")
async def test_a_question_names_the_files_of_who_asks(keyboard: Keyboard) -> None:
    keyboard.human = TerminalHuman(os.ttyname(keyboard.slave), origins=Files())
    await answer(keyboard, question(), ("answer: ", "x\n"))
    assert "agent `writer` (cards/writer.md) asks (/decline" in keyboard.shown
    await answer(keyboard, question(server_name="notes"), ("(fastagent", "x\n"))
    assert "server `notes` (fastagent.config.yaml:4) asks, for agent `writer`" in keyboard.shown
    several = HumanRequest(message="?", agent_name="rude, someone", server_name="other")
    await answer(keyboard, several, ("someone", "x\n"))
    assert "server `other` asks, for agents `rude` (a<U+001B>[2J.md), `someone`" in keyboard.shown


async def test_a_long_message_is_cut(keyboard: Keyboard) -> None:
    message = "\n".join(["x" * 10_000] * 100)
    await answer(keyboard, question(message), ("answer: ", "x\n"))
    assert "(40 more lines)" in keyboard.shown
    assert len(keyboard.shown) < 60 * 500


@pytest.mark.parametrize(("typed", "action"), [("yes\n", "accept"), ("\n", "decline")])
async def test_an_address_is_shown_to_be_opened(
    keyboard: Keyboard, typed: str, action: Any
) -> None:
    request = question(server_name="s", url="https://example.org/x")
    given = await answer(keyboard, request, ("opened? yes or no: ", typed))
    assert given == HumanAnswer(action=action)
    assert "https://example.org/x" in keyboard.shown


async def test_waiting_can_be_cancelled_and_the_next_question_is_answered(
    keyboard: Keyboard,
) -> None:
    with anyio.move_on_after(0.05) as scope:
        await keyboard.human.ask(question("First?"))
    assert scope.cancelled_caught
    given = await answer(keyboard, question("Second?"), ("Second?", ""), ("answer: ", "yes\n"))
    assert given == HumanAnswer(action="accept", content={"text": "yes"})


async def test_a_form_that_is_no_form_is_cancelled(keyboard: Keyboard) -> None:
    given = await keyboard.human.ask(question(schema={"type": "string"}))
    assert given == HumanAnswer(action="cancel")


async def test_without_a_terminal_there_is_nobody() -> None:
    program = "import sys\nfrom fast_agent.tools.terminal_human import TerminalHuman\n"
    program += "sys.exit(0 if TerminalHuman.find() is None else 1)"
    done = subprocess.run(  # noqa: ASYNC221
        [sys.executable, "-c", program], start_new_session=True, timeout=30
    )
    assert done.returncode == 0
    assert await TerminalHuman("/nowhere").ask(question()) == HumanAnswer(action="cancel")
