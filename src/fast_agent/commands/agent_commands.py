"""Commands about agents: which there are, who is talked to, what they are made of and have used.

Agents can be attached: they become tools of the one that is talked to, through its `agents`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from fast_agent.agents.history.compaction import filling, parts_of
from fast_agent.cards.agent_config import HISTORIES
from fast_agent.cards.fields import FIELDS_OF
from fast_agent.cards.placeholder import parse_template
from fast_agent.commands.command import (
    CARD_MODEL,
    Command,
    CommandResult,
    Option,
    Word,
    fenced,
    listed,
    named_path,
    short,
)
from fast_agent.commands.session_commands import SessionUsage, counted, usage_lines
from fast_agent.diagnostics.render_human import render_human
from fast_agent.errors import RunError
from fast_agent.text.wording import closest, did_you_mean, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fast_agent.cards.agent_config import AgentConfig, HistorySource, HistoryTarget
    from fast_agent.cards.card import Card
    from fast_agent.commands.command import Arguments
    from fast_agent.commands.controller import ConversationController


async def _agents(arguments: Arguments, controller: ConversationController) -> CommandResult:
    del arguments
    cards = controller.app.load_set.cards
    able = (name for name in controller.app.agent_names() if name not in controller.waiting)
    lines = [(name, _description_of(cards[name])) for name in able]
    lines += [(name, f"{one.type}; needs approval") for name, one in controller.waiting.items()]
    return CommandResult(
        text=listed(
            f"`{name}`{' (current)' if name == controller.agent else ''}: {about}"
            for name, about in lines
        )
    )


def _description_of(card: Card) -> str:
    config = card.config
    from fast_agent.cards.set_check import referred_names

    members = ", ".join(f"`{name}`" for name in dict.fromkeys(referred_names(config)))
    parts = [config.type]
    if config.description:
        parts.append(short(config.description))
    if members:
        parts.append(f"uses {members}")
    return "; ".join(parts)


async def _agent(arguments: Arguments, controller: ConversationController) -> CommandResult:
    name = arguments.word()
    if arguments.has("--dump"):
        return CommandResult(
            text=fenced(_dumped(controller, _known(name or controller.agent, controller)))
        )
    if name is None:
        if arguments.has("--tool"):
            raise RunError("`--tool` needs the name of an agent", hint="`/agents` lists them")
        card = _known(controller.agent, controller)
        return CommandResult(text=f"talking to `{controller.agent}`: {_description_of(card)}")
    card = _known(name, controller)
    if arguments.has("--tool"):
        text = await attach(controller, [name])
        return CommandResult(text=text, agents_changed=True)
    if card.config.tool_only:
        raise RunError(
            f"agent `{name}` is `tool_only`: only agents call it",
            hint=f"`/agent {name} --tool` makes it a tool of `{controller.agent}`",
        )
    controller.agent = name
    return CommandResult(text=f"talking to `{name}`", agent=name)


def _dumped(controller: ConversationController, card: Card) -> str:
    from fast_agent.cards.dump import dump_card

    # What was given at run time is in the configuration, not in what is written in the file.
    loaded = next(
        (
            one
            for cards in controller.program.snapshot.roots.values()
            for one in cards
            if one.config.name == card.config.name
        ),
        card,
    )
    written = card.written if loaded.config == card.config else None
    return dump_card(card.config, written=written, base=controller.workspace)


async def _call(arguments: Arguments, controller: ConversationController) -> CommandResult:
    name, message = arguments.words
    _known(name, controller)
    options = arguments.options
    answer = await controller.app.call(
        name,
        message,
        caller=controller.agent,
        history_source=cast("HistorySource | None", _history(options.get("--history-source"))),
        history_merge_target=cast(
            "HistoryTarget | None", _history(options.get("--history-merge-target"))
        ),
        conversation=controller.conversation,
    )
    return CommandResult(text=answer, is_answer=True)


def _history(value: str | None) -> str | None:
    if value is None or value in HISTORIES:
        return value
    near = closest(value, HISTORIES)
    listed_words = ", ".join(f"`{word}`" for word in HISTORIES)
    hint = did_you_mean(near, f"the values are {listed_words}")
    raise RunError(f"`{short(value)}` is not a history", hint=hint)


async def _model(arguments: Arguments, controller: ConversationController) -> CommandResult:
    name, spec = controller.agent, arguments.word()
    config = controller.app.load_set.cards[name].config
    if "model" not in FIELDS_OF[config.type]:
        raise RunError(
            f"agent `{name}` is of type `{config.type}`, which uses no model itself",
            hint="`/agents` lists its members; `/agent NAME` goes to one",
        )
    if spec is not None:
        await controller.app.choose_model(name, None if spec == CARD_MODEL else spec)
    selection = controller.app.runtime.model_of(name)
    said = f"`{name}` uses `{short(selection.text)}` ({_CHOSEN_BY[selection.source]})"
    return CommandResult(text=said)


_CHOSEN_BY: Mapping[str, str] = MappingProxyType(
    {
        "flag": "chosen for this run",
        "card": "set in its card",
        "configuration": "set in the configuration",
        "environment": "set in the environment",
        "key": "the provider whose key is set",
        "fallback": "the default",
    }
)


async def _system(arguments: Arguments, controller: ConversationController) -> CommandResult:
    del arguments
    setup = controller.require_llm_agent().setup
    # Servers are opened first: their instructions stand in the prompt.
    await setup.tools.table()
    text = await setup.render()
    if not text.strip():
        return CommandResult(text="the system prompt is empty")
    return CommandResult(text=f"{_origin_of_prompt(setup.config, controller)}\n\n{fenced(text)}")


def _origin_of_prompt(config: AgentConfig, controller: ConversationController) -> str:
    """Return which card a prompt is from, and which of its placeholders are filled."""
    place = controller.program.agent_origin(config.name)
    origin = "from the program" if place is None else f"from `{short(place)}`"
    filled = parse_template(config.instruction or "").placeholders
    names = dict.fromkeys(f"`{short(str(one))}`" for one in filled)
    return f"{origin}, filled in: {', '.join(names)}" if names else origin


async def _usage(arguments: Arguments, controller: ConversationController) -> CommandResult:
    del arguments
    lines = [f"the conversation: {counted(controller.conversation.usage)}"]
    for name in controller.conversation.live:
        usage = controller.conversation.agent(name).usage
        if usage.requests or usage.tool_calls:
            use = controller.conversation.agent(name).conversation.use
            filled = "" if use is None else f"; {filling(use)}"
            lines.append(f"`{name}`: {counted(usage)}{filled}")
    if controller.session is None:
        return CommandResult(text=listed(lines))
    recorded = SessionUsage.of(controller.session.state)
    usage_text = fenced("\n".join(["the session, turns that ended:", *usage_lines(recorded)]))
    return CommandResult(text=f"{listed(lines)}\n\n{usage_text}")


def _known(name: str, controller: ConversationController) -> Card:
    card = controller.app.load_set.cards.get(name)
    if card is None:
        controller.program.admission.require(name)
        near = closest(name, controller.app.load_set.cards)
        hint = did_you_mean(near, "`/agents` lists them")
        raise RunError(f"no agent is named `{short(name)}`", hint=hint)
    return card


async def _context(arguments: Arguments, controller: ConversationController) -> CommandResult:
    del arguments
    agent = controller.require_llm_agent()
    setup, conversation = agent.setup, agent.conversation
    tools = await setup.tools.table(reads_results=conversation.has_cut)
    parts = parts_of(await setup.render(), tools.specs, conversation.view)
    total = sum(parts.values())
    lines = [
        f"{name}: about {plural(size, 'token')}" + (f" ({size / total:.0%})" if total else "")
        for name, size in parts.items()
    ]
    use = conversation.use
    if use is not None:
        lines.insert(0, f"at the last answer: {filling(use)}")
    elif setup.window is not None:
        lines.insert(0, f"`{setup.model.name}` has a context window of {setup.window:,} tokens")
    return CommandResult(text=listed(lines))


AGENT_COMMANDS = (
    Command(name="agents", busy="now", summary="list the agents", act=_agents),
    Command(
        name="agent",
        summary="switch to another agent; without a name, show the current one",
        act=_agent,
        words=(Word("NAME", "agent"),),
        options=(
            Option("--tool", "add it to the `agents` of the current agent, as a tool"),
            Option("--dump", "print its card, or the card of the current agent"),
        ),
    ),
    Command(
        name="call",
        summary="call an agent as a tool of the current agent",
        act=_call,
        words=(Word("AGENT", "agent", required=True), Word("MESSAGE", required=True, rest=True)),
        options=(
            Option("--history-source", "the history it starts with", "SOURCE", "history"),
            Option(
                "--history-merge-target", "where its new messages are merged", "TARGET", "history"
            ),
        ),
    ),
    Command(
        name="model",
        busy="now",
        summary="show or change the model; `default` restores the original one",
        act=_model,
        words=(Word("SPEC", "model"),),
    ),
    Command(name="system", busy="now", summary="print the system prompt", act=_system),
    Command(
        name="usage",
        busy="now",
        summary="show tokens, requests, tool calls and cost",
        act=_usage,
    ),
    Command(
        name="context",
        busy="now",
        summary="show the model's context by part: system, skills, tools, history, results",
        act=_context,
    ),
)


async def _card(arguments: Arguments, controller: ConversationController) -> CommandResult:
    from anyio.to_thread import run_sync

    path = arguments.words[0]
    if "://" not in path:
        place = named_path(path, controller)
        elsewhere = controller.workspace != controller.program.workspace
        path = str(place) if elsewhere or path.startswith("~") else path
    program, receiver = controller.program, controller.agent
    if arguments.has("--tool"):
        loaded: list[str] = []

        def load() -> Iterable[str]:
            loaded.extend(program.load(tools=[path], receiver=receiver))
            return loaded

        usage_text = await attached(controller, load)
    else:
        loaded = list(await run_sync(lambda: program.load(cards=[path])))
        await controller.refresh()
        usage_text = ""
    if controller.watch is not None:
        controller.watch.look_after()
    names = ", ".join(f"`{name}`" for name in loaded) or "no agents"
    agent = controller.agent if controller.agent != receiver else None
    text = f"loaded {names}" + (f"\n{usage_text}" if usage_text else "")
    for name in program.admission.left_out_from(path):
        text += f"\n{program.admission.left_out[name].line}; `/trust` shows and allows it"
    return CommandResult(text=text, agents_changed=True, agent=agent)


async def _reload(arguments: Arguments, controller: ConversationController) -> CommandResult:
    from anyio.to_thread import run_sync

    done = await run_sync(controller.program.reload)
    if arguments.has("--force") and not done.refused:  # else it could not be begun again
        return CommandResult(text="starting again", restart=True)
    line = done.line or "no AgentCards changed"
    if done.problems:
        line = f"{line}\n\n{fenced(render_human(done.problems))}"
    if done.refused:
        return CommandResult(text=line, failed=True)
    other = await controller.refresh()
    if other:
        line = f"{line}\nits agent is gone; talking to `{controller.agent}`"
    return CommandResult(text=line, agents_changed=True, agent=controller.agent if other else None)


async def _trust(arguments: Arguments, controller: ConversationController) -> CommandResult:
    """Show what the project would do and may not, or approve its current state."""
    from anyio.to_thread import run_sync

    from fast_agent.trust.question import render_question

    program = controller.program
    approvals = program.gate.approvals
    waiting = [
        found
        for found in await run_sync(program.admission.decisions.found_sets)
        if not program.gate.owns(found.root) and approvals.standing(found).added
    ]
    if not waiting:
        return CommandResult(text="nothing here waits for your approval")
    if arguments.words[:1] != ("yes",):
        asked = "\n".join(render_question(one, approvals.standing(one)) for one in waiting)
        return CommandResult(text=f"{fenced(asked)}\n\n`/trust yes` allows it until it changes")
    before = program.admission.decisions.closed_parts()
    for found in waiting:
        await run_sync(approvals.approve, found)
    done = await run_sync(program.reconsider)
    await controller.refresh()
    still = program.admission.decisions.closed_parts()
    came = ", ".join(name for name in before if name not in still)
    usage_text = [done.line or "approved", *([f"may act now: {came}"] if came else [])]
    return CommandResult(text="\n".join(usage_text), agents_changed=True)


CARD_COMMANDS = (
    Command(
        name="card",
        busy="no",
        summary="load an AgentCard, or a directory of them",
        act=_card,
        words=(Word("PATH|URL", "card", required=True),),
        options=(
            Option(
                "--tool",
                "add the loaded agents to the `agents` of the current agent, as tools",
            ),
        ),
    ),
    Command(
        name="trust",
        busy="no",
        summary="show the effects of the project that are not approved; `yes` approves them",
        act=_trust,
        words=(Word("yes"),),
    ),
    Command(
        name="reload",
        busy="no",
        summary="reload the cards that changed",
        act=_reload,
        options=(
            Option("--force", "restart the program with its arguments, and continue the session"),
        ),
    ),
)


async def attach(controller: ConversationController, names: Sequence[str]) -> str:
    """Attach others to the current agent as tools, permanently: a reload keeps them.

    Args:
        controller: The conversation.
        names: The agents, which are loaded.

    Returns:
        What came of each, for a user.

    Raises:
        FastAgentError: They cannot be its tools; nothing is changed.
    """

    def give() -> Sequence[str]:
        controller.program.attach(controller.agent, names)
        return names

    return await attached(controller, give)


async def attached(controller: ConversationController, give: Callable[[], Iterable[str]]) -> str:
    """Attach tools to the current agent, and report the result of each.

    Args:
        controller: The conversation.
        give: Changes the cards, and returns the agents that should become tools. It runs in a
            worker thread.

    Raises:
        FastAgentError: They cannot be its tools; nothing is changed.
    """
    from anyio.to_thread import run_sync

    receiver = controller.agent
    before = frozenset(controller.app.load_set.cards[receiver].config.agents)
    names = await run_sync(lambda: tuple(dict.fromkeys(give())))
    await controller.refresh()
    lines = [_outcome(name, receiver, before) for name in names]
    return listed(lines) if len(lines) > 1 else "".join(lines)


def _outcome(name: str, receiver: str, before: frozenset[str]) -> str:
    if name == receiver:
        return f"`{name}` is the current agent, which cannot be its own tool"
    if name in before:
        return f"`{name}` was already a tool of `{receiver}`"
    return f"`{name}` is now a tool of `{receiver}`"
