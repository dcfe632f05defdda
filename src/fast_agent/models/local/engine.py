"""Weights loaded into this process, shared by every model that uses them.

The runtime is llama.cpp. Its Python form always opens an HTTP server on the loopback interface; it
is closed to others by a random key, and is used here only to ask what the chat template can do.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from fast_agent.errors import ModelError, os_reason
from fast_agent.models.local.weights import MAGIC
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from fast_agent.models.local.answer import Chunk

DEFAULT_CONTEXT: Final = 4096
"""Context length in tokens when none is asked for."""

_BATCH: Final = 128
"""Tokens of a prompt worked on at once: what a cancelled request may still cost."""

_CACHE_MIB: Final = 256
"""Memory for prompts of conversations that may continue."""


@frozen(kw_only=True)
class EngineKey:
    """What makes two models share one engine.

    Args:
        path: The GGUF file, absolute.
        context: Context length in tokens.
        threads: Threads to compute with, or None for `default_threads()`.
    """

    path: Path
    context: int = DEFAULT_CONTEXT
    threads: int | None = None


@frozen
class TemplateAbilities:
    """What the chat template of the weights can express."""

    tools: bool
    tool_calls: bool
    system: bool


class Engine:
    """Loaded weights. Every method blocks and may be called from any thread.

    Args:
        key: What to load.

    Raises:
        ModelError: The runtime is not installed, or the file cannot be loaded.
    """

    def __init__(self, key: EngineKey) -> None:
        _check_file(key.path)
        runtime = _runtime()
        self._secret = secrets.token_urlsafe(32)
        try:
            self._server: Any = runtime.Server(_parameters(runtime, key, self._secret))
        except RuntimeError as error:
            raise ModelError(
                f"`{key.path}` cannot be loaded",
                hint="it may be damaged, too large for this machine's memory, or of a kind of "
                "model the runtime does not know",
            ) from error
        self._abilities: TemplateAbilities | None = None

    @property
    def url(self) -> str:
        """The address of the OpenAI-compatible server, without the path `/v1`."""
        return str(self._server.listening_address)

    @property
    def secret(self) -> str:
        """The key the server asks for."""
        return self._secret

    def abilities(self) -> TemplateAbilities:
        """Ask what the chat template can do; remembered."""
        if self._abilities is None:
            found = self._get("/props").get("chat_template_caps")
            able = cast("dict[str, object]", found) if isinstance(found, dict) else {}
            self._abilities = TemplateAbilities(
                tools=able.get("supports_tools") is True,
                tool_calls=able.get("supports_tool_calls") is True,
                system=able.get("supports_system_role") is not False,
            )
        return self._abilities

    def chat(self, body: dict[str, Any], on_chunk: Callable[[Chunk], bool]) -> None:
        """Answer a chat request, piece by piece.

        Args:
            body: A request of the OpenAI chat API.
            on_chunk: Called with each piece; True stops the work. It must not raise.

        Raises:
            ModelError: The runtime refuses the request.
        """
        try:
            self._server.handle_chat_completions({**body, "stream": True}, on_chunk)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ModelError(
                f"the local model cannot process this request: {' '.join(str(error).split())}",
                hint="check the JSON Schema, and what `extra_body` holds",
            ) from error

    def _get(self, path: str) -> dict[str, object]:
        from http.client import HTTPConnection, HTTPException

        connection = HTTPConnection(self.url.removeprefix("http://"), timeout=10)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self._secret}"})
            answer: object = json.loads(connection.getresponse().read())
        except (OSError, HTTPException, ValueError) as error:
            raise ModelError("the local model's server does not answer") from error
        finally:
            connection.close()
        return cast("dict[str, object]", answer) if isinstance(answer, dict) else {}


def _check_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise ModelError(
            f"the weights `{path}` cannot be read: {os_reason(error)}",
            hint="check the path, or run `fast-agent models pull smollm2`",
        ) from error
    if magic != MAGIC:
        raise ModelError(f"`{path}` is not a GGUF file", hint="local models need GGUF weights")


def _runtime() -> ModuleType:
    from importlib import import_module

    try:
        return import_module("xllamacpp")
    except ImportError as error:
        raise ModelError(
            "the runtime of local models is not installed",
            hint="install it with `pip install 'fast-agent[local]'`",
        ) from error


def _parameters(runtime: ModuleType, key: EngineKey, secret: str) -> object:
    threads = key.threads or default_threads()
    parameters = runtime.CommonParams()
    parameters.model.path = str(key.path)
    parameters.n_ctx = key.context
    parameters.n_batch = _BATCH
    parameters.n_ubatch = _BATCH
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    parameters.cache_ram_mib = _CACHE_MIB
    parameters.fit_params = False
    parameters.warmup = False
    parameters.verbosity = -1  # nothing of the runtime on standard output or error
    parameters.api_keys = [secret]
    parameters.cors_origins = ""
    parameters.ui = False
    parameters.endpoint_slots = False
    return parameters


def default_threads() -> int:
    """Return how many threads to compute with: all usable cores but one, at most 8.

    The threads wait for each other at every step of a computation. When another process takes one
    of their cores, all of them stand still: two threads on two cores of a busy machine were ten
    times slower than one.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    return max(1, min(cores - 1, 8))


@dataclass(slots=True)
class _SharedEngine:
    """An engine and who uses it; the lock is held while it loads."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    engine: Engine | None = None
    users: int = 0


class EnginePool:
    """Loads each key once and drops it when its last user is gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[EngineKey, _SharedEngine] = {}

    def acquire(self, key: EngineKey) -> Engine:
        """Return the engine of a key, loading it on first use. Blocks.

        Raises:
            ModelError: It cannot be loaded.
        """
        with self._lock:
            shared = self._shared.setdefault(key, _SharedEngine())
            shared.users += 1
        try:
            with shared.lock:
                if shared.engine is None:
                    shared.engine = Engine(key)
                return shared.engine
        except BaseException:
            self.release(key)
            raise

    def release(self, key: EngineKey) -> None:
        """Release the result of `acquire`."""
        with self._lock:
            shared = self._shared[key]
            shared.users -= 1
            if shared.users == 0:
                del self._shared[key]

    @property
    def loaded(self) -> tuple[EngineKey, ...]:
        """The keys that are in use."""
        with self._lock:
            return tuple(self._shared)


PROCESS_ENGINES: Final = EnginePool()
"""The pool of this process: weights are large, and read only."""
