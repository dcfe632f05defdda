"""The connection: encrypted, with certificates and keys, in a namespace, and cut."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from ipaddress import ip_address
from itertools import count
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.engine.batch_world import ModelServer, Reply, text_reply
from tests.engine.temporal.temporal_world import temporal_world
from tests.engine.temporal.test_commands import ClusterWorld
from tests.patience import until
from tests.temporal_server import TemporalServer

from fast_agent.engine.part_store import open_parts
from fast_agent.engine.temporal.connection import TemporalOptions, connect
from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

pytestmark = pytest.mark.anyio

API_KEY = "key-that-nobody-may-print"


@pytest.fixture(scope="module")
def server() -> Generator[TemporalServer]:
    """A server with another namespace."""
    with TemporalServer(in_memory=True, namespaces=("team",)) as started:
        yield started


@dataclass(frozen=True)
class Certificates:
    """An authority, and what it issued.

    Args:
        directory: Holds the files.
    """

    directory: Path

    @property
    def authority(self) -> Path:
        """The certificate of the authority."""
        return self.directory / "authority.pem"

    def certificate(self, name: str) -> Path:
        """The certificate of a name."""
        return self.directory / f"{name}.pem"

    def key(self, name: str) -> Path:
        """The private key of a name."""
        return self.directory / f"{name}.key"


def issue(directory: Path) -> Certificates:
    """Make an authority, and certificates of a server and a client."""
    directory.mkdir()
    made = Certificates(directory)
    root_key, root_name = ec.generate_private_key(ec.SECP256R1()), _name("authority")
    root = _certificate(root_name, root_name, root_key, root_key, is_authority=True)
    made.authority.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    for name in ("server", "client"):
        key = ec.generate_private_key(ec.SECP256R1())
        issued = _certificate(_name(name), root_name, key, root_key)
        made.certificate(name).write_bytes(issued.public_bytes(serialization.Encoding.PEM))
        made.key(name).write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
    return made


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    is_authority: bool = False,
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
    )
    return builder.sign(issuer_key, hashes.SHA256())


class Wire:
    """A connection to a server that can be cut one way or both, without an end being notified.

    Args:
        port: The port of the server.
        context: Encrypts what clients see of it, or None.
    """

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        self._port = port
        self._context = context
        self._flows = {"up": asyncio.Event(), "down": asyncio.Event()}
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.let_through()

    def cut(self, *directions: str) -> None:
        """Hold what is sent in these directions: `up` is to the server."""
        for one in directions:
            self._flows[one].clear()

    def let_through(self) -> None:
        """Let everything through."""
        for flow in self._flows.values():
            flow.set()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[str]:
        """Forward connections; yields the address."""
        proxy = await asyncio.start_server(self._forward, "127.0.0.1", 0, ssl=self._context)
        try:
            yield f"127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        finally:
            proxy.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for writer in self._writers:
                writer.transport.abort()
            for writer in self._writers:
                with suppress(OSError):
                    await writer.wait_closed()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, outer]
        for flow, source, sink in (("up", reader, outer), ("down", inner, writer)):
            self._tasks.add(asyncio.create_task(self._pump(self._flows[flow], source, sink)))

    async def _pump(
        self, flow: asyncio.Event, source: asyncio.StreamReader, sink: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                await flow.wait()
                sink.write(data)
                await sink.drain()
        sink.close()


def encrypted(
    server: TemporalServer, made: Certificates, *, asks_client: bool = False
) -> AbstractAsyncContextManager[str]:
    """Accept encrypted connections for a server; yields the address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate("server"), made.key("server"))
    context.set_alpn_protocols(["h2"])
    if asks_client:
        context.load_verify_locations(made.authority)
        context.verify_mode = ssl.CERT_REQUIRED
    return Wire(server.port, context).opened()


@pytest.mark.spec("TEMPORAL-12")
async def test_runs_over_an_encrypted_connection_in_a_namespace(
    tmp_path: Path, server: TemporalServer
) -> None:
    made = issue(tmp_path / "certificates")
    async with encrypted(server, made) as address:
        options = TemporalOptions(
            address=address, namespace="team", server_ca=made.authority, api_key=API_KEY
        )
        async with temporal_world(tmp_path, server, options=options) as world, world.worker():
            assert world.client.namespace == "team"
            assert world.client.service_client.config.api_key == API_KEY
            world.write(one="type: agent\nmodel: passthrough\ninstruction: x\n")
            assert (await world.run("one", "hello")).message.text == "hello"
    assert API_KEY not in repr(options)


async def test_a_server_whose_certificate_is_of_another_authority_is_refused(
    tmp_path: Path, server: TemporalServer
) -> None:
    made, other = issue(tmp_path / "certificates"), issue(tmp_path / "other")
    store = open_parts(str(tmp_path / "parts"), None)
    async with encrypted(server, made) as address:
        known = TemporalOptions(address=address, server_ca=made.authority)
        await connect(known, store, None)
        for wrong in (
            replace(known, server_ca=other.authority),
            replace(known, server_ca=None, tls=True, api_key=API_KEY),
        ):
            with pytest.raises(ConfigError, match="cannot connect to Temporal") as caught:
                await connect(wrong, store, None)
            assert API_KEY not in f"{caught.value.message}{caught.value.hint}"
        with pytest.raises(ConfigError, match="cannot be read"):
            await connect(replace(known, server_ca=tmp_path / "none.pem"), store, None)


async def test_a_server_that_asks_for_a_certificate_takes_only_a_client_that_has_one(
    tmp_path: Path, server: TemporalServer
) -> None:
    made, other = issue(tmp_path / "certificates"), issue(tmp_path / "other")
    store = open_parts(str(tmp_path / "parts"), None)
    async with encrypted(server, made, asks_client=True) as address:
        options = TemporalOptions(
            address=address,
            server_ca=made.authority,
            client_certificate=made.certificate("client"),
            client_key=made.key("client"),
        )
        async with temporal_world(tmp_path, server, options=options) as world, world.worker():
            world.write(one="type: agent\nmodel: passthrough\ninstruction: x\n")
            assert (await world.run("one", "hello")).message.text == "hello"
        strangers = other.certificate("client"), other.key("client")
        for certificate, key in ((None, None), strangers):
            wrong = replace(options, client_certificate=certificate, client_key=key)
            with pytest.raises(ConfigError, match="cannot connect to Temporal"):
                await connect(wrong, store, None)


async def test_what_is_wrong_with_an_address_is_said_before_any_run(
    tmp_path: Path, server: TemporalServer
) -> None:
    store = open_parts(str(tmp_path / "parts"), None)
    known = TemporalOptions(address=server.address)
    for wrong, words in (
        (replace(known, namespace="nowhere"), "has no namespace `nowhere`"),
        (replace(known, tls=True), "the server does not speak TLS"),
        (replace(known, address=f"http://{server.address}"), "is a host and a port"),
        (replace(known, address=""), "is a host and a port, not ``"),
        (replace(known, address="host.invalid:1"), "host.invalid:1`: [a-z]"),
    ):
        with pytest.raises(ConfigError, match=words) as caught:
            await connect(wrong, store, None)
        assert "::" not in caught.value.message  # as in the types of the library


async def cut_off(directory: Path, server: TemporalServer, *directions: str) -> None:
    """Cut the worker of a step off, and have another one take the step over."""
    release = Event()
    replies = count(1)

    def reply(body: dict[str, Any]) -> Reply:
        del body
        number = next(replies)
        if number == 1:
            release.wait()
        return text_reply(f"answer {number}")

    wire, queue = Wire(server.port), f"cut-{'-'.join(directions)}"
    options = TemporalOptions(address=server.address, queue=queue)
    with ModelServer(reply) as models:
        cluster = ClusterWorld(directory, models.url, 1, server)
        config = directory / "fastagent.config.yaml"
        given = f"temporal: {{queue: {queue}, parts: '{directory}/parts', "
        config.write_text(config.read_text().replace("temporal: {", given))
        (directory / "config.yaml").symlink_to(config)
        (directory / "one.yaml").write_text("type: agent\nmodel: generic.m\ninstruction: x\n")
        async with (
            wire.opened() as address,
            temporal_world(directory, server, None, options) as world,
        ):
            given_to_first = ("--slots", "1", "--temporal-address", address)
            first = await asyncio.to_thread(cluster.start_worker, *given_to_first)
            try:
                run = await world.start("one", edition=await world.pin("one.yaml"))
                await until(lambda: models.asked)
                wire.cut(*directions)
                # It works on, but its heartbeats are lost, or what it is sent.
                async with world.worker():
                    answer = (await world.runs.result(run)).message.text
                assert answer.startswith("answer ")
                assert answer != "answer 1"
            finally:
                release.set()
                first.kill()
                first.communicate()


@pytest.mark.spec("TEMPORAL-15")
async def test_a_worker_cut_off_from_the_server_is_replaced(
    tmp_path: Path, server: TemporalServer
) -> None:
    # At the same time: each of them mostly waits.
    async with asyncio.TaskGroup() as group:
        for directions in (("up",), ("down",), ("up", "down")):
            directory = tmp_path / "-".join(directions)
            directory.mkdir()
            group.create_task(cut_off(directory, server, *directions))
