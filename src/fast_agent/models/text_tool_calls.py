"""Tool calls that a model wrote as text, found again.

Small models know several notations from their training and often use one where the chat template
asks for another. A call counts only when it names a tool that was offered and its arguments are an
object; anything else stays text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from fast_agent.messages.content import NOTHING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from fast_agent.text.json_value import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as it was written; it has no id yet."""

    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a text comes to.

    Args:
        prose: The text before the first call; what follows the calls is dropped, since it is the
            model's guess at what the tool would say.
        calls: The calls, in order; at least one.
    """

    prose: str
    calls: tuple[WrittenCall, ...]


_NAME_KEYS: Final = ("name", "tool", "tool_name", "function_name", "function", "action")
_ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "input", "action_input", "params")
_ATTEMPTS: Final = 40
"""Most places at which a text is tried; bounds the work on long or hostile texts."""

_FUNCTION_TAG: Final = re.compile(r"<function=([\w.-]+)>\s*(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER_TAG: Final = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_START: Final = re.compile(r"<tool_call>|<function=|<function_call>|<\||\[TOOL|```|[{\[]")
_MAY_START: Final = re.compile(r"[<{\[]|``")
_LEAD_IN: Final = re.compile(
    r"(?:<tool_call>|<function_call>|<\|[\w]+\|>|\[TOOL_CALLS\]|```(?:json|tool_call|tool_code)?)"
    r"\s*\Z"
)


def where_a_call_may_begin(text: str, start: int = 0) -> int:
    """Find the place up to which a text is surely prose.

    Args:
        text: What has been written so far.
        start: The part before is known to be prose.

    Returns:
        The length of the sure part.
    """
    found = _MAY_START.search(text, start)
    if found is not None:
        return found.start()
    return len(text) - 1 if text.endswith("`") else len(text)


def recover_tool_calls(text: str, offered: Collection[str]) -> Recovered | None:
    """Find calls of offered tools in a text.

    Args:
        text: A whole answer.
        offered: Names of the tools the model could call.

    Returns:
        The prose before them and the calls, or None when there is none.
    """
    tagged = _tagged(text, offered)
    if tagged is not None:
        return tagged
    calls: list[WrittenCall] = []
    first = len(text)
    position = 0
    for _ in range(_ATTEMPTS):
        start = _START.search(text, position)
        if start is None:
            break
        begin = start.start()
        if text[begin] not in "{[":
            position = start.end()
            continue
        value, end = _value_at(text, begin)
        found = list(_calls_of(value, offered)) if end else []
        if not found:
            found, end = _python_calls(text, begin, offered)
        if found:
            first = min(first, begin)
            calls.extend(found)
        position = end if end > begin else begin + 1
    if not calls:
        return None
    return Recovered(_LEAD_IN.sub("", text[:first].rstrip()).rstrip(), tuple(calls))


def _tagged(text: str, offered: Collection[str]) -> Recovered | None:
    """Read `<function=name>…</function>`, with a JSON object or parameter tags inside."""
    calls: list[WrittenCall] = []
    first = len(text)
    for match in _FUNCTION_TAG.finditer(text):
        name, body = match.groups()
        if name not in offered:
            continue
        fields = {key: _loose(raw) for key, raw in _PARAMETER_TAG.findall(body)}
        value, end = _value_at(body, 0) if body.startswith("{") else (fields, 1)
        if isinstance(value, Mapping) and end:
            first = min(first, match.start())
            calls.append(WrittenCall(name, value))
    if not calls:
        return None
    prose = re.sub(r"<tool_call>\s*\Z", "", text[:first])
    return Recovered(prose.rstrip(), tuple(calls))


def _loose(raw: str) -> JsonValue:
    try:
        return cast("JsonValue", json.loads(raw))
    except ValueError:
        return raw


def _value_at(text: str, begin: int) -> tuple[JsonValue, int]:
    """Read the JSON value that begins at a place; 0 as its end means there is none.

    One or two closing brackets missing at the very end of the text are supplied.
    """
    decoder = json.JSONDecoder()
    try:
        value, end = decoder.raw_decode(text, begin)
    except (ValueError, RecursionError):
        pass
    else:
        return cast("JsonValue", value), end
    body = re.sub(r"\s*(?:</?\w+>|```)?\s*\Z", "", text[begin:])
    for missing in ("}", "}}", "}]"):
        try:
            value, end = decoder.raw_decode(body + missing)
        except (ValueError, RecursionError):
            continue
        if end == len(body) + len(missing):
            return cast("JsonValue", value), len(text)
    return None, 0


def _calls_of(value: JsonValue, offered: Collection[str]) -> Iterator[WrittenCall]:
    """Read every notation a JSON value may be in."""
    if isinstance(value, list):
        for item in value:
            yield from _calls_of(item, offered)
        return
    if not isinstance(value, Mapping):
        return
    for key in ("tool_calls", "tool_call"):
        if key in value:
            yield from _calls_of(value[key], offered)
            return
    inner = value.get("function")
    if isinstance(inner, Mapping):
        yield from _calls_of(inner, offered)
        return
    call = _named(value, offered) or _keyed(value, offered)
    if call is not None:
        yield call


def _named(value: JsonObject, offered: Collection[str]) -> WrittenCall | None:
    """Read `{"name": …, "arguments": {…}}` and its like."""
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    if not isinstance(name, str) or name not in offered:
        return None
    key = next((key for key in _ARGUMENT_KEYS if key in value), None)
    if key is None:
        return WrittenCall(name, NOTHING) if len(value) == 1 else None
    arguments = value[key]
    if isinstance(arguments, str):
        arguments = _loose(arguments)
    if arguments is None:
        return WrittenCall(name, NOTHING)
    return WrittenCall(name, arguments) if isinstance(arguments, Mapping) else None


def _keyed(value: JsonObject, offered: Collection[str]) -> WrittenCall | None:
    """Read `{"name-of-a-tool": {…}}`."""
    if len(value) != 1:
        return None
    [(name, arguments)] = value.items()
    if name in offered and isinstance(arguments, Mapping):
        return WrittenCall(name, arguments)
    return None


def _python_calls(text: str, begin: int, offered: Collection[str]) -> tuple[list[WrittenCall], int]:
    """Read `[name(key="value"), …]`, with literal values only."""
    end = text.find(")]", begin) + 2
    if text[begin] != "[" or end < 2:  # not found
        return [], 0
    try:
        tree = ast.parse(text[begin:end], mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [], 0
    calls: list[WrittenCall] = []
    for node in tree.elts if isinstance(tree, ast.List) else []:
        if not isinstance(node, ast.Call) or node.args or not isinstance(node.func, ast.Name):
            return [], 0
        if node.func.id not in offered:
            return [], 0
        try:
            arguments = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
        except ValueError:
            return [], 0
        calls.append(WrittenCall(node.func.id, cast("JsonObject", arguments)))
    return calls, end if calls else 0
