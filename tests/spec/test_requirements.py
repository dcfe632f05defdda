"""Every requirement is proved by a test, and every test names requirements that exist."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parent


def requirements() -> list[str]:
    ids: list[str] = []
    for file in sorted(HERE.glob("*.toml")):
        for section in tomllib.loads(file.read_text(encoding="utf-8")).values():
            ids.extend(section)
    return ids


def is_spec_mark(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "spec"


def bound_ids() -> dict[str, set[str]]:
    bound: dict[str, set[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and is_spec_mark(node.func):
                where = f"{file.relative_to(TESTS)}:{node.lineno}"
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), f"{where}: ids are plain strings"
                    assert isinstance(argument.value, str), f"{where}: ids are plain strings"
                    bound.setdefault(argument.value, set()).add(where)
    return bound


def test_ids_are_unique() -> None:
    assert [name for name, count in Counter(requirements()).items() if count > 1] == []


def test_every_requirement_is_bound_to_a_test() -> None:
    bound = bound_ids()
    assert [name for name in requirements() if name not in bound] == []


def test_every_bound_id_is_a_requirement() -> None:
    known = set(requirements())
    unknown = {name: sorted(where) for name, where in bound_ids().items() if name not in known}
    assert unknown == {}
