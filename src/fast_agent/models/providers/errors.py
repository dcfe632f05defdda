"""What a provider's failure means for a user, and whether to try again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from pydantic_ai import exceptions as lib

from fast_agent.config.providers import PROVIDERS
from fast_agent.errors import ContextError, ModelError, os_reason
from fast_agent.text.frozen import frozen
from fast_agent.text.web_failure import THIS_MACHINE, causes, through_proxy, web_hint
from fast_agent.text.wording import did_you_mean

if TYPE_CHECKING:
    from httpx2 import Response
    from pydantic_ai import messages as answers

    from fast_agent.models.check import Endpoint

_MAX_DETAIL: Final = 400
"""Most characters of a provider's own words that go into a message."""


_FORBIDDEN: Final = 403
_CREDENTIALS: Final[Mapping[str, str]] = MappingProxyType(
    {"bedrock": "your AWS credentials", "vertex": "your Google Cloud credentials"}
)
"""What providers take that need no key."""
_OVERFLOW: Final = re.compile(
    r"exceeds? the (available context size|context (length|window)|maximum allowed length)"
    r"|(longer|greater) than the (model's )?context length|context length of only"
    r"|context size has been exceeded|context window exceeds|exceeded model token limit"
    r"|maximum prompt length is|(prompt|input) is too long|max_new_tokens`? must be <="
    r"|maximum context length is",
    re.IGNORECASE,
)
"""How servers word that a conversation is too long, beyond what the library knows.

In this order: llama.cpp, Ollama, SGLang, LM Studio, MiniMax, Moonshot, xAI, Fireworks, TGI, and
OpenAI behind a gateway that speaks the API of another provider.
"""
_CHAT_SERVER: Final = (
    "many servers know only a part of the Responses API; name this address as that of `generic`"
    " for their chat completions"
)
_OTHER_API: Final = "check that its address serves the API of this provider"


@frozen
class Failure:
    """A failed attempt.

    Args:
        message: What went wrong.
        hint: What to do about it.
        passing: It may work when sent again.
        asked: Seconds the provider asked to wait, or None.
        too_long: The conversation is longer than the model's context window.
        few_attempts: It is sent again a few times only: the connection failed, or the provider
            answered, and bills each answer.
        is_quota: The quota or the credit of the account is used up.
        broke_off: The stream of the answer ended before its end, if it ever had a beginning.
    """

    message: str
    hint: str | None = None
    passing: bool = False
    asked: float | None = None
    too_long: bool = False
    few_attempts: bool = False
    is_quota: bool = False
    broke_off: bool = False

    @property
    def error(self) -> ModelError:
        """The error to raise when it is not tried again."""
        kind = ContextError if self.too_long else ModelError
        error = kind(self.message, hint=self.hint)
        error.is_passing, error.is_quota = self.passing, self.is_quota
        error.retry_after = self.asked
        return error


def failure_of(error: Exception, endpoint: Endpoint) -> Failure:
    """Read an error of the provider library.

    Args:
        error: What it raised.
        endpoint: What was asked.

    Returns:
        The failure in plain words; the key never appears in them.
    """
    who = _endpoint_name(endpoint)
    if "ended without" in str(error):  # the library's words for a stream that just stops
        return broken_off(endpoint)
    if isinstance(error, lib.ModelAPIError):
        return _api_failure(error, endpoint)
    if is_of_cloud(error):
        reason = _safe(str(error), endpoint)
        return Failure(f"{who} cannot be used: {reason}", f"check {_key_places(endpoint)}")
    if isinstance(error, lib.ContentFilterError):
        return Failure(
            f"{who} refused the content: {_safe(str(error), endpoint)}", "change the message"
        )
    if isinstance(error, lib.UnexpectedModelBehavior):
        # The lines below the first are pydantic's, about each part of a union.
        return _unreadable(str(error).partition("\n")[0], endpoint)
    return Failure(
        f"{who} cannot process this request: {_safe(str(error), endpoint)}",
        "leave out what it names, or use a model that supports it",
    )


def is_of_cloud(error: Exception) -> bool:
    """Return whether a cloud's SDK raised an error of its own, as it does without credentials."""
    return type(error).__module__.startswith(("botocore.", "google.auth."))


def broken_off(endpoint: Endpoint) -> Failure:
    """Return the failure of a stream that ended before its answer did."""
    message = f"the answer of {_endpoint_name(endpoint)} ended before it was complete"
    hint = f"try again, and {_OTHER_API}" if endpoint.base_url else "try again"
    return Failure(message, hint, passing=True, few_attempts=True, broke_off=True)


def raw_reason(response: answers.ModelResponse) -> str | None:
    """Return why an answer ended, in the provider's word, or None where it gave none."""
    raw = (response.provider_details or {}).get("finish_reason")
    return raw if isinstance(raw, str) and raw else None


def ended_with_error(response: answers.ModelResponse, endpoint: Endpoint) -> Failure:
    """Return the failure of an answer that the provider itself calls wrong.

    A model that wrote a tool call wrongly writes it rightly the next time, more often than not.
    """
    reason = raw_reason(response)
    detail = f": {_safe(reason, endpoint)}" if reason and reason != "error" else ""
    message = f"{_endpoint_name(endpoint)} ended its answer with an error{detail}"
    return Failure(message, "try again", passing=True, few_attempts=True)


def refusal_notes(response: answers.ModelResponse, endpoint: Endpoint) -> tuple[str, ...]:
    """Return why a provider refused, where it says more than that it did."""
    details = response.provider_details or {}
    reason = details.get("block_reason_message") or details.get("block_reason")
    reason = reason or raw_reason(response)
    if response.finish_reason != "content_filter" or reason in {None, "content_filter", "refusal"}:
        return ()
    return (f"{_endpoint_name(endpoint)} refused the content: {_safe(str(reason), endpoint)}",)


def _unreadable(reason: str, endpoint: Endpoint) -> Failure:
    what = (
        f"{_endpoint_name(endpoint)} gave an answer that cannot be read: {_safe(reason, endpoint)}"
    )
    return Failure(what, _OTHER_API)


def _api_failure(error: lib.ModelAPIError, endpoint: Endpoint) -> Failure:
    who = _endpoint_name(endpoint)
    detail = _detail(error, endpoint)
    match error:
        case lib.ModelConnectionError():
            return _connection_failure(error, endpoint)
        case lib.ModelRateLimitError():
            return _passing(error, f"{who} is limiting the rate of requests{detail}")
        case _ if _is_too_long(error, detail):
            return Failure(
                f"the conversation is too long for {who}{detail}",
                "clear or shorten the history, or use a model with a longer context",
                too_long=True,
            )
        case lib.ModelServerError() if "not supported" in detail:  # llama.cpp, of an image
            return _refusal(error, endpoint, detail)
        case lib.ModelUnavailableError() | lib.ModelServerError():
            return _passing(error, f"{who} is failing{_status(error)}{detail}")
        case lib.ModelHTTPError() if error.provider_retry_hint:
            return _passing(error, f"{who} is failing{_status(error)}{detail}")
        case lib.ModelRequestRejectedError() | lib.ModelQuotaExceededError():
            return _refusal(error, endpoint, detail)
        case lib.ModelHTTPError():
            return Failure(f"{who} rejected the request{_status(error)}{detail}", error.hint)
        case _:
            return _unreadable(str(error), endpoint)


def _is_too_long(error: lib.ModelAPIError, detail: str) -> bool:
    is_known = isinstance(error, lib.ModelContextWindowExceededError)
    return is_known or _OVERFLOW.search(detail or str(error)) is not None


def _passing(error: lib.ModelAPIError, message: str) -> Failure:
    """A failure that may not last, unless the provider says that it will."""
    seconds = error.retry_after
    if seconds is None:
        hint = "try again later"
    else:
        hint = f"try again in {seconds:g} seconds" if seconds else "try again"
    lasting = isinstance(error, lib.ModelHTTPError) and error.provider_retry_hint is False
    return Failure(message, hint, passing=not lasting, asked=seconds)


def _refusal(error: lib.ModelAPIError, endpoint: Endpoint, detail: str) -> Failure:
    """A failure that sending again does not cure."""
    match error:
        case lib.ModelAuthenticationError():
            hint = f"check {_key_places(endpoint)}, and that it may use `{endpoint.model}`"
            if isinstance(error, lib.ModelHTTPError) and error.status_code == _FORBIDDEN:
                # The key may be right: the API is not enabled, or a guard of the account blocks it.
                what = f"{_provider(endpoint)} does not allow the request"
                return Failure(f"{what}{_status(error)}{detail}", hint)
            return Failure(f"{_provider(endpoint)} refused the API key{_status(error)}", hint)
        case lib.ModelNotFoundError():
            near = error.suggested_model_id if isinstance(error, lib.ModelHTTPError) else None
            hint = did_you_mean(near, "check the name of the model")
            if endpoint.base_url:
                hint += f"; check `{_section(endpoint)}.base_url` too"
            return Failure(f"{_provider(endpoint)} has no model `{endpoint.model}`{detail}", hint)
        case lib.ModelQuotaExceededError():
            return Failure(
                f"the quota or credit at {_provider(endpoint)} is used up{detail}",
                "check the account's billing, or use another provider",
                asked=error.retry_after,
                is_quota=True,
            )
        case _:
            advice = error.hint if isinstance(error, lib.ModelHTTPError) else None
            if endpoint.provider == "openai" and endpoint.base_url:
                advice = advice or _CHAT_SERVER
            return Failure(
                f"{_endpoint_name(endpoint)} rejected the request{_status(error)}{detail}", advice
            )


async def refuse_page(response: Response) -> None:
    """Stop reading an answer that is a web page: a stream would be empty, and tried again.

    Raises:
        UnexpectedModelBehavior: It is one.
    """
    if response.is_success and response.headers.get("content-type", "").startswith("text/html"):
        raise lib.UnexpectedModelBehavior("it is a web page")


def _connection_failure(error: lib.ModelConnectionError, endpoint: Endpoint) -> Failure:
    for cause in causes(error):
        if isinstance(cause, lib.UnexpectedModelBehavior):  # as some SDKs pass it on
            return _unreadable(str(cause), endpoint)
    who = _endpoint_name(endpoint)
    where = f" at `{endpoint.address}`" if endpoint.address else ""
    reason = _safe(_deepest(error), endpoint)
    if error.phase == "connect":
        # Those without an address of their own are all reached by HTTPS.
        url = endpoint.base_url or "https://"
        message = f"cannot reach {who}{where}{through_proxy(url)}: {reason}"
        is_here = urlsplit(url).hostname in THIS_MACHINE
        hint = "start the server there" if is_here else "check the network and the address"
        hint = web_hint(reason, url, hint)
    elif isinstance(error, lib.ModelTimeoutError):
        message = f"{who} did not answer in time"
        hint = "try again, or raise `timeout_seconds`"
    else:
        message = f"the connection to {who}{where} was lost: {reason}"
        hint = "try again"
    return Failure(message, hint, passing=True, few_attempts=True)


def _deepest(error: BaseException) -> str:
    """Find the words nearest to what happened on the network."""
    text = str(error)
    for cause in causes(error):
        text = (os_reason(cause) if isinstance(cause, OSError) else _words(cause)) or text
    return text


def _words(cause: BaseException) -> str:
    details = getattr(cause, "details", None)  # of gRPC; its own text is a dump of many lines
    return str(details() if callable(details) else cause)


def _status(error: lib.ModelAPIError) -> str:
    return f" (HTTP {error.status_code})" if isinstance(error, lib.ModelHTTPError) else ""


def _provider(endpoint: Endpoint) -> str:
    facts = PROVIDERS[endpoint.provider]
    is_named = endpoint.provider == "generic" or facts.base_url_required
    where = f" `{endpoint.address}`" if endpoint.address else ""
    return f"the endpoint{where}" if is_named else facts.label


def _key_places(endpoint: Endpoint) -> str:
    if endpoint.provider in _CREDENTIALS and not endpoint.api_key:
        variable = PROVIDERS[endpoint.provider].key_variables[0]
        return f"`{variable}` or {_CREDENTIALS[endpoint.provider]}"
    setting = f"`{_section(endpoint)}.api_key`"
    if endpoint.name not in {"", endpoint.provider}:
        return setting
    return f"`{PROVIDERS[endpoint.provider].key_variables[0]}` or {setting}"


def _section(endpoint: Endpoint) -> str:
    """Return the section of the configuration that describes an endpoint."""
    is_own = endpoint.name in {"", endpoint.provider}
    return endpoint.provider if is_own else f"endpoints.{endpoint.name}"


def _endpoint_name(endpoint: Endpoint) -> str:
    return f"`{endpoint.spec}`"


def _detail(error: lib.ModelAPIError, endpoint: Endpoint) -> str:
    """Find the provider's own sentence in its answer."""
    body: object = error.body
    if isinstance(body, str) and body.lstrip().startswith("{"):  # as the SDK of Mistral leaves it
        with suppress(ValueError, RecursionError):
            body = json.loads(body)
    for _ in range(3):
        if not isinstance(body, Mapping):
            break
        fields = {name.lower(): value for name, value in cast("Mapping[str, object]", body).items()}
        body = fields.get("error") or fields.get("message") or fields.get("detail")
    text = body if isinstance(body, str) else ""
    return f": {_safe(text, endpoint)}" if text.strip() else ""


def _safe(text: str, endpoint: Endpoint) -> str:
    """Make one line of a foreign text, without the key."""
    for secret in endpoint.secrets:
        text = text.replace(secret, "***")
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _MAX_DETAIL else f"{line[:_MAX_DETAIL]}…"
