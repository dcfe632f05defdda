from __future__ import annotations

from fast_agent.config.providers import PROVIDERS
from fast_agent.tools.shell_environment import shell_environment


def test_secrets_are_left_out_by_name_and_by_value() -> None:
    environ = {
        "GH_PAT": "x",
        "DB_PASS": "x",
        "DATABASE_URL": "x",
        "CACHE": "redis://:hunter2@cache:6379",
        "PLAIN": "x",
        "PATH": "/bin",
    }
    assert shell_environment(environ) == {"PLAIN": "x", "PATH": "/bin"}


def test_what_is_given_stays() -> None:
    environ = {"GH_PAT": "x", "GL_PAT": "y"}
    assert shell_environment(environ, given=["GH_PAT"]) == {"GH_PAT": "x"}


def test_the_keys_of_every_known_provider_are_left_out() -> None:
    names = [name for provider in PROVIDERS.values() for name in provider.key_variables]
    assert len(names) > 5
    assert shell_environment(dict.fromkeys(names, "x")) == {}
