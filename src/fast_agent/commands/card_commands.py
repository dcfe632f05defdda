"""Commands about cards: loading them while agents are live, and reloading them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.commands.attaching import attached
from fast_agent.commands.command import Command, CommandResult, Option, Word
from fast_agent.commands.place import named_path
from fast_agent.commands.told import fenced
from fast_agent.diagnostics.render_human import render_human

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.commands.command import Arguments
    from fast_agent.commands.desk import Desk


async def _card(arguments: Arguments, desk: Desk) -> CommandResult:
    from anyio.to_thread import run_sync

    path = arguments.words[0]
    if "://" not in path:
        place = named_path(path, desk)
        elsewhere = desk.workspace != desk.program.workspace
        path = str(place) if elsewhere or path.startswith("~") else path
    program, receiver = desk.program, desk.agent
    if arguments.has("--tool"):
        loaded: list[str] = []

        def load() -> Iterable[str]:
            loaded.extend(program.load(tools=[path], receiver=receiver))
            return loaded

        told = await attached(desk, load)
    else:
        loaded = list(await run_sync(lambda: program.load(cards=[path])))
        await desk.refresh()
        told = ""
    if desk.watch is not None:
        desk.watch.look_after()
    names = ", ".join(f"`{name}`" for name in loaded) or "no agents"
    agent = desk.agent if desk.agent != receiver else None
    text = f"loaded {names}" + (f"\n{told}" if told else "")
    for name in program.admission.left_out_from(path):
        text += f"\n{program.admission.left_out[name].line}; `/trust` shows and allows it"
    return CommandResult(text=text, agents_changed=True, agent=agent)


async def _reload(arguments: Arguments, desk: Desk) -> CommandResult:
    from anyio.to_thread import run_sync

    done = await run_sync(desk.program.reload)
    if arguments.has("--force") and not done.refused:  # else it could not be begun again
        return CommandResult(text="starting again", restart=True)
    line = done.line or "AgentCards are as they were"
    if done.problems:
        line = f"{line}\n\n{fenced(render_human(done.problems))}"
    if done.refused:
        return CommandResult(text=line, failed=True)
    other = await desk.refresh()
    if other:
        line = f"{line}\nits agent is gone; talking to `{desk.agent}`"
    return CommandResult(text=line, agents_changed=True, agent=desk.agent if other else None)


async def _trust(arguments: Arguments, desk: Desk) -> CommandResult:
    """Show what the project would do and may not, or approve its current state."""
    from anyio.to_thread import run_sync

    from fast_agent.trust.question import render_question

    program = desk.program
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
    await desk.refresh()
    still = program.admission.decisions.closed_parts()
    came = ", ".join(name for name in before if name not in still)
    told = [done.line or "approved", *([f"may act now: {came}"] if came else [])]
    return CommandResult(text="\n".join(told), agents_changed=True)


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
