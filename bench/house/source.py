"""Source: the modules of `fast_agent`, who imports whom, and what is in them.

Imports are read from the syntax tree, those for types and those inside functions too.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

PACKAGE: Final = "fast_agent"
OPTIONAL: Final = frozenset({"journal", "listener", "pool", "recording", "steps"})
"""Collaborators that should be null objects rather than None."""

KNOW_RECORDING: Final = frozenset({"cli", "engine", "recording", "runtime"})
"""Rooms that may know whether a run is recorded."""

LATER: Final = tuple(
    f"{PACKAGE}.{name}"
    for name in (
        "acp.project_approval",
        "agents.history.compaction",
        "cards.grant",
        "cli.commands.auth",
        "cli.commands.batch",
        "cli.running.batch_run",
        "cli.running.event_lines",
        "cli.commands.exporting",
        "cli.commands.fmt",
        "cli.commands.importing",
        "cli.running.model_comparison",
        "cli.commands.runs",
        "cli.commands.skills",
        "cli.running.temporal",
        "cli.commands.trust",
        "cli.commands.worker",
        "config.compatibility",
        "config.edit",
        "engine",
        "formats",
        "hooks",
        "mcp.guarded_http",
        "mcp.message_bounds",
        "mcp.oauth",
        "models.facts",
        "models.fallback",
        "models.rate_limits",
        "models.local.repetition",
        "models.providers.backlog",
        "models.providers.strict_schema",
        "registry.admission",
        "registry.decisions",
        "registry.expected",
        "resources.skill.install",
        "runtime.fetch_tool",
        "runtime.known_secrets",
        "runtime.protected_files",
        "sessions.integrity",
        "sessions.postgres",
        "telemetry",
        "text.redaction",
        "tools.files",
        "tools.shell.group_guard",
        "trust",
        "tui",
        "types",
    )
)
"""Rooms and files of features that are newer than the goal for the lines, which leaves them out."""

_RECORDING = re.compile(r"\b_?tape\b|\bfast_agent\.recording\b|\b_?recording is (?:not )?None\b")


@dataclass(frozen=True)
class Module:
    """One file.

    Args:
        name: Its dotted name.
        path: The file.
        text: What it holds.
        tree: The same, parsed.
    """

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The package below `fast_agent`, or the file where it is in none."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return self.text.count("\n")

    @property
    def is_later(self) -> bool:
        """Whether it belongs to a feature that the goal for the lines leaves out."""
        return any(f"{self.name}.".startswith(f"{one}.") for one in LATER)

    @property
    def re_exports(self) -> bool:
        """Whether it is an `__init__` that defines nothing of its own."""
        defines = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return self.path.name == "__init__.py" and not any(
            isinstance(one, defines) for one in self.tree.body
        )

    def targets(self) -> Iterator[str]:
        """Yield what it imports, modules and what may be modules."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)

    def running_targets(self) -> Iterator[str]:
        """Yield the modules it imports when it runs, not for types alone."""
        for node in _running(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)


class House:
    """All modules of a source tree.

    Args:
        root: The directory of the package.
    """

    def __init__(self, root: Path) -> None:
        self.modules: Mapping[str, Module] = {
            one.name: one for one in (_read(path, root) for path in sorted(root.rglob("*.py")))
        }

    @cached_property
    def imports(self) -> Mapping[str, frozenset[str]]:
        """By module, the modules of the package that it imports."""
        return {
            name: frozenset(one for one in module.targets() if one in self.modules and one != name)
            for name, module in self.modules.items()
        }

    def lines(self, *, later: bool) -> int:
        """Count the lines; pages are Markdown files, and no source.

        Args:
            later: Whether to count those of the later features, or the others.
        """
        return sum(one.lines for one in self.modules.values() if one.is_later is later)

    def files(self, *, later: bool) -> int:
        """Count the files, those of the later features or the others."""
        return sum(one.is_later is later for one in self.modules.values())

    def chapters(self) -> Mapping[str, str]:
        """Return files with a single importer, with that; an `__init__` that re-exports is none."""
        importers: dict[str, list[str]] = {name: [] for name in self.modules}
        for name, targets in self.imports.items():
            if not self.modules[name].re_exports:
                for target in targets:
                    importers[target].append(name)
        return {
            name: found[0]
            for name, found in importers.items()
            if len(found) == 1 and not self.modules[name].path.name.startswith("__")
        }

    def circles(self) -> Sequence[frozenset[str]]:
        """Return the groups of files that import each other, the largest first."""
        return sorted(_circles(self.imports), key=len, reverse=True)

    def hidden_imports(self) -> Sequence[str]:
        """Return files that import modules of the package by a string, which no linter sees."""
        return [name for name, one in self.modules.items() if _imports_by_string(one.tree)]

    def know_recording(self) -> Sequence[str]:
        """Return files that know whether a run is recorded, and should not.

        The package itself exports the public names of every room, recordings among them.
        """
        return [
            name
            for name, one in self.modules.items()
            if one.room and one.room not in KNOW_RECORDING and _RECORDING.search(one.text)
        ]

    def optional_branches(self) -> Sequence[str]:
        """Return places where a collaborator is compared with None."""
        return [
            f"{name}:{node.lineno}"
            for name, module in self.modules.items()
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Compare) and _asks_whether_there(node)
        ]

    def readers(self) -> Sequence[str]:
        """Return files that read JSON-RPC themselves or have the SDK's HTTP server do it."""
        return [name for name, one in self.modules.items() if _reads_rpc(one.tree)]

    def edges(self) -> Sequence[str]:
        """Return the implementations of MCP that stand before agents."""
        found: list[str] = []
        serving = [one for one in self.modules.values() if one.room == "serve"]
        readers = self.readers()
        own = any(
            one.name in readers or any(t.startswith(f"{PACKAGE}.rpc") for t in one.targets())
            for one in serving
            if not any(target.startswith("mcp") for target in one.targets())
        )
        if own:
            found.append("our own")
        if any(t.startswith("mcp.server") for one in serving for t in one.running_targets()):
            found.append("the SDK's server")
        return found


def _read(path: Path, root: Path) -> Module:
    parts = path.relative_to(root).with_suffix("").parts
    name = ".".join((PACKAGE, *parts)).removesuffix(".__init__")
    text = path.read_text("utf-8")
    return Module(name, path, text, ast.parse(text))


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree, but for what is there for types alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _running(node)


def _asks_whether_there(node: ast.Compare) -> bool:
    asked = node.left
    name = asked.attr if isinstance(asked, ast.Attribute) else getattr(asked, "id", "")
    (other,) = node.comparators if len(node.comparators) == 1 else (None,)
    return (
        name.lstrip("_") in OPTIONAL
        and isinstance(node.ops[0], ast.Is | ast.IsNot)
        and isinstance(other, ast.Constant)
        and other.value is None
    )


def _reads_rpc(tree: ast.AST) -> bool:
    """Whether a file checks the member `jsonrpc`, or calls what does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(
            isinstance(one, ast.Constant) and one.value == "2.0" for one in node.comparators
        ):
            return True
        if isinstance(node, ast.Attribute) and (
            node.attr == "streamable_http_app"
            or (node.attr.startswith("validate_") and "jsonrpc_message" in ast.unparse(node.value))
        ):
            return True
    return False


def _imports_by_string(tree: ast.AST) -> bool:
    """Whether a file imports by a string that does not start with another package's name."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if called not in {"import_module", "__import__"}:
            continue
        named = node.args[0]
        if isinstance(named, ast.JoinedStr):
            named = named.values[0]
        if isinstance(named, ast.Constant) and str(named.value).split(".")[0] != PACKAGE:
            continue
        return True
    return False


def _circles(graph: Mapping[str, Iterable[str]]) -> Iterator[frozenset[str]]:
    """Find groups of nodes that all reach each other: Kosaraju's two walks."""
    importers: dict[str, list[str]] = {name: [] for name in graph}
    for name, targets in graph.items():
        for target in targets:
            importers[target].append(name)
    left_last_first = [*_walked(graph, graph, set())][::-1]
    seen: set[str] = set()
    for name in left_last_first:
        group = frozenset(_walked(importers, (name,), seen))
        if len(group) > 1:
            yield group


def _walked(
    graph: Mapping[str, Iterable[str]], starts: Iterable[str], seen: set[str]
) -> Iterator[str]:
    """Walk from some nodes to all that were not seen yet, in the order in which they are left."""
    for start in starts:
        if start in seen:
            continue
        seen.add(start)
        path = [(start, iter(graph[start]))]
        while path:
            name, targets = path[-1]
            further = next((one for one in targets if one not in seen), None)
            if further is None:
                path.pop()
                yield name
            else:
                seen.add(further)
                path.append((further, iter(graph[further])))
