"""The server's own tools: loading cards, and reading them again."""

from __future__ import annotations

from contextlib import suppress
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from fast_agent.errors import CardError, TrustError
from fast_agent.resources.problem import shown
from fast_agent.resources.provider import ServedTool, ToolAnswer
from fast_agent.serve.agent_tools import answer_of_problem, without_paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.program.program import Program
    from fast_agent.text.json_value import JsonObject

LOAD = "load_agents"
RELOAD = "reload"

_PATH: JsonObject = {"type": "string", "description": "a card's file, or a directory of cards"}
_LOADS: JsonObject = {
    "type": "object",
    "properties": {"path": _PATH},
    "required": ["path"],
    "additionalProperties": False,
}
_NOTHING: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}


class AdminTools:
    """What a client may change about the agents, as far as the operator lets it.

    Args:
        program: The agents.
        roots: The directories cards may be loaded from; none offers no loading.
        reload: Whether reading the cards again is offered.
        trust: Whether unapproved code of loaded cards may run.
    """

    def __init__(
        self,
        program: Program,
        roots: Sequence[str | Path] = (),
        *,
        reload: bool = False,
        trust: bool = False,
    ) -> None:
        self._program = program
        self._roots = tuple(Path(realpath(program.workspace / root)) for root in roots)
        self._reload = reload
        self._trust = trust

    @property
    def names(self) -> frozenset[str]:
        """The names of the tools that are offered."""
        return frozenset(tool.name for tool in self.tools())

    def tools(self) -> Sequence[ServedTool]:
        """The tools that are offered."""
        found: list[ServedTool] = []
        if self._roots:
            about = "Load agents from cards; they become tools of this server."
            found.append(ServedTool(LOAD, about, _LOADS, self.load, "Load agents"))
        if self._reload:
            about = "Read the cards again that changed since they were loaded."
            found.append(ServedTool(RELOAD, about, _NOTHING, self.reload, "Reload agents"))
        return found

    async def call(self, name: str, arguments: JsonObject) -> ToolAnswer:
        """Call one; the files are read in another thread."""
        return await to_thread.run_sync(self.load if name == LOAD else self.reload, arguments)

    def load(self, arguments: JsonObject) -> ToolAnswer:
        """Load the cards at a path."""
        path = arguments.get("path")
        if not isinstance(path, str) or not path or len(arguments) != 1:
            return ToolAnswer.of_text("the one argument is `path`, a string", is_error=True)
        try:
            found, root = self._within(path)
            # What code they bring runs only where the operator approved it.
            unread = () if self._trust else (found,)
            names = list(self._program.load(cards=(found,), found=unread, root=root))
            self._check_left_out(found, names)
        except (CardError, TrustError) as error:
            return answer_of_problem(error)
        text = "loaded " + ", ".join(f"`{name}`" for name in names)
        return ToolAnswer(({"type": "text", "text": text},), structured={"agents": names})

    def _check_left_out(self, path: Path, names: Sequence[str]) -> None:
        """Report to a client which cards wait for the operator, if it gets none of them."""
        waiting = self._program.admission.left_out_in(path)
        if waiting and not names:
            listed = ", ".join(f"`{name}`" for name in waiting)
            raise TrustError(
                f"{listed} may not act until the operator approves "
                f"{'it' if len(waiting) == 1 else 'them'}"
            )

    def reload(self, arguments: JsonObject) -> ToolAnswer:  # noqa: ARG002
        """Read changed cards again."""
        done = self._program.reload()
        lines = [done.line or "nothing changed"]
        lines += [f"{one.severity}: {one.path or ''}: {one.message}" for one in done.problems]
        structured: JsonObject = {
            "version": done.version,
            "added": list(done.added),
            "updated": list(done.updated),
            "removed": list(done.removed),
        }
        text = without_paths("\n".join(lines))
        block: JsonObject = {"type": "text", "text": text}
        return ToolAnswer((block,), is_error=done.refused, structured=structured)

    def _within(self, path: str) -> tuple[Path, Path]:
        """Find a path below a root, whatever links and dots are in it; and the root."""
        if "://" not in path and "\0" not in path:
            for root in self._roots:
                with suppress(OSError, UnicodeError):  # no file can have such a name
                    found = Path(realpath(root / path))
                    if found.is_relative_to(root) and found.exists():
                        return found, root
        raise CardError(
            f"there are no cards at `{shown(path)}` that may be loaded",
            hint="give a path below a directory that the server allows",
        )
