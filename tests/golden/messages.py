"""Messages: JSON-RPC as steps write it, and conditions on what comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from tests.golden.stage import verb_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.golden.stage import Stage, Step

MODERN: Final = "2026-07-28"
AGAIN_SECONDS: Final = 0.01
"""How long to wait before a message is sent again, for another answer."""

_VERSION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_PROGRESS = "notifications/progress"


def message_of(step: Step, stage: Stage, number: int) -> dict[str, Any]:
    """Return the message of `ask`, `begin` or `tell`.

    Args:
        step: The step; `id`, `params`, `meta` (more of `_meta`), `can` (capabilities), and `bare`
            (no envelope).
        stage: Its stage.
        number: The id of a request that has none.
    """
    message: dict[str, Any] = {"jsonrpc": "2.0"}
    verb = verb_of(step)
    if verb != "tell":
        message["id"] = step.get("id", number)
    message["method"] = step[verb]
    params: dict[str, Any] | None = step.get("params")
    meta: dict[str, Any] = dict(step.get("meta", {}))
    if verb != "tell" and is_modern(step, stage):
        envelope = {_VERSION: MODERN, _CAPABILITIES: step.get("can", stage.can)}
        meta = {**envelope, **meta}
    if meta:
        params = {**(params or {}), "_meta": meta}
    return message if params is None else {**message, "params": params}


def hello(version: str, can: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of `initialize`."""
    info = {"name": "golden", "version": "1"}
    return {"protocolVersion": version, "capabilities": dict(can), "clientInfo": info}


def is_modern(step: Step, stage: Stage) -> bool:
    """Return whether a request carries the envelope of 2026-07-28."""
    return stage.modern and not step.get("bare")


def fits(message: Any, wanted: Any) -> bool:
    """Return whether a message is the one that is waited for.

    Args:
        message: What came.
        wanted: The id of a request whose answer is wanted, or an object whose entries the message
            has; in it, `update` names the kind of an update of ACP.
    """
    if not isinstance(message, dict):
        return False
    found = cast("dict[str, Any]", message)
    if not isinstance(wanted, dict):
        return "method" not in found and found.get("id") == wanted
    return all(_entry(found, key) == value for key, value in cast("dict[str, Any]", wanted).items())


def _entry(message: dict[str, Any], key: str) -> Any:
    if key == "update":
        return message.get("params", {}).get("update", {}).get("sessionUpdate")
    return message.get(key)


def without_overtaken(messages: list[Any]) -> list[Any]:
    """Leave out progress that newer progress follows: the number of steps is up to chance."""
    last: dict[Any, int] = {}
    for place, message in enumerate(messages):
        if (token := _progress_token(message)) is not None:
            last[token] = place
    return [
        message
        for place, message in enumerate(messages)
        if (token := _progress_token(message)) is None or last[token] == place
    ]


def _progress_token(message: Any) -> Any:
    if not isinstance(message, dict):
        return None
    found = cast("dict[str, Any]", message)
    return found["params"].get("progressToken") if found.get("method") == _PROGRESS else None
