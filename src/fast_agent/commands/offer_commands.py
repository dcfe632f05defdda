"""Commands about what the agent that is talked to is offered: tools, servers, prompts, skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.commands.command import Command, CommandResult
from fast_agent.commands.told import listed, short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.commands.arguments import Arguments
    from fast_agent.commands.desk import Desk


async def _tools(arguments: Arguments, desk: Desk) -> CommandResult:
    del arguments
    table = await desk.thinker().setup.tools.table()
    lines = [
        f"`{tool.spec.name}` ({tool.server_name or tool.source})"
        + (f": {short(tool.spec.description)}" if tool.spec.description else "")
        for tool in table.values()
    ]
    return _list(lines, f"`{desk.agent}` has no tools")


async def _mcp(arguments: Arguments, desk: Desk) -> CommandResult:
    del arguments
    lines = [
        f"`{report.name}`: {report.state}" + (f": {short(report.reason)}" if report.reason else "")
        for report in desk.app.runtime.server_reports()
    ]
    return _list(lines, "there are no MCP servers")


async def _prompts(arguments: Arguments, desk: Desk) -> CommandResult:
    del arguments
    lines: list[str] = []
    for server in desk.app.runtime.server_prompts(desk.agent):
        for prompt in await server.prompts():
            wanted = "".join(
                f" {one.name}" if one.required else f" [{one.name}]" for one in prompt.arguments
            )
            about = f": {short(prompt.description)}" if prompt.description else ""
            lines.append(f"`{server.server_name}` `{short(prompt.name + wanted)}`{about}")
    return _list(lines, f"the servers of `{desk.agent}` have no prompts for it")


async def _resources(arguments: Arguments, desk: Desk) -> CommandResult:
    del arguments
    lines: list[str] = []
    for server in desk.app.runtime.server_resources(desk.agent):
        for one in await server.resources():
            about = f": {short(one.description)}" if one.description else ""
            lines.append(f"`{server.server_name}` `{short(one.uri)}`{about}")
        lines += [
            f"`{server.server_name}` `{short(template.uri_template)}` (template)"
            for template in await server.templates()
        ]
    return _list(lines, f"the servers of `{desk.agent}` have no resources for it")


async def _skills(arguments: Arguments, desk: Desk) -> CommandResult:
    del arguments
    skills = await desk.app.runtime.skills(desk.agent)
    lines = [
        f"`{short(skill.name)}`"
        + (f": {short(skill.entry.description)}" if skill.entry.description else "")
        for skill in skills
    ]
    return _list(lines, f"`{desk.agent}` has no skills")


def _list(lines: Sequence[str], empty: str) -> CommandResult:
    return CommandResult(text=listed(lines) if lines else empty)


OFFER_COMMANDS = (
    Command(name="tools", summary="list the tools of the agent that is talked to", act=_tools),
    Command(name="mcp", summary="say how the MCP servers stand", act=_mcp),
    Command(name="prompts", summary="list the prompts of its MCP servers", act=_prompts),
    Command(name="resources", summary="list the resources of its MCP servers", act=_resources),
    Command(name="skills", summary="list its skills", act=_skills),
)
