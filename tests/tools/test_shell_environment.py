from __future__ import annotations

import pytest

from fast_agent.config.providers import PROVIDERS
from fast_agent.tools.shell_environment import shell_environment


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "openai_api_key",
        "ANTHROPIC__API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "GITHUB_TOKEN",
        "TOKEN",
        "CLIENT_SECRET",
        "DJANGO_SECRET_KEY",
        "OPENAI_API_KEY_2",
        "PGPASSWORD",
        "DB_PASSWD",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "MCP__HEADERS__AUTHORIZATION",
    ],
)
def test_secrets_are_left_out(name: str) -> None:
    assert shell_environment({name: "x", "PATH": "/bin"}) == {"PATH": "/bin"}


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "TOKENIZERS_PARALLELISM", "MAX_TOKENS", "KEYBOARD", "SSH_AUTH_SOCK"]
)
def test_everything_else_stays(name: str) -> None:
    assert shell_environment({name: "x"}) == {name: "x"}


def test_the_keys_of_every_known_provider_are_left_out() -> None:
    names = [name for provider in PROVIDERS.values() for name in provider.key_variables]
    assert len(names) > 5
    assert shell_environment(dict.fromkeys(names, "x")) == {}


def test_named_variables_are_left_out_too() -> None:
    assert shell_environment({"HF_THING": "x", "A": "b"}, ["hf_thing"]) == {"A": "b"}
