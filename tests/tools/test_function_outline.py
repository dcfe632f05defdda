from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from fast_agent.errors import CardError
from fast_agent.tools.function_outline import MOST_KEPT, Outlines, check_outline, outline_of
from fast_agent.trust.function_path import FunctionPath

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.trust.function_path import Role


def codes(tmp_path: Path, text: str, name: str, role: Role = "tool") -> list[str]:
    file = tmp_path / "tools.py"
    file.write_text(dedent(text), "utf-8")
    path = FunctionPath("tools.py", name)
    try:
        check_outline(path, outline_of(path, file), role)
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
    for number in range(MOST_KEPT + 10):
        file = tmp_path / f"tools_{number}.py"
        file.write_text(f"def f_{number}():\n    return {number}\n", "utf-8")
        path = FunctionPath(file.name, f"f_{number}")
        assert outlines.of(path, file).functions == [f"f_{number}"]
    assert len(outlines) == MOST_KEPT
