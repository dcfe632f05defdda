"""Mutations of small texts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.mutants.mutation import function_line, mutations_of

SOURCE = Path(__file__).parents[2] / "src/fast_agent"


@pytest.mark.parametrize(
    ("text", "mutants"),
    [
        ("x = a < b", ["x = a <= b"]),
        ("x = a is None", ["x = a is not None"]),
        ("x = a in b", ["x = a not in b"]),
        ("x = a and b", ["x = a or b"]),
        ("x = a + 1", ["x = a - 1", "x = a + 2"]),
        ("x = True", ["x = False"]),
        ("x = 'text'", []),
        ("if a: b()", ["if not (a): b()", "if a: pass"]),
        ("if TYPE_CHECKING: a()", []),
        ("while True: break", ["while False: break", "while True: continue"]),
        ("def f(a: int = 1) -> int:\n    return a", [
            "def f(a: int = 2) -> int:\n    return a",
            "def f(a: int = 1) -> int:\n    return None",
        ]),
        ("async def f():\n    await g()", ["async def f():\n    pass"]),
        ("log.warning('x')", []),
        ("x += 1", ["pass", "x += 2"]),
        ("class A(Protocol):\n    x = 1", []),
        ("x = 'ä' if a else b", ["x = 'ä' if not (a) else b"]),
        ("X: TypeAlias = 1", []),
        ("x = (a) == (b)", []),
    ],
)  # fmt: skip
def test_every_change_is_found(text: str, mutants: list[str]) -> None:
    assert [one.applied(text) for one in mutations_of(text)] == mutants


@pytest.mark.parametrize(("line", "first"), [(1, None), (2, 2), (4, 2), (5, 5), (6, 5), (8, 8)])
def test_the_innermost_function_around_a_line(line: int, first: int | None) -> None:
    text = """x = 1
@decorated
def f():
    y = 2
    async def g():
        return y
class A:
    def h(self): ...
"""
    assert function_line(text, line) == first


def test_every_mutant_of_one_of_our_files_is_another_program() -> None:
    text = (SOURCE / "workflows/evaluator_optimizer.py").read_text("utf-8")
    found = mutations_of(text)
    programs = {ast.dump(ast.parse(one.applied(text))) for one in found}
    assert len(programs - {ast.dump(ast.parse(text))}) > 20
