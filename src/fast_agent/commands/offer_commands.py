"""Commands about what the current agent is offered: tools, servers, prompts, skills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from fast_agent.commands.command import (
    Ask,
    Command,
    CommandResult,
    Word,
    fenced,
    listed,
    short,
)
from fast_agent.errors import RunError
from fast_agent.messages.message import Message
from fast_agent.text.wording import closest, did_you_mean, plural
from fast_agent.tools.permission import AskedTool
from fast_agent.tools.toolbox import size_of_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fast_agent.commands.command import Arguments
    from fast_agent.commands.controller import ConversationController
    from fast_agent.mcp.offers import ServerPrompts


async def _tools(arguments: Arguments, controller: ConversationController) -> CommandResult:
    del arguments
    table = await controller.require_llm_agent().setup.tools.table()
    lines: list[str] = []
    for tool in table.values():
        facts = [
            tool.server_name or tool.source,
            f"about {plural(size_of_tools([tool.spec]), 'token')}",
        ]
        if isinstance(tool, AskedTool):
            facts.append("you may be asked first")
        about = f": {short(tool.spec.description)}" if tool.spec.description else ""
        lines.append(f"`{tool.spec.name}` ({', '.join(facts)}){about}")
    return _list(lines, f"`{controller.agent}` has no tools")


async def _mcp(arguments: Arguments, controller: ConversationController) -> CommandResult:
    del arguments
    lines = [
        f"`{report.name}`: {report.state}" + (f": {short(report.reason)}" if report.reason else "")
        for report in controller.app.runtime.server_reports()
    ]
    return _list(lines, "there are no MCP servers")


async def _connect(arguments: Arguments, controller: ConversationController) -> CommandResult:
    name = arguments.word(0) or ""
    await controller.app.runtime.connect_server(name)
    return CommandResult(text=f"connected to `{name}`")


async def _disconnect(arguments: Arguments, controller: ConversationController) -> CommandResult:
    name = arguments.word(0) or ""
    ended = await controller.app.runtime.disconnect_server(name)
    if not ended:
        return CommandResult(text=f"there was no connection to `{name}`")
    return CommandResult(text=f"disconnected from `{name}`; the next use connects again")


async def _reconnect(arguments: Arguments, controller: ConversationController) -> CommandResult:
    name = arguments.word(0) or ""
    runtime = controller.app.runtime
    await runtime.disconnect_server(name)
    await runtime.connect_server(name)
    return CommandResult(text=f"connected to `{name}` again")


async def _log(arguments: Arguments, controller: ConversationController) -> CommandResult:
    name = arguments.word(0) or ""
    lines = controller.app.runtime.server_log(name)
    if not lines:
        return CommandResult(text=f"`{name}` wrote nothing to its standard error")
    return CommandResult(text=fenced("\n".join(lines)))


async def _prompts(arguments: Arguments, controller: ConversationController) -> CommandResult:
    server, name, rest = (arguments.word(place) for place in range(3))
    servers = controller.app.runtime.server_prompts(controller.agent)
    if server is not None:
        wanted = _one_of(servers, server, controller)
        if name is None:
            raise RunError("the name of a prompt is missing", hint="`/prompts` lists them")
        return await _asked(wanted, name, _pairs(rest or ""), controller)
    lines: list[str] = []
    for one in servers:
        for prompt in await one.prompts():
            taken = "".join(
                f" {each.name}=…" if each.required else f" [{each.name}=…]"
                for each in prompt.arguments
            )
            about = f": {short(prompt.description)}" if prompt.description else ""
            lines.append(f"`{one.server_name} {short(prompt.name + taken)}`{about}")
    return _list(lines, f"the servers of `{controller.agent}` have no prompts for it")


async def _asked(
    server: ServerPrompts, name: str, given: Mapping[str, str], controller: ConversationController
) -> CommandResult:
    """Fill a prompt; its earlier messages go into the history, its last message is sent."""
    prompts = {prompt.name: prompt for prompt in await server.prompts()}
    prompt = prompts.get(name)
    if prompt is None:
        near = closest(name, prompts)
        hint = did_you_mean(near, "`/prompts` lists them")
        raise RunError(f"server `{server.server_name}` has no prompt `{short(name)}`", hint=hint)
    known = {one.name: one for one in prompt.arguments}
    missing = [key for key, one in known.items() if one.required and key not in given]
    unknown = [key for key in given if key not in known]
    for keys, wrong in ((missing, "needs"), (unknown, "does not take")):
        if keys:
            listing = ", ".join(f"`{short(key)}`" for key in keys)
            raise RunError(f"prompt `{short(name)}` {wrong} {listing}", hint="write KEY=VALUE")
    messages = await server.get(name, given, agent_name=controller.agent)
    agent = controller.instance()
    last = messages[-1] if messages and messages[-1].role == "user" else None
    earlier = messages if last is None else messages[:-1]
    if earlier:
        agent.load_history((*agent.history, *earlier))
        await agent.barrier()
    count = plural(len(messages), "message")
    ask = None if last is None else Ask(agent=agent.name, text=last.text, content=last.content)
    return CommandResult(text=f"prompt `{short(name)}`: {count}", ask=ask)


def _pairs(text: str) -> dict[str, str]:
    import shlex

    try:
        words = shlex.split(text)
    except ValueError:
        raise RunError("unclosed quote", hint="write KEY=VALUE or KEY='VALUE'") from None
    pairs = [word.partition("=") for word in words]
    for key, equals, _ in pairs:
        if not equals:
            raise RunError(f"`{short(key)}` is not an argument", hint="write KEY=VALUE")
    return {key: value for key, _, value in pairs}


async def _resources(arguments: Arguments, controller: ConversationController) -> CommandResult:
    server, uri, message = (arguments.word(place) for place in range(3))
    servers = controller.app.runtime.server_resources(controller.agent)
    if server is not None:
        wanted = _one_of(servers, server, controller)
        if uri is None:
            raise RunError("the URI of a resource is missing", hint="`/resources` lists them")
        contents = await wanted.read(uri, agent_name=controller.agent)
        if message is not None:
            content = (*Message.user(message).content, *contents)
            return CommandResult(ask=Ask(agent=controller.agent, text=message, content=content))
        texts = [one.text if one.text is not None else "(not text)" for one in contents]
        return CommandResult(text="\n".join(fenced(text) for text in texts) or "it is empty")
    lines: list[str] = []
    for each in servers:
        for one in await each.resources():
            about = f": {short(one.description)}" if one.description else ""
            lines.append(f"`{each.server_name} {short(one.uri)}`{about}")
        lines += [
            f"`{each.server_name} {short(template.uri_template)}` (template)"
            for template in await each.templates()
        ]
    return _list(lines, f"the servers of `{controller.agent}` have no resources for it")


class _ServerItem(Protocol):
    @property
    def server_name(self) -> str: ...


S = TypeVar("S", bound=_ServerItem)


def _one_of(servers: Sequence[S], name: str, controller: ConversationController) -> S:
    for server in servers:
        if server.server_name == name:
            return server
    near = closest(name, [server.server_name for server in servers])
    hint = did_you_mean(near, "`/mcp` lists the servers")
    raise RunError(f"agent `{controller.agent}` has no server `{short(name)}`", hint=hint)


async def _skills(arguments: Arguments, controller: ConversationController) -> CommandResult:
    del arguments
    skills = await controller.app.runtime.skills(controller.agent)
    lines = [
        f"`{short(skill.name)}`"
        + (f": {short(skill.entry.description)}" if skill.entry.description else "")
        for skill in skills
    ]
    return _list(lines, f"`{controller.agent}` has no skills")


def _list(lines: Sequence[str], empty: str) -> CommandResult:
    return CommandResult(text=listed(lines) if lines else empty)


_SERVER = (Word("SERVER", "server", required=True),)

OFFER_COMMANDS = (
    Command(
        name="tools",
        busy="now",
        summary="list the tools of the current agent",
        act=_tools,
    ),
    Command(
        name="mcp",
        busy="now",
        summary="show the state of the MCP servers, connect to one, disconnect, or show its log",
        actions=(
            Command(name="show", busy="now", summary="show the state of the MCP servers", act=_mcp),
            Command(
                name="connect",
                busy="now",
                summary="connect to a server, also where that failed",
                act=_connect,
                words=_SERVER,
            ),
            Command(
                name="disconnect",
                summary="end the connection to a server until it is used again",
                act=_disconnect,
                words=_SERVER,
            ),
            Command(
                name="reconnect",
                summary="end the connection to a server and connect again",
                act=_reconnect,
                words=_SERVER,
            ),
            Command(
                name="log",
                busy="now",
                summary="show the last lines of a server's standard error",
                act=_log,
                words=_SERVER,
            ),
        ),
    ),
    Command(
        name="prompts",
        summary="list the prompts of its MCP servers, or fill in one with KEY=VALUE and send it",
        act=_prompts,
        words=(
            Word("SERVER", "server"),
            Word("PROMPT"),
            Word("KEY=VALUE", rest=True),
        ),
    ),
    Command(
        name="resources",
        summary="list the resources of its MCP servers, print one, or send it with a message",
        act=_resources,
        words=(Word("SERVER", "server"), Word("URI"), Word("MESSAGE", rest=True)),
    ),
    Command(name="skills", busy="now", summary="list its skills", act=_skills),
)
