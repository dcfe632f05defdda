"""Every requirement is proved by a test, and every test names requirements that exist."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parent
LATER = "later: "
"""What the sentence of a requirement starts with that is not built yet."""


@cache
def requirements() -> tuple[tuple[str, str], ...]:
    """Every id with its sentence."""
    return tuple(
        pair
        for file in sorted(HERE.glob("*.toml"))
        for section in tomllib.loads(file.read_text(encoding="utf-8")).values()
        for pair in section.items()
    )


def is_spec_mark(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "spec"
    )


def is_test(node: ast.AST) -> bool:
    name = getattr(node, "name", "")
    return isinstance(name, str) and name.startswith(("test_", "Test"))


@cache
def marks() -> tuple[tuple[str, str, bool], ...]:
    """Every marked id, where it is, and whether it marks a test."""
    found: list[tuple[str, str, bool]] = []
    for file in sorted(TESTS.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if "mark.spec" not in text:
            continue
        tree = ast.parse(text)
        proving = {
            id(mark)
            for node in ast.walk(tree)
            if is_test(node)
            for mark in getattr(node, "decorator_list", ())
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and is_spec_mark(node):
                where = f"{file.relative_to(TESTS)}:{node.lineno}"
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), f"{where}: ids are plain strings"
                    assert isinstance(argument.value, str), f"{where}: ids are plain strings"
                    found.append((argument.value, where, id(node) in proving))
    return tuple(found)


def test_ids_and_sentences_are_unique() -> None:
    for column in zip(*requirements(), strict=True):
        assert [one for one, count in Counter(column).items() if count > 1] == []


def test_every_requirement_is_bound_to_a_test() -> None:
    bound = {name for name, _, _ in marks()}
    unbound = [(name, text) for name, text in requirements() if name not in bound]
    assert [f"{name}: {text}" for name, text in unbound if not text.startswith(LATER)] == []


def test_what_comes_later_is_bound_to_no_test() -> None:
    bound = {name for name, _, _ in marks()}
    assert [name for name, text in requirements() if text.startswith(LATER) and name in bound] == []


def test_every_bound_id_is_a_requirement() -> None:
    known = {name for name, _ in requirements()}
    assert sorted({(name, where) for name, where, _ in marks() if name not in known}) == []


def test_only_tests_are_bound() -> None:
    assert [(name, where) for name, where, proves in marks() if not proves] == []
