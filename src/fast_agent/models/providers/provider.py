"""Models of providers, through one adapter.

The provider library is imported when such a model is first asked, in a worker thread, so that
neither start-up nor the event loop waits for it. This module decides when a request is sent again
and how long it may take; `provider_link` and its neighbours do the rest.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

import anyio

from fast_agent.cards.agent_config import NO_PARAMS, RequestParams
from fast_agent.config.providers import COMPACTING, PROVIDERS
from fast_agent.config.settings import NO_FACTS
from fast_agent.errors import ModelError
from fast_agent.models.check import Endpoint
from fast_agent.models.facts import facts_of
from fast_agent.models.model import AnswerWatch, TextDelta
from fast_agent.models.providers.classes import ADAPTERS, connect
from fast_agent.text.frozen import frozen
from fast_agent.text.garbage_collection import collection_paused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from fast_agent.config.providers import Effort
    from fast_agent.config.settings import StatedFacts
    from fast_agent.models.model import DeltaSink, ModelRequest, ModelResponse
    from fast_agent.models.providers.errors import Failure
    from fast_agent.models.providers.link import ProviderLink


__all__ = ["Endpoint", "ProviderModel", "RetryPolicy", "is_importing", "warm", "warm_soon"]

_REPORTED_SECONDS: Final = 2.0
"""From which length on a wait is reported with its reason."""

_IMPORTING: Final = Lock()
"""Held while packages of providers are imported.

Two threads that import the same packages from different ends would wait for each other. Python
breaks that by handing out parts of modules, and the import fails as if a package were missing.
"""
_warm: Final = set[str]()


class ProviderModel:
    """A model of a provider, bound to one agent instance.

    Args:
        endpoint: The provider, the model, the key and the address.
        name: The spec it was made from; `provider.model` by default.
        effort: Reasoning effort, or None for the model's own.
        params: Request parameters under those of each request.
        retry: When a request is sent again.
        stated: What the configuration says of the model.
        sleep: Waits so many seconds.
        jitter: Gives a number from 0 to 1 for each wait.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        name: str | None = None,
        effort: Effort | None = None,
        params: RequestParams = NO_PARAMS,
        retry: RetryPolicy | None = None,
        stated: StatedFacts = NO_FACTS,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._endpoint = endpoint
        self._name = name or endpoint.spec
        self._effort: Effort | None = effort
        self._params = params
        self._stated = stated
        self._retry = retry or RetryPolicy()
        self._sleep = sleep
        self._jitter = jitter
        self._streams = True
        self._link: ProviderLink | None = None
        self._linking = anyio.Lock()

    @property
    def name(self) -> str:
        """The spec it was made from."""
        return self._name

    @property
    def compacts(self) -> bool:
        """Whether its provider has a compact form of conversations."""
        return self._endpoint.provider in COMPACTING

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Answer one request.

        A rate limit, a failing server or a broken connection is tried again within the bounds of
        the retry policy, but not once a piece of its text has been given to `on_delta`. An endpoint
        that does not stream is asked for whole answers.

        Args:
            request: What to answer.
            on_delta: Called with each piece as it arrives; None asks for no streaming.

        Raises:
            ModelError: The model cannot be reached, refused the request, or answered nonsense.
        """
        params = request.params.over(self._params)
        with anyio.move_on_after(params.timeout_seconds):
            link = await self._require_link()
            return await self._send(link, request, params, on_delta)
        raise ModelError(
            f"`{self._name}` did not answer within {params.timeout_seconds:g} seconds",
            hint="raise `timeout_seconds` in `request_params`, or try again",
        )

    async def aclose(self) -> None:
        """Close the connections; safe to call twice."""
        link, self._link = self._link, None
        if link is not None:
            await link.aclose()

    async def _require_link(self) -> ProviderLink:
        if self._link is None:
            async with self._linking:
                if self._link is None:
                    self._link = await anyio.to_thread.run_sync(_link, self._endpoint, self._stated)
        return self._link

    async def _send(
        self,
        link: ProviderLink,
        request: ModelRequest,
        params: RequestParams,
        on_delta: DeltaSink | None,
    ) -> ModelResponse:
        from fast_agent.models.providers.link import AttemptError

        watch = AnswerWatch(on_delta)
        policy = self._retry.under(params)
        waited = 0.0
        attempt = 0
        sink = watch.sink if self._streams else None
        while True:
            attempt += 1
            try:
                response = await link.ask(request, params, self._effort, sink)
            except AttemptError as error:
                failure = error.failure
                if failure.broke_off and sink is not None and not watch.is_shown:
                    # What does not stream, or is no model, says so when asked for a whole answer.
                    sink = None
                    continue
                wait = (
                    None
                    if watch.is_shown
                    else _wait(policy, failure, attempt, waited, self._jitter)
                )
                if wait is None:
                    raise failure.error from self._shown(error.__cause__)
            else:
                if sink is None and watch.sink is not None:
                    self._streams = False
                    watch.sink(TextDelta(response.message.text))
                return response
            waited += wait
            if wait >= _REPORTED_SECONDS and request.notify is not None:
                request.notify(f"{failure.message}; trying again in {wait:.0f} s")
            await self._sleep(wait)

    def _shown(self, cause: BaseException | None) -> BaseException | None:
        """Keep the cause for a traceback, unless a secret stands in it."""
        secrets = self._endpoint.secrets
        chain = cause
        while chain is not None and secrets:
            if any(secret in str(chain) for secret in secrets):
                return None
            chain = chain.__cause__ or chain.__context__
        return cause


def _wait(
    policy: RetryPolicy,
    failure: Failure,
    attempt: int,
    waited: float,
    jitter: Callable[[], float],
) -> float | None:
    """Return how long to wait before the next attempt, in seconds; None for no further one."""
    most = policy.attempts
    if failure.few_attempts:
        most = min(most, policy.few_attempts)
    if not failure.passing or attempt >= most:
        return None
    wait = policy.wait(attempt, failure.asked, jitter())
    return wait if waited + wait <= policy.total_wait else None


def _link(endpoint: Endpoint, stated: StatedFacts) -> ProviderLink:
    with _IMPORTING, collection_paused():
        try:
            from fast_agent.models.providers.link import ProviderLink
        except ImportError as error:
            requirement = PROVIDERS[endpoint.provider].requirement
            raise ModelError(
                "models of providers need packages that are not installed",
                hint=f"install them with `pip install '{requirement}'`",
            ) from error
        return ProviderLink(endpoint, facts_of(endpoint, stated))


def is_importing() -> bool:
    """Return whether a thread imports packages of a provider now."""
    return _IMPORTING.locked()


def warm(provider: str) -> None:
    """Import and build what the first request to a provider needs, once and without a connection.

    To be called in a thread, before anything else is imported for a turn. The library builds its
    validators and its table of prices when they are first used, which would hold up the event loop
    for a tenth of a second each in the middle of an answer.

    Args:
        provider: Its name; for others, such as `passthrough`, nothing is done.
    """
    if provider not in ADAPTERS:
        return
    address = "http://127.0.0.1/v1"
    endpoint = Endpoint(provider=provider, model="none", api_key="none", base_url=address)
    with _IMPORTING, collection_paused():
        if provider in _warm:
            return
        with suppress(ImportError, ModelError):  # the first request says what is missing
            connect(endpoint)
        with suppress(ImportError):
            from pydantic_ai.messages import ModelMessagesTypeAdapter

            from fast_agent.models.providers.link import ProviderLink

            ModelMessagesTypeAdapter.dump_python([], mode="json")
            facts_of(endpoint)
            del ProviderLink  # imported for the modules it brings
        _warm.add(provider)


def warm_soon(providers: Collection[str]) -> None:
    """Do what `warm` does in a thread, while the caller waits for something else.

    Args:
        providers: Their names.
    """

    def warm_all() -> None:
        for provider in providers:
            warm(provider)

    if not _warm.issuperset(providers) and not is_importing():
        Thread(target=warm_all, name=f"import {', '.join(providers)}").start()


@frozen(kw_only=True)
class RetryPolicy:
    """Bounds of retrying.

    Args:
        attempts: Most times a request is sent to a provider that is overloaded or failing.
        few_attempts: Most times it is sent where the connection fails, or the answer is no good.
        first_wait: Wait before the second attempt, in seconds; it doubles from there.
        longest_wait: Longest wait that is not asked for by the provider, in seconds.
        total_wait: Most seconds spent waiting in one request, the provider's wishes included.
    """

    attempts: int = 12
    few_attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 8.0
    total_wait: float = 60.0

    def under(self, params: RequestParams) -> RetryPolicy:
        """Return this policy with what the parameters of a request say."""
        policy = self
        if params.retries is not None:
            attempts = params.retries + 1
            policy = replace(policy, attempts=attempts, few_attempts=attempts)
        if params.retry_seconds is not None:
            policy = replace(policy, total_wait=params.retry_seconds)
        return policy

    def wait(self, attempt: int, asked: float | None, jitter: float) -> float:
        """Return how long to wait after a failed attempt, in seconds.

        Args:
            attempt: Its number, from 1.
            asked: Seconds the provider asked to wait, or None.
            jitter: From 0 to 1.

        Returns:
            Seconds. What the provider asked is a minimum; up to a quarter is added, so that many
            clients turned away together do not come back together.
        """
        if asked is not None:
            return asked * (1 + jitter / 4)
        backoff = min(self.first_wait * 2 ** (attempt - 1), self.longest_wait)
        return backoff * (0.75 + jitter / 4)


FEW_RETRIES = RetryPolicy(attempts=2, few_attempts=2, total_wait=5.0)
"""For a model that another one stands in for."""

NO_RETRIES = RetryPolicy(attempts=1)
"""Send every request once."""
