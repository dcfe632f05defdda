"""`fast-agent trust`, and what other commands do with cards that were found."""

from __future__ import annotations

import codecs
import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

import pytest
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.card_writer import WriteCard
    from tests.cli.conftest import Ran

    Run: TypeAlias = Callable[..., Ran]

pytestmark = pytest.mark.skip(reason="the command asks about whole projects from now on")

CALL = ("go", "-q", "--model", "passthrough", "-m", "***CALL_TOOL add {}")
CARD = ".fast-agent/agent-cards/ann.md"


@pytest.fixture(name="card")
def _card(write_card: WriteCard) -> Path:
    card = write_card(CARD, "function_tools: [tools.py:add]")
    (card.parent / "tools.py").write_text(
        "from one import ONE\ndef add() -> int:\n    return ONE\n"
    )
    (card.parent / "one.py").write_text("ONE = 1\n")
    return card


@pytest.mark.spec("APPROVAL-1", "APPROVAL-3", "APPROVAL-8")
def test_it_approves_what_loads_by_itself_as_it_is(run: Run, card: Path) -> None:
    refused = run(*CALL)
    assert (refused.code, refused.codes) == (1, ["FA801"])
    assert f"`fast-agent trust {CARD}`" in refused.err
    approved = run("trust")
    assert approved.code == 0
    assert approved.out == (
        f"approved {CARD}: `ann` by `function_tools`; it may run one.py, tools.py\n"
    )
    assert run(*CALL).out == "1\n"
    (card.parent / "one.py").write_text("ONE = 2\n")
    changed = run(*CALL)
    assert (changed.code, changed.codes) == (1, ["FA802"])
    assert run(*CALL, "--trust").out == "2\n"
    assert run(*CALL).code == 1, "--trust is for once"
    assert run("trust", CARD).code == 0
    assert run(*CALL).out == "2\n"


@pytest.mark.spec("APPROVAL-9")
def test_it_lists_approvals_with_how_they_stand_and_revokes_them(
    run: Run, card: Path, write_card: WriteCard
) -> None:
    assert run("trust", "--list").out == "no card is approved\n"
    changed = write_card(".fast-agent/tool-cards/bob.md", "shell: true")
    gone = write_card(".fast-agent/tool-cards/cid.md", "shell: true")
    plain = write_card(".fast-agent/tool-cards/dan.md", "shell: true")
    assert run("trust").code == 0
    write_card(".fast-agent/tool-cards/bob.md", "shell: true", body="Other.")
    gone.unlink()
    write_card(".fast-agent/tool-cards/dan.md")
    lines = run("trust", "--list").out.splitlines()
    listed = {path: standing for standing, path in map(str.split, lines)}
    assert listed == {
        str(card): "approved",
        str(changed): "changed",
        str(gone): "gone",
        str(plain): "unneeded",
    }
    assert run("trust", "--revoke", CARD).out == f"revoked {card}\n"
    assert run(*CALL).codes == ["FA801", "FA802"]
    assert len(run("trust", "--revoke").out.splitlines()) == 3
    assert run("trust", "--list").out == "no card is approved\n"


def test_there_may_be_nothing_to_approve(run: Run, write_card: WriteCard) -> None:
    for arguments in ((), ("plain.md",)):
        write_card("plain.md")
        done = run("trust", *arguments)
        assert (done.code, done.out) == (0, "")
        assert "nothing to approve" in done.err
    missing = run("trust", "missing.md")
    assert (missing.code, missing.codes) == (1, ["FA131"])
    broken = write_card("broken.md", "shell: [")
    assert run("trust", broken).code == 1
    assert run("trust", "--list").out == "no card is approved\n"
    assert run("trust", "--list", "--revoke").code == 2
    revoked = run("trust", "--revoke", "missing.md")
    assert (revoked.code, revoked.out) == (0, "")
    assert "nothing to revoke" in revoked.err


def test_names_that_would_steer_a_terminal_are_shown_plainly(
    run: Run, write_card: WriteCard
) -> None:
    write_card("\x1b[2J.md", "name: ann", "shell: true")
    done = run("trust", ".")
    assert "\x1b" not in done.out + done.err
    assert "<U+001B>" in done.out


@pytest.mark.spec("APPROVAL-8")
@pytest.mark.parametrize(("answer", "code", "out"), [("y", 0, "1"), ("n", 1, ""), ("", 1, "")])
def test_a_person_at_the_terminal_is_asked(
    project: Path, card: Path, answer: str, code: int, out: str
) -> None:
    asked, done, printed = at_terminal(project, answer, *CALL)
    assert CARD in asked
    assert "tools.py" in asked
    assert (done, printed.strip()) == (code, out)
    again = subprocess.run(
        [Path(sys.executable).with_name("fast-agent"), *CALL],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert again.returncode == code


def at_terminal(project: Path, answer: str, *arguments: str) -> tuple[str, int, str]:
    """Run the command at a terminal of its own, and answer its question.

    Returns:
        What the terminal showed, the exit status, and what went to standard output.
    """
    screen, terminal = pty.openpty()
    with subprocess.Popen(
        [Path(sys.executable).with_name("fast-agent"), *arguments],
        cwd=project,
        stdin=terminal,
        stderr=terminal,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(terminal)
        decode = codecs.getincrementaldecoder("utf-8")().decode
        shown, end = "", monotonic() + PATIENCE
        answered = False
        while monotonic() < end:
            if not select.select([screen], [], [], 0.05)[0]:
                if process.poll() is not None:
                    break
                continue
            try:
                shown += decode(os.read(screen, 4096))
            except OSError:
                break
            if not answered and "may they run it?" in shown:
                answered = True
                os.write(screen, f"{answer}\n".encode())
        assert process.stdout is not None
        printed = process.stdout.read()
        code = process.wait(timeout=60)
    os.close(screen)
    assert answered, shown
    return shown, code, printed
