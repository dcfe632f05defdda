"""Making models: a spec in, a model bound to one agent instance out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fast_agent.models.spec import LOCAL, parse_models

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fast_agent.config.settings import Settings
    from fast_agent.models.model import Model
    from fast_agent.models.rate_limits import RateLimiter
    from fast_agent.models.script import Script
    from fast_agent.models.script_file import ScriptBook
    from fast_agent.models.spec import ModelSpec


class Models(Protocol):
    """Makes the models of one program."""

    def create(
        self,
        text: str,
        *,
        agent: str = "",
        api_key: str | None = None,
        directory: Path | None = None,
        new_call_id: Callable[[], str] | None = None,
    ) -> Model:
        """Make a model; see `ModelFactory.create`."""
        ...

    def finish(self) -> None:
        """Check that the scripts in use were used up."""
        ...


class ModelFactory:
    """Makes the models of one program, and holds what several of them share.

    Agents that use one script file take turns with its steps, however many instances they have.

    Args:
        settings: The configuration.
        environ: The environment.
    """

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._books: dict[tuple[Path, int | None], ScriptBook] = {}
        self._specs: dict[str, tuple[ModelSpec, ...]] = {}
        self._limiters: dict[str, RateLimiter] = {}

    def create(
        self,
        text: str,
        *,
        agent: str = "",
        api_key: str | None = None,
        directory: Path | None = None,
        new_call_id: Callable[[], str] | None = None,
    ) -> Model:
        """Make a model. Nothing is connected or loaded before its first request.

        Args:
            text: The spec; several with commas between, where the next answers if one fails.
            agent: The agent it is for.
            api_key: The key of the card, before all others; or None.
            directory: Where relative files of the spec start; None forbids it to name files.
            new_call_id: Gives the ids of tool calls of `passthrough` and `slow`.

        Raises:
            ModelError: The spec is wrong, or a file it needs is missing or wrong.
        """
        specs = self._specs.get(text)
        if specs is None:
            specs = self._specs[text] = parse_models(
                text, self._settings.model_aliases, self._settings.endpoints
            )
        first = specs[0]
        if len(specs) == 1:
            return self._create_one(first, agent, api_key, directory, new_call_id)
        from fast_agent.models.fallback import FallbackModel

        # The card's key is for the provider it was written for, which is that of the first model.
        return FallbackModel(
            tuple(
                self._create_one(
                    spec,
                    agent,
                    api_key if spec.is_reached_as(first) else None,
                    directory,
                    new_call_id,
                    others=spec is not specs[-1],
                )
                for spec in specs
            )
        )

    def _create_one(
        self,
        spec: ModelSpec,
        agent: str,
        api_key: str | None,
        directory: Path | None,
        new_call_id: Callable[[], str] | None,
        *,
        others: bool = False,
    ) -> Model:
        match spec.provider:
            case "passthrough":
                from fast_agent.models.offline import PassthroughModel

                return PassthroughModel(spec.text, new_call_id)
            case "slow":
                from fast_agent.models.offline import DEFAULT_SECONDS, SlowModel

                seconds = spec.options.seconds
                return SlowModel(
                    DEFAULT_SECONDS if seconds is None else seconds, spec.text, new_call_id
                )
            case "playback":
                return _playback(spec, directory)
            case "scripted":
                from fast_agent.models.script import ScriptedModel

                script = self._script(spec, spec.options.file or "", agent, directory)
                return ScriptedModel(script, spec.text)
            case _ if spec.provider == LOCAL:
                return self._local(spec, directory)
            case _:
                return self._cloud(spec, api_key, others)

    def finish(self) -> None:
        """Check that the scripts in use were used up.

        Raises:
            ModelError: Steps were left over; the message lists those of the first such script.
        """
        for book in self._books.values():
            book.finish()

    def _cloud(self, spec: ModelSpec, api_key: str | None, others: bool) -> Model:
        from fast_agent.models.check import endpoint_of
        from fast_agent.models.facts import stated_facts
        from fast_agent.models.providers.provider import FEW_RETRIES, ProviderModel

        model = ProviderModel(
            endpoint_of(spec, self._settings, self._environ, api_key),
            name=spec.text,
            effort=spec.effort,
            params=spec.params,
            retry=FEW_RETRIES if others else None,
            stated=stated_facts(spec, self._settings),
        )
        if not self._settings.model_limits:
            return model
        return self._limited(model, spec)

    def _limited(self, model: Model, spec: ModelSpec) -> Model:
        from fast_agent.models.rate_limits import (
            LimitedModel,
            RateLimiter,
            limits_name,
            shared_use,
        )

        name = limits_name(spec, self._settings)
        if name is None:
            return model
        limiter = self._limiters.get(name)
        if limiter is None:
            limits = self._settings.model_limits[name]
            use = shared_use(name, limits, self._settings)
            limiter = self._limiters[name] = RateLimiter(name, limits, use)
        return LimitedModel(model, limiter)

    def _local(self, spec: ModelSpec, directory: Path | None) -> Model:
        from fast_agent.models.check import local_file
        from fast_agent.models.local.model import LocalModel

        section = self._settings.local
        return LocalModel(
            local_file(spec, self._settings, self._environ, directory),
            name=spec.text,
            threads=spec.options.threads or section.threads,
            context=spec.options.context or section.context,
            params=spec.params,
        )

    def _script(self, spec: ModelSpec, name: str, agent: str, directory: Path | None) -> Script:
        from fast_agent.models.check import named_file
        from fast_agent.models.script_file import read_script_file

        path = named_file(spec, name, directory).resolve()
        key = (path, spec.options.seed)
        book = self._books.get(key)
        if book is None:
            book = read_script_file(path, shown=name, seed=spec.options.seed)
            self._books[key] = book
        return book.script_of(agent)


def _playback(spec: ModelSpec, directory: Path | None) -> Model:
    from fast_agent.models.offline import PlaybackModel

    if spec.options.file is None:
        return PlaybackModel(None, spec.text)
    from fast_agent.messages.file import read_history
    from fast_agent.models.check import named_file

    path = named_file(spec, spec.options.file, directory)
    return PlaybackModel(read_history(path).messages, spec.text)
