from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from fast_agent import FastAgent
from fast_agent.errors import CardError, ConfigError
from fast_agent.mcp.server import from_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.card_writer import WriteCard

    NewProgram: TypeAlias = Callable[..., FastAgent]


@pytest.mark.spec("CARD-3", "CARD-75", "PY-1")
def test_load_agents_takes_files_and_directories_and_names_what_it_loaded(
    new_program: NewProgram, write_card: WriteCard
) -> None:
    write_card("cards/zoe.md")
    (write_card("cards/zoe.md").parent / "ann.yaml").write_text("instruction: hi")
    single = write_card("bob.md", "name: robert")
    program = new_program()
    assert program.load_agents("cards") == ["ann", "zoe"]
    assert program.load_agents(single) == ["robert"]
    assert program.load_agents("cards", "bob.md") == ["ann", "zoe", "robert"]
    assert program.names() == ["ann", "zoe", "robert"]


@pytest.mark.spec("CARD-72", "CARD-22", "CARD-7")
def test_names_leave_out_agents_that_are_tools_only(
    new_program: NewProgram, write_card: WriteCard
) -> None:
    write_card("ann.md")
    write_card("tool.md", "tool_only: true")
    program = new_program()
    assert program.load_agents(".") == ["ann", "tool"]
    assert program.names() == ["ann"]
    assert program.load_set.default == "ann"


@pytest.mark.spec("CARD-81")
def test_loading_a_path_again_removes_what_is_gone(
    new_program: NewProgram, write_card: WriteCard
) -> None:
    gone = write_card("cards/ann.md")
    write_card("cards/bob.md")
    write_card("other.md")
    program = new_program()
    program.agent("coded")
    program.load_agents("other.md", "cards")
    gone.unlink()
    assert program.load_agents("./cards/") == ["bob"]
    assert sorted(program.names()) == ["bob", "coded", "other"]


@pytest.mark.spec("CARDS-6", "CARDS-2", "PY-5")
def test_a_load_with_an_error_changes_nothing_and_tells_everything(
    new_program: NewProgram, write_card: WriteCard
) -> None:
    write_card("good/ann.md", "function_tools: [tools.py:add]")
    (write_card("good/x.md").parent / "tools.py").write_text("def add(a: int) -> int: return a")
    program = new_program()
    program.load_agents("good")
    before = program.snapshot
    write_card("good/x.md", "model: passthrogh")
    write_card("bad/y.md", "messages: nope.md", "function_tools: [nope.py:f]", body="{{file:no}}")
    with pytest.raises(CardError) as raised:
        program.load_agents("good", "bad")
    codes = {found.code for found in raised.value.diagnostics}
    assert codes == {"FA501", "FA401", "FA602", "FA702"}
    assert all(found.path and found.span for found in raised.value.diagnostics)
    assert program.snapshot is before


def test_a_load_runs_no_code_of_cards(
    new_program: NewProgram, write_card: WriteCard, tmp_path: Path
) -> None:
    write_card("ann.md", "function_tools: [tools.py:add]")
    (tmp_path / "tools.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('ran').touch()\ndef add(): ...\n"
    )
    new_program().load_agents(".")
    assert not (tmp_path / "ran").exists()


@pytest.mark.spec("CONF-3")
def test_cards_and_configuration_are_wrong_together(
    new_program: NewProgram, write_card: WriteCard
) -> None:
    write_card("ann.md", "agents: [nobody]", "use_histroy: true", "messages: nope.md")
    program = new_program("mpc: {}\n")
    with pytest.raises(ConfigError) as raised:
        program.load_agents("ann.md")
    codes = [found.code for found in raised.value.diagnostics]
    assert codes == ["FA303", "FA101", "FA201", "FA401"]


@pytest.mark.parametrize(
    ("configuration", "code", "line"),
    [
        ("# first\ndefault_model: sonet\n", "FA501", 2),
        ("model_aliases:\n  mine: openai.gpt-5?speed=9\n", "FA503", 2),
        ("default_model: scripted?file=nope.yaml\n", "FA509", 1),
    ],
)
def test_models_of_the_configuration_are_checked_where_they_are_written(
    new_program: NewProgram, configuration: str, code: str, line: int
) -> None:
    program = new_program(configuration)
    with pytest.raises(ConfigError) as raised:
        program.load_agents()
    (found,) = raised.value.diagnostics
    assert (found.code, found.path.rpartition("/")[2]) == (code, "fastagent.config.yaml")
    assert found.span is not None
    assert found.span.start.line == line


def test_problems_of_the_configuration_name_a_path_that_opens_from_here(
    new_program: NewProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path.parent)
    with pytest.raises(ConfigError) as raised:
        _ = new_program("mpc: {}\n").settings
    (found,) = raised.value.diagnostics
    assert found.path == os.path.join(tmp_path.name, "fastagent.config.yaml")  # noqa: PTH118
    assert Path(found.path).exists()


def test_a_file_through_two_roots_is_loaded_once(
    new_program: NewProgram, write_card: WriteCard, tmp_path: Path
) -> None:
    write_card("cards/ann.md")
    (tmp_path / "link").symlink_to(tmp_path / "cards")
    program = new_program()
    program.load_agents("cards")
    program.load_agents("cards/ann.md", "./cards/../cards")
    program.load_agents("link")
    assert program.names() == ["ann"]


@pytest.mark.spec("CARD-4", "CARD-19", "FILE-11")
def test_several_cards_in_a_file_need_the_option(
    new_program: NewProgram, write_card: WriteCard, tmp_path: Path
) -> None:
    (tmp_path / "two.yaml").write_text(
        "name: ann\ninstruction: hi\n---\ntype: agent\nname: bob\ninstruction: ho\n"
    )
    program = new_program()
    with pytest.raises(CardError, match="a file holds one card") as raised:
        program.load_agents("two.yaml")
    assert "--multi-card" in (raised.value.hint or "")
    assert program.load_agents("two.yaml", multi_card=True) == ["ann", "bob"]


@pytest.mark.spec("CARD-62", "SET-4")
def test_servers_of_the_configuration_and_of_the_program(
    new_program: NewProgram, write_card: WriteCard
) -> None:
    write_card("ann.md", "servers: [time, web]")
    program = new_program("mcp: {servers: {time: {url: 'http://localhost/mcp'}}}\n")
    with pytest.raises(CardError, match="no MCP server `web`"):
        program.load_agents("ann.md")
    program = new_program()
    program.add_server(from_url("http://web/mcp", taken=[]))
    program.load_agents("ann.md")
    assert program.load_set.cards["ann"].config.servers == ("time", "web")
    with pytest.raises(ConfigError, match="before cards are loaded"):
        program.add_server(from_url("http://late/mcp", taken=[]))


def test_the_configuration_can_be_named_or_left_aside(tmp_path: Path) -> None:
    (tmp_path / "fastagent.config.yaml").write_text("default_model: passthrough")
    (tmp_path / "own.yaml").write_text("default_model: slow")
    environ = {"HOME": str(tmp_path)}
    named = FastAgent(cwd=tmp_path, environ=environ, config_path="own.yaml")
    assert named.settings.default_model == "slow"
    assert FastAgent(cwd=tmp_path, environ=environ).settings.default_model == "passthrough"
    ignoring = FastAgent(cwd=tmp_path, environ=environ, ignore_config=True)
    assert ignoring.settings.default_model is None


@pytest.mark.parametrize("path", ["nope.md", "nope", "notes.txt", "SKILL.md"])
def test_what_is_no_card_is_an_error_when_it_is_named(
    new_program: NewProgram, tmp_path: Path, path: str
) -> None:
    (tmp_path / "notes.txt").write_text("hi")
    (tmp_path / "SKILL.md").write_text("---\nname: x\ndescription: y\n---\nz")
    with pytest.raises(CardError):
        new_program().load_agents(path)
