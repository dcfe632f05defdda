"""Which model an agent is to use, and every problem with it before a turn, with its place.

That its key, package, address or weights are missing is a problem too.
"""

from __future__ import annotations

from dataclasses import field, replace
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, NoReturn
from urllib.parse import urlsplit, urlunsplit

from fast_agent.config.providers import PROVIDERS
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import (
    MISSING_MODEL_ADDRESS,
    MISSING_MODEL_FILE,
    MISSING_MODEL_KEY,
    MISSING_MODEL_PACKAGE,
    WRONG_MODEL_FILE,
    WRONG_MODEL_PARAMETER,
)
from fast_agent.errors import FastAgentError, ModelError, TrustError
from fast_agent.models.spec import LOCAL, parse_model_spec, parse_models
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.cards.grant import CardGrant
    from fast_agent.config.layer import Place
    from fast_agent.config.settings import ProviderSettings, ServiceTier, Settings
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.models.spec import ModelSpec

_MIN_SECRET: Final = 8
"""Fewest characters of a header that may be a secret."""


@frozen(kw_only=True)
class Endpoint:
    """Where a model is reached.

    Args:
        provider: A name of `PROVIDERS`.
        name: Prefix of specs: `provider`, or the name of an endpoint of the configuration.
        model: The model's name at the provider.
        api_key: The key; None where the provider needs none. Never shown.
        base_url: The address; None for the provider's own.
        headers: HTTP headers sent with each request. Never shown.
        service_tier: How requests are served and billed; None leaves it to the provider.
        large_context: Ask for the window of a million tokens, a beta of Anthropic.
    """

    provider: str
    name: str = ""
    model: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    service_tier: ServiceTier | None = None
    large_context: bool = False

    @property
    def spec(self) -> str:
        """The model as a spec names it, without an effort."""
        return f"{self.name or self.provider}.{self.model}"

    @property
    def address(self) -> str | None:
        """The address without a user, a password or a query, which may hold secrets."""
        if not self.base_url:
            return None
        parts = urlsplit(self.base_url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key and the values of the headers, which must not appear anywhere.

        A short one, such as `none`, is no secret: servers that check no key are given it.
        """
        values = (self.api_key or "", *self.headers.values())
        return tuple(text for text in values if len(text) >= _MIN_SECRET)


LOCAL_MODULES: Final = ("xllamacpp",)
LOCAL_REQUIREMENT: Final = "fast-agent[local]"


def endpoint_of(
    spec: ModelSpec, settings: Settings, environ: Mapping[str, str], api_key: str | None = None
) -> Endpoint:
    """Return where and with which key the model of a provider is reached.

    Args:
        spec: A model of a provider.
        settings: The configuration.
        environ: The environment, asked where the configuration is silent.
        api_key: The key of the card, before both; or None.
    """
    facts = PROVIDERS[spec.provider]
    if spec.endpoint is not None:
        named = settings.endpoints[spec.endpoint]
        return _endpoint(spec, named, api_key or named.api_key, named.base_url)
    section = settings.provider(spec.provider)
    key = api_key or section.api_key
    if key is None:
        key = next((environ[name] for name in facts.key_variables if environ.get(name)), None)
    address = section.base_url or environ.get(facts.base_url_variable) or facts.default_base_url
    return _endpoint(spec, section, key, address)


def _endpoint(
    spec: ModelSpec, section: ProviderSettings, api_key: str | None, address: str | None
) -> Endpoint:
    headers = dict(section.headers)
    if section.organization is not None:
        headers["OpenAI-Organization"] = section.organization
    return Endpoint(
        provider=spec.provider,
        name=spec.endpoint or spec.provider,
        model=spec.name,
        api_key=api_key,
        base_url=address,
        headers=headers,
        service_tier=section.service_tier,
        large_context=spec.options.context is not None,
    )


def endpoint_problems(endpoint: Endpoint) -> list[Diagnostic]:
    """Return what is missing to reach an endpoint: its key, its address, a package."""
    facts = PROVIDERS[endpoint.provider]
    problems: list[Diagnostic] = []
    if facts.key_required and not endpoint.api_key:
        names = " or ".join(f"`{name}`" for name in facts.key_variables)
        problems.append(
            _problem(
                MISSING_MODEL_KEY,
                f"no API key for {facts.label}",
                f"set {names}, or `{facts.api_key_setting}` in `fastagent.secrets.yaml`",
            )
        )
    if facts.base_url_required and not endpoint.base_url:
        problems.append(
            _problem(
                MISSING_MODEL_ADDRESS,
                f"no address for {facts.label}",
                f"set `{facts.base_url_variable}`, or `{facts.name}.base_url` in "
                "`fastagent.config.yaml`",
            )
        )
    if not installed(facts.modules):
        problems.append(_package(facts.label, facts.requirement))
    return problems


def local_file(
    spec: ModelSpec, settings: Settings, environ: Mapping[str, str], directory: Path | None
) -> Path:
    """Find the weights of a local model.

    Args:
        spec: `local`, `local.NAME`, or either with `?path=`.
        settings: The configuration, which may name files.
        environ: The environment, for the directory of pulled weights.
        directory: Where a relative `path` starts; None forbids one.

    Raises:
        ModelError: The file is not there.
    """
    from fast_agent.models.local.weights import DEFAULT, find_weights

    if spec.options.path is not None:
        return named_file(spec, spec.options.path, directory)
    configured = settings.local.models.get(spec.name) if spec.name else settings.local.path
    if configured is not None:
        return _check_file(configured, f"the weights of `{spec.text}`", "fix the section `local`")
    try:
        return find_weights(spec.name or DEFAULT, environ)
    except ModelError as error:
        _refuse(MISSING_MODEL_FILE, error.message, error.hint)


def local_problems(
    spec: ModelSpec, settings: Settings, environ: Mapping[str, str], directory: Path | None
) -> list[Diagnostic]:
    """Return what is missing to run a local model: the package, the weights."""
    problems: list[Diagnostic] = []
    if not installed(LOCAL_MODULES):
        problems.append(_package("the local model", LOCAL_REQUIREMENT))
    try:
        local_file(spec, settings, environ, directory)
    except ModelError as error:
        problems.extend(error.diagnostics)
    return problems


def named_file(spec: ModelSpec, name: str, directory: Path | None) -> Path:
    """Find a file a spec names.

    Args:
        spec: The spec.
        name: The file, as the spec has it.
        directory: Where it starts when it is relative; None forbids files.

    Raises:
        ModelError: It is not there, or files are forbidden.
    """
    if directory is None:
        _refuse(
            WRONG_MODEL_PARAMETER,
            f"`{spec.given}` names a file, which a card from the network may not",
            "keep a copy of the card on this machine",
        )
    path = directory / name
    return _check_file(path, f"the file of `{spec.given}`", "check the path; it starts at the card")


def check_model_files(spec: ModelSpec, directory: Path | None, grant: CardGrant | None) -> None:
    """Ask whether a found card may have the files read that its model names.

    Args:
        spec: The model.
        directory: Where relative files start; None forbids them.
        grant: What the card's found set may do; None where a user named the card.

    Raises:
        TrustError: It may not.
    """
    for name in (spec.options.file, spec.options.path):
        if grant is not None and name is not None and directory is not None:
            grant.check_read(directory / name)


def installed(modules: Sequence[str]) -> bool:
    """Whether all modules could be imported; none is."""
    for module in modules:
        if module in _INSTALLED:
            continue
        try:
            if find_spec(module) is None:
                return False
        except (ModuleNotFoundError, ValueError):
            return False
        _INSTALLED.add(module)
    return True


_INSTALLED: set[str] = set()
"""Modules that were found: looking for one takes 0.1 ms. Others may be installed meanwhile."""


def _check_file(path: Path, what: str, hint: str) -> Path:
    try:
        found = path.is_file()
    except OSError:
        found = False
    if not found:
        _refuse(MISSING_MODEL_FILE, f"cannot find {what}: `{path}`", hint)
    return path


def _package(label: str, requirement: str) -> Diagnostic:
    return _problem(
        MISSING_MODEL_PACKAGE,
        f"{label} needs packages that are not installed",
        f"run `pip install '{requirement}'`",
    )


def _problem(rule: Rule, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic(rule.code, message, "", severity=rule.severity, hint=hint)


def _refuse(rule: Rule, message: str, hint: str | None) -> NoReturn:
    raise ModelError(message, hint=hint, diagnostics=(_problem(rule, message, hint),))


MODEL_VARIABLE: Final = "FAST_AGENT_MODEL"
"""Environment variable that names the model of agents nothing else names one for."""
FALLBACK_NOTICE: Final = (
    "no model is configured, so a small local model answers; choose another with `--model`, "
    f"`default_model` in `fastagent.config.yaml`, or `{MODEL_VARIABLE}`"
)
"""What users see when the fallback is used."""


@frozen
class Selection:
    """A chosen model.

    Args:
        text: The spec, as it was written; several with commas between, where others answer if the
            first fails.
        source: Who chose it.
        directory: Where relative files in the spec start; None forbids it to name files.
        notice: One line for the user, or None.
    """

    text: str
    source: Literal["flag", "card", "configuration", "environment", "key", "fallback"]
    directory: Path | None
    notice: str | None = None


def select_model(
    config: AgentConfig | None,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    cwd: Path,
    flag: str | None = None,
) -> Selection:
    """Choose the model of an agent: `--model`, its card, the configuration, the environment.

    Where none of these names one, the default model of the first provider the user has a key for
    answers.

    Args:
        config: The agent, or None for no particular one.
        settings: The configuration.
        environ: The environment.
        cwd: The working directory; relative files of specs outside cards start there.
        flag: What `--model` says, or None.

    Returns:
        The model; `local` if none was chosen and no key is set.
    """
    if flag:
        return Selection(flag, "flag", cwd)
    if config is not None and config.model_text:
        # A card from the network must not read files of this machine.
        own = None if config.remote is not None else config.directory or cwd
        return Selection(config.model_text, "card", own)
    if settings.default_model:
        return Selection(settings.default_model, "configuration", cwd)
    named = environ.get(MODEL_VARIABLE, "").strip()
    if named:
        return Selection(named, "environment", cwd)
    return _unchosen(settings, environ, cwd)


def _unchosen(settings: Settings, environ: Mapping[str, str], cwd: Path) -> Selection:
    """Choose a model by the keys there are."""
    notice = FALLBACK_NOTICE
    for provider in PROVIDERS.values():
        if provider.default_model is None:
            continue
        key = next((name for name in provider.key_variables if environ.get(name)), None)
        if key is None and not settings.provider(provider.name).api_key:
            continue
        if not installed(provider.modules):
            notice += (
                f"; a key for {provider.label} is set: to use it,"
                f" run `pip install '{provider.requirement}'`"
            )
            continue
        model, why = provider.default_model, key or provider.api_key_setting
        said = f"`{model}` of {provider.label} answers, since `{why}` is set"
        return Selection(model, "key", cwd, f"{said}; choose another with `--model`")
    return Selection("local", "fallback", cwd, notice)


def check_model(
    text: str,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    api_key: str | None = None,
    directory: Path | None = None,
    agent: str | None = None,
    ready: bool = True,
) -> tuple[Diagnostic, ...]:
    """Find everything that would keep a model from answering.

    Args:
        text: The spec.
        settings: The configuration.
        environ: The environment.
        api_key: The key of the card, or None.
        directory: Where relative files of the spec start; None forbids it to name files.
        agent: The agent that is to use it, or None.
        ready: Look for its key, packages and weights too; otherwise only at what was written.

    Returns:
        The problems. Those of the spec have no path: its place is known to who has it. Those in a
        file it names have their own.
    """
    try:
        specs = parse_models(text, settings.model_aliases, settings.endpoints)
    except ModelError as error:
        return error.diagnostics
    found: list[tuple[Diagnostic, ...]] = []
    for spec in specs:
        own = api_key if spec.is_reached_as(specs[0]) else None
        problems = _problems(spec, settings, environ, own, directory, agent, ready)
        if not problems and ready:
            return ()  # one that can answer is enough
        found.append(problems)
    return tuple(dict.fromkeys(chain.from_iterable(found)))


def _problems(
    spec: ModelSpec,
    settings: Settings,
    environ: Mapping[str, str],
    api_key: str | None,
    directory: Path | None,
    agent: str | None,
    ready: bool,
) -> tuple[Diagnostic, ...]:
    if spec.is_cloud:
        endpoint = endpoint_of(spec, settings, environ, api_key)
        return tuple(endpoint_problems(endpoint)) if ready else ()
    if spec.provider == LOCAL:
        return tuple(local_problems(spec, settings, environ, directory)) if ready else ()
    if spec.options.file is None:
        return ()
    return _file_problems(spec, spec.options.file, directory, agent)


def check_selection(
    selection: Selection,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    api_key: str | None = None,
    agent: str | None = None,
    ready: bool = True,
) -> tuple[Diagnostic, ...]:
    """Check a chosen model; if none was chosen and the fallback is missing, say what to do.

    Args:
        selection: What was chosen.
        settings: The configuration.
        environ: The environment.
        api_key: The key of the card, or None.
        agent: The agent that is to use it, or None.
        ready: As for `check_model`.
    """
    problems = check_model(
        selection.text,
        settings,
        environ,
        api_key=api_key,
        directory=selection.directory,
        agent=agent,
        ready=ready,
    )
    if selection.source != "fallback" or not problems:
        return problems

    return (
        Diagnostic(
            MISSING_MODEL_FILE.code,
            "no model is configured, and the local one is not installed",
            "",
            hint=(
                f"run `pip install '{LOCAL_REQUIREMENT}'` and `fast-agent models pull smollm2`; "
                "or set a key such as `ANTHROPIC_API_KEY` and name a model such as "
                "`--model sonnet`; or use `--model passthrough`, which only echoes"
            ),
        ),
    )


def check_aliases(settings: Settings) -> tuple[Diagnostic, ...]:
    """Check every alias of the configuration, used or not, each at its place."""
    problems: list[Diagnostic] = []
    for name, text in settings.model_aliases.items():
        try:
            parse_model_spec(name, settings.model_aliases, settings.endpoints)
        except ModelError as error:
            place = settings.place_of("model_aliases", name)
            prefix = f"alias `{name}` means `{text}`: "
            for problem in error.diagnostics:
                named = replace(problem, message=f"{prefix}{problem.message}")
                problems.append(named if place is None else _moved(named, place))
    return tuple(problems)


def _check_named_models(settings: Settings) -> Iterable[Diagnostic]:
    """Check the names of `model_limits`, of which a misspelled one would limit nothing."""
    for name in settings.model_limits:
        if name in PROVIDERS or name in settings.endpoints:
            continue
        try:
            parse_model_spec(name, settings.model_aliases, settings.endpoints)
        except ModelError as error:
            place = settings.place_of("model_limits", name, key=True)
            for problem in error.diagnostics:
                yield problem if place is None else _moved(problem, place)


def check_settings(
    settings: Settings, environ: Mapping[str, str], *, cwd: Path, may_read: bool = True
) -> tuple[Diagnostic, ...]:
    """Check what the configuration says of models: its aliases and its default model.

    Args:
        settings: The configuration.
        environ: The environment.
        cwd: The working directory; relative files of specs start there.
        may_read: Whether files that the default model names may be read.
    """
    problems = [*check_aliases(settings), *_check_named_models(settings)]
    if may_read and settings.default_model and settings.default_model not in settings.model_aliases:
        place = settings.place_of("default_model")
        problems += [
            problem if problem.path or place is None else _moved(problem, place)
            for problem in check_model(
                settings.default_model, settings, environ, directory=cwd, ready=False
            )
        ]
    return tuple(problems)


def model_probe(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    cwd: Path,
    flag: str | None = None,
    ready: bool = True,
) -> Callable[[Card], Iterable[Diagnostic]]:
    """Make the check of a card's model for the checks of a load-set.

    Args:
        settings: The configuration.
        environ: The environment.
        cwd: The working directory.
        flag: The value of `--model`, or None; it overrides every card's own.
        ready: Look for keys, packages and weights too.

    Returns:
        A probe. A card whose model comes from elsewhere is not blamed for it: that model is
        checked once by `check_selection`.
    """

    def probe(card: Card) -> Iterable[Diagnostic]:
        selection = select_model(card.config, settings, environ, cwd=cwd, flag=flag)
        if selection.source != "card":
            return

        try:
            for spec in parse_models(selection.text, settings.model_aliases, settings.endpoints):
                check_model_files(spec, selection.directory, card.config.grant)
        except ModelError:
            pass  # reported below
        except TrustError as error:
            yield Diagnostic(WRONG_MODEL_FILE.code, error.message, card.path, hint=error.hint)
            return
        for problem in check_selection(
            selection,
            settings,
            environ,
            api_key=card.config.api_key,
            agent=card.config.name,
            ready=ready,
        ):
            # Finding a place parses the card again, with the slow parser that knows places: only
            # once there is a problem to place.
            yield problem if problem.path else card.placed(problem, card.span_of("model"))

    return probe


def _moved(problem: Diagnostic, place: Place) -> Diagnostic:
    return replace(problem, path=place.path, span=place.span, source_line=place.source_line)


def _file_problems(
    spec: ModelSpec, name: str, directory: Path | None, agent: str | None
) -> tuple[Diagnostic, ...]:

    try:
        path = named_file(spec, name, directory)
        if spec.provider == "playback":
            from fast_agent.messages.file import read_history

            read_history(path)
        else:
            from fast_agent.models.script_file import read_script_file

            book = read_script_file(path)
            if agent is not None:
                book.script_of(agent)
    except FastAgentError as error:
        problem = Diagnostic(WRONG_MODEL_FILE.code, error.message, "", hint=error.hint)
        return error.diagnostics or (problem,)
    return ()
