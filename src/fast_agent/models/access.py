"""Access: the key, the address, the packages and the files a model needs, and its endpoint."""

from __future__ import annotations

from dataclasses import field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NoReturn

from fast_agent.config.providers import PROVIDERS
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import (
    MISSING_MODEL_ADDRESS,
    MISSING_MODEL_FILE,
    MISSING_MODEL_KEY,
    MISSING_MODEL_PACKAGE,
    WRONG_MODEL_PARAMETER,
)
from fast_agent.errors import ModelError
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fast_agent.cards.grant import CardGrant
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
    def secrets(self) -> tuple[str, ...]:
        """The key and the values of the headers, which must not appear anywhere."""
        long = (text for text in self.headers.values() if len(text) >= _MIN_SECRET)
        return (*((self.api_key,) if self.api_key else ()), *long)


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
        return _there(configured, f"the weights of `{spec.text}`", "fix the section `local`")
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
    return _there(path, f"the file of `{spec.given}`", "check the path; it starts at the card")


def check_model_files(spec: ModelSpec, directory: Path | None, grant: CardGrant | None) -> None:
    """Ask whether a found card may have the files read that its model names.

    Args:
        spec: The model.
        directory: Where relative files start; None forbids them.
        grant: What the card's found set may do; None where a person named the card.

    Raises:
        TrustError: It may not.
    """
    for name in (spec.options.file, spec.options.path):
        if grant is not None and name is not None and directory is not None:
            grant.check_read(directory / name)


def installed(modules: Sequence[str]) -> bool:
    """Whether all modules could be imported; none is."""
    for module in modules:
        try:
            if find_spec(module) is None:
                return False
        except (ModuleNotFoundError, ValueError):
            return False
    return True


def _there(path: Path, what: str, hint: str) -> Path:
    try:
        found = path.is_file()
    except OSError:
        found = False
    if not found:
        _refuse(MISSING_MODEL_FILE, f"{what} is not there: `{path}`", hint)
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
