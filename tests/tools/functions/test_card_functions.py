from __future__ import annotations

import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.card import Card
from fast_agent.cards.load import load_cards
from fast_agent.errors import CardError
from fast_agent.messages.message import Message, ToolCall
from fast_agent.models.model import Usage
from fast_agent.tools.functions.card_functions import (
    MAX_KEPT,
    FunctionCheck,
    Outlines,
    check_outline,
    load_functions,
)
from fast_agent.tools.functions.loader import FunctionLoader
from fast_agent.tools.hooks import HookedTool
from fast_agent.trust.function_path import FunctionPath

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.tools.tool import ToolContext
    from fast_agent.trust.function_path import Role


TOOLS = """
def add(a: int, b: int) -> int:
    "Add."
    return a + b

async def audit(ctx, args, call_next):
    result = await call_next(args)
    return f"{ctx.tool_name}: {result.text}"

async def shout(ctx):
    ctx.message = type(ctx.message).user(ctx.message.text.upper())

def not_a_hook(ctx): ...
def many(*numbers: int) -> int: ...
def odd(a: object.__class__) -> int: ...
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS, "utf-8")
    return tmp_path


def card(directory: Path, text: str) -> Card:
    file = directory / "card.yaml"
    file.write_text("instruction: x\n" + dedent(text), "utf-8")
    loaded = load_cards([str(file)])
    assert not [found for found in loaded.diagnostics if found.severity == "error"]
    (made,) = loaded.cards
    return made


def both_ways(made: Card, directory: Path) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Check the card, and load it."""
    checked = list(FunctionCheck(directory)(made))
    return checked, list(load_functions(made, FunctionLoader(directory)).diagnostics)


def marked(found: Diagnostic) -> str:
    """Return what a diagnostic's span covers."""
    assert found.span is not None
    assert found.source_line is not None
    return found.source_line[found.span.start.column - 1 : found.span.end.column - 1]


@pytest.mark.anyio
async def test_tools_and_hooks_of_a_card_work(directory: Path, context: ToolContext) -> None:
    made = card(directory, "function_tools: ['tools.py:add']\ntool_hooks: ['tools.py:audit']")
    assert both_ways(made, directory) == ([], [])
    functions = load_functions(made, FunctionLoader(directory))
    (tool,) = functions.tools
    hooked = HookedTool(tool, functions.tool_hooks)
    result = await hooked.call(ToolCall("c1", "add", {"a": 1, "b": 2}), context)
    assert result.text == "add: 3"
    assert functions.turn_hooks is None


@pytest.mark.anyio
async def test_the_mapping_form_makes_turn_hooks(directory: Path) -> None:
    made = card(directory, "tool_hooks:\n  before_llm_call: ['tools.py:shout']")
    assert both_ways(made, directory) == ([], [])
    functions = load_functions(made, FunctionLoader(directory))
    assert functions.turn_hooks is not None
    assert functions.tool_hooks == ()
    answer = await functions.turn_hooks.run(
        "before_llm_call",
        Message.user("hello"),
        message_history=(),
        iteration=1,
        agent_name="a",
        usage=Usage(),
    )
    assert answer.text == "HELLO"


@pytest.mark.spec("SET-5")
@pytest.mark.parametrize(
    ("text", "code", "place", "message"),
    [
        ("function_tools: [tools.py:ad]", "FA606", "tools.py:ad", "does not define `ad`"),
        ("function_tools: ['tool.py:add']", "FA602", "'tool.py:add'", "`tool.py` does not exist"),
        ("function_tools: tools.py:ad", "FA606", "tools.py:ad", "does not define `ad`"),
        (
            "function_tools:\n  - tools.py:add\n  - ../../x.py:add",
            "FA603",
            "../../x.py:add",
            "leads out of",
        ),
        ("function_tools: [tools.py:many]", "FA608", "tools.py:many", "`*numbers` of `many`"),
        (
            "tool_hooks: [tools.py:not_a_hook]",
            "FA609",
            "tools.py:not_a_hook",
            "is not a coroutine function",
        ),
        (
            "tool_hooks: [tools.py:shout]",
            "FA609",
            "tools.py:shout",
            "cannot be called with (ctx, args, call_next)",
        ),
        (
            "tool_hooks: {after_llm_call: [tools.py:audit]}",
            "FA609",
            "tools.py:audit",
            "cannot be called with (ctx)",
        ),
    ],
)
def test_a_problem_is_placed_in_the_card_whether_checked_or_loaded(
    directory: Path, text: str, code: str, place: str, message: str
) -> None:
    made = card(directory, text)
    for found in both_ways(made, directory):
        (one,) = found
        assert (one.code, one.severity) == (code, "error")
        assert one.path == made.path
        assert marked(one) == place
        assert message in one.message


def test_every_problem_is_reported_at_once(directory: Path) -> None:
    made = card(
        directory,
        """
        function_tools: [tools.py:ad, none.py:x, tools.py:add]
        tool_hooks: [tools.py:not_a_hook]
        """,
    )
    for found in both_ways(made, directory):
        assert [one.code for one in found] == ["FA606", "FA602", "FA609"]


def test_a_fix_writes_the_name_that_was_meant(directory: Path) -> None:
    made = card(directory, "function_tools: [tools.py:ad]")
    (found,) = FunctionCheck(directory)(made)
    assert found.fix is not None
    assert found.fix.replacement == "tools.py:add"
    assert found.fix.span == found.span


def test_a_syntax_error_is_placed_in_the_python_file_and_points_back(directory: Path) -> None:
    (directory / "lib").mkdir()
    (directory / "lib" / "wrong.py").write_text("def add(:\n", "utf-8")
    made = card(directory, "function_tools: [lib/wrong.py:add]")
    for found in both_ways(made, directory):
        (one,) = found
        assert one.code == "FA604"
        assert one.path == str(directory / "lib" / "wrong.py")
        assert one.source_line == "def add(:"
        (related,) = one.related
        assert related.path == made.path
        assert related.span is not None
        assert related.span.start.line == 2


@pytest.mark.spec("TRUST-1")
def test_checking_runs_no_code_and_loading_does(directory: Path) -> None:
    mark = directory / "mark"
    (directory / "marks.py").write_text(f"open({str(mark)!r}, 'w').close()\ndef a(): ...", "utf-8")
    made = card(directory, "function_tools: [marks.py:a]")
    assert list(FunctionCheck(directory)(made)) == []
    assert not mark.exists()
    load_functions(made, FunctionLoader(directory))
    assert mark.exists()


def test_a_check_that_lives_long_sees_files_as_they_are_now(directory: Path) -> None:
    check = FunctionCheck(directory)
    made = card(directory, "function_tools: ['tools.py:later']")
    assert [found.code for found in check(made)] == ["FA606"]
    file = directory / "tools.py"
    file.write_text("def later() -> int:\n    return 1\n", "utf-8")
    assert list(check(made)) == []
    file.write_text("def sooner() -> int:\n    return 1\n", "utf-8")
    assert [found.code for found in check(made)] == ["FA606"]


def test_only_loading_finds_what_only_running_shows(directory: Path) -> None:
    (directory / "late.py").write_text("def a(): ...\nraise ValueError('no')", "utf-8")
    made = card(directory, "function_tools: [late.py:a, tools.py:odd]")
    checked, loaded = both_ways(made, directory)
    assert checked == []
    assert [one.code for one in loaded] == ["FA605", "FA608"]
    assert "ValueError: no" in loaded[0].message
    assert "`a` of `odd`" in loaded[1].message


def test_two_tools_of_one_name_are_a_warning_and_the_first_is_kept(directory: Path) -> None:
    (directory / "more.py").write_text("def add(): ...", "utf-8")
    made = card(directory, "function_tools: [tools.py:add, more.py:add]")
    functions = load_functions(made, FunctionLoader(directory))
    assert [tool.spec.description for tool in functions.tools] == ["Add."]
    (found,) = functions.diagnostics
    assert (found.code, found.severity) == ("FA610", "warning")
    assert marked(found) == "more.py:add"


def test_a_shell_directory_that_is_not_there_is_a_warning(directory: Path) -> None:
    made = card(directory, "shell: true\ncwd: work")
    (found,) = FunctionCheck(directory)(made)
    assert (found.code, found.severity, marked(found)) == ("FA611", "warning", "work")
    (directory / "work").mkdir()
    assert list(FunctionCheck(directory)(made)) == []


def test_callables_of_a_decorator_are_checked_and_loaded(directory: Path) -> None:
    def add(a: int) -> int:
        return a

    async def hook(ctx: object, args: object, call_next: object) -> None: ...
    async def short(ctx: object) -> None: ...

    made = Card(AgentConfig(name="a", function_tools=(add,), tool_hooks=(hook, short)))
    for found in both_ways(made, directory):
        (one,) = found
        assert (one.code, one.path, one.span) == ("FA609", "", None)
        assert "`short` cannot be called with (ctx, args, call_next)" in one.message
    functions = load_functions(made, FunctionLoader(directory))
    assert [tool.spec.name for tool in functions.tools] == ["add"]
    assert [hook.name for hook in functions.tool_hooks] == ["hook"]


def test_a_path_of_a_decorator_starts_from_the_workspace(directory: Path) -> None:
    made = Card(AgentConfig(name="a", function_tools=("tools.py:add",)))
    assert both_ways(made, directory) == ([], [])


def test_a_remote_card_is_left_to_the_validator(directory: Path) -> None:
    config = AgentConfig(name="a", function_tools=("x.py:y",), remote="https://example.org/a.md")
    assert list(FunctionCheck(directory)(Card(config))) == []


def test_checking_imports_nothing_heavy() -> None:
    program = """
import sys
from fast_agent.tools.functions.card_functions import FunctionCheck, load_functions
import fast_agent.tools.functions.card_functions, fast_agent.tools.toolbox, fast_agent.tools.toolbox
heavy = {"pydantic", "asyncio", "anyio", "mcp", "jsonschema"} & set(sys.modules)
sys.exit(str(heavy) if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def codes(tmp_path: Path, text: str, name: str, role: Role = "tool") -> list[str]:
    file = tmp_path / "tools.py"
    file.write_text(dedent(text), "utf-8")
    path = FunctionPath("tools.py", name)
    try:
        check_outline(path, Outlines().of(path, file), role)
    except CardError as problem:
        return [f"{found.code} {found.message} | {found.hint}" for found in problem.diagnostics]
    return []


def test_nothing_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    text = f"open({str(mark)!r}, 'w')\nraise SystemExit\ndef add(a: int): ..."
    assert codes(tmp_path, text, "add") == []
    assert not mark.exists()


@pytest.mark.parametrize(
    "text",
    [
        "def add(a, b=1, *, c, **d): ...",
        "async def add(): ...",
        "add = lambda a: a",
        "from math import sqrt as add",
        "import add",
        "import add.more",
        "from everything import *",
        "def __getattr__(name): ...",
        "if True:\n    def add(): ...\nelse:\n    add = 3",
        "try:\n    from fast import add\nexcept ImportError:\n    def add(): ...",
        "with open('x') as add: ...",
        "for add in (): ...",
        "(add := print)",
        "x, (add, y) = 1, (2, 3)",
        "add: int = max",
        "import functools\nadd = functools.partial(print)",
        "match 1:\n    case 1:\n        def add(): ...",
        "@functools.wraps(print)\ndef add(*args): ...",
        "@tool(name='plus')\ndef add(a): ...",
    ],
)
def test_what_could_be_a_function_passes(tmp_path: Path, text: str) -> None:
    assert codes(tmp_path, text, "add") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def addd(): ...", "FA606 `tools.py` does not define `add` | did you mean `addd`?"),
        ("class add: ...", "FA607 `tools.py:add` is not a function but a class | None"),
        ("add = 3", "FA607 `tools.py:add` is not a function but a value | None"),
        ("add: dict = {}", "FA607 `tools.py:add` is not a function but a value | None"),
        ("def outer():\n    def add(): ...", "FA606 `tools.py` does not define `add`"),
        ("X = 1", "| it defines no functions"),
        ("def add(*n): ...", "FA608 `*n` of `add` cannot be given by name"),
        ("@tool\ndef add(a, /): ...", "FA608 `a` of `add` cannot be given by name"),
        ("def add(", "FA604 `tools.py` is not valid Python: '(' was never closed"),
        ("x = '\0'", "FA604 `tools.py` cannot be read: the file is not UTF-8"),
        ("x = " + "(" * 5000, "FA604 "),
        ("x = " + "-" * 100_000 + "1", "FA604 `tools.py` cannot be parsed"),
    ],
)
def test_what_cannot_be_one_does_not(tmp_path: Path, text: str, expected: str) -> None:
    (found,) = codes(tmp_path, text, "add")
    assert expected in found


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("async def hook(ctx, args, call_next): ...", "tool_hook"),
        ("async def hook(ctx, args, call_next, extra=None): ...", "tool_hook"),
        ("async def hook(*anything): ...", "tool_hook"),
        ("async def hook(ctx, *rest, named=1, **more): ...", "tool_hook"),
        ("async def hook(ctx): ...", "turn_hook"),
        ("@decorated\ndef hook(): ...", "turn_hook"),
    ],
)
def test_hooks_that_can_be_called(tmp_path: Path, text: str, role: Role) -> None:
    assert codes(tmp_path, text, "hook", role) == []


@pytest.mark.spec("TOOL-8")
@pytest.mark.parametrize(
    ("text", "role", "expected"),
    [
        (
            "def hook(ctx, args, call_next): ...",
            "tool_hook",
            (
                "FA609 `tools.py:hook` is not a coroutine function (`async def`)"
                " | write `async def hook(ctx, args, call_next)`"
            ),
        ),
        (
            "async def hook(ctx): ...",
            "tool_hook",
            (
                "FA609 `tools.py:hook` cannot be called with (ctx, args, call_next)"
                " | write `async def hook(ctx, args, call_next)`"
            ),
        ),
        ("async def hook(a, b, c, d): ...", "tool_hook", "FA609"),
        ("async def hook(): ...", "turn_hook", "FA609"),
        ("async def hook(ctx, *, named): ...", "turn_hook", "FA609"),
    ],
)
def test_hooks_that_cannot(tmp_path: Path, text: str, role: Role, expected: str) -> None:
    (found,) = codes(tmp_path, text, "hook", role)
    assert expected in found


def test_a_file_that_reads_as_before_is_not_parsed_again(tmp_path: Path) -> None:
    file, path = tmp_path / "tools.py", FunctionPath("tools.py", "add")
    file.write_text("def add(): ...", "utf-8")
    outlines = Outlines()
    first = outlines.of(path, file)
    assert outlines.of(path, file) is first
    file.write_text("def sub(): ...", "utf-8")
    assert outlines.of(path, file).functions == ["sub"]
    assert len(outlines) == 1


def test_of_ever_new_files_only_the_last_are_kept(tmp_path: Path) -> None:
    outlines = Outlines()
    for number in range(MAX_KEPT + 10):
        file = tmp_path / f"tools_{number}.py"
        file.write_text(f"def f_{number}():\n    return {number}\n", "utf-8")
        path = FunctionPath(file.name, f"f_{number}")
        assert outlines.of(path, file).functions == [f"f_{number}"]
    assert len(outlines) == MAX_KEPT
