"""Live session: one conversation of a client, with its own agents and the modes to choose them by.

Modes are the agents a user may talk to. They are also offered as a configuration option, which a
later protocol has instead of modes and whose choices may change while a session is open.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
from anyio.to_thread import run_sync

from fast_agent.acp.params import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    RequestError,
    read_prompt,
    refused,
)
from fast_agent.acp.project_approval import refusal_text
from fast_agent.commands.command import CARD_MODEL, Command, failure
from fast_agent.commands.table import COMMANDS, is_command, run_command
from fast_agent.errors import FastAgentError, RunError, TrustError
from fast_agent.text.wording import closest, did_you_mean, shortened_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fast_agent.acp.project_approval import ProjectApproval
    from fast_agent.acp.updates import Updates
    from fast_agent.agent_app import AgentApp
    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.commands.controller import ConversationController
    from fast_agent.messages.message import Message
    from fast_agent.resources.skill_client.entry import SkillCall, SkillEntry
    from fast_agent.rpc.peer import Work
    from fast_agent.text.json_value import JsonObject, JsonValue

    Waiting = Mapping[str, AgentConfig]

AGENT_OPTION: Final = "agent"
MODEL_OPTION: Final = "model"
"""The ids of the configuration options."""
_MARK: Final = "needs approval"


def modes(app: AgentApp, current: str, waiting: Waiting) -> JsonObject:
    """Return the agents as modes.

    Args:
        app: Those that may act.
        current: The current one.
        waiting: Those that were found, and act once the user approved them.
    """
    listed: list[JsonValue] = [*_described("id", app, waiting)]
    return {"currentModeId": current, "availableModes": listed}


def session_options(app: AgentApp, current: str, waiting: Waiting) -> list[JsonValue]:
    """Return the agents, and the models of the current one, as configuration options; see `modes`.

    An agent that uses no model itself, or that may not act yet, has no option for it.
    """
    agents: list[JsonValue] = [*_described("value", app, waiting)]
    options: list[JsonValue] = [
        _option(AGENT_OPTION, "Agent", "the current agent", "mode", current, agents)
    ]
    model = app.model_of(current)
    if model is not None:
        # A model that has no alias is among the choices as long as it is the current one.
        names = dict.fromkeys((CARD_MODEL, *app.model_choices(current), model))
        models: list[JsonValue] = [{"value": name, "name": name} for name in names]
        about = f"the model of `{current}`; `{CARD_MODEL}` is that of its card"
        options.append(_option(MODEL_OPTION, "Model", about, "model", model, models))
    return options


def _option(
    name: str, label: str, about: str, category: str, current: str, choices: list[JsonValue]
) -> JsonObject:
    return {
        "id": name,
        "name": label,
        "description": about,
        "category": category,
        "type": "select",
        "currentValue": current,
        "options": choices,
    }


def mode_names(app: AgentApp, waiting: Waiting) -> list[str]:
    """Name the agents that can be chosen."""
    able = app.agent_names()
    return [*able, *(name for name in waiting if name not in able)]


def _described(key: str, app: AgentApp, waiting: Waiting) -> Iterator[JsonObject]:
    able = app.agent_names()
    for name in mode_names(app, waiting):
        is_able = name in able and name not in waiting
        config = waiting[name] if name in waiting else app.load_set.cards[name].config
        described: dict[str, JsonValue] = {key: name, "name": name}
        if not is_able:
            described["name"] = f"{name} ({_MARK})"
        if config.description:
            described["description"] = config.description
        yield described


STOP_REASONS: Final[Mapping[str, str]] = {
    "maxTokens": "max_tokens",
    "maxIterations": "max_turn_requests",
    "refusal": "refusal",
    "cancelled": "cancelled",
}
_TITLE_LENGTH: Final = 60
_MAX_NOTES: Final = 20
_NOT_HERE: Final = frozenset({"exit"})
_SESSION_ACTIONS: Final = frozenset({"list", "continue", "rename", "delete", "export"})


def offered_commands() -> dict[str, Command]:
    """Return the commands of a session; the client itself opens and closes sessions."""
    found = {name: one for name, one in COMMANDS.items() if name not in _NOT_HERE}
    whole = found["session"]
    kept = tuple(action for action in whole.actions if action.name in _SESSION_ACTIONS)
    found["session"] = Command(
        name="session",
        summary="list, continue, rename, delete or export kept conversations",
        actions=kept,
    )
    return found


class LiveSession:
    """One conversation.

    Args:
        session_id: Its id.
        cwd: Its directory.
        controller: Its agents, and the one that is talked to.
        updates: Notifies the client of what happens.
        approval: Asks the user about agents that were found.
        changed: Called when cards were loaded or reloaded, for the other sessions.
        again: Called to restart the program; raises RunError if it cannot restart.
        agree: Asks the user, where that is needed, before a message reaches agents that may do
            more than before; raises TrustError where they do not agree. None asks nothing.
        used: Whether something was said in it before.

    Attributes:
        id: Its id.
        cwd: Its directory.
        used: Whether something was said in it.
        closing: Set when it is to end.
        closed: Set when it has ended.
    """

    def __init__(
        self,
        session_id: str,
        cwd: Path,
        controller: ConversationController,
        updates: Updates,
        approval: ProjectApproval,
        changed: Callable[[], None],
        again: Callable[[LiveSession], None],
        *,
        agree: Callable[[], Awaitable[None]] | None = None,
        used: bool,
    ) -> None:
        self.id = session_id
        self._agree = agree
        self.cwd = cwd
        self.closing = anyio.Event()
        self._ending = False
        self.closed = anyio.Event()
        self._controller = controller
        self._updates = updates
        self._approval = approval
        self._changed = changed
        self._again = again
        self.used = self._titled = used
        self._commands = offered_commands()
        self._imported: anyio.Event | None = None
        self._notes: list[str] = []
        self._turn: anyio.CancelScope | None = None
        self._idle: anyio.Event | None = None

    @property
    def facts(self) -> JsonObject:
        """What a client receives when it opens the session."""
        app, agent, waiting = self._controller.app, self._controller.agent, self._controller.waiting
        return {
            "modes": modes(app, agent, waiting),
            "configOptions": session_options(app, agent, waiting),
        }

    @property
    def agent(self) -> str:
        """The current agent."""
        return self._controller.agent

    @property
    def is_busy(self) -> bool:
        """Whether a prompt is being answered."""
        return self._turn is not None

    async def prepare(self) -> None:
        """Import what the first turn of its agent needs, and start its servers."""
        if self._controller.provider is None and not self._controller.servers:
            return
        self._imported = anyio.Event()
        try:
            await run_sync(self._controller.import_packages, abandon_on_cancel=True)
        finally:
            self._imported.set()
        await self._controller.start_servers()

    def announce(self) -> None:
        """Send the client the list of commands."""
        listed: list[JsonValue] = []
        for command in self._commands.values():
            entry: dict[str, JsonValue] = {"name": command.name, "description": command.summary}
            if command.hint:
                entry["input"] = {"hint": command.hint}
            listed.append(entry)
        for skill in self._skills():
            hint = (skill.frontmatter or {}).get("argument-hint")
            described: dict[str, JsonValue] = {"name": skill.name, "description": skill.description}
            described["input"] = {
                "hint": hint if isinstance(hint, str) and hint else "[what to do]"
            }
            listed.append(described)
        self._updates.send(
            {"sessionUpdate": "available_commands_update", "availableCommands": listed}
        )

    def _skills(self) -> Sequence[SkillEntry]:
        """List the skills that may be called by name; none of the agent cannot be run."""
        try:
            found = self._controller.app.runtime.callable_skills(self._controller.agent)
        except (FastAgentError, KeyError):
            return ()
        return [one for one in found if one.name not in self._commands]

    def note(self, text: str) -> None:
        """Show a notice to the user; it waits for the next answer if none is on its way."""
        if self.is_busy:
            self._updates.think(f"{text}\n")
        else:
            self._notes = [*self._notes[1 - _MAX_NOTES :], text]

    def choose(self, agent: str) -> None:
        """Talk to another agent.

        Raises:
            RequestError: There is none of that name to talk to.
        """
        able = mode_names(self._controller.app, self._controller.waiting)
        if agent not in able:
            near = closest(agent, able)
            hint = did_you_mean(near)
            raise RequestError(INVALID_PARAMS, f"there is no mode `{agent}`", hint=hint)
        if agent != self._controller.agent:
            self._controller.agent = agent
            self._send_agents()

    async def choose_model(self, spec: str) -> None:
        """Ask another model from the next prompt on.

        Args:
            spec: The model; `default` is that of the card.

        Raises:
            RequestError: There is no such model, it cannot be used, or the agent uses none.
        """
        app, agent = self._controller.app, self._controller.agent
        try:
            await app.choose_model(agent, None if spec == CARD_MODEL else spec)
        except FastAgentError as error:
            raise refused(error, INVALID_PARAMS) from error

    def continue_with(self, agent: str) -> None:
        """Talk to the agent it talked to before the program began again, if it is there still."""
        if agent in mode_names(self._controller.app, self._controller.waiting):
            self._controller.agent = agent
        self._send_agents()

    def cancel(self) -> None:
        """Cancel the prompt that is being answered, if one is."""
        if self._turn is not None:
            self._turn.cancel()

    async def stay(self, sessions: dict[str, LiveSession]) -> None:
        """Stay open until it is to end; then it is among `sessions` no more."""
        try:
            await self.closing.wait()
        finally:
            del sessions[self.id]
            with anyio.CancelScope(shield=True):
                await self._controller.aclose()

    async def close(self) -> None:
        """End the session, cancelling what runs."""
        self._ending = True
        self.cancel()
        if self.is_busy:
            self._idle = self._idle or anyio.Event()
            await self._idle.wait()
        self.closing.set()
        await self.closed.wait()

    async def refresh(self) -> None:
        """Switch to the current cards and notify the client."""
        before = self._controller.app.version
        try:
            await self._controller.refresh()
            await self._approval.apply(self._controller.app)
        except FastAgentError as error:
            self.note(
                f"AgentCards not reloaded; the previous version keeps running: {error.message}"
            )
        if self._controller.app.version != before:
            self._send_agents()

    def take(self, params: JsonObject, scope: anyio.CancelScope) -> Work:
        """Take a prompt; only one at a time is answered.

        Args:
            params: The parameters of the request.
            scope: What it is answered in.

        Returns:
            What answers it.

        Raises:
            RequestError: One is being answered, or the prompt is wrong.
        """
        message = read_prompt(params)
        if self._ending:
            raise RequestError(INVALID_REQUEST, f"session `{self.id}` is being closed")
        if self._turn is not None:
            raise RequestError(
                INVALID_REQUEST,
                f"session `{self.id}` is answering a prompt",
                hint="wait for it, or cancel it with `session/cancel`",
            )
        self._turn = scope
        return partial(self._answer, message, scope)

    async def _answer(self, message: Message, scope: anyio.CancelScope) -> JsonObject:
        try:
            facts = await self._prompt(message)
        except FastAgentError as error:
            if scope.cancel_called:
                return {"stopReason": "cancelled"}
            raise refused(error) from error
        finally:
            self._updates.end()
            self._turn = None
            if self._idle is not None:
                self._idle.set()
        return {"stopReason": "cancelled"} if scope.cancel_called else facts

    async def _prompt(self, message: Message) -> JsonObject:
        self._updates.begin()
        await self.refresh()
        for note in self._notes:
            self._updates.think(f"{note}\n")
        self._notes.clear()
        text = message.text
        if text.lstrip()[:1] in {"/", "@", "#"} and is_command(
            text, self._controller, self._commands
        ):
            return await self._command(text)
        return await self._ask(message)

    async def _command(self, line: str) -> JsonObject:
        before = self._chosen()
        result = await run_command(line, self._controller, self._commands)
        text = result.text
        if result.restart:
            try:
                self._again(self)
            except RunError as error:
                text = failure(error).text
        if text and not (result.is_answer and self._updates.has_answered):
            self._updates.say(text)
        if result.agents_changed:
            self._changed()
        if result.agents_changed or result.agent is not None or self._chosen() != before:
            self._send_agents()
        if result.ask is None:
            return {"stopReason": "end_turn"}
        return await self._ask(result.ask.message, result.ask.agent, result.ask.skill)

    def _chosen(self) -> tuple[str, str | None]:
        """Return the current agent and its model."""
        agent = self._controller.agent
        return agent, self._controller.app.model_of(agent)

    async def _ask(
        self, message: Message, agent: str | None = None, skill: SkillCall | None = None
    ) -> JsonObject:
        controller = self._controller
        name = controller.agent if agent is None else agent
        waited = name in controller.waiting
        if waited and not await self._may_act(name):
            return {"stopReason": "end_turn"}
        if self._agree is not None:
            await self._agree()
        self.used = True
        if self._imported is not None:
            await self._imported.wait()  # a turn imports as well; see `warm`
        result = await controller.instance(name).generate(message, skill=skill)
        if agent is None and controller.follow(name):
            self._send_agents()
        if not self._titled:
            self._title(message)
        return _facts(result)

    async def _may_act(self, agent: str) -> bool:
        """Ask the user to approve a found agent; report if it stays left out."""
        try:
            await self._approval.ask(agent)
        except TrustError as error:
            self._updates.say(refusal_text(error))
            return False
        finally:
            # The agent may act now, or it stays left out: the modes show either.
            self._changed()
        await self._controller.refresh()
        await self._approval.apply(self._controller.app)
        self._send_agents()
        return True

    def _title(self, message: Message) -> None:
        self._titled = True
        title = shortened_line(message.text, _TITLE_LENGTH)
        if title:
            now = datetime.now(UTC).isoformat()
            self._updates.send(
                {"sessionUpdate": "session_info_update", "title": title, "updatedAt": now}
            )

    def _send_agents(self) -> None:
        app, agent = self._controller.app, self._controller.agent
        self._updates.send({"sessionUpdate": "current_mode_update", "currentModeId": agent})
        self._updates.send(
            {
                "sessionUpdate": "config_option_update",
                "configOptions": session_options(app, agent, self._controller.waiting),
            }
        )


def _facts(result: TurnResult) -> JsonObject:
    usage = result.tree_usage
    return {
        "stopReason": STOP_REASONS.get(result.stop_reason, "end_turn"),
        "usage": {
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "totalTokens": usage.input_tokens + usage.output_tokens,
        },
    }
