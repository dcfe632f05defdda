"""Mutations: small changes of a source text that a test should notice."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_OPERATIONS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
    ast.Mod: "*",
}


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change.

    Args:
        line: The line it begins in, from 1.
        before: The text that is replaced.
        after: What replaces it.
        start: Where it begins, in bytes of the whole text.
        end: Where it ends.
    """

    line: int
    before: str
    after: str
    start: int
    end: int

    def applied(self, text: str) -> str:
        """Return the text with the change."""
        data = text.encode()
        return (data[: self.start] + self.after.encode() + data[self.end :]).decode()


def function_line(text: str, line: int) -> int | None:
    """Return the first line of the innermost function around a line; None outside of functions."""
    found: int | None = None
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if first <= line <= (node.end_lineno or first) and (found is None or first > found):
                found = first
    return found


def mutations_of(text: str) -> list[Mutation]:
    """List every change of a text, in order; none is in annotations or what is there for types."""
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    return sorted(finder.found, key=lambda one: (one.start, one.end, one.after))


class _Finder(ast.NodeVisitor):
    def __init__(self, text: str) -> None:
        self.found: list[Mutation] = []
        self._data = text.encode()
        self._lines = [0]
        for line in self._data.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def visit_If(self, node: ast.If) -> None:
        """Turn a condition round; what is there for types is not looked at."""
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return
        self._turn(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        """Turn a condition round."""
        if not isinstance(node.test, ast.Constant):
            self._turn(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Turn a condition round."""
        self._turn(node.test)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Replace the first operator."""
        sign = _COMPARISONS[type(node.ops[0])]
        self._between(node.left, node.comparators[0], f" {sign} ")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Replace `and` by `or`, and the other way."""
        sign = "or" if isinstance(node.op, ast.And) else "and"
        self._between(node.values[0], node.values[1], f" {sign} ")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Replace an operation with numbers; texts are joined by `+` too, which then fails."""
        sign = _OPERATIONS.get(type(node.op))
        if sign is not None:
            self._between(node.left, node.right, f" {sign} ")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Replace a switch by the other, and a number by the next."""
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value))
        elif isinstance(node.value, int):
            self._replace(node, str(node.value + 1))

    def visit_Return(self, node: ast.Return) -> None:
        """Return nothing."""
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self._replace(node.value, "None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out a call."""
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(value, ast.Call) and "log" not in ast.unparse(value.func):
            self._replace(node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Leave out a change of a variable."""
        self._replace(node, "pass")
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        """Go on instead of leaving a loop."""
        self._replace(node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        """Do the rest of a round that is to be skipped."""
        self._replace(node, "pass")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Look at the value alone."""
        if node.value is not None and "TypeAlias" not in ast.unparse(node.annotation):
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        """Look at defaults alone."""
        for value in (*node.defaults, *node.kw_defaults):
            if value is not None:
                self.visit(value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Look at arguments and body, not at decorators and the type that is returned."""
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Look at arguments and body."""
        self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look at the body; of a protocol nothing runs."""
        if not any("Protocol" in ast.unparse(base) for base in node.bases):
            for one in node.body:
                self.visit(one)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.visit(node.args)
        for one in node.body:
            self.visit(one)

    def _turn(self, test: ast.expr) -> None:
        start, end = self._span(test)
        self._add(start, end, f"not ({self._data[start:end].decode()})", test.lineno)

    def _between(self, left: ast.expr, right: ast.expr, sign: str) -> None:
        """Replace what is between two operands, unless brackets are there."""
        start, end = self._span(left)[1], self._span(right)[0]
        between = self._data[start:end]
        if not set(between) & set(b"()#\n"):
            self._add(start, end, sign, left.end_lineno or left.lineno)

    def _replace(self, node: ast.expr | ast.stmt, after: str) -> None:
        self._add(*self._span(node), after, node.lineno)

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[end_line - 1] + end_column

    def _add(self, start: int, end: int, after: str, line: int) -> None:
        before = self._data[start:end].decode()
        if before != after:
            self.found.append(Mutation(line, before, after, start, end))


def sites(texts: dict[str, str]) -> Iterator[tuple[str, Mutation]]:
    """Yield every change of several files, with the file."""
    for name in sorted(texts):
        for mutation in mutations_of(texts[name]):
            yield name, mutation
