"""Model specs, `[provider.]name[.effort][?key=value&…]`, and their aliases."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, TypedDict, cast

from fast_agent.cards.agent_config import NO_PARAMS, RequestParams
from fast_agent.config.providers import (
    EFFORTS,
    LARGE_CONTEXT,
    LARGE_WINDOW,
    PROVIDERS,
    QUERY_KEYS,
    is_parameter,
    split_models,
)
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import (
    MALFORMED_MODEL,
    MODEL_ALIAS_LOOP,
    UNKNOWN_MODEL,
    UNKNOWN_MODEL_PARAMETER,
    WRONG_MODEL_PARAMETER,
)
from fast_agent.errors import ModelError
from fast_agent.schema.explanation import expected
from fast_agent.schema.kinds import Flag, Integer, Number, OneOf
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fast_agent.config.providers import Effort
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.schema.kinds import Kind


OFFLINE: Final = ("passthrough", "playback", "slow", "scripted")
"""Models that need neither a key, nor weights, nor a network."""

LOCAL: Final = "local"
"""The provider name of models that run in this process."""

GENERIC: Final = "generic"
"""The provider name of models at endpoints that speak the OpenAI protocol."""


_Value: TypeAlias = "str | int | float | bool"

_FLAGS: Final = {"on": True, "true": True, "off": False, "false": False}


@frozen
class _Level:
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
class _Query:
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


@frozen(kw_only=True)
class ModelSpec:
    """A model spec, taken apart.

    Args:
        given: The text it was read from; an alias is not replaced in it.
        provider: A name of `PROVIDERS`, of `OFFLINE`, or `local`; `generic` for an endpoint.
        name: The model's name at the provider; empty for an offline or the default local model.
        endpoint: A name of `endpoints` of the configuration, or None.
        effort: Reasoning effort, or None for the model's own.
        options: What the model is made with.
        params: Request parameters from the query; those of a request go over them.
    """

    given: str
    provider: str
    name: str = ""
    endpoint: str | None = None
    effort: Effort | None = None
    options: ModelOptions = NO_OPTIONS
    params: RequestParams = NO_PARAMS

    @property
    def text(self) -> str:
        """The spec without aliases and query, such as `anthropic.claude-sonnet-5.high`."""
        first = self.endpoint or self.provider
        return ".".join(part for part in (first, self.name, self.effort) if part)

    def is_reached_as(self, other: ModelSpec) -> bool:
        """Return whether another model is reached at the same place, with the same key."""
        return (self.provider, self.endpoint) == (other.provider, other.endpoint)

    @property
    def is_cloud(self) -> bool:
        """Whether a provider is asked over a network."""
        return self.provider in PROVIDERS


def parse_model_spec(
    text: str, user_aliases: Mapping[str, str] | None = None, endpoints: Collection[str] = ()
) -> ModelSpec:
    """Take a model spec apart.

    Args:
        text: Such as `sonnet`, `o3-mini.high`, `openai.gpt-5?reasoning=low`, `slow?seconds=0.2`.
        user_aliases: `model_aliases` of the configuration, over those of the program.
        endpoints: The names of `endpoints` of the configuration.

    Returns:
        The spec, every part checked.

    Raises:
        ModelError: It cannot be taken apart; `diagnostics` holds every problem, without a place.
    """
    aliases = model_aliases(user_aliases or {})
    head, levels = _expand(text.strip(), aliases)
    endpoint, name = _of_endpoint(head, endpoints)
    provider = GENERIC
    if endpoint is None:
        provider, name = _split(head, text, aliases, endpoints)
    query = _read_query(levels, provider, text)
    if query.problems:
        first = query.problems[0]
        raise ModelError(first.message, hint=first.hint, diagnostics=query.problems)
    if provider == "scripted" and query.options.file is None:
        _refuse(MALFORMED_MODEL, f"`{text}` names no script", "write `scripted?file=script.yaml`")
    return ModelSpec(
        given=text,
        provider=provider,
        name=name,
        endpoint=endpoint,
        effort=query.effort,
        options=query.options,
        params=query.params,
    )


def parse_models(
    text: str, user_aliases: Mapping[str, str] | None = None, endpoints: Collection[str] = ()
) -> tuple[ModelSpec, ...]:
    """Take apart the specs of a model and of those that answer where it fails.

    Args:
        text: One spec, or several with commas between, such as `sonnet, gpt`.
        user_aliases: As for `parse_model_spec`.
        endpoints: As for `parse_model_spec`.

    Raises:
        ModelError: One of them cannot be taken apart; `diagnostics` holds every problem of all.
    """
    specs: list[ModelSpec] = []
    problems: list[Diagnostic] = []
    for one in split_models(text):
        try:
            specs.append(parse_model_spec(one, user_aliases, endpoints))
        except ModelError as error:
            problems.extend(error.diagnostics)
    if problems:
        first = problems[0]
        raise ModelError(first.message, hint=first.hint, diagnostics=tuple(problems))
    return tuple(specs)


def provider_of(
    text: str, user_aliases: Mapping[str, str] | None = None, endpoints: Collection[str] = ()
) -> str | None:
    """Return the provider of the model that answers first; None for a model without one.

    Args:
        text: As for `parse_models`.
        user_aliases: As for `parse_model_spec`.
        endpoints: As for `parse_model_spec`.

    Raises:
        ModelError: A spec cannot be taken apart.
    """
    name = parse_models(text, user_aliases, endpoints)[0].provider
    return name if name in PROVIDERS else None


def _expand(text: str, aliases: Mapping[str, str]) -> tuple[str, list[_Level]]:
    """Replace aliases; return what is left of the head, and what each step asks for."""
    levels: list[_Level] = []
    path: list[str] = []
    while True:
        head, _, query = text.partition("?")
        alias, effort = (head, None) if head in aliases else _cut_effort(head)
        levels.append(_Level(effort, query))
        if alias not in aliases:
            return alias, levels
        if alias in path:
            loop = " → ".join(f"`{step}`" for step in (*path[path.index(alias) :], alias))
            _refuse(
                MODEL_ALIAS_LOOP,
                f"the model alias `{alias}` leads back to itself: {loop}",
                "let one of these aliases name a model",
            )
        path.append(alias)
        text = aliases[alias].strip()


def _cut_effort(head: str) -> tuple[str, Effort | None]:
    body, dot, last = head.rpartition(".")
    if dot and body and last in EFFORTS:
        return body, last
    return head, None


def _of_endpoint(body: str, endpoints: Collection[str]) -> tuple[str | None, str]:
    """Split what names a model at an endpoint of the configuration."""
    for mark in (".", "/"):
        first, found, name = body.partition(mark)
        if found and name and first in endpoints and "," not in body:
            return first, name
    return None, ""


def _split(
    body: str, text: str, aliases: Mapping[str, str], endpoints: Collection[str]
) -> tuple[str, str]:
    """Split what is neither alias, effort nor query into provider and name."""
    if not body:
        _refuse(MALFORMED_MODEL, "the model is empty", _offer())
    if "," in body:
        _refuse(
            MALFORMED_MODEL,
            f"`{text}` matches several models",
            "let an alias name one model, and list several where a card or `--model` names it",
        )
    first, dot, name = body.partition(".")
    if first in OFFLINE and not dot:
        return first, ""
    slashed, slash, rest = body.partition("/")
    if slash and rest and slashed in PROVIDERS:
        return slashed, rest
    if first in PROVIDERS or first == LOCAL:
        if not name and (dot or first != LOCAL):
            _refuse(
                MALFORMED_MODEL,
                f"`{text}` names the provider `{first}` but no model",
                f"write `{first}.` and the model's name",
            )
        return first, name
    provider = built_in_names().provider_of(body)
    if provider is not None:
        return provider, body
    return _unknown(body, text, aliases, endpoints)


def _unknown(
    body: str, text: str, aliases: Mapping[str, str], endpoints: Collection[str]
) -> NoReturn:
    """Refuse a body nothing fits, with the best suggestion there is."""
    if text.lstrip().startswith("$"):
        # The key of `$system.low` is not an effort.
        whole = text.partition("?")[0].strip()
        _refuse_reference(body if "." in body else whole, aliases)
    first, dot, rest = body.partition(".")
    prefixes = (*endpoints, *PROVIDERS, LOCAL)
    for prefix in prefixes:
        if body.startswith(f"{prefix}:"):
            right = f"{prefix}.{body[len(prefix) + 1 :]}"
            _refuse(UNKNOWN_MODEL, f"unknown model `{text}`", f"did you mean `{right}`?")
    if dot and rest:
        near = closest(first.lower(), prefixes)
        if near is not None:
            _refuse(
                UNKNOWN_MODEL,
                f"unknown provider `{first}` in the model `{text}`",
                f"did you mean `{near}.{rest}`?",
            )
    names = (*aliases, *OFFLINE, LOCAL, *built_in_names().known)
    near = closest(body.lower(), names)
    hint = (
        _offer()
        if near is None
        else f"did you mean `{near}`? otherwise name its provider, as in `openai.{body}`"
    )
    _refuse(UNKNOWN_MODEL, f"unknown model `{text}`", hint)


def _refuse_reference(name: str, aliases: Mapping[str, str]) -> NoReturn:
    """Refuse `$namespace.key` that the configuration does not define; the known ones are listed."""
    known = sorted(alias for alias in aliases if alias.startswith("$"))
    group, _, key = name.removeprefix("$").partition(".")
    hint = f"add `model_references: {{{group or 'system'}: {{{key or 'default'}: sonnet}}}}`"
    if known:
        near = closest(name, known)
        start = f"did you mean `{near}`? " if near else ""
        hint = f"{start}the references are {_listed(known)}; or {hint}"
    _refuse(
        UNKNOWN_MODEL,
        f"unknown model reference `{name}`",
        f"{hint} to the configuration",
    )


def _offer() -> str:
    return (
        f"write `provider.name` with one of {_listed(tuple(PROVIDERS))}, an alias such as "
        f"`sonnet` or `gpt`, `local`, or `passthrough`"
    )


def _listed(words: Sequence[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _refuse(rule: Rule, message: str, hint: str) -> NoReturn:
    problem = Diagnostic(rule.code, message, "", hint=hint)
    raise ModelError(message, hint=hint, diagnostics=(problem,))


def _read_query(levels: Sequence[_Level], provider: str, text: str) -> _Query:
    """Check and join the queries of a spec.

    Args:
        levels: What was asked for, the outermost first; outer ones win.
        provider: Whose keys are allowed.
        text: The whole spec, for messages.
    """
    reader = _QueryReader(provider, text)
    for level in levels:
        reader.level(level)
    options: dict[str, Any] = {}
    params: dict[str, Any] = {}
    for key, value in reader.values.items():
        (params if is_parameter(reader.keys[key]) else options)[key] = value
    return _Query(
        effort=reader.effort,
        options=ModelOptions(**options) if options else NO_OPTIONS,
        params=RequestParams(**params) if params else NO_PARAMS,
        problems=tuple(reader.problems),
    )


class _QueryReader:
    def __init__(self, provider: str, text: str) -> None:
        self.provider = provider
        self.text = text
        self.keys = QUERY_KEYS[provider]
        self.values: dict[str, _Value] = {}
        self.effort: Effort | None = None
        self.problems: list[Diagnostic] = []

    def level(self, level: _Level) -> None:
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
            hint = f"`{self.provider}` supports {', '.join(f'`{name}`' for name in self.keys)}"
        else:
            hint = f"`{self.provider}` takes none"
        message = f"unknown parameter `{key}` in the model `{self.text}`"
        self._problem(UNKNOWN_MODEL_PARAMETER, message, hint)

    def _value(self, key: str, kind: Kind, raw: str) -> _Value | None:
        value = _read_value(kind, raw)
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


def _read_value(kind: Kind, raw: str) -> _Value | None:
    match kind:
        case Flag():
            return _FLAGS.get(raw.lower())
        case OneOf():
            value = raw.lower() if kind is LARGE_WINDOW else raw
            value = value if value in kind.choices else None
            return LARGE_CONTEXT if value is not None and kind is LARGE_WINDOW else value
        case Integer() | Number():
            return _number(kind, raw)
        case _:
            return raw or None


def _number(kind: Integer | Number, raw: str) -> int | float | None:
    if not raw.isascii() or "_" in raw or raw != raw.strip():
        return None
    try:
        value = int(raw) if isinstance(kind, Integer) else float(raw)
    except ValueError:
        return None
    return value if abs(value) < float("inf") and kind.allows(value) else None


class _Data(TypedDict):
    aliases: dict[str, str]
    families: dict[str, list[str]]
    known: list[str]


@frozen
class ModelNames:
    """What is known of model names.

    Args:
        aliases: Short names and the specs they denote.
        families: For each provider, patterns of the names that are its own.
        known: Names to suggest for a misspelled one.
    """

    aliases: Mapping[str, str]
    families: Mapping[str, tuple[str, ...]]
    known: tuple[str, ...]

    def provider_of(self, name: str) -> str | None:
        """Find the provider of a bare model name.

        Args:
            name: Such as `o3-mini`.

        Returns:
            Such as `openai`; None where no family fits.
        """
        for provider, patterns in self.families.items():
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                return provider
        return None


@cache
def built_in_names() -> ModelNames:
    """Read the names that come with the program."""
    import json
    from pathlib import Path

    text = Path(__file__).with_name("aliases.json").read_text(encoding="utf-8")
    data = cast("_Data", json.loads(text))
    return ModelNames(
        aliases=MappingProxyType(data["aliases"]),
        families=MappingProxyType(
            {name: tuple(patterns) for name, patterns in data["families"].items()}
        ),
        known=tuple(data["known"]),
    )


def model_aliases(user: Mapping[str, str]) -> Mapping[str, str]:
    """Join the aliases of the configuration to those of the program.

    Args:
        user: `model_aliases` of the configuration; they win.
    """
    return {**built_in_names().aliases, **user}
