"""The tool `read_result`: the rest of tool results a model was given only a part of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fast_agent.errors import ToolError
from fast_agent.messages.content import TextContent
from fast_agent.messages.long_results import RESULTS, text_of_result
from fast_agent.messages.message import ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.text.suggestion import closest
from fast_agent.tools.result import error_result, said
from fast_agent.tools.tool import RuntimeTool
from fast_agent.tools.tool_arguments import ToolArguments, object_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.messages.message import ToolCall
    from fast_agent.runtime.conversation import Conversation
    from fast_agent.tools.tool import ToolContext

PIECE: Final = 8_000
"""Characters of one read, unless it says otherwise."""

_MOST = 30_000
_HITS = 20
_AROUND = 200

_SPEC = ToolSpec(
    "read_result",
    "Read more of a tool result of this conversation that was shortened: a piece of it, or the"
    " places where a text stands in it.",
    object_schema(
        uri=("string", f"the result, as its note names it: `{RESULTS}ID`"),
        offset=("integer", "the first character to read, from 0"),
        max_chars=("integer", f"most characters to read, {PIECE} unless given, {_MOST} at most"),
        find=("string", "a text to look for, in any case; gives the places where it stands"),
        required=("uri",),
    ),
)


class ReadResult(RuntimeTool):
    """The tool; what it reads is in the history of the conversation that calls it."""

    __slots__ = ()

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        return _SPEC

    @property
    def repeatable(self) -> bool:
        """Always True: it only reads."""
        return True

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Answer a call; what cannot be read is an error result that says what to try."""
        from fast_agent.runtime.tool_calls import TurnCallContext

        if not isinstance(context, TurnCallContext):
            return error_result(call.id, "there is no conversation to read results of")
        try:
            arguments = ToolArguments(_SPEC, call.arguments)
            return ToolResult(call.id, (TextContent(_read(arguments, context.site.before)),))
        except ToolError as problem:
            return error_result(call.id, said(problem))


def _read(arguments: ToolArguments, conversation: Conversation) -> str:
    call_id = arguments.required_text("uri").strip().removeprefix(RESULTS)
    result = conversation.result(call_id)
    if result is None:
        known = (one.id for message in conversation.history for one in message.tool_results)
        near = closest(call_id, tuple(known))
        hint = f"did you mean `{RESULTS}{near}`?" if near else None
        msg = f"there is no result `{RESULTS}{call_id}` in this conversation"
        raise ToolError(msg, hint=hint)
    text = text_of_result(result)
    wanted = arguments.text("find")
    if wanted:
        return _places(text, wanted)
    offset = arguments.whole("offset", 0)
    most = min(arguments.whole("max_chars", PIECE, least=1), _MOST)
    piece = text[offset : offset + most]
    end = offset + len(piece)
    if offset >= len(text):
        return f"[there is nothing at character {offset:,}: the result has {len(text):,}]"
    rest = f"; go on with `offset` {end}" if end < len(text) else ""
    return f"{piece}\n[characters {offset:,} to {end:,} of {len(text):,}{rest}]"


def _places(text: str, wanted: str) -> str:
    """Show where a text stands, with what is around it."""
    places = list(_found(text, wanted))
    if not places:
        return f"[`{wanted}` is not in the result, which has {len(text):,} characters]"
    shown = [
        f"[character {at}]\n{text[max(0, at - _AROUND) : at + len(wanted) + _AROUND]}"
        for at in places[:_HITS]
    ]
    if len(places) > _HITS:
        shown.append(f"[and {len(places) - _HITS:,} other places; look for a longer text]")
    return "\n\n".join(shown)


def _found(text: str, wanted: str) -> Iterator[int]:
    import re

    last = -_AROUND
    for match in re.finditer(re.escape(wanted), text, re.IGNORECASE):
        if match.start() >= last + _AROUND:  # places side by side are shown once
            last = match.start()
            yield last
