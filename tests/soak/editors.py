"""Editors: what changes cards at random, each its own, and knows what they should come to."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tests.soak.card_file import card_text, replace_file, write_somehow

if TYPE_CHECKING:
    from random import Random

MAX_EXTRAS = 12
KEPT_STAMPS = 300
BURST = 10_000
WHO = Path(__file__).parents[1] / "app" / "who_server.py"

PAIR = """\
type: agent
name: left
description: left {n}
instruction: Be brief.
model: slow?seconds=0.03
function_tools: ["stamps/stamp_{n}.py:stamp"]
---
type: agent
name: right
description: right {n}
instruction: Be brief.
model: passthrough
function_tools: ["stamps/stamp_{n}.py:stamp"]
---
type: chain
name: both
description: both {n}
instruction: Be brief.
sequence: [left, right]
"""

STAMP = '''\
def stamp(seen: str = "") -> str:
    """Give the stamp of this version."""
    return f"{{seen}} {n}" if seen else '***CALL_TOOL stamp {{"seen": "{n}"}}'
'''


class Editor(Protocol):
    """Changes some cards."""

    def edit(self, draw: Random) -> None:
        """Change something; what is on disk may be wrong for a while after it."""
        ...

    def fix(self) -> None:
        """Leave nothing wrong on disk."""
        ...

    def expected(self) -> dict[str, str]:
        """Return the descriptions of its agents, by name, as they should be after `fix`."""
        ...


class PairEditor:
    """Two agents and a chain of them in one file, which always bear the same number.

    Args:
        cards: The directory.
    """

    def __init__(self, cards: Path) -> None:
        self._cards = cards
        self.number = 0
        self._write()

    def edit(self, draw: Random) -> None:
        self._write()

    def fix(self) -> None:
        return

    def expected(self) -> dict[str, str]:
        return {name: f"{name} {self.number}" for name in ("left", "right", "both")}

    def _write(self) -> None:
        self.number += 1
        stamps = self._cards / "stamps"
        replace_file(stamps / f"stamp_{self.number}.py", STAMP.format(n=self.number))
        replace_file(self._cards / "pair.yaml", PAIR.format(n=self.number))
        # An agent of an older conversation may load its functions late.
        (stamps / f"stamp_{self.number - KEPT_STAMPS}.py").unlink(missing_ok=True)


class ExtrasEditor:
    """Agents that come, go, change, move to other files and swap their names."""

    def __init__(self, cards: Path) -> None:
        self._cards = cards
        self._files: dict[str, tuple[str, str]] = {}
        """Name and description of the agent of each file."""
        self._number = 0

    def edit(self, draw: Random) -> None:
        acts = [self._add]
        if self._files:
            acts += [self._change, self._rename_file, self._rename_agent, self._swap, self._delete]
        if len(self._files) >= MAX_EXTRAS:
            acts = acts[1:]
        draw.choice(acts)(draw)

    def fix(self) -> None:
        return

    def expected(self) -> dict[str, str]:
        return dict(self._files.values())

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _add(self, draw: Random) -> None:
        number = self._next()
        self._put(f"extra-{number}.md", f"extra-{number}", f"new {number}", draw)

    def _change(self, draw: Random) -> None:
        file = draw.choice(list(self._files))
        self._put(file, self._files[file][0], f"changed {self._next()}", draw)

    def _rename_agent(self, draw: Random) -> None:
        file, number = draw.choice(list(self._files)), self._next()
        self._put(file, f"extra-{number}", f"renamed {number}", draw)

    def _rename_file(self, draw: Random) -> None:
        file, number = draw.choice(list(self._files)), self._next()
        (self._cards / file).rename(self._cards / f"moved-{number}.md")
        self._files[f"moved-{number}.md"] = self._files.pop(file)

    def _swap(self, draw: Random) -> None:
        one, other = draw.choices(list(self._files), k=2)
        names = self._files[one][0], self._files[other][0]
        if one != other:
            self._put(one, names[1], f"swapped {self._next()}", draw)
            self._put(other, names[0], f"swapped {self._next()}", draw)

    def _delete(self, draw: Random) -> None:
        file = draw.choice(list(self._files))
        (self._cards / file).unlink()
        del self._files[file]

    def _put(self, file: str, name: str, description: str, draw: Random) -> None:
        write_somehow(self._cards / file, card_text(description, name=name), draw)
        self._files[file] = name, description


class FaultEditor:
    """Cards that are wrong in every way for a while."""

    def __init__(self, cards: Path) -> None:
        self._paths = [cards / f"faulty-{number}.md" for number in range(3)]
        self._number = 0
        self.fix()

    def edit(self, draw: Random) -> None:
        path = draw.choice(self._paths)
        way = draw.randrange(8)
        if way < 3:
            self.fix()
        elif way == 3:
            path.write_text("")
        elif way == 4:
            path.write_text(card_text("broken", more="agents: [nobody]\n"))
        elif way == 5:
            path.write_text("---\ndescription: [broken\nmodel passthrough\n---\nHi.\n")
        elif way == 6:
            path.write_bytes(draw.randbytes(200))
        else:
            path.unlink(missing_ok=True)

    def fix(self) -> None:
        self._number += 1
        for path in self._paths:
            replace_file(path, card_text(f"fixed {self._number}"))

    def expected(self) -> dict[str, str]:
        return {path.stem: f"fixed {self._number}" for path in self._paths}


class RootEditor:
    """A root that vanishes and comes back."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._away = root.with_name(f"{root.name}-away")
        self._number = 0
        self.fix()

    def edit(self, draw: Random) -> None:
        if not self._root.exists():
            self.fix()
        elif draw.random() < 0.5:
            self._root.rename(self._away)
        else:
            shutil.rmtree(self._root)

    def fix(self) -> None:
        if self._away.exists():
            self._away.rename(self._root)
        self._number += 1
        for name in ("near", "far"):
            replace_file(self._root / f"{name}.md", card_text(f"{name} {self._number}"))

    def expected(self) -> dict[str, str]:
        return {name: f"{name} {self._number}" for name in ("near", "far")}


class ToolEditor:
    """A file of functions that an agent calls."""

    def __init__(self, cards: Path) -> None:
        self._path = cards / "tools.py"
        self.number = 0
        replace_file(
            cards / "teller.md", card_text("teller", more='function_tools: ["tools.py:value"]\n')
        )
        self.fix()

    def edit(self, draw: Random) -> None:
        way = draw.randrange(5)
        if way == 0:
            self._path.write_text("def value( -> int:\n")
        elif way == 1:
            self._path.write_text("raise OSError\ndef value() -> int:\n    return 0\n")
        else:
            self.fix()

    def fix(self) -> None:
        self.number += 1
        replace_file(self._path, f"def value() -> int:\n    return {self.number}\n")

    def expected(self) -> dict[str, str]:
        return {"teller": "teller"}


class BurstEditor:
    """One card that is written thousands of times in a second, now and then."""

    def __init__(self, cards: Path, writes: int = BURST) -> None:
        self._path = cards / "burst.md"
        self._writes = writes
        self._number = 0
        self.fix()

    def edit(self, draw: Random) -> None:
        if draw.random() < 0.05:
            for _ in range(self._writes):
                self._number += 1
                self._path.write_text(card_text(f"burst {self._number}"))

    def fix(self) -> None:
        self._path.write_text(card_text(f"burst {self._number}"))

    def expected(self) -> dict[str, str]:
        return {"burst": f"burst {self._number}"}


class ServerEditor:
    """An agent that brings an MCP server of its own, which is another one now and then."""

    def __init__(self, cards: Path) -> None:
        self._path = cards / "keeper.md"
        self.number = 0
        self._words = 0
        self.fix()

    def edit(self, draw: Random) -> None:
        if draw.random() < 0.3:
            self.number += 1
        if draw.random() < 0.6:
            self.fix()

    def fix(self) -> None:
        self._words += 1
        target = f"{sys.executable} {WHO} {self.number}"
        servers = f'mcp_connect:\n  - {{target: "{target}", name: box}}\n'
        replace_file(self._path, card_text(f"keeper {self._words}", more=servers))

    def expected(self) -> dict[str, str]:
        return {"keeper": f"keeper {self._words}"}


class TalkerEditor:
    """The agent that clients talk to, which is another one each time it is renamed."""

    def __init__(self, cards: Path) -> None:
        self._cards = cards
        self._number = 0
        self._epoch = 0
        self.rename()

    @property
    def name(self) -> str:
        """The agent's name now."""
        return f"talker-{self._epoch}"

    def edit(self, draw: Random) -> None:
        self._number += 1
        text = card_text(f"talker {self._number}")
        write_somehow(self._cards / f"{self.name}.md", text, draw)

    def rename(self) -> None:
        """Let another agent take its place, whom nobody said anything to."""
        (self._cards / f"{self.name}.md").unlink(missing_ok=True)
        self._epoch += 1
        self.fix()

    def fix(self) -> None:
        self._number += 1
        replace_file(self._cards / f"{self.name}.md", card_text(f"talker {self._number}"))

    def expected(self) -> dict[str, str]:
        return {self.name: f"talker {self._number}"}


class SlowEditor:
    """An agent that takes its time, for calls that are given up."""

    def __init__(self, cards: Path) -> None:
        self._path = cards / "sleeper.md"
        self._number = 0
        self._write()

    def edit(self, draw: Random) -> None:
        if draw.random() < 0.3:
            self._write()

    def fix(self) -> None:
        return

    def expected(self) -> dict[str, str]:
        return {"sleeper": f"sleeper {self._number}"}

    def _write(self) -> None:
        self._number += 1
        replace_file(self._path, card_text(f"sleeper {self._number}", model="slow?seconds=0.4"))
