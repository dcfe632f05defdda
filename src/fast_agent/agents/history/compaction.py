"""Compaction: a summary replaces the oldest messages when a model has no room for all.

The history keeps every message; only the view of it, which a model receives, starts
with the summary. So a session can still be rewound, exported and searched, and a compaction that
fails leaves everything as it was.

Where no model has counted the tokens, four characters count as one, which is 3 to 15 % more than
English text takes. It decides when room is made, and says of what a context is made up; what is
reported as used is the model's own count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from logging import getLogger
from typing import TYPE_CHECKING, Final, TypeAlias

from fast_agent.agents.history.transcript import Compaction
from fast_agent.cards.agent_config import RequestParams
from fast_agent.config.settings import TOKEN_CHARACTERS
from fast_agent.errors import ContextError, ModelError
from fast_agent.messages.history import RESULTS, size_of
from fast_agent.messages.message import Message
from fast_agent.models.model import ModelRequest, size_of_text
from fast_agent.tools.toolbox import size_of_tools

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from fast_agent.agents.budget import Budget
    from fast_agent.agents.history.transcript import Transcript
    from fast_agent.agents.turn_context import TurnContext, TurnSetup
    from fast_agent.messages.history import History
    from fast_agent.models.model import ContextUse, Model, ToolSpec

log = getLogger(__name__)

Ask: TypeAlias = "Callable[[str, str], Awaitable[str]]"
"""Asks a model: (system prompt, message) to the text of its answer."""

SYSTEM: Final = (
    "You summarize a conversation between a user and an assistant, so that the assistant can go on"
    " with it when only your summary is left. Keep what the user wants and how they want it, what"
    " was decided and why, what was done, every name, path, number, address and quotation that may"
    " be needed again, what failed, and what is still to be done. Keep addresses that start with"
    f" `{RESULTS}` with what they hold: the assistant can read them again. Write nothing else."
)
_MAX_PIECE_CHARACTERS: Final = 200_000  # of one request, before a model has said otherwise
_MIN_PIECE_CHARACTERS: Final = 1_000
_MAX_TEXT: Final = 8_000


def asking(setup: TurnSetup, budget: Budget, context: TurnContext) -> Ask:
    """Return what asks an agent's own model, or the agent it names, and charges what that uses.

    Args:
        setup: The agent's model and request parameters.
        budget: What is charged.
        context: Where another agent stands that is asked instead.
    """
    other = setup.compaction.ask
    if other is not None:

        async def ask_other(system: str, text: str) -> str:
            return await other(system, text, context)

        return ask_other
    given = setup.params
    params = RequestParams(
        temperature=given.temperature,
        timeout_seconds=given.timeout_seconds,
        extra_body=given.extra_body,
    )

    async def ask(system: str, text: str) -> str:
        budget.take_request()
        try:
            request = ModelRequest(system, (Message.user(text),), params=params)
            response = await setup.model.request(request)
        except BaseException:
            budget.give_up()
            raise
        budget.record_usage(response.usage)
        return response.message.text

    return ask


async def compact_natively(
    conversation: Transcript,
    start: int,
    model: Model,
    budget: Budget,
    request: ModelRequest,
) -> Compaction | None:
    """Replace what precedes a message by the compact form of the model's provider.

    Args:
        conversation: The conversation; it is not changed.
        start: The index of the first message that is left as it is.
        model: The model; only it is given that form later.
        budget: What is charged.
        request: The system prompt, tools and parameters of the agent, and what is kept above all.

    Returns:
        The compaction; None where the provider has no such form for the model, or failed: then a
        summary does.

    Raises:
        LimitError: A usage limit was reached.
    """
    budget.take_request()
    try:
        response = await model.request(
            replace(request, messages=conversation.view_before(start), output_schema=None)
        )
    except ModelError as error:
        budget.give_up()
        log.info("`%s` returned no compact form of the conversation: %s", model.name, error.message)
        return None
    except BaseException:
        budget.give_up()
        raise
    budget.record_usage(response.usage)
    native = response.message.native
    if not isinstance(native, Mapping):
        return None
    return Compaction(start, response.message.text, {**native, "model": model.name})


def start_for(conversation: Transcript, turn: int) -> int | None:
    """Find where a compaction within a turn ends, and the unchanged part starts.

    Args:
        conversation: The conversation.
        turn: The index of the turn's first message.

    Returns:
        The index of the first message that is left: the turn's own, or where only the turn itself
        is long its last calls; None where nothing stands before that.
    """
    done = 0 if conversation.compaction is None else conversation.compaction.start
    done = max(done, conversation.templates)
    if turn > done:
        return turn
    history = conversation.history
    calling = (at for at in range(len(history) - 1, done, -1) if history[at].tool_calls)
    last = next(calling, None)
    return last if last is not None and last > done + 1 else None


async def compact(
    conversation: Transcript, start: int, ask: Ask, wanted: str = "", *, window: int | None = None
) -> Compaction:
    """Summarize what stands before a message.

    Args:
        conversation: The conversation; it is not changed.
        start: The index of the first message that is left as it is.
        ask: Asks the model that summarizes.
        wanted: What the summary should keep in addition, in the user's words; empty for nothing.
        window: Tokens the context window of the model that summarizes holds, or None.

    Raises:
        ModelError: The model does not answer, answers nothing, or has no room even for little.
    """
    before = conversation.compaction
    if before is not None and not before.summary:
        before = None  # only its provider can read it: the messages themselves are summarized
    first = conversation.templates if before is None else min(before.start, start)
    said = list(_lines(conversation.history.iterate(first), start - first))
    summary = "" if before is None else before.summary
    # Half of a window, at four characters a token: the summary and the answer need room too.
    size = _MAX_PIECE_CHARACTERS if window is None else min(_MAX_PIECE_CHARACTERS, 2 * window)
    while said:
        piece, rest = _piece(said, size)
        try:
            answer = await ask(SYSTEM, _request(summary, piece, wanted))
        except ContextError:
            if size <= _MIN_PIECE_CHARACTERS:
                raise
            size = max(_MIN_PIECE_CHARACTERS, min(size, len(piece)) // 2)
            continue
        if not answer.strip():
            raise ModelError("the model gave no summary of the conversation")
        summary, said = answer.strip(), rest
    return Compaction(start, summary)


def _request(summary: str, piece: str, wanted: str) -> str:
    parts = [f"The summary so far:\n\n{summary}"] if summary else []
    parts.append(f"What was said {'after that' if summary else 'so far'}:\n\n{piece}")
    if wanted:
        parts.append(f"The user asks that the summary keeps this above all: {wanted}")
    parts.append("Write the summary of all of it.")
    return "\n\n".join(parts)


def _piece(said: list[str], size: int) -> tuple[str, list[str]]:
    """Take as many lines as fit, at least a part of one."""
    taken, length = 0, 0
    while taken < len(said) and length + len(said[taken]) + 1 <= size:
        length += len(said[taken]) + 1
        taken += 1
    if taken:
        return "\n".join(said[:taken]), said[taken:]
    return said[0][:size], [said[0][size:], *said[1:]]


def _lines(messages: Iterable[Message], most: int) -> Iterator[str]:
    for number, message in enumerate(messages):
        if number == most:
            return
        if message.text:
            yield f"{message.role.upper()}: {_short(message.text)}"
        for call in message.tool_calls:
            arguments = json.dumps(dict(call.arguments), ensure_ascii=False, default=str)
            yield f"ASSISTANT calls {call.name} with {_short(arguments)}"
        for result in message.tool_results:
            kind = "ERROR" if result.is_error else "RESULT"
            yield f"{kind} {RESULTS}{result.id}: {_short(result.text)}"


def _short(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    half = _MAX_TEXT // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


_MAX_LISTED: Final = 5
_SKILLS: Final = re.compile(r"<available_skills>.*?</available_skills>", re.DOTALL)


def size_of_results(message: Message) -> int:
    """Return about how many tokens the texts of a message's tool results take."""
    return sum(map(size_of, message.tool_results)) // TOKEN_CHARACTERS


def size_of_message(message: Message) -> int:
    """Return about how many tokens a message takes, tool results included."""
    size = size_of_text(message.text)
    if message.tool_results:
        size += size_of_results(message)
    for call in message.tool_calls:
        size += size_of_text(call.name + json.dumps(call.arguments, default=dict))
    return size


def size_of_view(view: History) -> int:
    """Return about how many tokens all messages take."""
    return sum(map(size_of_message, view))


def size_since_answer(view: History) -> int:
    """Return about how many tokens the messages after the last answer take."""
    size, at = 0, len(view) - 1  # by index, since this is asked before every request
    while at >= 0:
        message = view[at]
        if message.role == "assistant":
            break
        size += size_of_message(message)
        at -= 1
    return size


def filling(use: ContextUse) -> str:
    """Describe how full a context window is."""
    if use.window is None:
        return f"{use.used:,} tokens in a context window of unknown size"
    return f"{use.used:,} of {use.window:,} tokens of the context window ({use.share or 0:.0%})"


def share_of_start(system: str, tools: Sequence[ToolSpec]) -> str:
    """Describe what the system prompt and the tools take, the largest servers first."""
    sizes = {"the system prompt": size_of_text(system)}
    for tool in tools:
        server, mark, _ = tool.name.partition("__")
        name = f"tools of server `{server}`" if mark else "other tools"
        sizes[name] = sizes.get(name, 0) + size_of_tools((tool,))
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:_MAX_LISTED]
    return ", ".join(f"{name} about {size:,} tokens" for name, size in largest)


def parts_of(system: str, tools: Iterable[ToolSpec], view: History) -> dict[str, int]:
    """Return about how many tokens each part of what a model is given takes.

    Args:
        system: The system prompt, with the list of skills in it.
        tools: The tools offered.
        view: The messages.
    """
    skills = sum(map(len, _SKILLS.findall(system))) // TOKEN_CHARACTERS
    results = sum(map(size_of_results, view))
    return {
        "system": size_of_text(system) - skills,
        "skills": skills,
        "tools": size_of_tools(tools),
        "history": size_of_view(view) - results,
        "results": results,
    }
