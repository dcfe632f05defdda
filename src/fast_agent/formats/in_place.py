"""Agents of other tools as cards in memory, for directories that are loaded in place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.cards.load import ForeignCard
from fast_agent.config.home import is_foreign_place
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import OPEN_TOOLS, SKIPPED_FOREIGN
from fast_agent.formats.assembly import ImportTarget, assemble
from fast_agent.formats.detection import foreign_files
from fast_agent.formats.reading import ForeignAgents, read_foreign
from fast_agent.text.frozen import frozen
from fast_agent.text.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fast_agent.formats.draft import ToolChoice


@frozen
class AgentsInPlace:
    """Reads `.claude/agents` and its like as directories of cards; nothing is written.

    Args:
        choice: The tools an agent gets that names none.
        servers: The names of the MCP servers of the configuration.
    """

    choice: ToolChoice
    servers: Sequence[str] = ()

    def files(self, folder: str) -> list[str] | None:
        """Return the files of a directory that may hold agents, sorted.

        Returns:
            Their paths; None if no tool keeps its agents in a directory of this name.
        """
        return [*map(str, foreign_files(Path(folder)))] if is_foreign_place(folder) else None

    def cards(
        self, folder: str, sources: Mapping[str, Source]
    ) -> Iterator[tuple[str, ForeignCard]]:
        """Yield the cards or the problem of each file, with the path of the file.

        Args:
            folder: The directory.
            sources: The texts of its files, by path.
        """
        agents: dict[str, ForeignAgents] = {}
        for file, source in sources.items():
            # The format is known by the place of a file, also where its path is shown without it.
            found = read_foreign(Source(file, source.text), self.choice)
            if found is not None and found.drafts:
                agents[file] = found
            else:
                yield file, ForeignCard(None, _skipped(source.path, found))
        target = ImportTarget(
            output=Path(folder), project=Path(folder).parent.parent, servers=self.servers
        )
        made: dict[str, list[str]] = {}
        for card in assemble([*agents.values()], target):
            made.setdefault(card.draft.file.path, []).append(card.text)
        for file, found in agents.items():
            shown = sources[file].path
            notes = tuple([_in_place(one, shown) for one in found.file.diagnostics()])
            for text in made[file]:
                yield file, ForeignCard(text, notes=notes)
                notes = ()


def _in_place(note: Diagnostic, shown: str) -> Diagnostic:
    if note.code == OPEN_TOOLS.code:
        hint = "`foreign_agents: none|files|all` in the configuration of your home chooses"
        return replace(note, path=shown, hint=hint)
    return replace(note, path=shown)


def _skipped(shown: str, found: ForeignAgents | None) -> Diagnostic:
    """Return why a file is not an agent; a broken one of another tool stops no card."""
    problems = [] if found is None else found.file.diagnostics()
    why = f": {problems[0].message}" if problems else ""
    return Diagnostic(
        SKIPPED_FOREIGN.code,
        f"the file is next to agents, but is not one, and was skipped{why}",
        shown,
        span=problems[0].span if problems else None,
        severity="warning" if problems else SKIPPED_FOREIGN.severity,
        hint="an agent starts with `---`, its fields and `---`",
    )
