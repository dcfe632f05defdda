"""Which requests reach the application: `Host`, `Origin`, tokens, and pages that may call."""

from __future__ import annotations

import socket

import pytest

from fast_agent.errors import ConfigError
from fast_agent.serve.http_access import AccessPolicy, HttpSettings

TOKEN = "a-token-of-some-length"
BEARER = {"authorization": f"Bearer {TOKEN}"}
PAGE = "https://app.example.com"


def policy(host: str, **more: object) -> AccessPolicy:
    return AccessPolicy(HttpSettings(host=host, port=0, **more), 8000)  # pyright: ignore[reportArgumentType]


def status(access: AccessPolicy, method: str = "POST", **headers: str) -> int | None:
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    refusal = access.check(method, dict(given), given).refusal
    return None if refusal is None else refusal.status


LOOPBACK = ("127.0.0.1", "localhost", "::1", "127.0.0.2")
OPEN = ("0.0.0.0", "::", "192.168.1.5")


@pytest.mark.spec("TR-N3.1", "T-14")
@pytest.mark.parametrize("host", LOOPBACK)
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("127.0.0.1:8000", None),
        ("localhost:8000", None),
        ("LOCALHOST:8000", None),
        ("localhost.:8000", None),
        ("[::1]:8000", None),
        ("localhost", 421),
        ("localhost:8001", 421),
        ("10.0.0.1:8000", 421),
        ("evil.example:8000", 421),
        ("127.0.0.1.evil.example:8000", 421),
        ("localhost:8000@evil.example", 400),
        ("evil.example#localhost:8000", 400),
        ("http://localhost:8000", 400),
        ("localhost:99999999", 400),
        ("localhost:", 400),
        ("", 400),
    ],
)
def test_a_server_for_this_machine_has_this_machines_names(
    host: str, given: str, expected: int | None
) -> None:
    assert status(policy(host), host=given) == expected


@pytest.mark.spec("TR-N3.1")
@pytest.mark.parametrize("host", OPEN)
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("192.168.1.5:8000", None),
        ("10.1.2.3", None),
        ("[fe80::1]:9000", None),
        ("localhost:8000", None),
        (f"{socket.gethostname()}:8000", None),
        (f"{socket.gethostname()}.evil.example", 421),
        ("evil.example:8000", 421),
        ("1.2.3.4.evil.example", 421),
        ("[not an address]", 400),
    ],
)
def test_a_server_for_others_has_addresses_and_the_machines_name(
    host: str, given: str, expected: int | None
) -> None:
    assert status(policy(host, token=TOKEN), host=given, **BEARER) == expected


@pytest.mark.spec("TR-N3.1")
def test_a_name_is_accepted_where_it_is_allowed_and_the_refusal_says_how() -> None:
    for host in (*LOOPBACK, *OPEN):
        named = [(b"host", b"Agents.Example.com:444")]
        closed = policy(host).check("POST", dict(named), named)
        assert closed.refusal is not None
        assert closed.refusal.error == (
            "unknown `Host` `agents.example.com:444`;"
            " to accept it, serve with `--allow-host agents.example.com`"
        )
        allowed = policy(host, allow_hosts=("agents.EXAMPLE.com", "one.example:9000"))
        assert status(allowed, host="Agents.Example.com:444") is None
        assert status(allowed, host="agents.example.com") is None
        assert status(allowed, host="one.example:9000") is None
        assert status(allowed, host="one.example:9001") == 421
        assert status(allowed, host="x.agents.example.com") == 421


@pytest.mark.parametrize(("letters", "shown"), [(100, 100), (101, 100), (5_000, 100)])
def test_a_refusal_shows_the_beginning_of_a_long_name(letters: int, shown: int) -> None:
    given = [(b"host", b"x" * letters)]
    refusal = policy("127.0.0.1").check("POST", dict(given), given).refusal
    assert refusal is not None
    assert f"`{'x' * shown}`;" in str(refusal.error)


@pytest.mark.spec("TR-N3.1", "T-14")
@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000", None),
        ("127.0.0.1:8000", "http://localhost:8000", None),
        ("127.0.0.1:8000", "http://localhost:3000", 403),
        ("127.0.0.1:8000", "https://localhost:8000", 403),
        ("127.0.0.1:8000", "null", 403),
        ("127.0.0.1:8000", "", 403),
        ("127.0.0.1:8000", PAGE, 403),
        ("127.0.0.1:8000", "http://127.0.0.1:8000.evil.example", 403),
        ("127.0.0.1:8000", "file://", 403),
    ],
)
def test_pages_of_other_sites_are_refused_on_this_machine(
    host: str, origin: str, expected: int | None
) -> None:
    assert status(policy("127.0.0.1"), host=host, origin=origin) == expected


@pytest.mark.spec("TR-N3.1")
@pytest.mark.parametrize("bind", OPEN)
@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://192.168.1.5:8000", None),
        ("https://192.168.1.5:8000", None),
        ("http://192.168.1.6:8000", 403),
        ("http://localhost:8000", 403),
        ("null", 403),
        (PAGE, 403),
    ],
)
def test_pages_of_other_sites_are_refused_on_a_network(
    bind: str, origin: str, expected: int | None
) -> None:
    access = policy(bind, token=TOKEN)
    assert status(access, host="192.168.1.5:8000", origin=origin, **BEARER) == expected


@pytest.mark.spec("TR-N3.1")
def test_a_page_that_is_allowed_asks_first_and_may_read_the_answer() -> None:
    access = policy("127.0.0.1", token=TOKEN, allow_origins=(PAGE,))
    asks = [
        (b"host", b"localhost:8000"),
        (b"origin", PAGE.encode()),
        (b"access-control-request-method", b"POST"),
        (b"access-control-request-headers", b"authorization,mcp-protocol-version"),
    ]
    checked = access.check("OPTIONS", dict(asks), asks)
    assert checked.refusal is not None
    reported = dict([*checked.headers, *checked.refusal.headers])
    assert (checked.refusal.status, checked.refusal.error) == (204, None)
    assert reported[b"access-control-allow-origin"] == PAGE.encode()
    assert reported[b"access-control-allow-headers"] == b"authorization,mcp-protocol-version"
    assert b"DELETE" in reported[b"access-control-allow-methods"]
    calls = [*asks[:2], (b"authorization", f"Bearer {TOKEN}".encode())]
    called = access.check("POST", dict(calls), calls)
    assert called.refusal is None
    assert dict(called.headers)[b"access-control-expose-headers"].startswith(b"Mcp-Session-Id")
    # The page also reads why it was refused.
    refused = access.check("POST", dict(asks[:2]), asks[:2])
    assert refused.refusal is not None
    assert (refused.refusal.status, refused.headers) == (401, called.headers)
    assert status(access, "OPTIONS", host="localhost:8000", origin="https://x.example") == 403


@pytest.mark.spec("TR-N3.1")
@pytest.mark.parametrize(
    "name", ["host", "origin", "authorization", "transfer-encoding", "mcp-session-id"]
)
def test_two_of_a_header_that_decides_are_refused(name: str) -> None:
    given = {"host": "localhost:8000", "authorization": f"Bearer {TOKEN}", name: "x"}
    headers = [(one.encode(), value.encode()) for one, value in given.items()]
    for second in (b"x", b"localhost:8000"):
        sent = [*headers, (name.encode(), second)]
        refusal = policy("127.0.0.1").check("POST", dict(sent), sent).refusal
        assert refusal is not None
        assert (refusal.status, refusal.error) == (
            400,
            f"the request has more than one `{name}` header",
        )


def test_a_request_without_a_host_is_refused() -> None:
    assert status(policy("127.0.0.1")) == 400


@pytest.mark.parametrize("wrong", ["", "http://a.example", "a.example/x", "*", "a b", "a:b"])
def test_what_is_not_a_host_name_is_said_before_anything_listens(wrong: str) -> None:
    with pytest.raises(ConfigError, match="`--allow-host"):
        HttpSettings(allow_hosts=("a.example", wrong)).check()


@pytest.mark.parametrize("wrong", ["", "a.example", "https://a.example/", "*", "null", "https://"])
def test_what_is_not_an_origin_is_said_before_anything_listens(wrong: str) -> None:
    with pytest.raises(ConfigError, match="`--allow-origin"):
        HttpSettings(allow_origins=(PAGE, wrong)).check()


@pytest.mark.parametrize("wrong", ["", "*", "proxy.example", "10.0.0.1:80", "10.0.0.1/8", "10.0.0"])
def test_what_is_not_an_address_is_said_before_anything_listens(wrong: str) -> None:
    right = ("127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8")
    with pytest.raises(ConfigError, match="`--trusted-proxy"):
        HttpSettings(trusted_proxies=(*right, wrong)).check()
