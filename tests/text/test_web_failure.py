"""Which proxy is asked for which address, and why the web is not reached."""

from __future__ import annotations

import errno

import pytest

from fast_agent.text.web_failure import proxy_of, system_reason, through_proxy, web_hint


@pytest.mark.parametrize(
    ("variables", "url", "proxy"),
    [
        ({}, "https://api.example/v1", None),
        ({"https_proxy": "http://p:1"}, "https://api.example/v1", "http://p:1"),
        ({"https_proxy": "http://p:1"}, "http://api.example/v1", None),
        ({"http_proxy": "p:1"}, "http://api.example:8080/v1", "http://p:1"),
        ({"all_proxy": "socks5h://p:1"}, "https://api.example", "socks5h://p:1"),
        (
            {"all_proxy": "http://p:1", "https_proxy": "http://q:2"},
            "https://x.example",
            "http://q:2",
        ),
        ({"https_proxy": "http://p:1", "no_proxy": "api.example"}, "https://api.example/v1", None),
        ({"https_proxy": "http://p:1", "no_proxy": ".example"}, "https://me:x@api.example", None),
        ({"https_proxy": "http://p:1", "no_proxy": "*"}, "https://api.example/v1", None),
        (
            {"https_proxy": "http://p:1", "no_proxy": "other.example"},
            "https://a.example",
            "http://p:1",
        ),
        ({"http_proxy": "http://p:1"}, "http://localhost:11434/v1", None),
        ({"http_proxy": "http://p:1"}, "http://[::1]:11434/v1", None),
        ({"all_proxy": "http://p:1"}, "http://127.0.0.1/v1", None),
        ({"http_proxy": "http://p:1"}, "http://[x/", None),
        ({"https_proxy": ""}, "https://api.example/v1", None),
        ({"http_proxy": "http://p:1"}, "", None),
    ],
)
def test_a_proxy_is_that_of_the_environment(
    variables: dict[str, str], url: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_of(url) == proxy


def test_a_proxy_is_shown_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://ann:p@ss@proxy.example:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert through_proxy("https://api.example") == " through the proxy `http://proxy.example:3128`"


def test_the_reason_is_that_of_the_system_nearest_to_the_network() -> None:
    outer = RuntimeError("All connection attempts failed")
    outer.__cause__ = OSError("all failed")
    outer.__cause__.__context__ = ConnectionRefusedError(errno.ECONNREFUSED, "connect call")
    assert system_reason(outer) == "connection refused"
    assert system_reason(RuntimeError("no such thing")) is None


@pytest.mark.parametrize(
    ("reason", "proxy", "hint"),
    [
        ("its certificate is not trusted: expired", "http://p:1", "set `SSL_CERT_FILE` to"),
        ("connection refused", "http://p:1", "check the proxy in"),
        ("connection refused", "", "start it"),
    ],
)
def test_the_hint_is_for_what_is_in_the_way(
    reason: str, proxy: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.delenv("all_proxy", raising=False)
    monkeypatch.delenv("ALL_PROXY", raising=False)
    assert web_hint(reason, "https://api.example", "start it").startswith(hint)
