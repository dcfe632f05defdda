"""Questions of servers, as the terminal draws them."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

import anyio
import pytest
from tests.tui.terminal_world import Terminal
from tests.tui.test_terminal import READY, scripted

from fast_agent.mcp.server import derived_name
from fast_agent.tools.human import HumanRequest
from fast_agent.tui.drawing.rows import plain
from fast_agent.tui.drawing.theme import Theme
from fast_agent.tui.questions import QUIET_SECONDS, Questions, TerminalUser

ADDRESS = "https://example.org/sign-in?next=\u202egro.live"


class _Origins:
    def agent_origin(self, name: str) -> str | None:
        return f"{name}.md"

    def server_origin(self, name: str) -> str | None:
        return None if name == "unknown" else "fastagent.config.yaml"


@pytest.mark.anyio
@pytest.mark.spec("T-P6.3")
async def test_text_of_a_server_is_named_as_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    now = [0.0]
    questions = Questions(lambda: None, lambda: now[0])
    user = TerminalUser(questions, _Origins())
    request = HumanRequest(
        message="approve\n? agent `ann` asks\x1b[2J",
        agent_name="ann",
        server_name="desk",
        url=ADDRESS,
    )
    rows: list[str] = []
    async with anyio.create_task_group() as tasks:

        async def asked() -> None:
            assert (await user.ask(request)).action == "decline"

        tasks.start_soon(asked)
        await anyio.wait_all_tasks_blocked()
        question = questions.current
        assert question is not None
        now[0] = QUIET_SECONDS
        theme = Theme(styled=False, ascii_only=False)
        rows = [plain(row) for row in question.rows(80, 30, theme, armed=True, place="")]
        choice = question.choice_of("n")
        assert choice is not None
        question.submit(choice.value)
    assert rows[0].startswith("? server `desk` (fastagent.config.yaml) asks, for agent `ann`")
    # What the server wrote stands behind a bar, so that it cannot look like a question of its own.
    theirs = [row for row in rows if "approve" in row or "ann` asks" in row or "example.org" in row]
    assert len(theirs) == 3
    assert all(row.startswith("│ ") for row in theirs)
    assert "\x1b" not in "".join(rows)
    assert "\u202e" not in "".join(rows)
    assert opened == []


@pytest.mark.anyio
@pytest.mark.spec("T-P6.2")
async def test_a_form_marks_defaults_and_says_what_an_empty_answer_means() -> None:
    fields = {
        "days": {"type": "integer", "default": 3},
        "kind": {"enum": ["train", "plane"], "default": "plane"},
        "window": {"type": "boolean", "default": False},
        "meal": {"type": "boolean"},
        "note": {"type": "string"},
    }
    questions = Questions(lambda: None, lambda: 0.0)
    request = HumanRequest(
        message="Where?",
        agent_name="ann",
        server_name="desk",
        schema={"type": "object", "properties": fields, "required": ["days", "meal"]},
    )
    seen: list[str | None] = []
    async with anyio.create_task_group() as tasks:

        async def asked() -> None:
            answer = await TerminalUser(questions, _Origins()).ask(request)
            assert answer.content == {"days": 3, "kind": "plane", "window": False, "meal": True}

        tasks.start_soon(asked)
        for _ in fields:
            await anyio.wait_all_tasks_blocked()
            question = questions.current
            assert question is not None
            if question.parse is not None:
                seen.append(question.lines[-1])
                question.submit(question.parse(""))
                continue
            at = question.selected
            seen.append(None if at is None else question.choices[at].label)
            choice = question.choice_of("y") if at is None else question.choices[at]
            assert choice is not None
            question.submit(choice.value)
    assert seen == ["(integer, empty for 3)", "plane", "no", None, "(string, may be empty)"]


@pytest.mark.spec("T-P6.5")
@pytest.mark.parametrize(("key", "answer"), [("y", "says from the model"), ("n", "declined")])
def test_sampling_is_shown_like_a_permission(project: Path, key: str, answer: str) -> None:
    server = f"{sys.executable} {Path(__file__).parents[1] / 'mcp/servers/everything.py'} stdio"
    name = derived_name(server)
    call = {"name": f"{name}__consult", "arguments": {"question": "which\x1b[2J way?"}}
    steps = [{"call": call}, {"text": "from the model"}, {"text": "the end"}]
    with Terminal(
        *scripted(project, *(steps if key == "y" else (steps[0], steps[2]))),
        "--stdio", server, columns=160, rows=40,
    ) as terminal:  # fmt: skip
        terminal.wait_for(READY)
        terminal.line("go")
        terminal.wait_for_screen("asks for an answer of a model")
        terminal.wait_for_screen("answer with 1-3")  # the last row of the question
        shown = "\n".join(terminal.display)
        assert "most tokens: 77" in shown
        assert "system: Be brief." in shown
        assert "user: which<U+001B>[2J way?" in shown
        terminal.send(key)
        terminal.wait_for(answer, "the end")
