"""The part of a model spec after `?`: which keys each model takes, and what their values may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from fast_agent.cards.request_params import NO_PARAMS, RequestParams
from fast_agent.config.model_query import (
    LARGE_CONTEXT,
    LARGE_WINDOW,
    QUERY_KEYS,
    is_parameter,
)
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import (
    MALFORMED_MODEL,
    UNKNOWN_MODEL_PARAMETER,
    WRONG_MODEL_PARAMETER,
)
from fast_agent.schema.explanation import expected
from fast_agent.schema.kinds import Flag, Number, OneOf, Whole
from fast_agent.text.frozen import frozen
from fast_agent.text.suggestion import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.config.model_query import Effort
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.schema.kinds import Kind

_Value: TypeAlias = "str | int | float | bool"

_FLAGS: Final = {"on": True, "true": True, "off": False, "false": False}


@frozen
class Level:
    """What one step of alias replacement asks for: an effort suffix and a query."""

    effort: Effort | None
    query: str


@frozen(kw_only=True)
class ModelOptions:
    """What a model is made with; None leaves the model's own default.

    Args:
        path: A GGUF file, for `local`.
        threads: Threads to compute with, for `local`.
        context: Context length in tokens, for `local` and `anthropic`.
        seconds: How long `slow` waits.
        file: The history of `playback`, the script of `scripted`.
        seed: Seed of what is random in a script.
    """

    path: str | None = None
    threads: int | None = None
    context: int | None = None
    seconds: float | None = None
    file: str | None = None
    seed: int | None = None


NO_OPTIONS: Final = ModelOptions()
"""Options of which none is set."""


@frozen
class Query:
    """What the levels of a spec come to.

    Args:
        effort: Reasoning effort, from a suffix or from `reasoning`.
        options: What the model is made with.
        params: Request parameters.
        problems: Everything wrong, without a place.
    """

    effort: Effort | None = None
    options: ModelOptions = NO_OPTIONS
    params: RequestParams = NO_PARAMS
    problems: tuple[Diagnostic, ...] = ()


def read_query(levels: Sequence[Level], provider: str, text: str) -> Query:
    """Check and join the queries of a spec.

    Args:
        levels: What was asked for, the outermost first; outer ones win.
        provider: Whose keys are allowed.
        text: The whole spec, for messages.
    """
    reader = _Reader(provider, text)
    for level in levels:
        reader.level(level)
    options: dict[str, Any] = {}
    params: dict[str, Any] = {}
    for key, value in reader.values.items():
        (params if is_parameter(reader.keys[key]) else options)[key] = value
    return Query(
        effort=reader.effort,
        options=ModelOptions(**options) if options else NO_OPTIONS,
        params=RequestParams(**params) if params else NO_PARAMS,
        problems=tuple(reader.problems),
    )


class _Reader:
    def __init__(self, provider: str, text: str) -> None:
        self.provider = provider
        self.text = text
        self.keys = QUERY_KEYS[provider]
        self.values: dict[str, _Value] = {}
        self.effort: Effort | None = None
        self.problems: list[Diagnostic] = []

    def level(self, level: Level) -> None:
        found: dict[str, _Value] = {}
        if level.effort is not None:
            self._suffix(level.effort, found)
        for pair in level.query.split("&") if level.query else ():
            self._pair(pair, found)
        effort = found.pop("reasoning", None)
        if self.effort is None and effort is not None:
            self.effort = cast("Effort", effort)
        self.values = {**found, **self.values}

    def _suffix(self, effort: Effort, found: dict[str, _Value]) -> None:
        if "reasoning" in self.keys:
            found["reasoning"] = effort
            return
        self._problem(
            MALFORMED_MODEL,
            f"`{self.provider}` has no reasoning effort, but `{self.text}` asks for `{effort}`",
            f"leave out `.{effort}`",
        )

    def _pair(self, pair: str, found: dict[str, _Value]) -> None:
        key, equals, raw = pair.partition("=")
        if not equals or not key:
            self._problem(
                MALFORMED_MODEL,
                f"`{pair}` in the model `{self.text}` is not `key=value`",
                "write `?key=value`, and `&` between several",
            )
            return
        wanted = self.keys.get(key)
        if wanted is None:
            self._unknown(key)
            return
        value = self._value(key, wanted.kind, _decoded(raw))
        if value is None:
            return
        if key in found and found[key] != value:
            self._problem(
                WRONG_MODEL_PARAMETER,
                f"the model `{self.text}` asks for `{key}` both as `{found[key]}` and as `{value}`",
                "keep one of them",
            )
            return
        found[key] = value

    def _unknown(self, key: str) -> None:
        near = closest(key, tuple(self.keys))
        if near is not None:
            hint = f"did you mean `{near}`?"
        elif self.keys:
            hint = f"`{self.provider}` takes {', '.join(f'`{name}`' for name in self.keys)}"
        else:
            hint = f"`{self.provider}` takes none"
        message = f"unknown parameter `{key}` in the model `{self.text}`"
        self._problem(UNKNOWN_MODEL_PARAMETER, message, hint)

    def _value(self, key: str, kind: Kind, raw: str) -> _Value | None:
        value = _read(kind, raw)
        if value is None:
            wanted = "`on` or `off`" if isinstance(kind, Flag) else expected(kind)
            message = f"`{key}` in the model `{self.text}` must be {wanted}, not `{raw}`"
            near = closest(raw, kind.choices) if isinstance(kind, OneOf) else None
            self._problem(WRONG_MODEL_PARAMETER, message, did_you_mean(near))
        return value

    def _problem(self, rule: Rule, message: str, hint: str | None) -> None:
        self.problems.append(Diagnostic(rule.code, message, "", severity=rule.severity, hint=hint))


def _decoded(raw: str) -> str:
    """Replace `%26` and the like, so that a value may hold `&`."""
    if "%" not in raw:
        return raw
    from urllib.parse import unquote

    return unquote(raw)


def _read(kind: Kind, raw: str) -> _Value | None:
    match kind:
        case Flag():
            return _FLAGS.get(raw.lower())
        case OneOf():
            value = raw.lower() if kind is LARGE_WINDOW else raw
            value = value if value in kind.choices else None
            return LARGE_CONTEXT if value is not None and kind is LARGE_WINDOW else value
        case Whole() | Number():
            return _number(kind, raw)
        case _:
            return raw or None


def _number(kind: Whole | Number, raw: str) -> int | float | None:
    if not raw.isascii() or "_" in raw or raw != raw.strip():
        return None
    try:
        value = int(raw) if isinstance(kind, Whole) else float(raw)
    except ValueError:
        return None
    return value if abs(value) < float("inf") and kind.allows(value) else None
