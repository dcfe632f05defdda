"""Agent skills: what one card's agent may load, from its directories and its servers."""

from __future__ import annotations

from itertools import repeat
from os import F_OK, access
from os.path import realpath
from time import monotonic
from typing import TYPE_CHECKING, Final

from fast_agent.config.home import USER_SKILL_FOLDERS, user_home, usual_skill_folders
from fast_agent.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from fast_agent.agents.offered_tools import AgentServers
    from fast_agent.agents.runtime_options import RuntimeOptions
    from fast_agent.agents.turn_context import Fork
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.placeholder import Template
    from fast_agent.config.settings import SkillsSettings
    from fast_agent.messages.message import Content
    from fast_agent.resources.skill_client.catalog import SkillCatalog
    from fast_agent.resources.skill_client.entry import SkillCall, SkillEntry
    from fast_agent.resources.skill_client.local import LocalSkills
    from fast_agent.resources.skill_client.source import NamedSkill, SkillSource
    from fast_agent.tools.allowed_calls import SkillPermits
    from fast_agent.tools.skills.tools import SkillTools
    from fast_agent.tools.tool import Tool, ToolContext

FAR_SECONDS: Final = 1.0
"""How often folders of skills outside of the workspace are looked for while there are none."""

RUNS_COMMANDS = frozenset({"execute"})
"""Tools of the runtime by which a skill's text could have something run on this machine."""

ACTS = frozenset(
    {
        "create_agent_card",
        "edit_file",
        "fetch",
        "smart_get_resource",
        "smart_with_resource",
        "write_file",
        "write_text_file",
    }
)
"""Tools of the runtime that write a file, or ask a server for what an address says."""


class AgentSkills:
    """The skills of a card; instances share them.

    Without directories and servers, nothing of skills is imported.

    Args:
        config: The card.
        settings: The section `skills` of the configuration.
        options: The options of the program.
        servers: The card's servers.
        template: The card's instruction; if it does not contain the skills, a tool describes them.
        fork: Has another instance of the agent carry out a skill.
    """

    def __init__(
        self,
        config: AgentConfig,
        settings: SkillsSettings,
        options: RuntimeOptions,
        servers: AgentServers,
        template: Template,
        *,
        fork: Fork,
    ) -> None:
        self._directories, self._optional = directories_of(
            config, settings, options.workspace, skill_home(options.environ)
        )
        # A user who names a directory, names its skills.
        named = config.skills is not None and config.grant is None
        self._judge = None if named else options.skills
        self._chosen = _chosen(config, settings, options, self._directories)
        home = skill_home(options.environ)
        self._within = (str(options.workspace), *(() if home is None else (str(home),)))
        # File tools write in the workspace: an agent could permit itself there what it likes.
        base = f"{realpath(options.workspace)}/"
        self._permitting = [one for one in self._chosen if not f"{realpath(one)}/".startswith(base)]
        self._local: LocalSkills | None = None
        self._servers = servers
        self._in_prompt = template.uses("agentSkills")
        self._gate = options.gate
        self._fork = fork
        self._runs = False
        self._max_depth = options.max_depth
        self._catalog: SkillCatalog | None = None
        self._tools: SkillTools | None = None
        self._permits: SkillPermits | None = None
        inside = f"{options.workspace}/"
        found = self._directories
        self._near = [one for one in found if one.startswith(inside)] if self._optional else found
        self._next_look = 0.0

    @property
    def permits(self) -> SkillPermits | None:
        """What loaded skills allow without a question; None if none can allow anything."""
        if self._permits is None and (self._permitting or self._judge is not None):
            from fast_agent.tools.allowed_calls import SkillPermits

            self._permits = SkillPermits()
        return self._permits

    async def tools(self) -> Sequence[Tool]:
        """Return the current tools: none if there is no skill."""
        if self._tools is None:
            if not self._servers.names and not self._have_appeared():
                return ()
            self._tools = self._make()
        return await self._tools.tools()

    def _have_appeared(self) -> bool:
        """Look for the folders of skills, which every model request of every agent asks for.

        There are more the deeper the workspace lies in its repository, so those outside of it are
        looked for once in a while.
        """
        # `access` reports a missing file without an exception.
        if any(map(access, self._near, repeat(F_OK))):
            return True
        now = monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + FAR_SECONDS
        return any(map(access, self._directories, repeat(F_OK)))

    async def listed(self) -> Sequence[NamedSkill]:
        """List the current skills.

        Raises:
            ToolError: A server of the card cannot be used.
        """
        await self._servers.open()
        await self.tools()
        return () if self._catalog is None else await self._catalog.scan()

    def block(self) -> str:
        """Return the block of a prompt as of the last check of the tools."""
        return "" if self._catalog is None else self._catalog.block()

    def callable(self) -> Sequence[SkillEntry]:
        """List the skills of this machine that a user may call by name."""
        if not any(map(access, self._directories, repeat(F_OK))):
            return ()
        local = self._local_skills()
        return () if local is None else local.for_people()

    async def called(self, name: str, arguments: str) -> SkillCall | None:
        """Return what a user asks who calls a skill by name; None where there is none.

        Args:
            name: The skill.
            arguments: What stands behind it. It takes the place of `$ARGUMENTS` in the skill, or
                follows it.

        Raises:
            SkillError: It cannot be read.
        """
        from fast_agent.resources.skill_client.source import NamedSkill
        from fast_agent.resources.skill_client.text import call_of
        from fast_agent.tools.skills.tools import body_of, decoded

        listed = next((one for one in self.callable() if one.name == name), None)
        local = self._local_skills()
        if listed is None or local is None:
            return None
        entry = await local.complete(listed, fresh=True)
        body = body_of(decoded(await local.read(entry.head), "SKILL.md"))
        return call_of(NamedSkill(name, entry, local), body, arguments)

    async def _load_in_fork(self, skill: SkillCall, context: ToolContext) -> tuple[Content, ...]:
        """Run, in another instance of the agent, a skill that its model loads."""
        from fast_agent.agents.delegation.agent_tool import answer_of
        from fast_agent.agents.tool_calls import TurnCallContext

        name = skill.fields.name
        if not isinstance(context, TurnCallContext):
            raise RunError(f"the skill `{name}` can only be loaded in a turn")
        if context.turn.depth >= self._max_depth:
            msg = f"the skill `{name}` has `context: fork`; agents may call each other"
            raise RunError(f"{msg} {self._max_depth} deep at most")
        turn = context.turn.below(context.turn_id, (), depth=1, parent=context.call_id)
        return answer_of(await self._fork(skill, turn))

    def _local_skills(self) -> LocalSkills | None:
        from fast_agent.resources.skill_client.local import LocalSkills

        if self._local is None and self._directories:
            self._local = LocalSkills(
                self._directories,
                optional=self._optional,
                judge=self._judge,
                chosen=self._chosen,
                within=self._within,
                permitting=self._permitting,
            )
        return self._local

    def gated(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """Ask the user before tools act while skills of servers are loaded.

        What agents that are tools do is asked about when they do it.

        Args:
            tools: The agent's own tools: functions, and those of the runtime.
        """
        gate = self._gate
        if gate is None:
            return tuple(tools)
        gated: list[Tool] = []
        for tool in tools:
            commands = _runs_commands(tool)
            self._runs = self._runs or commands
            if commands or tool.source == "function" or tool.spec.name in ACTS:
                from fast_agent.tools.skills.gate import GatedTool

                gated.append(GatedTool(tool, gate(), commands=commands))
            else:
                gated.append(tool)
        return tuple(gated)

    def _make(self) -> SkillTools:
        from fast_agent.resources.skill_client.catalog import SkillCatalog
        from fast_agent.tools.skills.tools import SkillTools

        local = self._local_skills()
        sources: list[SkillSource] = [] if local is None else [local]
        sources += self._servers.skills()
        self._catalog = SkillCatalog(sources)
        gate = self._gate() if self._gate else None
        return SkillTools(
            self._catalog,
            gate,
            describe=not self._in_prompt,
            permits=self.permits,
            fork=self._load_in_fork,
            runs=self._runs,
        )


def _runs_commands(tool: Tool) -> bool:
    return tool.source == "runtime" and tool.spec.name in RUNS_COMMANDS


def _chosen(
    config: AgentConfig,
    settings: SkillsSettings,
    options: RuntimeOptions,
    directories: Iterable[str],
) -> tuple[str, ...]:
    """Return those of the directories that a user chose, whose links are followed."""
    if config.grant is not None:
        return ()
    if config.skills is not None:
        return tuple(directories)
    home = skill_home(options.environ)
    if settings.directories is not None or home is None or home == options.workspace:
        return ()
    own = {str(home / name) for name in USER_SKILL_FOLDERS}
    return tuple(own.intersection(directories))


def skill_home(environ: Mapping[str, str]) -> Path | None:
    """Return the home of the user, for their skills; None where the environment names none."""
    return user_home(environ) if environ.get("HOME") or environ.get("USERPROFILE") else None


def directories_of(
    config: AgentConfig, settings: SkillsSettings, workspace: Path, home: Path | None = None
) -> tuple[tuple[str, ...], bool]:
    """Return where a card's skills are searched for on this machine.

    Args:
        config: The card. One from a web address names no directories here.
        settings: The section `skills` of the configuration.
        workspace: Where the usual directories are, and above it up to the root of its Git
            checkout.
        home: The user's home, whose skills agents have that were not found; None leaves them out.

    Returns:
        The directories, absolute, and whether they may be missing without a word.
    """
    if config.skills is not None:
        if config.remote is not None:
            return (), True
        start = config.directory or workspace
        return tuple([str(start / name) for name in config.skills]), False
    if settings.directories is not None:
        return tuple(map(str, settings.directories)), False
    usual = usual_skill_folders(workspace, home, with_own=config.grant is None)
    return tuple(map(str, usual)), True
