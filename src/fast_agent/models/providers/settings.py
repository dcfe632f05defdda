"""Settings of a request in the provider library's form, and a note for each that does not hold.

The library knows of each model which efforts, sampling parameters and server tools it takes, and
drops or changes the others silently or with its own warning. Here they are left out before,
and the user is notified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai.native_tools import CodeExecutionTool, WebFetchTool, WebSearchTool
from pydantic_ai.settings import ModelSettings

from fast_agent.config.providers import EFFORTS
from fast_agent.errors import ModelError
from fast_agent.text.json_value import plain_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_ai.models import Model as LibraryModel
    from pydantic_ai.native_tools import AbstractNativeTool

    from fast_agent.cards.agent_config import RequestParams
    from fast_agent.config.providers import Effort
    from fast_agent.models.check import Endpoint

_RAW_TOP_K: Final = frozenset({"generic", "openrouter"})
"""Providers whose endpoints take `top_k` next to the fields of the OpenAI API."""

_SERVER_TOOLS: Final[Mapping[str, type[AbstractNativeTool]]] = {
    "web_search": WebSearchTool,
    "web_fetch": WebFetchTool,
    "code_execution": CodeExecutionTool,
}
"""Tools that run at the provider, by the request parameter that turns them on."""

_SAMPLING: Final = ("temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty")
_LEFT_OUT_ANYWHERE: Final = ("max_tokens", "seed", *_SAMPLING)
_LARGE_CONTEXT_BETA: Final = "context-1m-2025-08-07"
_ACTIVE: Final = EFFORTS[1:]


class SettingsReader:
    """Says the settings of requests in the library's words.

    Args:
        model: The library's model, whose profile says what it takes.
        endpoint: Where it is.
    """

    def __init__(self, model: LibraryModel[Any], endpoint: Endpoint) -> None:
        self._model = model
        self._endpoint = endpoint
        self._profile = cast("Mapping[str, Any]", model.profile)
        self._ignored = frozenset(model.unsupported_settings) | frozenset(
            self._profile.get("openai_unsupported_model_settings", ())
        )

    def settings(
        self, params: RequestParams, effort: Effort | None, *, has_tools: bool
    ) -> tuple[ModelSettings, list[str]]:
        """Return the settings, and notes on those that were changed or left out.

        Args:
            params: The request parameters.
            effort: Reasoning effort, or None for the model's own.
            has_tools: Whether the agent's own tools are offered.

        Raises:
            ModelError: The provider does not take a setting, and leaving it out would change what
                the request promises.
        """
        notes: list[str] = []
        settings = ModelSettings(framing_announcement="never")  # the card alone is the prompt
        client = getattr(self._model, "client", None)
        if "max_retries" not in self._ignored and getattr(client, "max_retries", None) != 0:
            settings["max_retries"] = 0  # a client without such a switch gets it with each request
        if effort is not None:
            self._put_effort(settings, effort, notes)
        self._put_params(settings, params, effort, notes)
        if has_tools and params.parallel_tool_calls is not None:
            # Where the API has no such setting, the loop still makes the calls one by one.
            self._put(settings, "parallel_tool_calls", params.parallel_tool_calls)
        endpoint = self._endpoint
        if endpoint.headers:
            self._require("headers", "extra_headers")
            settings["extra_headers"] = dict(endpoint.headers)
        tier = endpoint.service_tier
        if tier is not None and not self._put(settings, "service_tier", tier):
            notes.append(self._left_out("service_tier"))
        if endpoint.large_context:
            cast("dict[str, Any]", settings)["anthropic_betas"] = [_LARGE_CONTEXT_BETA]
        return settings, notes

    def server_tools(self, params: RequestParams) -> list[AbstractNativeTool]:
        """Return the tools that run at the provider.

        Raises:
            ModelError: The model has no such tool.
        """
        wanted = [name for name in _SERVER_TOOLS if getattr(params, name)]
        supported = self._profile.get("supported_native_tools", frozenset())
        for name in wanted:
            if _SERVER_TOOLS[name] not in supported:
                has = ", ".join(
                    f"`{one}`" for one, kind in _SERVER_TOOLS.items() if kind in supported
                )
                raise ModelError(
                    f"`{self._endpoint.spec}` has no `{name}` of its own",
                    hint=f"it has {has}" if has else "use tools of an MCP server instead",
                )
        return [_SERVER_TOOLS[name]() for name in wanted]

    def _put_params(
        self,
        settings: ModelSettings,
        params: RequestParams,
        effort: Effort | None,
        notes: list[str],
    ) -> None:
        extra = plain_object(params.extra_body) if params.extra_body else {}
        values = {name: getattr(params, name) for name in _LEFT_OUT_ANYWHERE}
        if self._endpoint.provider in _RAW_TOP_K and params.top_k is not None:
            extra = {"top_k": values.pop("top_k"), **extra}
        unsampled = self._has_fixed_sampling(effort)
        dropped: list[str] = []
        for name, value in values.items():
            if value is None:
                continue
            if (unsampled and name in _SAMPLING) or not self._put(settings, name, value):
                dropped.append(name)
        if dropped:
            notes.append(self._left_out(*dropped))
        if params.stop_sequences:
            self._require("stop_sequences")
            settings["stop_sequences"] = list(params.stop_sequences)
        if extra:
            self._require("extra_body")
            settings["extra_body"] = extra

    def _put_effort(self, settings: ModelSettings, effort: Effort, notes: list[str]) -> None:
        taken = self.nearest_effort(effort)
        if taken is None:
            notes.append(self._left_out(f"effort {effort}"))
            return
        if taken != effort:
            notes.append(
                f"`{self._endpoint.spec}` does not support effort `{effort}`: `{taken}` is used"
            )
        settings["thinking"] = False if taken == "none" else taken

    def nearest_effort(self, effort: Effort) -> Effort | None:
        """Return the effort the model is asked for instead; None where it takes none."""
        taken = self._efforts()
        if effort in taken or not taken:
            return effort if taken else None
        if effort == "none":
            return taken[0]
        active: list[Effort] = [one for one in taken if one != "none"]
        for one in active:
            if EFFORTS.index(one) > EFFORTS.index(effort):
                return one
        return active[-1] if active else None

    def _efforts(self) -> tuple[Effort, ...]:
        """Return the efforts the model takes, the least first, by what the library knows of it."""
        has = self._profile.get
        if not has("supports_thinking", False):
            return ()
        off: tuple[Effort, ...] = () if has("thinking_always_enabled", False) else ("none",)
        match self._endpoint.provider:
            case "openai" | "azure" | "deepseek" | "generic" | "ollama" | "hf":
                return self._openai_efforts(off)
            case "anthropic":
                if not has("anthropic_supports_effort", False):
                    return (*off, *_ACTIVE)  # a budget of thinking tokens for each
                top = [one for one in ("xhigh", "max") if has(f"anthropic_supports_{one}_effort")]
                return (*off, "low", "medium", "high", *cast("list[Effort]", top))
            case "google" | "vertex":
                if not has("google_supports_thinking_level", True):
                    return (*off, *EFFORTS[1:5])
                levels = has("google_thinking_levels") or {"MINIMAL", "LOW", "MEDIUM", "HIGH"}
                can_stop = has("google_disables_thinking_with_zero_budget", False)
                active: list[Effort] = [one for one in _ACTIVE if one.upper() in levels]
                return ("none", *active) if can_stop else tuple(active)
            case "xai":
                efforts = has("grok_reasoning_efforts", frozenset())
                return tuple(one for one in EFFORTS if one in efforts)
            case "mistral":
                return (*off, "high") if off else ()
            case "groq" if has("groq_supports_graded_reasoning_effort", False):
                return ("low", "medium", "high")
            case _:
                return (*off, *_ACTIVE)

    def _openai_efforts(self, off: tuple[Effort, ...]) -> tuple[Effort, ...]:
        has = self._profile.get
        kind = "responses" if self._endpoint.provider == "openai" else "chat"
        takes_max = has(f"openai_{kind}_supports_max_reasoning_effort", False)
        known = has("openai_reasoning_efforts")
        if known is not None:
            return tuple(one for one in EFFORTS if one in known and (one != "max" or takes_max))
        active = _ACTIVE if takes_max else _ACTIVE[:-1]
        if not has("openai_supports_minimal_reasoning_effort", True):
            active = active[1:]
        return (*off, *active)

    def _has_fixed_sampling(self, effort: Effort | None) -> bool:
        """Return whether the model samples in its own way, as models do that reason."""
        has = self._profile.get
        if has("anthropic_disallows_sampling_settings", False):
            return True
        if not has("openai_supports_reasoning", False):
            return False
        known = has("openai_reasoning_efforts")
        can_stop = has("openai_supports_reasoning_effort_none", False)
        if not ("none" in known if known is not None else can_stop):
            return True
        return effort != "none" if effort else bool(has("thinking_enabled_by_default", False))

    def _put(self, settings: ModelSettings, name: str, value: object) -> bool:
        if name in self._ignored:
            return False
        cast("dict[str, object]", settings)[name] = value
        return True

    def _left_out(self, *names: str) -> str:
        listed = ", ".join(f"`{name}`" for name in names)
        return f"`{self._endpoint.spec}` does not support {listed}: left out"

    def _require(self, name: str, setting: str | None = None) -> None:
        if (setting or name) in self._ignored:
            place = "`request_params`" if setting is None else "the configuration"
            raise ModelError(
                f"`{self._endpoint.provider}` does not support `{name}`",
                hint=f"leave `{name}` out of {place}, or use another provider",
            )
