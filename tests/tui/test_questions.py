"""Questions of servers, as the terminal draws them."""

from __future__ import annotations

import webbrowser

import anyio
import pytest

from fast_agent.tools.human import HumanRequest
from fast_agent.tui.questions import QUIET_SECONDS, Questions, TerminalUser
from fast_agent.tui.rows import plain
from fast_agent.tui.theme import Theme

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
        question.settle(choice.value)
    assert rows[0].startswith("? server `desk` (fastagent.config.yaml) asks, for agent `ann`")
    # What the server wrote stands behind a bar, so that it cannot look like a question of its own.
    theirs = [row for row in rows if "approve" in row or "ann` asks" in row or "example.org" in row]
    assert len(theirs) == 3
    assert all(row.startswith("│ ") for row in theirs)
    assert "\x1b" not in "".join(rows)
    assert "\u202e" not in "".join(rows)
    assert opened == []
