"""`fast-agent go`: messages in, an answer out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ran
    from tests.card_writer import WriteCard

    Run: TypeAlias = Callable[..., Ran]

PASS = ("--model", "passthrough")
SCHEMA = {
    "type": "object",
    "properties": {"people": {"type": "integer"}},
    "required": ["people"],
}


@pytest.mark.spec("CARD-96", "CARD-76", "OUT-1")
def test_one_message_one_answer_and_nothing_else(run: Run, write_card: WriteCard) -> None:
    write_card("ann.md", "model: passthrough")
    done = run("go", "--card", "ann.md", "--message", "hello")
    assert (done.code, done.out, done.err) == (0, "hello\n", "")


@pytest.mark.spec("CARD-96", "OUT-1")
def test_as_a_process(spawn: Run, write_card: WriteCard) -> None:
    write_card("cards/ann.md", "default: true")
    write_card("cards/bob.md")
    done = spawn("go", "--card", "cards", *PASS, "--message", "-", stdin="from\nstdin\n")
    assert (done.code, done.out, done.err) == (0, "from\nstdin\n", "")
    wrong = spawn("go", "--card", "crads", *PASS, "--message", "hi")
    assert (wrong.code, wrong.out) == (1, "")
    assert "hint: did you mean `cards`?" in wrong.err


def test_without_cards_there_is_a_plain_agent(run: Run) -> None:
    done = run("go", *PASS, "-m", "hello", "--format", "json")
    assert done.json["agent"] == "agent"
    assert done.json["text"] == "hello"


@pytest.mark.spec("OUT-2")
def test_the_facts_of_an_answer_are_one_json_object(run: Run, write_card: WriteCard) -> None:
    write_card("ann.md")
    done = run("go", "--card", "ann.md", *PASS, "-m", "hëllo", "--format", "json")
    assert done.json == {
        "agent": "ann",
        "text": "hëllo",
        "stop_reason": "endTurn",
        "usage": {
            "input_tokens": 2,
            "output_tokens": 2,
            "requests": 1,
            "tool_calls": 0,
            "cost": None,
        },
        "context": {"used": 4, "window": None, "share": None},
        "structured": None,
        "workflow": None,
    }
    assert "hëllo" in done.out


@pytest.mark.spec("CARD-78")
@pytest.mark.parametrize("option", ["--card", "--agent-cards"])
def test_cards_from_several_places(run: Run, write_card: WriteCard, option: str) -> None:
    write_card("one/ann.md")
    write_card("bob.md")
    for name in ("ann", "bob"):
        done = run("go", option, "one", option, "bob.md", "--agent", name, *PASS, "-m", "hi",
                   "--format", "json")  # fmt: skip
        assert done.json["agent"] == name


def test_an_agent_that_is_not_the_default(run: Run, write_card: WriteCard) -> None:
    write_card("cards/ann.md", "default: true")
    write_card("cards/tool.md", "tool_only: true")
    done = run("go", "--card", "cards", "--agent", "tool", *PASS, "-m", "hi", "--format", "json")
    assert done.json["agent"] == "tool"
    unknown = run("go", "--card", "cards", "--agent", "an", *PASS, "-m", "hi")
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err == "error: no agent is named `an`\nhint: did you mean `ann`?\n"


@pytest.mark.spec("FILE-11")
def test_several_cards_in_a_file(run: Run, project: Path) -> None:
    cards = ("type: agent\nname: ann\n---\nHi.", "type: agent\nname: bob\ndefault: true\n---\nHo.")
    (project / "two.md").write_text("---\n" + "\n---\n".join(cards))
    assert run("go", "--card", "two.md", *PASS, "-m", "hi").codes == ["FA117"]
    done = run("go", "--card", "two.md", "--multi-card", *PASS, "-m", "hi", "--format", "json")
    assert done.json["agent"] == "bob"


class TestPromptFile:
    @pytest.mark.spec("CARD-97", "CARD-52", "HIST-1")
    def test_a_text_with_roles_is_earlier_talk_and_its_end_is_sent(
        self, run: Run, project: Path
    ) -> None:
        (project / "talk.md").write_text("---USER\none\n---ASSISTANT\ntwo\n---USER\nthree\n")
        done = run("go", *PASS, "--prompt-file", "talk.md", "--results", "out.json")
        assert (done.code, done.out) == (0, "three\n")
        reported = json.loads((project / "out.json").read_text())["messages"]
        said = [message["content"][0]["text"] for message in reported]
        assert said == ["one", "two", "three", "three"]

    @pytest.mark.spec("CARD-97", "CARD-54", "CARD-51")
    def test_a_plain_text_and_a_json_history(self, run: Run, project: Path) -> None:
        (project / "prompt.txt").write_text("just this")
        assert run("go", *PASS, "-p", "prompt.txt").out == "just this\n"
        messages = [{"role": "user", "content": [{"type": "text", "text": "in json"}]}]
        (project / "talk.json").write_text(json.dumps({"messages": messages}))
        assert run("go", *PASS, "-p", "talk.json").out == "in json\n"

    def test_with_a_message_the_file_is_all_earlier(self, run: Run, project: Path) -> None:
        (project / "talk.md").write_text("---USER\none\n---ASSISTANT\ntwo\n")
        done = run("go", *PASS, "-p", "talk.md", "-m", "three", "--results", "out.md")
        assert done.out == "three\n"
        assert (project / "out.md").read_text().count("---USER") == 2
        alone = run("go", *PASS, "-p", "talk.md")
        assert alone.code == 2
        assert "does not end with a user message" in alone.err

    def test_a_system_section_is_not_dropped_in_silence(self, run: Run, project: Path) -> None:
        (project / "talk.md").write_text("---SYSTEM\nBe brief.\n---USER\nhi\n")
        done = run("go", *PASS, "-p", "talk.md")
        assert done.out == "hi\n"
        assert "---SYSTEM" in done.err

    @pytest.mark.parametrize("suffix", ["json", "md"])
    def test_results_are_a_prompt_file(self, run: Run, project: Path, suffix: str) -> None:
        call = '***CALL_TOOL agent__bob {"message": "---USER"}'
        card = project / "ann.md"
        card.write_text("---\nagents: [bob]\n---\nHi.")
        (project / "bob.md").write_text("---\ntool_only: true\n---\nHi.")
        cards = ("--card", "ann.md", "--card", "bob.md", *PASS)
        first = run("go", *cards, "-m", call, "--results", f"one.{suffix}")
        assert first.out == "---USER\n"
        run("go", *cards, "-p", f"one.{suffix}", "-m", "go on", "--results", f"two.{suffix}")
        one = (project / f"one.{suffix}").read_text()
        two = (project / f"two.{suffix}").read_text()
        if suffix == "md":
            assert two.startswith(one.rstrip())
        else:
            before, after = json.loads(one)["messages"], json.loads(two)["messages"]
            assert after[: len(before)] == before
            assert len(after) == len(before) + 2


class TestStructured:
    def test_an_answer_of_a_schema(self, run: Run, project: Path) -> None:
        (project / "shape.json").write_text(json.dumps(SCHEMA))
        options = ("go", *PASS, "--json-schema", "shape.json", "-m", '{"people": 7}')
        assert run(*options).out == '{"people": 7}\n'
        assert run(*options, "--format", "json").json["structured"] == {"people": 7}

    def test_an_answer_that_is_not(self, run: Run, project: Path) -> None:
        (project / "shape.json").write_text(json.dumps(SCHEMA))
        done = run("go", *PASS, "--json-schema", "shape.json", "-m", '{"people": "many"}')
        assert (done.code, done.out) == (1, "")
        assert "invalid structured answer" in done.err


class TestPrecedence:
    """Command line over card over configuration, for models, parameters and servers."""

    @pytest.mark.spec("CARD-65", "CARD-66", "CARD-67", "PREC-1", "PREC-2")
    def test_models(
        self, run: Run, write_card: WriteCard, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_card("own.md", "model: scripted?file=card.yaml")
        write_card("plain.md")
        for source in ("card", "config", "environ", "flag"):
            (project / f"{source}.yaml").write_text(f"steps: [{{text: {source}, repeat: forever}}]")
        monkeypatch.setenv("FAST_AGENT_MODEL", "scripted?file=environ.yaml")
        flag = ("--model", "scripted?file=flag.yaml")
        assert run("go", "--card", "plain.md", "-m", "hi").out == "environ\n"
        (project / "fastagent.config.yaml").write_text("default_model: scripted?file=config.yaml")
        assert run("go", "--card", "plain.md", "-m", "hi").out == "config\n"
        assert run("go", "--card", "own.md", "-m", "hi").out == "card\n"
        assert run("go", "--card", "own.md", *flag, "-m", "hi").out == "flag\n"

    def test_a_configuration_that_is_named(self, run: Run, project: Path) -> None:
        (project / "fastagent.config.yaml").write_text("default_model: nope.nope")
        (project / "own.yaml").write_text("default_model: passthrough")
        for option in ("--config-path", "-c"):
            assert run("go", option, "own.yaml", "-m", "hi").out == "hi\n"

    @pytest.mark.spec("PREC-2")
    def test_a_model_of_the_command_line_is_for_children_too(
        self, run: Run, write_card: WriteCard
    ) -> None:
        write_card("ann.md", "default: true", "agents: [bob]", "model: openai.gpt-5")
        write_card("bob.md", "model: anthropic.claude-sonnet-5")
        call = '***CALL_TOOL agent__bob {"message": "hi"}'
        assert run("go", "--card", ".", *PASS, "-m", call).out == "hi\n"

    @pytest.mark.spec("CARD-67", "CARD-66")
    def test_parameters(self, run: Run, write_card: WriteCard, project: Path) -> None:
        (project / "fastagent.config.yaml").write_text("request_params: {max_iterations: 1}")
        write_card("plain.md", "function_tools: [tools.py:one]")
        write_card("own.md", "function_tools: [tools.py:one]", "request_params: {maxIterations: 5}")
        (project / "tools.py").write_text("def one() -> int:\n    return 1\n")
        call = ("-m", "***CALL_TOOL one {}", "--format", "json")
        cut = run("go", "--card", "plain.md", *PASS, *call)
        assert cut.json["stop_reason"] == "maxIterations"
        assert run("go", "--card", "own.md", *PASS, *call).json["stop_reason"] == "endTurn"

    @pytest.mark.spec("CARD-67", "CARD-62")
    def test_servers(self, run: Run, write_card: WriteCard, project: Path, server_url: str) -> None:
        servers = f"mcp: {{servers: {{mine: {{url: '{server_url}'}}, other: {{url: 'http://x'}}}}}}"
        (project / "fastagent.config.yaml").write_text(servers)
        write_card("ann.md")
        call = '***CALL_TOOL mine__add {"a": 1, "b": 2}'
        options = ("go", "--card", "ann.md", *PASS, "-m", call)
        assert "unknown tool `mine__add`" in run(*options).out
        assert run(*options, "--servers", "mine").out == "3\n"
        unknown = run(*options, "--servers", "mine,othr")
        assert (unknown.code, unknown.out) == (1, "")
        assert unknown.err == (
            "error: --servers names `othr`, which the configuration does not define\n"
            "hint: did you mean `other`?\n"
        )
        # A server that no agent needs is not asked, whether it is there or not.
        write_card("ann.md", "servers: [mine]")
        assert run(*options).out == "3\n"

    @pytest.mark.spec("CONTEXT-5")
    def test_a_full_window_is_reported_once(
        self, run: Run, write_card: WriteCard, project: Path
    ) -> None:
        server = Path(__file__).parents[1] / "mcp/servers/tiny.py"
        (project / "fastagent.config.yaml").write_text(
            f"mcp: {{servers: {{mine: {{command: {sys.executable}, args: [{server}, wordy]}}}}}}\n"
            "model_facts: {passthrough: {context_window: 3000}}\n"
        )
        write_card("ann.md", "servers: [mine]", "model: passthrough")
        first = run("go", "--card", "ann.md", "-m", "hi")
        assert "most of the context window of `passthrough` (3,000 tokens)" in first.err
        assert first.codes == []
        second = run("go", "--card", "ann.md", "-m", "hi")
        assert second.codes == ["FA511"]
        assert "most of the 3,000 tokens" not in second.err
        quiet = run("go", "--card", "ann.md", "--quiet", "-m", "hi")
        assert quiet.err == ""


class TestServers:
    def test_over_http(self, run: Run, server_url: str) -> None:
        done = run("go", *PASS, "--url", server_url, "-m",
                   '***CALL_TOOL 127-0-0-1__add {"a": 1, "b": 2}')  # fmt: skip
        assert (done.code, done.out) == (0, "3\n")

    def test_over_stdio(self, run: Run, tiny_server: str) -> None:
        name = Path(tiny_server.split()[1]).stem
        done = run("go", *PASS, "--stdio", tiny_server, "-m",
                   f'***CALL_TOOL {name}__add {{"a": 1, "b": 2}}')  # fmt: skip
        assert (done.code, done.out) == (0, "3\n"), done.err

    @pytest.mark.spec("BOUND-3")
    def test_a_wait_is_shown_and_ends(
        self, spawn: Run, write_card: WriteCard, project: Path
    ) -> None:
        """A server that never lists its tools holds a run for as long as the setting says."""
        server = Path(__file__).parents[1] / "mcp/servers/hostile.py"
        (project / "fastagent.config.yaml").write_text(
            f"mcp: {{servers: {{mute: {{command: {sys.executable}, args: [{server}, mute],"
            " list_timeout_seconds: 4}}}"
        )
        write_card("ann.md", "servers: [mute]")
        done = spawn("go", "--card", "ann.md", *PASS, "-m", "hi")
        assert done.code == 1
        assert done.err.endswith(
            "warning: still waiting for server `mute`: `tools/list`, 4 s at most\n"
            "error: server `mute` did not answer `tools/list` within 4 s\n"
            "hint: raise the server's `list_timeout_seconds` if it needs longer\n"
        )

    @pytest.mark.spec("TOOL-12")
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--stdio", "no-such-program-anywhere"), "`no-such-program-anywhere` was not found"),
            (("--stdio", '"open'), "no closing quotation"),
            (("--stdio", " "), "--stdio names no command"),
            (("--url", "http://127.0.0.1:9/mcp"), "no MCP server answers"),
            (("--url", "localhost"), "not the address of an MCP server"),
        ],
    )
    def test_that_cannot_be_used(self, run: Run, arguments: tuple[str, ...], message: str) -> None:
        done = run("go", *PASS, *arguments, "-m", "hi")
        assert (done.code, done.out) == (1, "")
        assert message in done.err
        assert "hint: " in done.err


class TestShell:
    @pytest.mark.spec("CARD-6", "TOOL-6")
    def test_only_when_it_is_asked_for(self, run: Run, write_card: WriteCard) -> None:
        write_card("plain.md")
        write_card("own.md", "shell: true", "cwd: below")
        write_card("below/x.md")
        call = ("-m", '***CALL_TOOL execute {"command": "pwd"}')
        assert "unknown tool `execute`" in run("go", "--card", "plain.md", *PASS, *call).out
        assert str(Path.cwd()) in run("go", "--card", "plain.md", "--shell", *PASS, *call).out
        assert str(Path.cwd() / "below") in run("go", "--card", "own.md", *PASS, *call).out

    @pytest.mark.spec("TOOL-6")
    def test_commands_do_not_see_keys(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
        done = run("go", *PASS, "--shell", "-m", '***CALL_TOOL execute {"command": "env"}')
        assert "HOME=" in done.out
        assert "sk-very-secret" not in done.out


class TestTools:
    @pytest.mark.spec("CARD-8", "CARD-5", "CARD-83", "CARD-84")
    def test_cards_as_tools(self, run: Run, write_card: WriteCard) -> None:
        write_card("ann.md")
        write_card("helpers/bob.md")
        write_card("helpers/cid.md", "tool_only: true")
        options = ("go", "--card", "ann.md", "--card-tool", "helpers", *PASS)
        for helper in ("bob", "cid"):
            done = run(*options, "-m", f'***CALL_TOOL agent__{helper} {{"message": "hi {helper}"}}')
            assert (done.code, done.out) == (0, f"hi {helper}\n"), done.err

    def test_cards_as_tools_of_nobody(self, run: Run, write_card: WriteCard) -> None:
        write_card("ann.md")
        write_card("bob.md")
        done = run("go", "--card", "ann.md", "--card-tool", "bob.md", "--agent", "an", *PASS,
                   "-m", "hi")  # fmt: skip
        assert (done.code, done.out) == (1, "")
        assert done.err == "error: no agent is named `an`\nhint: did you mean `ann`?\n"

    @pytest.mark.spec("CMD-3")
    def test_an_agent_among_the_cards_given_to_it_is_not_its_own_tool(
        self, run: Run, write_card: WriteCard
    ) -> None:
        write_card("ann.md", "default: true")
        write_card("bob.md")
        options = ("go", "--card", ".", "--card-tool", ".", *PASS, "-m")
        own = run(*options, '***CALL_TOOL agent__ann {"message": "hi"}')
        assert (own.code, "unknown tool `agent__ann`" in own.out) == (0, True)
        assert run(*options, '***CALL_TOOL agent__bob {"message": "hi"}').out == "hi\n"

    @pytest.mark.spec("CMD-4")
    def test_a_workflow_is_given_no_tools(self, run: Run, write_card: WriteCard) -> None:
        write_card("ann.md")
        write_card("talk.md", "type: chain", "sequence: [ann]", "default: true")
        write_card(".fast-agent/tool-cards/bob.md")
        options = ("go", "--card", "ann.md", "--card", "talk.md", *PASS, "-m", "hi")
        warned = run(*options)
        assert (warned.code, warned.out, warned.codes) == (0, "hi\n", ["FA214"])
        # A project whose cards are tools for its default agent still runs its workflows.
        named = run(*options, "--agent", "talk")
        assert (named.code, named.out, named.codes) == (0, "hi\n", ["FA214"])
        tool = ("--card-tool", ".fast-agent/tool-cards")
        given = run(*options, "--agent", "talk", *tool, "--no-found")
        assert (given.code, given.out) == (1, "")
        assert "is of type `chain`, which has no tools of its own" in given.err

    def test_cards_as_tools_of_a_plain_agent(self, run: Run, write_card: WriteCard) -> None:
        write_card("bob.md")
        done = run("go", "--card-tool", "bob.md", *PASS, "-m",
                   '***CALL_TOOL agent__bob {"message": "hi"}', "--format", "json")  # fmt: skip
        assert (done.json["agent"], done.json["text"]) == ("agent", "hi")

    @pytest.mark.spec("CARD-9", "CARD-77", "PREC-3")
    def test_directories_that_load_by_themselves_add_to_what_is_named(
        self, run: Run, write_card: WriteCard
    ) -> None:
        write_card("named.md")
        write_card("helper.md")
        write_card(".fast-agent/agent-cards/auto.md")
        write_card(".fast-agent/tool-cards/tool.md", "tool_only: true")
        options = ("go", "--card", "named.md", "--card-tool", "helper.md", *PASS)
        assert run(*options, "-m", "x", "--format", "json").json["agent"] == "named"
        auto = run(*options, "--agent", "auto", "-m", "x", "--format", "json")
        assert auto.json["agent"] == "auto"
        for tool in ("helper", "tool"):
            done = run(*options, "-m", f'***CALL_TOOL agent__{tool} {{"message": "{tool}"}}')
            assert done.out == f"{tool}\n", done.err
        assert run("go", *PASS, "-m", "x", "--format", "json").json["agent"] == "auto"

    @pytest.mark.spec("TRUST-1")
    @pytest.mark.parametrize(
        "field",
        [
            "shell: true",
            "function_tools: [tools.py:one]",
            "tool_hooks: [tools.py:around]",
            "mcp_connect: [{target: some-program}]",
        ],
    )
    def test_found_cards_run_no_code_unless_trusted(
        self, run: Run, write_card: WriteCard, field: str
    ) -> None:
        path = write_card(".fast-agent/agent-cards/auto.md", field)
        (path.parent / "tools.py").write_text(
            "import pathlib\npathlib.Path('ran').touch()\n"
            "def one() -> int: return 1\n"
            "async def around(ctx, args, call_next): return await call_next()\n"
        )
        Path("../home/fastagent.config.yaml").unlink()  # where nothing is their own
        done = run("go", *PASS, "-m", "hi")
        assert (done.code, done.out, done.codes) == (3, "", ["FA801"])
        assert "`auto`, .fast-agent/agent-cards/auto.md:2" in done.err
        assert ("--trust" in done.err) is ("some-program" not in field)
        assert not Path("ran").exists()
        if "some-program" not in field:
            assert run("go", *PASS, "-m", "hi", "--trust").out == "hi\n"
            named = run("go", "--card", ".fast-agent/agent-cards/auto.md", *PASS, "-m", "hi")
            assert named.out == "hi\n"

    def test_empty_directories_do_not_count(self, run: Run, project: Path) -> None:
        (project / ".fast-agent/agent-cards").mkdir(parents=True)
        (project / ".fast-agent/agent-cards/notes.txt").touch()
        assert run("go", *PASS, "-m", "hi").out == "hi\n"
        (project / "bob.md").write_text("---\ntool_only: true\n---\nHi.")
        call = '***CALL_TOOL agent__bob {"message": "hi bob"}'
        assert run("go", "--card-tool", "bob.md", *PASS, "-m", call).out == "hi bob\n"

    @pytest.mark.spec("CARD-68", "TOOL-3")
    def test_functions_start_at_the_card(self, run: Run, write_card: WriteCard) -> None:
        path = write_card("deep/ann.md", "function_tools: [lib/tools.py:double]")
        (path.parent / "lib").mkdir()
        (path.parent / "lib/tools.py").write_text(
            "def double(number: int) -> int:\n    'Double it.'\n    return 2 * number\n"
        )
        done = run("go", "--card", "deep", *PASS, "-m", '***CALL_TOOL double {"number": 21}')
        assert done.out == "42\n"


def test_a_child_of_unknown_price_is_not_asked_where_money_is_bounded(
    run: Run, write_card: WriteCard
) -> None:
    write_card(
        "cards/ann.md",
        "model: passthrough\ndefault: true\nagents: [kid]\n"
        "request_params: {usage_limits: {max_cost: 1}}",
    )
    write_card("cards/kid.md", "model: generic.secret-model")
    call = '***CALL_TOOL agent__kid {"message": "hi"}'
    done = run("go", "--card", "cards", "-m", call)
    assert "agent `ann` has a `max_cost`, and the price of `generic.secret-model`" in done.out


class TestComparedModels:
    def test_each_answers_and_a_table_follows(self, run: Run, write_card: WriteCard) -> None:
        write_card("ann.md", "model: playback")
        done = run("go", "--card", "ann.md", "--models", "passthrough, slow?seconds=0", "-m", "hi")
        assert (done.code, done.err) == (0, "")
        answers, table = done.out.split("model ", 1)
        assert answers == "## passthrough\n\nhi\n\n## slow?seconds=0\n\nhi\n\n"
        rows = [line.split() for line in table.splitlines()]
        assert rows[0] == ["seconds", "requests", "input", "output", "cost"]
        assert [row[0] for row in rows[1:]] == ["passthrough", "slow?seconds=0"]
        assert [row[2] for row in rows[1:]] == ["1", "1"]

    def test_as_json_and_with_one_that_fails(self, run: Run) -> None:
        Path("s.yaml").write_text("steps:\n  - fail: overloaded\n")
        both = ("--models", "passthrough,scripted?file=s.yaml", "-m", "hi", "--format", "json")
        done = run("go", *both)
        assert done.code == 1
        first, second = done.json["models"]
        assert (first["model"], first["text"]) == ("passthrough", "hi")
        assert (second["model"], second["error"]) == ("scripted?file=s.yaml", "overloaded")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--models", "passthrough,,slow", "-m", "hi"), "--models has an empty name"),
            (("--models", "slow", *PASS, "-m", "hi"), "leave out --model"),
            (("--models", "slow", "--session", "-m", "hi"), "leave out --session"),
            (("--models", "slow", "--dump", "out"), "--models needs a message"),
        ],
    )
    def test_wrong_use(self, run: Run, arguments: tuple[str, ...], message: str) -> None:
        done = run("go", *arguments)
        assert (done.code, done.out) == (2, "")
        assert message in done.err

    def test_every_model_is_checked_before_the_first_is_asked(self, run: Run) -> None:
        done = run("go", "--models", "passthrough,sonet", "-m", "hi")
        assert (done.code, done.out) == (1, "")
        assert "did you mean `sonnet`" in done.err


@pytest.mark.spec("T-J1.2")
def test_calls_are_allowed_where_nobody_can_be_asked(run: Run, write_card: WriteCard) -> None:
    write_card("ann.md", "shell: true", "files: write", "confirm: [execute, write_file]")
    go = ("go", "--card", "ann.md", "--quiet", *PASS)
    call = '***CALL_TOOL execute {"command": "printf %s made"}'
    assert "requires approval" in run(*go, "-m", call).out
    assert "requires approval" in run(*go, "--allow", "execute(git *)", "-m", call).out
    assert "made\n[exit code 0]" in run(*go, "--allow", "execute(printf *)", "-m", call).out
    write = '***CALL_TOOL write_file {"path": "%s", "content": "x"}'
    allowed = (*go, "--allow", "write_file")
    assert "requires approval" not in run(*allowed, "-m", write % "notes.txt").out
    assert Path("notes.txt").read_text() == "x"
    for path in ("ann.md", ".env"):  # a card decides what runs later, a secret is one
        assert "requires approval" in run(*allowed, "-m", write % path).out
    bad = run(*go, "--allow", "execute(git*)", "-m", "hello")
    assert (bad.code, bad.out) == (1, "")
    assert "hint: write the name of a tool" in bad.err


@pytest.mark.spec("T-J1.2")
def test_a_batch_allows_calls_in_advance(run: Run, write_card: WriteCard) -> None:
    write_card("ann.md", "shell: true", "confirm: execute", "model: passthrough")
    call = '***CALL_TOOL execute {"command": "printf %s made"}'
    Path("items.jsonl").write_text(json.dumps({"message": call}))
    batch = ("batch", "ann.md", "--input", "items.jsonl", "--output", "out.jsonl")
    assert run(*batch, "--allow", "execute(printf *)").code == 0
    assert "made" in Path("out.jsonl").read_text()
    bad = run(*batch, "--allow", "execute(", "--engine", "temporal")
    assert (bad.code, "not a pattern" in bad.err) == (1, True)
    bad = run(*batch, "--allow", "execute", "--engine", "temporal")
    assert (bad.code, "hint: leave it out" in bad.err) == (1, True)
