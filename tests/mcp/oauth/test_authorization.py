"""Authorizing this program at servers, and what happens to tokens later."""

from __future__ import annotations

import json
import logging
import stat
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from tests.mcp.authorized import Server, browse

from fast_agent.config.settings import OAuthSettings
from fast_agent.errors import ConfigError, FastAgentError, ToolError, TrustError
from fast_agent.mcp.client_side import ClientSide
from fast_agent.mcp.oauth.authorization import Authorization, Authorizations
from fast_agent.mcp.oauth.login import LoginOptions, log_in, revoke
from fast_agent.mcp.pool import ServerPool, need
from fast_agent.mcp.server import HttpTarget, ServerSpec
from fast_agent.messages.message import ToolCall
from fast_agent.tools.toolbox import ServerFilter
from fast_agent.trust.effect import Effect, Holder
from fast_agent.trust.grant import Grant, origin_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fast_agent.cards.grant import CardGrant

pytestmark = pytest.mark.anyio


@pytest.fixture(name="server")
def _server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture(name="kept")
def _kept(tmp_path: Path) -> Authorizations:
    return Authorizations(tmp_path / "home", keyring=lambda: None)


def spec_of(server: Server, **oauth: Any) -> ServerSpec:
    target = HttpTarget(url=server.url, oauth=OAuthSettings(**oauth))
    return ServerSpec(name="docs", target=target, protocol="legacy", declared="mcp.servers.docs")


async def shown(address: str) -> None:
    del address


async def login(
    server: Server, kept: Authorizations, *, scope: str | None = None, **oauth: Any
) -> Authorization:
    options = LoginOptions(show=shown, browse=browse, seconds=20, scope=scope)
    return await log_in(spec_of(server, **oauth), kept, options)


async def whoami(
    server: Server, kept: Authorizations | None, context: Callable[..., Any], **oauth: Any
) -> str:
    offered = ClientSide(authorizations=kept)
    async with ServerPool([spec_of(server, **oauth)], offered=offered) as pool:
        await need(pool.connections(["docs"]), "writer")
        toolset = pool.toolset("docs", ServerFilter())
        result = await toolset.call_tool("whoami", ToolCall("1", "whoami", {}), context())
        return "".join(getattr(block, "text", "") for block in result.content)


@pytest.mark.spec("OAUTH-1", "OAUTH-2")
async def test_a_user_authorizes_once_and_calls_carry_the_token(
    server: Server, kept: Authorizations, make_context: Any
) -> None:
    granted = await login(server, kept)
    assert server.paths[:4] == [
        "/mcp",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/register",
    ]
    assert granted.issuer.rstrip("/") == server.root
    assert granted.resource == server.url
    assert await whoami(server, kept, make_context) == "you are a friend"
    # Another process reads what this one kept.
    again = Authorizations(kept.path.parent, keyring=lambda: None)
    assert await whoami(server, again, make_context) == "you are a friend"
    assert len(server.grants) == 1


@pytest.mark.spec("OAUTH-3")
async def test_tokens_are_for_their_owner_alone(server: Server, kept: Authorizations) -> None:
    granted = await login(server, kept)
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o600
    assert all(secret not in repr(granted) for secret in granted.secrets)
    kept.path.chmod(0o644)
    with pytest.raises(ConfigError, match="can be read by others") as raised:
        kept.get(server.url)
    assert raised.value.hint == f"`chmod 600 {kept.path}`"
    kept.path.chmod(0o600)
    kept.path.write_text("{")
    with pytest.raises(ConfigError, match="is damaged"):
        kept.get(server.url)
    kept.path.unlink()
    kept.path.symlink_to(kept.path.with_name("other"))
    with pytest.raises(ConfigError, match="cannot be read"):
        kept.get(server.url)


@pytest.mark.spec("OAUTH-2")
async def test_a_browser_opens_only_after_the_address_was_shown(
    server: Server, kept: Authorizations
) -> None:
    happened: list[str] = []

    async def show(address: str) -> None:
        happened.append(f"shown {urlsplit(address).path}")

    async def open_it(address: str) -> bool:
        happened.append(f"opened {urlsplit(address).path}")
        return await browse(address)

    options = LoginOptions(show=show, browse=open_it, seconds=20)
    await log_in(spec_of(server), kept, options)
    assert happened == ["shown /authorize", "opened /authorize"]


@pytest.mark.spec("OAUTH-2")
async def test_only_the_answer_to_this_request_counts(server: Server, kept: Authorizations) -> None:
    async def meddled(address: str) -> bool:
        back = parse_qs(urlsplit(address).query)["redirect_uri"][0]
        async with httpx2.AsyncClient(trust_env=False) as page:
            wrong = await page.get(f"{back}?code=evil&state=guessed")
            assert wrong.status_code == 400
            assert (await page.get(back.replace("/callback", "/other"))).status_code == 404
            assert (await page.post(f"{back}?code=evil")).status_code == 404
        return await browse(address)

    options = LoginOptions(show=shown, browse=meddled, seconds=20)
    await log_in(spec_of(server), kept, options)
    assert len(server.grants) == 1


async def test_without_a_browser_the_shown_address_does(
    server: Server, kept: Authorizations
) -> None:
    async with anyio.create_task_group() as tasks:

        async def show(address: str) -> None:
            tasks.start_soon(browse, address)

        await log_in(spec_of(server), kept, LoginOptions(show=show, seconds=20))
    assert kept.get(server.url) is not None


@pytest.mark.spec("OAUTH-4")
async def test_a_token_is_renewed_before_and_after_it_expires(
    server: Server, kept: Authorizations, make_context: Any
) -> None:
    first = await login(server, kept)
    server.expire()  # the server refuses it, though it says that it lives an hour
    assert await whoami(server, kept, make_context) == "you are a friend"
    second = kept.get(server.url)
    assert second is not None
    assert second.access_token != first.access_token
    assert second.refresh_token != first.refresh_token
    now = kept.now()
    kept.now = lambda: now + 3590
    server.heard.clear()
    assert await whoami(server, kept, make_context) == "you are a friend"
    assert server.paths[0] == "/token"  # before a request was refused
    assert all(form.get("resource") == server.url for *_, form in server.heard if form)


@pytest.mark.spec("OAUTH-3", "OAUTH-6")
async def test_no_log_has_a_token(
    server: Server, kept: Authorizations, make_context: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """From a login over a renewal to a revoked authorization, with every logger open."""
    caplog.set_level(logging.DEBUG)
    granted = await login(server, kept)
    server.expire()
    assert await whoami(server, kept, make_context) == "you are a friend"
    renewed = kept.get(server.url)
    assert renewed is not None
    server.revoke()
    with pytest.raises(ToolError, match="was revoked"):
        await whoami(server, kept, make_context)
    forms = [form for *_, form in server.heard]
    keys = ("code", "code_verifier", "refresh_token", "client_secret")
    sent = {form[key] for form in forms for key in keys if form.get(key)}
    secrets = {*granted.secrets, *renewed.secrets, *sent}
    assert len(secrets) > 4
    written = caplog.text + "".join(repr(record.__dict__) for record in caplog.records)
    assert "/token" in written  # requests are logged, so that silence proves something
    assert not any(secret in written for secret in secrets)


@pytest.mark.spec("OAUTH-4")
async def test_of_many_refused_requests_one_renews(
    server: Server, kept: Authorizations, make_context: Any
) -> None:
    await login(server, kept)
    other = Authorizations(kept.path.parent, keyring=lambda: None)
    server.expire()
    server.heard.clear()
    answers: list[str] = []

    async def ask(known: Authorizations) -> None:
        answers.append(await whoami(server, known, make_context))

    async with anyio.create_task_group() as tasks:
        for known in (kept, other, kept, other):
            tasks.start_soon(ask, known)
    assert answers == ["you are a friend"] * 4
    assert server.paths.count("/token") == 1


@pytest.mark.spec("OAUTH-5")
async def test_a_revoked_authorization_says_what_to_do(
    server: Server, kept: Authorizations, make_context: Any
) -> None:
    await login(server, kept)
    server.revoke()
    with pytest.raises(ToolError) as raised:
        await whoami(server, kept, make_context)
    assert "server `docs`: the authorization expired or was revoked" in raised.value.message
    assert raised.value.hint == "`fast-agent auth login docs` authorizes again"
    assert kept.get(server.url) is None


async def test_a_renewal_that_fails_for_now_keeps_the_authorization(
    server: Server, kept: Authorizations, make_context: Any
) -> None:
    await login(server, kept)
    server.expire()
    server.answers["/token"] = (503, {}, "")
    with pytest.raises(ToolError, match="cannot be renewed: HTTP 503"):
        await whoami(server, kept, make_context)
    del server.answers["/token"]
    assert await whoami(server, kept, make_context) == "you are a friend"


@pytest.mark.spec("OAUTH-5")
async def test_a_call_that_is_refused_in_mid_session_says_so(
    server: Server, kept: Authorizations, make_context: Any
) -> None:
    await login(server, kept)
    offered = ClientSide(authorizations=kept)
    async with ServerPool([spec_of(server)], offered=offered) as pool:
        await need(pool.connections(["docs"]), "writer")
        toolset = pool.toolset("docs", ServerFilter())
        server.needs_scope = "admin"
        with pytest.raises(ToolError, match="requires more authorization") as raised:
            await toolset.tools()
        assert raised.value.hint == "`fast-agent auth login docs --scope admin` asks for it"
        await login(server, kept, scope="read admin")
        assert server.grants[-1].scope == "read admin"
        assert [tool.spec.name for tool in await toolset.tools()] == ["docs__whoami"]


async def test_without_an_authorization_the_hint_names_the_command(
    server: Server, kept: Authorizations, make_context: Any
) -> None:
    with pytest.raises(ToolError) as raised:
        await whoami(server, kept, make_context)
    assert "server `docs` requires authorization" in raised.value.message
    assert "`fast-agent auth login docs`" in (raised.value.hint or "")


@pytest.mark.spec("OAUTH-3")
async def test_tokens_that_a_server_repeats_are_hidden(
    server: Server, kept: Authorizations, make_context: Any
) -> None:
    await login(server, kept)
    server.repeats_token = True
    assert await whoami(server, kept, make_context) == "you are Bearer <<secret>>"


async def test_headers_of_the_settings_come_first(
    server: Server, kept: Authorizations, make_context: Any
) -> None:
    granted = await login(server, kept)
    (token,) = server.grants[0].access
    kept.put(replace(granted, access_token="stale", refresh_token=None))
    spec = spec_of(server)
    assert isinstance(spec.target, HttpTarget)
    spec = replace(spec, target=replace(spec.target, headers={"Authorization": f"Bearer {token}"}))
    async with ServerPool([spec], offered=ClientSide(authorizations=kept)) as pool:
        await need(pool.connections(["docs"]), "writer")


LIES: dict[str, tuple[Callable[[Server], None], str]] = {
    "another issuer": (
        lambda one: one.metadata.update(issuer="https://evil.example.com"),
        "issuer mismatch",
    ),
    "another resource": (
        lambda one: one.resource.update(resource="https://evil.example.com/mcp"),
        "does not match expected",
    ),
    "no PKCE": (
        lambda one: one.metadata.update(code_challenge_methods_supported=["plain"]),
        "does not say that it supports PKCE",
    ),
    "a redirected token": (
        lambda one: one.answers.update(
            {"/token": (307, {"location": "http://127.0.0.1:9/token"}, "")}
        ),
        "the authorization server refused the token: HTTP 307",
    ),
    "a redirected registration": (
        lambda one: one.answers.update(
            {"/register": (307, {"location": "http://127.0.0.1:9/register"}, "")}
        ),
        "not followed",
    ),
    "no token": (lambda one: one.answers.update({"/token": (200, {}, "{}")}), "token"),
    "garbage for metadata": (
        lambda one: one.answers.update(
            {"/.well-known/oauth-authorization-server": (200, {}, "<html>")}
        ),
        "publishes no metadata that can be read",
    ),
    "a failing registration": (
        lambda one: one.answers.update({"/register": (500, {}, "no")}),
        "Registration failed: 500",
    ),
    "a page that is none": (
        lambda one: one.metadata.update(authorization_endpoint="http://a:b@127.0.0.1/authorize"),
        "not one of a web page",
    ),
}


@pytest.mark.spec("OAUTH-6")
@pytest.mark.parametrize("lie", LIES)
async def test_an_authorization_server_that_lies_gets_nothing(
    server: Server, kept: Authorizations, lie: str, caplog: pytest.LogCaptureFixture
) -> None:
    change, said = LIES[lie]
    change(server)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ToolError, match=said):
        await login(server, kept)
    assert kept.all() == ()
    codes = [form["code"] for *_, form in server.heard if "code" in form]
    verifiers = [form["code_verifier"] for *_, form in server.heard if "code_verifier" in form]
    assert not any(secret in caplog.text for secret in (*codes, *verifiers))


@pytest.mark.spec("OAUTH-6")
async def test_a_public_server_cannot_name_a_private_place(kept: Authorizations) -> None:
    from fast_agent.mcp.oauth.login import _Addresses

    target = HttpTarget(url="https://mcp.example.com/mcp")
    addresses = _Addresses(ServerSpec(name="docs", target=target), target, is_local=False)
    addresses.check("https://mcp.example.com/other")
    addresses.check("https://auth.example.com/token")
    for url, said in (
        ("http://auth.example.com/token", "not encrypted"),
        ("https://127.0.0.1/token", "not public"),
        ("https://169.254.169.254/latest", "not public"),
        ("https://router.local/", "not public"),
    ):
        with pytest.raises(ToolError, match=said):
            addresses.check(url)


@pytest.mark.spec("OAUTH-6")
async def test_the_settings_may_name_the_authorization_server(
    server: Server, kept: Authorizations
) -> None:
    with pytest.raises(ToolError, match="and its settings name"):
        await login(server, kept, issuer="https://auth.example.com/")
    assert server.codes == {}
    server.clients.clear()
    await login(server, kept, issuer=server.root, client_id="me", client_secret="s3cret-value")
    assert server.clients == {}
    assert server.grants[0].client == "me"
    sent = [form["client_secret"] for *_, form in server.heard if "client_secret" in form]
    assert sent == ["s3cret-value"]


async def test_a_refusal_of_the_user_is_reported(server: Server, kept: Authorizations) -> None:
    async def refuse(address: str) -> bool:
        asked = {name: one[0] for name, one in parse_qs(urlsplit(address).query).items()}
        back = f"{asked['redirect_uri']}?error=access_denied&state={asked['state']}"
        return await browse(back)

    options = LoginOptions(show=shown, browse=refuse, seconds=20)
    with pytest.raises(ToolError, match="the authorization was refused: access_denied"):
        await log_in(spec_of(server), kept, options)


async def test_a_user_who_never_answers_ends_the_login(
    server: Server, kept: Authorizations
) -> None:
    options = LoginOptions(show=shown, seconds=0.2)
    with pytest.raises(ToolError, match=r"no authorization came within 0.2 s"):
        await log_in(spec_of(server), kept, options)


async def test_revoking_ends_the_grant_at_its_server(server: Server, kept: Authorizations) -> None:
    granted = await login(server, kept)
    assert await revoke(granted, "docs")
    assert server.grants == []
    assert kept.remove(server.url)
    assert not kept.remove(server.url)
    assert json.loads(kept.path.read_text())["servers"] == {}


def project(path: Path, *urls: str) -> CardGrant:
    """What a project may do that was approved to connect to some addresses."""
    effects = [
        Effect("connect", url, Holder("server", "docs"), "c.yaml", terms=origin_of(url))
        for url in urls
    ]
    return Grant(path, frozenset(effects))


@pytest.mark.spec("OAUTH-7")
async def test_a_project_opens_nothing_that_was_not_approved(
    server: Server, kept: Authorizations, tmp_path: Path
) -> None:
    grant = project(tmp_path)
    with pytest.raises(TrustError, match="was not approved"):
        await log_in(replace(spec_of(server), grant=grant), kept, LoginOptions(show=shown))
    assert server.heard == []
    # Approved to connect to the server, but not to the authorization server it names.
    server.resource["authorization_servers"] = [server.root.replace("127.0.0.1", "localhost")]
    grant = project(tmp_path, server.root)
    with pytest.raises(FastAgentError) as raised:
        await log_in(replace(spec_of(server), grant=grant), kept, LoginOptions(show=shown))
    assert "oauth: {issuer: ADDRESS}" in (raised.value.hint or "")


@pytest.mark.spec("OAUTH-7")
@pytest.mark.parametrize("enabled", [None, True])
async def test_a_project_uses_no_token_unless_that_is_approved(
    server: Server, kept: Authorizations, tmp_path: Path, *, enabled: bool | None
) -> None:
    await login(server, kept)
    server.heard.clear()
    spec = replace(spec_of(server, enabled=enabled), grant=project(tmp_path, server.root))
    async with ServerPool([spec], offered=ClientSide(authorizations=kept)) as pool:
        if enabled:
            await need(pool.connections(["docs"]), "writer")
        else:
            with pytest.raises(ToolError) as raised:
                await need(pool.connections(["docs"]), "writer")
            assert "write `oauth: true` for the server" in (raised.value.hint or "")
    tokens = [headers.get("authorization") for _, _, headers, _ in server.heard]
    assert any(tokens) == bool(enabled)


class MemoryKeyring:
    """A keyring that can be locked."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service_name: str, username: str) -> str | None:
        if self.is_locked:
            raise RuntimeError("the collection is locked: s3cret")
        return self.held.get((service_name, username))

    def set_password(self, service_name: str, username: str, password: str) -> None:
        self.held[service_name, username] = password

    def delete_password(self, service_name: str, username: str) -> None:
        del self.held[service_name, username]


@pytest.mark.spec("OAUTH-3")
async def test_a_keyring_holds_the_secrets(
    server: Server, tmp_path: Path, make_context: Any
) -> None:
    keyring = MemoryKeyring()
    kept = Authorizations(tmp_path / "home", keyring=lambda: keyring)
    granted = await login(server, kept)
    assert granted.place == "keyring"
    assert not any(secret in kept.path.read_text() for secret in granted.secrets)
    again = Authorizations(tmp_path / "home", keyring=lambda: keyring)
    assert await whoami(server, again, make_context) == "you are a friend"
    server.expire()
    assert await whoami(server, kept, make_context) == "you are a friend"
    assert server.grants[0].refresh in next(iter(keyring.held.values()))
    keyring.is_locked = True
    locked = Authorizations(tmp_path / "home", keyring=lambda: keyring)
    with pytest.raises(ConfigError) as raised:
        locked.get(server.url)
    assert str(raised.value) == "the keyring cannot be used: RuntimeError"
    assert "unlock it" in (raised.value.hint or "")
    with pytest.raises(ToolError, match="the keyring cannot be used"):
        await whoami(server, locked, make_context)
    assert kept.remove(server.url)
    assert keyring.held == {}


def test_the_package_is_used_where_it_has_a_backend(tmp_path: Path) -> None:
    keyring = pytest.importorskip("keyring", reason="an extra")
    backend = pytest.importorskip("keyring.backend")

    class Kept(backend.KeyringBackend):
        priority = 5
        held: ClassVar[dict[str, str]] = {}

        def get_password(self, service: str, username: str) -> str | None:
            return self.held.get(f"{service}/{username}")

        def set_password(self, service: str, username: str, password: str) -> None:
            self.held[f"{service}/{username}"] = password

        def delete_password(self, service: str, username: str) -> None:
            del self.held[f"{service}/{username}"]

    before = keyring.get_keyring()
    try:
        keyring.set_keyring(Kept())
        kept = Authorizations(tmp_path)
        assert kept.default_place() == "keyring"
        one = Authorization(
            server="https://a.com/mcp", issuer="https://a.com", token_endpoint="https://a.com/t",
            client_id="me", access_token="tok-1", place="keyring",
        )  # fmt: skip
        kept.put(one)
        assert Authorizations(tmp_path).get("https://A.com/mcp#x") == one
        keyring.set_keyring(pytest.importorskip("keyring.backends.fail").Keyring())
        assert kept.default_place() == "file"
        with pytest.raises(ConfigError, match="there is no usable keyring"):
            Authorizations(tmp_path).get("https://a.com/mcp")
    finally:
        keyring.set_keyring(before)
