"""The connection to a Temporal server, and what of a run it may read."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from temporalio.api.common.v1 import Payload
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, TLSConfig
from temporalio.converter import (
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
    PayloadCodec,
)
from temporalio.service import RPCError, RPCStatusCode

from fast_agent.engine.part_store import missing_part
from fast_agent.errors import ConfigError, os_reason

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fast_agent.engine.part_store import Cipher, PartStore

DEFAULT_NAMESPACE: Final = "default"
DEFAULT_QUEUE: Final = "fast-agent"
"""The task queue of runs; that of a model or card has a name behind a colon."""

MAX_INLINE_BYTES: Final = 64 * 1024
"""The largest payload that goes into the history itself; Temporal refuses more than 2 MB."""

_ENCODING: Final = "encoding"
_SEALED: Final = b"binary/fast-agent-sealed"
_PART: Final = b"binary/fast-agent-part"
_CONNECT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalOptions:
    """How the server is reached.

    Args:
        address: Its host and port.
        namespace: The namespace of the runs.
        queue: The task queue of the runs.
        tls: Whether the connection is encrypted; an API key or a certificate implies it.
        server_ca: A file of certificates to check the server's with; None takes the system's.
        client_certificate: The client's certificate, or None.
        client_key: The key of that certificate, or None.
        api_key: The API key, or None.
    """

    address: str
    namespace: str = DEFAULT_NAMESPACE
    queue: str = DEFAULT_QUEUE
    tls: bool = False
    server_ca: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    api_key: str | None = field(default=None, repr=False)

    def side_queue(self, name: str) -> str:
        """Return the queue of the steps that a part of the workers takes; see `side_queue`."""
        return side_queue(self.queue, name)


def side_queue(queue: str, name: str) -> str:
    """Return the queue of the steps that a part of the workers takes.

    Args:
        queue: The queue of the runs.
        name: A model with its own workers, or the `queue` of a card.
    """
    return f"{queue}:{name}"


async def connect(options: TemporalOptions, store: PartStore, cipher: Cipher | None) -> Client:
    """Connect to the server.

    Args:
        options: How it is reached.
        store: Keeps what is too large for a history.
        cipher: Encrypts what the server is given; None lets it read everything.

    Raises:
        ConfigError: A file of the options cannot be read, or the server does not answer.
    """
    tls: TLSConfig | bool = options.tls or options.api_key is not None
    if options.server_ca or options.client_certificate:
        tls = TLSConfig(
            server_root_ca_cert=_read(options.server_ca),
            client_cert=_read(options.client_certificate),
            client_private_key=_read(options.client_key),
        )
    converter = replace(DataConverter.default, payload_codec=RunCodec(store, cipher))
    if cipher is not None:
        # Messages and traces of errors are part of what was said.
        converter = replace(
            converter, failure_converter_class=DefaultFailureConverterWithEncodedAttributes
        )
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            client = await Client.connect(
                _address(options.address),
                namespace=options.namespace,
                tls=tls,
                api_key=options.api_key,
                data_converter=converter,
            )
            await _check_namespace(client, options)
    except (RuntimeError, RPCError, TimeoutError, ValueError) as error:
        raise ConfigError(
            f"cannot connect to Temporal at `{options.address}`: {_reason(error)}",
            hint="check that the server runs, `--temporal-address`, and TLS in `temporal`",
        ) from error
    return client


async def _check_namespace(client: Client, options: TemporalOptions) -> None:
    """Raise an error if there is no such namespace; otherwise each run would fail on its own."""
    asked = DescribeNamespaceRequest(namespace=options.namespace)
    try:
        await client.workflow_service.describe_namespace(asked)
    except RPCError as error:
        if error.status is RPCStatusCode.PERMISSION_DENIED:  # a key may be good for runs alone
            return
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        raise ConfigError(
            f"Temporal at `{options.address}` has no namespace `{options.namespace}`",
            hint="correct `temporal.namespace`, or create it:"
            f" `temporal operator namespace create --namespace {options.namespace}`",
        ) from error


def _address(written: str) -> str:
    """Return a host and port, and refuse what the library would take with a warning."""
    if not written or "://" in written:
        raise ConfigError(
            f"the address of Temporal is a host and a port, not `{written}`",
            hint="write it as in `localhost:7233`; `temporal.tls` turns on TLS",
        )
    return written


def _reason(error: Exception) -> str:
    """Return why there is no connection, without the types the library writes around it."""
    text = str(error).splitlines()[0] if str(error) else "it does not answer"
    if "InvalidContentType" in text:
        return "the server does not speak TLS"
    system = re.search(r'(?:message|error): "([^"]+)"', text)
    return system[1] if system else text


def _read(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be read: {os_reason(error)}") from error


class RunCodec(PayloadCodec):
    """Encrypts payloads, and keeps large ones outside of histories.

    Args:
        store: Keeps the large ones.
        cipher: Encrypts the others; None leaves them readable.
    """

    def __init__(self, store: PartStore, cipher: Cipher | None) -> None:
        self._store = store
        self._cipher = cipher

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Encode payloads."""
        return [await self._encode(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decode payloads; those that were not encoded here stay as they are."""
        return [await self._decode(payload) for payload in payloads]

    async def _encode(self, payload: Payload) -> Payload:
        if payload.ByteSize() > MAX_INLINE_BYTES:
            data = payload.SerializeToString()
            digest = sha256(data).hexdigest()[:32]
            await asyncio.to_thread(self._store.put, {digest: data})
            return Payload(metadata={_ENCODING: _PART}, data=digest.encode())
        if self._cipher is None:
            return payload
        return Payload(
            metadata={_ENCODING: _SEALED, "key": self._cipher.key_id.encode()},
            data=self._cipher.seal(payload.SerializeToString()),
        )

    async def _decode(self, payload: Payload) -> Payload:
        encoding = payload.metadata.get(_ENCODING)
        if encoding == _PART:
            digest = payload.data.decode()
            found = await asyncio.to_thread(self._store.get, [digest])
            if digest not in found:
                raise missing_part(digest)
            return Payload.FromString(found[digest])
        if encoding != _SEALED:
            return payload
        if self._cipher is None:
            raise ConfigError(
                "the runs of this namespace are encrypted, and no key file is set",
                hint="set `temporal.key_file` to the key of the clients",
            )
        return Payload.FromString(self._cipher.open(payload.data))
