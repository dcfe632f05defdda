"""RuntimeOptions: what the program passes to its agents."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import field, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.cards.agent_config import NO_OVERRIDES, NO_PARAMS, RequestParams
from fast_agent.prompt.instruction import host_platform, python_version
from fast_agent.steps.steps import NULL_STEPS, here
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from fast_agent.agents.events import Listener
    from fast_agent.cards.agent_config import AgentConfig, ChildHistory, FileAccess
    from fast_agent.cards.card import CardLoad
    from fast_agent.mcp.client_side import SamplingApproval
    from fast_agent.mcp.oauth.authorization import Authorizations
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.resources.provider import Provider
    from fast_agent.resources.skill.files import SkillJudge
    from fast_agent.sessions.cumulative import CumulativeTranscript
    from fast_agent.sessions.journal import Journal
    from fast_agent.steps.steps import Steps
    from fast_agent.tools.allowed_calls import AllowedCalls
    from fast_agent.tools.human import Human
    from fast_agent.tools.permission import Permission
    from fast_agent.tools.skills.gate import SkillGate
    from fast_agent.tools.tool import Tool

    ToolTransform = Callable[[AgentConfig, Iterable[Tool]], Iterable[Tool]]


NewId: TypeAlias = Callable[[], str]
"""Returns a new id of a turn at each call."""


def numbered(prefix: str) -> NewId:
    """Return ids `prefix-1`, `prefix-2`, … : unique as long as the prefix is."""
    numbers = count(1)
    return lambda: f"{prefix}-{next(numbers)}"


MAX_DEPTH = 8
"""Maximum depth of agents above one another below the first, by default."""


def _new_turn_ids() -> NewId:
    return numbered(f"turn-{os.urandom(6).hex()}")


def _reads_anything(_: AgentConfig) -> bool:
    return True


def _local_now() -> datetime:
    return datetime.now().astimezone()


@frozen(kw_only=True)
class RuntimeOptions:
    """What a program passes to its agents; every field may be left out.

    Args:
        workspace: The directory the program works in, absolute.
        environ: The environment, for the keys of models and for commands.
        model: The model of every agent, over cards and configuration; None leaves it to them.
        params: Request parameters over those of cards and configuration.
        place_server: Chooses the directory a server starts in; None leaves it as it is.
        servers: MCP servers in addition to those of the configuration; cards use them by name.
        shell: Whether every agent gets the shell tool.
        files: What every agent may do with files of the workspace; None leaves it to the cards.
        fetch: Whether every agent may fetch web pages.
        protected: Says whether a file decides what is run or loaded later, so that each write of it
            needs a user's word; None says so of none.
        human: Asks the user, or None.
        approval: Asks before a server gets a model's answer, or None.
        listener: Hears of the events of every turn, or None.
        tracing: Makes what traces the turns of a conversation, in addition to other listeners,
            given the id of its session, or an empty one; or None.
        new_turn_id: Gives turn ids.
        now: The clock, in local time.
        monotonic: A clock that only goes forward, in seconds.
        max_depth: Deepest nesting of agents as tools.
        providers: Resources that the resource tools offer in addition to the packaged documents.
        trust_cards: Whether cards that a smart agent reaches by their path may run code.
        admit: Returns the cards of a path that a model named, as they may act; raises CardError
            where they may not. None leaves it to the rules of reached cards alone.
        child_history: What called agents start with and where their messages go, over cards.
        transcript: Where turns are written when they end; None makes a new one.
        journal: Where turns and histories are recorded as they run, and where earlier histories
            before come from; None where they need not outlive the program.
        gate: Gives what asks before skills of servers are used, where an agent around these has
            one; None where these are the first.
        steps: The carrier of the turns, unless their conversation has a separate one.
        tool_transform: Changes the tools the runtime itself gives an agent; gets its card and the
            tools. None changes nothing.
        permission: Who is asked before commands and files of the user are touched; None where
            only the calls that cards mark are asked about, by way of the user.
        allowed: Calls that the user is not asked about, as they were allowed in advance; a
            `permission` does not regard them. None allows none.
        extra_servers: Servers that agents a user can talk to have in addition to their cards' own.
        barred: Names the agents that do not get them, as found ones do not before a user allowed
            it; None bars none.
        platform: The machine, as instructions speak of it; empty for this one.
        python: The version of Python, as instructions speak of it; empty for this one.
        redact: Hides secrets in the errors of tools; None hides none.
        deps: The values the program passes to its function tools, by their types.
        authorizations: Returns what keeps the tokens of remote MCP servers, or None where no token
            is sent.
        skills: Decides which skills of directories that no user named may be used; None lets all
            through.
        reads_project: Returns whether an agent may have the instructions of the project it is in.
        reported: Paths of cards of which the program has already said that their tools fill the
            window, so that no turn says it again.
    """

    workspace: Path = field(default_factory=Path.cwd)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    model: str | None = None
    params: RequestParams = NO_PARAMS
    servers: tuple[ServerSpec, ...] = ()
    place_server: Callable[[ServerSpec], ServerSpec] | None = field(default=None, repr=False)
    shell: bool = False
    files: FileAccess | None = None
    fetch: bool = False
    protected: Callable[[Path], bool] | None = field(default=None, repr=False)
    human: Human | None = None
    approval: SamplingApproval | None = None
    listener: Listener | None = None
    tracing: Callable[[str], Listener] | None = None
    new_turn_id: NewId = field(default_factory=_new_turn_ids)
    now: Callable[[], datetime] = _local_now
    monotonic: Callable[[], float] = time.monotonic
    max_depth: int = MAX_DEPTH
    providers: tuple[Provider, ...] = ()
    trust_cards: bool = False
    admit: Callable[[Path, CardLoad], CardLoad] | None = field(default=None, repr=False)
    child_history: ChildHistory = NO_OVERRIDES
    transcript: CumulativeTranscript | None = field(default=None, repr=False)
    journal: Journal | None = field(default=None, repr=False)
    gate: Callable[[], SkillGate] | None = field(default=None, repr=False)
    steps: Steps = NULL_STEPS
    tool_transform: ToolTransform | None = field(default=None, repr=False)
    permission: Permission | None = field(default=None, repr=False)
    allowed: AllowedCalls | None = None
    extra_servers: tuple[str, ...] = ()
    barred: Callable[[], Container[str]] | None = field(default=None, repr=False)
    platform: str = ""
    python: str = ""
    redact: Callable[[str], str] | None = field(default=None, repr=False)
    deps: tuple[object, ...] = ()
    authorizations: Callable[[], Authorizations | None] | None = field(default=None, repr=False)
    skills: SkillJudge | None = field(default=None, repr=False)
    reads_project: Callable[[AgentConfig], bool] = field(default=_reads_anything, repr=False)
    reported: Container[str] = ()


def through_steps(options: RuntimeOptions) -> RuntimeOptions:
    """Make the clock and new ids steps of the current run, and the machine a fact of it.

    Args:
        options: The options of the program.
    """
    now, new_turn_id, steps = options.now, options.new_turn_id, options.steps

    def read_clock() -> datetime:
        place = here()
        if place.silent:
            return now()
        return datetime.fromisoformat(place.steps.note("clock", "", lambda: now().isoformat()))

    def new_id() -> str:
        place = here()
        return new_turn_id() if place.silent else place.steps.new_id(new_turn_id)

    return replace(
        options,
        now=read_clock,
        new_turn_id=new_id,
        platform=steps.fact("platform", lambda: options.platform or host_platform()),
        python=steps.fact("python", lambda: options.python or python_version()),
    )
