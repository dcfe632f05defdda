"""The first conversation of a user who has set up nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.tui.terminal_world import Terminal

from fast_agent.config.providers import PROVIDERS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.card_writer import WriteCard

READY = "? for keys"


@pytest.fixture(name="nothing", autouse=True)
def _nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        for variable in provider.key_variables:
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("FAST_AGENT_MODEL", raising=False)
    # Nothing is fetched from the network by a test.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(project))
    monkeypatch.setenv("UV_OFFLINE", "1")  # it downloads where there is no pip
    monkeypatch.setenv("UV_NO_CACHE", "1")


@pytest.mark.spec("T-S3.1")
def test_without_a_key_a_card_and_a_model_there_is_an_answer_and_a_next_step() -> None:
    with Terminal("go") as terminal:
        terminal.wait_for(READY, "No model is set up", "/pull", "ANTHROPIC_API_KEY", "/card PATH")
        terminal.line("are you there?")
        terminal.wait_for(" out")
        assert terminal.everything.count("are you there?") == 2
        assert not any("no model is configured" in row for row in terminal.everything)
        terminal.line("/pull")
        terminal.wait_for("error: ", "hint: ")
        terminal.line("still here")
        terminal.wait_until(lambda: terminal.everything.count("still here") == 2, "an answer")


@pytest.mark.spec("T-C0.9")
@pytest.mark.parametrize("name", ["fastagent.secrets.yaml", "fast-agent.secrets.yaml"])
def test_a_key_is_kept_and_used_at_once(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    secrets = home / name
    secrets.write_text("# mine\nopenai:\n  organization: o\n", "utf-8")
    secrets.chmod(0o644)
    key = "sk-ant-not-a-real-key"
    with Terminal("go") as terminal:
        terminal.wait_for(READY, "No model is set up")
        terminal.line("/auth anthropc")
        terminal.wait_for("did you mean `anthropic`?")
        terminal.line("/auth anthropic")
        terminal.wait_for_screen("The key for Anthropic?")
        for typed in ("two words", key):
            terminal.send(f"\x15{typed}")
            terminal.wait_for_screen(f"> {'*' * len(typed)}")
            terminal.send("\r")
            if typed != key:
                terminal.wait_for_screen("a key has no blanks")
        terminal.wait_for("starting again with it")
        terminal.wait_for_screen("agent · sonnet")
        assert key not in "\n".join(terminal.everything)
        terminal.line("/exit")
        assert terminal.wait() == 0
    assert secrets.read_text("utf-8").startswith("# mine\nopenai:\n  organization: o\n")
    assert f"anthropic:\n  api_key: {key}\n" in secrets.read_text("utf-8")
    assert secrets.stat().st_mode & 0o777 == 0o600
    for file in home.rglob("*"):
        if file.is_file() and file != secrets:
            assert key.encode() not in file.read_bytes(), file


@pytest.mark.spec("T-S3.1")
def test_in_plain_mode_a_key_is_not_typed() -> None:
    with Terminal("go", "--plain") as terminal:
        terminal.wait_for("No model is set up")
        terminal.line("/auth anthropic")
        terminal.wait_for("what is typed cannot be hidden", "set ANTHROPIC_API_KEY")


@pytest.mark.parametrize("plain", [(), ("--plain",)])
def test_workflows_without_a_model_of_their_own_are_left_alone(
    write_card: WriteCard, plain: tuple[str, ...]
) -> None:
    write_card("top.md", "type: chain", "sequence: [one, two]", "default: true")
    write_card("one.md")
    write_card("two.md")
    with Terminal("go", "--card", ".", *plain) as terminal:
        terminal.wait_for("no model is set up")
        terminal.line("are you there?")
        terminal.wait_until(
            lambda: sum("are you there?" in row for row in terminal.everything) >= 2, "an answer"
        )


@pytest.mark.spec("T-S3.1")
def test_the_model_of_this_machine_is_named(tmp_path: Path) -> None:
    weights = tmp_path / "home" / "models" / "smollm2.gguf"
    weights.parent.mkdir()
    weights.write_bytes(b"GGUF")
    with Terminal("go") as terminal:
        terminal.wait_for("A small model on this machine answers", "ANTHROPIC_API_KEY")
        terminal.wait_for_screen("agent · local")


def test_weights_of_a_file_are_fetched(project: Path) -> None:
    (project / "tiny.gguf").write_bytes(b"GGUF" + bytes(64))
    with Terminal("go", columns=100) as terminal:
        terminal.wait_for(READY)
        terminal.line("/pull tiny.gguf")
        terminal.wait_for("local.tiny is on this machine; /model local.tiny has it answer")


@pytest.mark.spec("T-S3.1")
def test_nothing_is_said_where_a_model_was_chosen() -> None:
    with Terminal("go", "--model", "passthrough") as terminal:
        terminal.wait_for(READY)
        terminal.line("hello")
        terminal.wait_for(" out")
        assert not any("/pull" in row for row in terminal.everything)


def test_a_message_that_no_model_can_take_is_in_the_editor_again() -> None:
    with Terminal("go", "--model", "local") as terminal:
        terminal.wait_for(READY)
        terminal.line("keep me")
        terminal.wait_for("fast-agent models pull smollm2")
        terminal.wait_for_screen("> keep me")
        terminal.send("\x03")
        terminal.line("/model passthrough")
        terminal.wait_for("uses passthrough")
        terminal.line("and now?")
        terminal.wait_until(lambda: terminal.everything.count("and now?") == 2, "an answer")
        terminal.line("/session list")
        terminal.wait_for("(this one)")


@pytest.mark.spec("TR-G3.1a")
def test_what_was_just_declined_is_named_in_one_line(project: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / "fastagent.config.yaml").unlink()  # nobody vouched for the project
    cards = project / ".fast-agent/agent-cards"
    cards.mkdir(parents=True)
    for name in ("ann", "bob"):
        (cards / f"{name}.md").write_text("---\nmodel: passthrough\nshell: true\n---\nAct.\n")
    with Terminal("go") as terminal:
        terminal.wait_for("Let it?", "n no (default)")
        terminal.wait_for_reader()
        terminal.send("n\r")
        terminal.wait_for("left out, as you answered: `ann`, `bob`", "the plain assistant answers")
        assert not any("is left out: " in row for row in terminal.everything)
    with Terminal("go") as terminal:  # the answer is kept, so that nothing is asked now
        terminal.wait_for("`ann` is left out: it would run any command", "`bob` is left out: ")
