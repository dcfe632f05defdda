"""`fast-agent check`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ran
    from tests.card_writer import WriteCard

    Run: TypeAlias = Callable[..., Ran]


@pytest.mark.spec("CHECK-1")
def test_a_clean_set(run: Run, write_card: WriteCard) -> None:
    write_card("cards/ann.md", "default: true")
    write_card("cards/bob.md", "tool_only: true")
    done = run("check", "cards")
    assert done.code == 0
    assert done.err == "no problems\n"
    assert done.out == ("ann  agent  cards/ann.md  default\nbob  agent  cards/bob.md  tool only\n")


@pytest.mark.spec("CARDS-2", "CARDS-3", "CARDS-4", "CHECK-1")
def test_every_problem_with_place_caret_and_hint(run: Run, write_card: WriteCard) -> None:
    write_card("cards/ann.md", "typ: agent", "max_parallel: two", "servers: [tmie]")
    write_card("cards/bob.md", "agents: [an]", body="Hi {{curentDate}} {{file:no.md}}")
    done = run("check", "cards")
    assert done.code == 1
    assert sorted(done.codes) == ["FA101", "FA102", "FA201", "FA206", "FA701", "FA702"]
    assert (
        "error[FA101]: unknown field `typ`\n"
        "  --> cards/ann.md:2:1\n"
        "2 | typ: agent\n"
        "  | ^^^\n"
        "hint: did you mean `type`?\n"
    ) in done.err
    assert "5 errors, 1 warning (" in done.err
    assert done.out.count("\n") == 2


@pytest.mark.spec("CHECK-2", "CARDS-3", "CARDS-5")
def test_json(run: Run, write_card: WriteCard) -> None:
    write_card("ann.md", "default: true", "use_histroy: true", body="Größe 漢字 {{nope}}")
    done = run("check", "ann.md", "--format", "json")
    assert (done.code, done.err) == (1, "")
    report = done.json
    assert report["cards"] == [
        {"name": "ann", "type": "agent", "path": "ann.md", "default": True, "tool_only": False}
    ]
    first, second = report["diagnostics"]
    assert set(first) >= {"code", "severity", "message", "path", "start", "end", "hint", "fix"}
    assert (first["code"], first["severity"]) == ("FA101", "error")
    assert first["start"] == {"line": 3, "column": 1}
    assert first["end"] == {"line": 3, "column": 12}
    assert first["fix"] == {
        "replacement": "use_history",
        "start": {"line": 3, "column": 1},
        "end": {"line": 3, "column": 12},
    }
    assert (second["code"], second["start"]) == ("FA701", {"line": 5, "column": 10})


@pytest.mark.spec("CHECK-2")
def test_sarif_holds_the_same(run: Run, write_card: WriteCard) -> None:
    write_card("ann.md", "use_histroy: true", "model: nope")
    report = run("check", "ann.md", "--format", "sarif").json
    facts = run("check", "ann.md", "--format", "json").json
    assert report["version"] == "2.1.0"
    (only,) = report["runs"]
    assert [one["ruleId"] for one in only["results"]] == [
        one["code"] for one in facts["diagnostics"]
    ]


@pytest.mark.spec("CHECK-3", "CARDS-3")
def test_fix_fixes_the_files(run: Run, write_card: WriteCard) -> None:
    path = write_card("ann.md", "typ: agent", "use_histroy: yes please")
    path.write_text(path.read_text().replace("yes please", '"no"'))
    other = write_card("bob.md", "agents: [an]")
    done = run("check", ".", "--fix")
    assert "fixed ./ann.md" in done.err
    assert done.code == 0, done.err
    assert path.read_text() == "---\ntype: agent\nuse_history: false\n---\nBe brief."
    assert "[ann]" in other.read_text()
    again = run("check", ".", "--fix")
    assert (again.code, again.err) == (0, "no problems\n")


def test_fix_leaves_what_it_cannot_fix(run: Run, write_card: WriteCard) -> None:
    path = write_card("ann.md", "max_parallel: two")
    before = path.read_text()
    done = run("check", "ann.md", "--fix")
    assert (done.code, done.codes) == (1, ["FA102"])
    assert path.read_text() == before


@pytest.mark.spec("CHECK-1")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nope.md",), 1),
        (("nope",), 1),
        (("--format", "xml"), 2),
        (("--fxi",), 2),
        (("--config-path", "nope.yaml"), 1),
    ],
)
def test_statuses(run: Run, arguments: tuple[str, ...], code: int) -> None:
    assert run("check", *arguments).code == code


def test_warnings_do_not_fail(run: Run, write_card: WriteCard) -> None:
    write_card("ann.md", "history_mode: fork")
    done = run("check", "ann.md")
    assert (done.code, done.codes) == (0, ["FA123"])


@pytest.mark.spec("FILE-7", "FILE-8", "CHECK-2")
@pytest.mark.spec("RULE-2")
def test_what_is_passed_over_is_a_note(run: Run, write_card: WriteCard) -> None:
    write_card("ann.md")
    Path("README.md").write_text("# Read me")
    Path("docs.yaml").write_text("pages: []")
    done = run("check", ".")
    assert (done.code, done.err.count("info[FA136]")) == (0, 2)
    assert done.err.endswith("2 notes\n")
    infos = run("check", ".", "--format", "json").json["diagnostics"]
    assert [(one["code"], one["severity"]) for one in infos] == [("FA136", "info")] * 2


class TestSets:
    def test_directories_below_are_sets_of_their_own(self, run: Run, write_card: WriteCard) -> None:
        write_card("one/ann.md", "default: true")
        write_card("two/ann.md", "default: true", "servers: [mine]")
        write_card("two/.hidden/x.md", "typ: x")
        Path("two/fastagent.config.yaml").write_text("mcp: {servers: {mine: {command: x}}}")
        done = run("check")
        assert done.code == 0, done.err
        assert done.out.splitlines() == [
            "ann  agent  one/ann.md  default",
            "ann  agent  two/ann.md  default",
        ]

    def test_paths_named_together_are_one_set(self, run: Run, write_card: WriteCard) -> None:
        write_card("one/ann.md")
        write_card("two/ann.md")
        assert run("check", "one", "two").codes == ["FA204"]

    @pytest.mark.spec("PREC-3")
    def test_a_project_is_what_loads_by_itself(self, run: Run, write_card: WriteCard) -> None:
        write_card("project/.fast-agent/agent-cards/ann.md", "agents: [bob]")
        write_card("project/.fast-agent/tool-cards/bob.md", "tool_only: true")
        write_card("other/cid.md")
        done = run("check")
        assert done.code == 0, done.err
        assert len(done.out.splitlines()) == 3
        os.chdir("project")
        assert len(run("check").out.splitlines()) == 2

    def test_a_set_is_checked_from_where_it_would_be_run(
        self, run: Run, write_card: WriteCard
    ) -> None:
        """Its files may be anywhere below here, as for `go`."""
        write_card("cards/ann.md", "function_tools: [../lib/tools.py:one]")
        Path("lib").mkdir()
        Path("lib/tools.py").write_text("def one() -> int:\n    return 1\n")
        assert run("check", "cards").codes == []
        assert run("go", "--card", "cards", "--model", "passthrough", "-m", "hi").code == 0

    def test_a_card_of_a_project_is_checked_in_it(self, run: Run, write_card: WriteCard) -> None:
        path = write_card("project/.fast-agent/agent-cards/ann.md", body="{{file:notes.md}}")
        Path("project/notes.md").write_text("Be brief.")
        assert run("check", path).codes == []

    def test_a_wrong_configuration_hides_no_other_problem(
        self, run: Run, write_card: WriteCard
    ) -> None:
        write_card("cards/ann.md", "messages: nope.md", "agents: [nobody]", "servers: [any]",
                   "function_tools: [nope.py:f]")  # fmt: skip
        Path("fastagent.config.yaml").write_text("mpc: {}\n")
        done = run("check", "cards")
        assert sorted(done.codes) == ["FA201", "FA303", "FA401", "FA602"]
        assert "  --> fastagent.config.yaml:1:1\n1 | mpc: {}\n  | ^^^\n" in done.err


@pytest.mark.spec("CARDS-1")
@pytest.mark.parametrize(
    "fields",
    [
        ("nmae: x",),
        ("servers: [nope]",),
        ("agents: [nobody]",),
        ("messages: nope.md",),
        ("function_tools: [nope.py:f]",),
        ("default: true", "tool_only: true"),
        ("request_params: {max_tokns: 1}",),
    ],
)
def test_check_and_go_refuse_the_same(
    run: Run, write_card: WriteCard, fields: tuple[str, ...]
) -> None:
    write_card("cards/ann.md", *fields)
    checked = run("check", "cards")
    gone = run("go", "--card", "cards", "--model", "passthrough", "-m", "hi")
    assert checked.code == gone.code == 1
    assert gone.out == ""
    assert checked.err == gone.err


@pytest.mark.spec("RULE-1")
def test_check_and_go_read_one_configuration(run: Run, write_card: WriteCard) -> None:
    write_card("sub/ann.md", "servers: [here]")
    Path("sub/fastagent.config.yaml").write_text("mcp: {servers: {here: {command: x}}}\n")
    for command in (("check", "sub"), ("go", "--card", "sub", "-m", "hi")):
        assert run(*command).codes == ["FA206"], command
    Path("sub/fastagent.config.yaml").rename("mine.yaml")
    assert run("check", "-c", "mine.yaml", "sub").codes == []
    assert run("graph", "-c", "mine.yaml", "sub").code == 0


@pytest.mark.spec("RULE-2")
def test_neighbours_that_are_no_cards_are_passed_over(run: Run, write_card: WriteCard) -> None:
    write_card("cards/ann.md")
    for name, text in {
        "README.md": "---\ntitle: x\nlayout: y\n---\n# Hi\n",
        "docker-compose.yml": "name: x\nservices: {}\n",
        "environment.yml": "name: x\ndependencies: []\n",
    }.items():
        Path("cards", name).write_text(text)
    checked = run("check", "cards")
    assert (checked.code, checked.err.count("info[FA136]")) == (0, 3)
    assert "`title` is not a field of cards" in checked.err
    gone = run("go", "--card", "cards", "--model", "passthrough", "-m", "hi")
    assert (gone.code, gone.out, gone.err) == (0, "hi\n", "")
    write_card("cards/bob.md", "modle: sonnet")
    assert "FA101" in run("check", "cards").codes


@pytest.mark.spec("RULE-3")
def test_the_default_is_who_uses_others(run: Run, write_card: WriteCard) -> None:
    write_card("cards/alone.md")
    write_card("cards/lead.md", "agents: [worker]")
    write_card("cards/worker.md")
    checked = run("check", "cards")
    assert checked.err.startswith("info[FA215]")
    assert "`lead` is the default agent, not `alone`: it uses others, and none uses it" in (
        checked.err
    )
    write_card("cards/lead.md", "agents: [worker]", "default: true")
    assert "FA215" not in run("check", "cards").err


@pytest.mark.spec("RULE-4")
def test_the_model_of_the_command_line_lifts_that_of_the_card(
    run: Run, write_card: WriteCard
) -> None:
    write_card("ann.md", "model: sonet")
    assert run("check", "ann.md").codes == ["FA501"]
    gone = run("go", "--card", "ann.md", "--model", "passthrough", "-m", "hi")
    assert (gone.code, gone.out) == (0, "hi\n")
    assert run("go", "--card", "ann.md", "--model", "pasthrough", "-m", "hi").codes == ["FA501"]


@pytest.mark.spec("RULE-5")
def test_without_arguments_there_is_help(run: Run) -> None:
    done = run()
    assert (done.code, done.out.startswith("Usage: fast-agent")) == (0, True)
    assert "hint: there are `ann`" in _unknown_agent(run)


def _unknown_agent(run: Run) -> str:
    Path("ann.md").write_text("---\ntype: agent\n---\nhi\n")
    return run("go", "--card", "ann.md", "--agent", "nope", "-m", "hi").err


def test_a_card_that_cannot_be_read_is_not_called_unknown(run: Run, write_card: WriteCard) -> None:
    write_card("ann.md", "agents: [bob]")
    Path("bob.md").write_text("---\nname: bob\n")
    assert run("check", ".").codes == ["FA112"]
    gone = run("go", "--card", ".", "--model", "passthrough", "-m", "hi")
    assert gone.codes == ["FA112"]


def test_json_of_nothing(run: Run) -> None:
    done = run("check", "--format", "json")
    assert done.code == 0
    assert json.loads(done.out)["cards"] == []


@pytest.mark.parametrize("command", ["check", "test"])
def test_a_directory_that_goes_while_it_is_looked_through_is_passed_over(
    run: Run, write_card: WriteCard, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    card = write_card("cards/ann.md", "model: passthrough")
    card.with_name("ann.test.yaml").write_text(
        "cases: [{name: one, live: true, message: hi, expect: {text: hi}}]\n"
    )
    card.with_name("going").mkdir()
    look = Path.is_dir

    def look_and_lose(path: Path) -> bool:
        there = look(path)
        if path.name == "going" and there:
            path.rmdir()
            return True
        return there

    monkeypatch.setattr(Path, "is_dir", look_and_lose)
    done = run(command, "cards")
    assert done.code == 0, done.err + done.out
    assert not card.with_name("going").exists()


@pytest.mark.parametrize("command", [("check", "--fix"), ("fmt",)])
def test_a_link_out_of_its_directory_is_not_written_unless_it_is_named(
    run: Run, write_card: WriteCard, command: tuple[str, ...]
) -> None:
    fields = "use_histroy: true" if "--fix" in command else "use_history: true\ntype: agent"
    mine = write_card("mine/notes.md", fields)
    before = mine.read_text()
    write_card("cards/ann.md", "default: true")
    Path("cards/bob.md").symlink_to(Path("../mine/notes.md"))
    done = run(*command, "cards")
    assert done.code == 1
    assert "cards/bob.md stays as it is: it is a link out of its directory" in done.err
    assert mine.read_text() == before
    run(*command, "cards/bob.md")
    assert mine.read_text() != before
    assert Path("cards/bob.md").is_symlink()


def test_sets_below_a_directory_are_named(run: Run, write_card: WriteCard) -> None:
    write_card("team/ann.md")
    write_card("team/later/bob.md")
    (below,) = run("check", "team").err.splitlines()[1:]
    assert below == ("each directory is a separate set, as for `go --card`: `team`, `team/later`")
    assert run("check", "team/later/").err == "no problems\n"
