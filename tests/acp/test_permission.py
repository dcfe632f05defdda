"""Permission: asked of the person before something is done, and remembered."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.acp.editor_world import EVERYTHING, Connected, Editor, connected, write_card

from fast_agent.acp.permission import (
    Subject,
    chosen_option,
    command_patterns,
    remembered_verdict,
)
from fast_agent.acp.remembered import RememberedPermissions

TINY = Path(__file__).parents[1] / "mcp/servers/tiny.py"


pytestmark = pytest.mark.anyio


def call(name: str, **arguments: Any) -> str:
    return f"***CALL_TOOL {name} {json.dumps(arguments)}"


def execute(command: str) -> str:
    return call("execute", command=command)


def results(there: Connected) -> list[str]:
    return [
        one["content"][0]["content"]["text"]
        for one in there.editor.of("tool_call_update")
        if one["status"] in {"completed", "failed"}
    ]


@pytest.mark.spec("ACP-15")
async def test_a_command_runs_only_with_permission(tmp_path: Path) -> None:
    for choose, ran in (("allow_once", True), ("reject_once", False), (None, False)):
        async with connected(tmp_path, shell=True, editor=Editor(choose)) as there:
            session = (await there.open()).session_id
            await there.prompt(session, execute("touch made"))
            asked = there.editor.asked[0]
            assert asked["sessionId"] == session
            assert asked["toolCall"]["toolCallId"] == there.editor.of("tool_call")[0]["toolCallId"]
            assert (asked["toolCall"]["title"], asked["toolCall"]["kind"]) == (
                "touch made",
                "execute",
            )
            (who,) = asked["toolCall"]["content"]
            assert who["content"]["text"] == "agent `agent` asks to call `execute`"
            assert len(asked["options"]) == 4
            assert (there.cwd / "made").exists() is ran
            assert ("was not run" in results(there)[0]) is not ran
            (there.cwd / "made").unlink(missing_ok=True)


@pytest.mark.spec("TR-T1.3")
async def test_a_question_names_the_card_and_the_server(tmp_path: Path) -> None:
    server = f"{{name: tiny, target: '{sys.executable} {TINY} once'}}"
    card = write_card(
        tmp_path, "a.md", "name: a", f"mcp_connect: [{server}]", "confirm: ['tiny__*']"
    )
    async with connected(tmp_path, card) as there:
        session = (await there.open()).session_id
        await there.prompt(session, call("tiny__add", a=1, b=2))
        (who,) = there.editor.asked[0]["toolCall"]["content"]
        assert who["content"]["text"] == (
            f"agent `a` ({card}) asks to call `tiny__add` of server `tiny` ({card})"
        )


@pytest.mark.spec("ACP-16")
async def test_always_is_remembered_for_that_command_and_directory(tmp_path: Path) -> None:
    editor = Editor("allow_always")
    async with connected(tmp_path, shell=True, editor=editor) as there:
        session = (await there.open()).session_id
        await there.prompt(session, execute("echo 1"))
        await there.prompt(session, execute("echo 1"))
        assert len(editor.asked) == 1
        assert "echo 1" in editor.asked[0]["options"][1]
    other = Editor("reject_once")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with connected(tmp_path, shell=True, editor=other) as there:
        session = (await there.open()).session_id
        await there.prompt(session, execute("echo 1"))
        assert other.asked == []
        await there.prompt(session, execute("echo 1; rm -rf /"))
        assert len(other.asked) == 1
        session = (await there.agent.new_session(cwd=str(elsewhere))).session_id
        await there.prompt(session, execute("echo 1"))
        assert len(other.asked) == 2
    assert (there.home / "permissions.json").stat().st_mode & 0o077 == 0


@pytest.mark.spec("ACP-16")
async def test_never_is_remembered_too(tmp_path: Path) -> None:
    editor = Editor("reject_always")
    async with connected(tmp_path, shell=True, editor=editor) as there:
        session = (await there.open()).session_id
        await there.prompt(session, execute("touch made"))
        await there.prompt(session, execute("touch made"))
        assert len(editor.asked) == 1
        assert not (there.cwd / "made").exists()


@pytest.mark.spec("ACP-15")
async def test_a_tool_the_card_marks_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards/tools.py").write_text("def send() -> str:\n    return 'sent'\n")
    card = write_card(
        tmp_path, "a.md", "name: a", "function_tools: [tools.py:send]", "confirm: send"
    )
    for choose, said in (("allow_once", "sent"), ("reject_once", "`send` was not run")):
        async with connected(tmp_path, card, editor=Editor(choose)) as there:
            await there.prompt((await there.open()).session_id, call("send"))
            assert len(there.editor.asked) == 1
            assert results(there)[0].startswith(said)


@pytest.mark.spec("ACP-15", "ACP-17")
async def test_a_write_shows_what_it_changes(tmp_path: Path) -> None:
    async with connected(tmp_path, capabilities=EVERYTHING) as there:
        target = there.cwd / "a.txt"
        target.write_text("old\n")
        session = (await there.open()).session_id
        await there.prompt(session, call("write_text_file", path="a.txt", content="new\n"))
        shown = there.editor.asked[0]["toolCall"]
        assert shown["kind"] == "edit"
        assert shown["locations"] == [{"path": str(target)}]
        assert shown["content"][1:] == [
            {"type": "diff", "path": str(target), "oldText": "old\n", "newText": "new\n"}
        ]
        assert there.editor.written == {str(target): "new\n"}


@pytest.mark.spec("ACP-16")
async def test_always_writing_stops_where_programs_keep_what_they_run(tmp_path: Path) -> None:
    editor = Editor("allow_always")
    async with connected(tmp_path, capabilities=EVERYTHING, editor=editor) as there:
        session = (await there.open()).session_id
        for path in ("a.txt", "b/c.txt"):
            await there.prompt(session, call("write_text_file", path=path, content="x"))
        assert len(editor.asked) == 1
        editor.choose = "reject_once"
        (there.cwd / "link").symlink_to(tmp_path)
        for path in (".git/hooks/pre-commit", "../out.txt", "/tmp/out.txt", "link/out.txt"):
            await there.prompt(session, call("write_text_file", path=path, content="x"))
        assert len(editor.asked) == 5
        assert set(editor.written) == {str(there.cwd / "a.txt"), str(there.cwd / "b/c.txt")}


@pytest.mark.spec("TR-A7.3")
async def test_always_writing_covers_nothing_that_is_run_or_loaded_unasked(tmp_path: Path) -> None:
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards/tools.py").write_text("def add(a: int) -> int:\n    return a\n")
    card = write_card(tmp_path, "a.md", "name: a", "function_tools: ['tools.py:add']")
    editor = Editor("allow_always")
    async with connected(tmp_path, card, capabilities=EVERYTHING, editor=editor) as there:
        session = (await there.open()).session_id
        os.link(tmp_path / "cards/tools.py", there.cwd / "innocent.txt")

        async def write(path: str) -> None:
            await there.prompt(session, call("write_text_file", path=path, content="x"))

        await write("a.txt")
        assert len(editor.asked) == 1
        protected = (
            "Makefile", "sub/makefile", "PACKAGE.JSON", "sub/package.json", "pyproject.toml",
            "node_modules/.bin/x", "mise.toml", "compose.yaml", "sitecustomize.py",
            "fastagent.config.yaml", "sub/fastagent.secrets.yaml", "cards/new.test.yaml",
            "innocent.txt", ".fast-agent/agent-cards/x.md", ".git/hooks/pre-commit",
        )  # fmt: skip
        outside = ("cards/a.md", "cards/b.md", "cards/tools.py", "cards/sub/any.txt",
                   "home/agent-cards/x.md", "home/permissions.json")  # fmt: skip
        paths = (*protected, *(str(tmp_path / one) for one in outside))
        for path in paths:
            editor.choose = "allow_always"  # which is not offered
            await write(path)
            before = len(editor.asked)
            editor.choose = "allow_once"
            await write(path)
            assert len(editor.asked) == before + 1, path
            kinds = [one.split(":")[0] for one in editor.asked[-1]["options"]]
            assert kinds == ["Allow", "Reject"], path
        for path in ("b.txt", "src/main.py", "docs/notes.md"):
            before = len(editor.asked)
            await write(path)
            assert len(editor.asked) == before, path


@pytest.mark.spec("TR-A7.3")
async def test_always_calling_a_tool_covers_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "cards").mkdir()
    code = "def put(files: list[str]) -> str:\n    return 'done'\n"
    (tmp_path / "cards/tools.py").write_text(code)
    card = write_card(
        tmp_path, "a.md", "name: a", "function_tools: ['tools.py:put']", "confirm: [put]"
    )
    editor = Editor("allow_always")
    async with connected(tmp_path, card, editor=editor) as there:
        session = (await there.open()).session_id
        for files, asked in (
            (["a"], 1), (["b"], 1), (["a", "sub/Makefile"], 2), (["Makefile"], 3), (["c"], 3),
            ([f"file://{tmp_path}/cards/a.md"], 4),
        ):  # fmt: skip
            editor.choose = "allow_always" if asked == 1 else "allow_once"
            await there.prompt(session, call("put", files=files))
            assert len(editor.asked) == asked, files


@pytest.mark.spec("ACP-15")
async def test_reading_is_asked_about_outside_the_directory_only(tmp_path: Path) -> None:
    editor = Editor("reject_once")
    async with connected(tmp_path, capabilities=EVERYTHING, editor=editor) as there:
        (there.cwd / "in.txt").write_text("inside")
        (tmp_path / "secret.txt").write_text("secret")
        (there.cwd / "link.txt").symlink_to(tmp_path / "secret.txt")
        session = (await there.open()).session_id
        await there.prompt(session, call("read_text_file", path="in.txt"))
        assert editor.asked == []
        for path in ("../secret.txt", "link.txt", str(tmp_path / "secret.txt")):
            await there.prompt(session, call("read_text_file", path=path))
        assert len(editor.asked) == 3
        assert results(there)[0] == "inside"
        assert all("secret" not in text for text in results(there)[1:])


@pytest.mark.spec("ACP-9", "ACP-15")
async def test_cancelling_while_the_person_is_asked_runs_nothing(tmp_path: Path) -> None:
    async with connected(tmp_path, shell=True, editor=Editor("wait")) as there:
        session = (await there.open()).session_id

        async def ask() -> None:
            assert (await there.prompt(session, execute("touch made"))).stop_reason == "cancelled"

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            with anyio.fail_after(60):
                while not there.editor.asked:
                    await there.editor.came.wait()
            await there.agent.cancel(session_id=session)
        assert not (there.cwd / "made").exists()


@pytest.mark.spec("ACP-15")
@pytest.mark.parametrize(
    "outcome",
    [
        {},
        {"outcome": "cancelled", "optionId": "allow_once"},
        {"optionId": "allow_once"},
        {"outcome": "selected"},
        {"outcome": "selected", "optionId": "allow_everything"},
        {"outcome": "selected", "optionId": ["allow_once"]},
    ],
)
def test_only_what_was_offered_is_an_answer(outcome: dict[str, Any]) -> None:
    assert chosen_option({"outcome": "selected", "optionId": "allow_once"}, ("allow_once",))
    assert chosen_option(outcome, ("allow_once", "reject_once")) is None


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', '{"a": {"b": 1}}', "[" * 100_000])
def test_a_file_that_holds_no_permissions_gives_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "permissions.json"
    path.write_text(text)
    assert RememberedPermissions(path).verdict("a", "b") is None


def test_verdicts_of_many_are_all_kept(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    path = tmp_path / "home" / "permissions.json"
    with ThreadPoolExecutor(4) as threads:
        for number in range(12):
            threads.submit(RememberedPermissions(path).keep, "/here", str(number), "allow")
    known = RememberedPermissions(path)
    assert [known.verdict("/here", str(number)) for number in range(12)] == ["allow"] * 12
    assert known.verdict("/elsewhere", "1") is None


@pytest.mark.spec("ACP-15")
async def test_a_card_is_written_only_with_permission(tmp_path: Path) -> None:
    card = write_card(tmp_path, "s.md", "name: s", "type: smart")
    async with connected(tmp_path, card, editor=Editor("reject_once")) as there:
        session = (await there.open()).session_id
        text = "---\nname: made\n---\nBe brief.\n"
        await there.prompt(session, call("create_agent_card", path="made.md", text=text))
        assert len(there.editor.asked) == 1
        assert "was not run" in results(there)[0]
        assert not (there.cwd / "made.md").exists()


@pytest.mark.spec("T-P3.2")
@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("git status", "allow"),
        ("git", "allow"),
        ("git commit -m 'a; b && c'", "allow"),
        ("git status && git log | git x", "allow"),
        ("git log; ls -l", "allow"),
        ("ls -l", "allow"),
        ("ls -la", None),
        ("git status && touch x", None),
        ("git status & touch x", None),
        ("git status\ntouch x", None),
        ("git status > file", None),
        ("git log $(touch x)", None),
        ("git log `touch x`", None),
        ("git log <(touch x)", None),
        ("git log \\; touch x", None),
        ("git 'log", None),
        ("gitk", None),
        ("PAGER=x git log", None),
        ("rm -r . && git status", "reject"),
        ("npm run test x; npm run test", "allow"),
        ("npm run build", None),
        ("", None),
    ],
)
def test_patterns_cover_each_part_of_a_command(
    tmp_path: Path, command: str, verdict: str | None
) -> None:
    known = RememberedPermissions(tmp_path / "permissions.json")
    allowed = ("execute(git *)", "execute ls -l", "execute(npm run test *)")
    for key in allowed:
        known.keep("/here", key, "allow")
    known.keep("/here", "execute rm -r .", "reject")
    subject = Subject(f"execute {command}", command, command=command)
    assert remembered_verdict(known, "/here", subject) == verdict
    assert remembered_verdict(known, "/elsewhere", subject) is None


@pytest.mark.spec("T-P3.2")
@pytest.mark.parametrize(
    ("command", "patterns"),
    [
        ("git status --short", [("execute(git status *)",), ("execute(git *)",)]),
        ("ls", [("execute(ls *)",)]),
        (
            "git add . && ls -l",
            [("execute(git add *)", "execute(ls -l *)"), ("execute(git *)", "execute(ls *)")],
        ),
        ("sudo git status", []),
        ("/bin/bash -c ls", []),
        ("python3 x.py", []),
        ("python3.13 x.py", []),
        ("/usr/bin/perl5.36 x", []),
        ("uv run x", []),
        (". ./env", []),
        ("7z x a", [("execute(7z x *)",), ("execute(7z *)",)]),
        ("A=1 git status", []),
        ("echo x > y", []),
        ("git 'a b'", []),
    ],
)
def test_patterns_that_shorten_a_command(command: str, patterns: list[tuple[str, ...]]) -> None:
    assert command_patterns(command) == patterns
