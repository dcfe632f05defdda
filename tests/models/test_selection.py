from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.config.providers import PROVIDERS, Provider
from fast_agent.config.settings import NO_SETTINGS, ProviderSettings, Settings
from fast_agent.models.check import FALLBACK_NOTICE, Selection, select_model
from fast_agent.models.spec import parse_model_spec

if TYPE_CHECKING:
    from collections.abc import Sequence

CWD = Path("/srv/here")
CARD = AgentConfig(name="a", model="card-model", source=Path("/cards/a.md"))
SETTINGS = Settings(default_model="config-model")
ENVIRON = {"FAST_AGENT_MODEL": " env-model "}


@pytest.mark.spec("CARD-65", "CARD-66", "PREC-1")
def test_the_strongest_wish_wins() -> None:
    def chosen(flag: str | None, card: AgentConfig | None, settings: Settings, **env: str) -> str:
        return select_model(card, settings, env, cwd=CWD, flag=flag).text

    plain = AgentConfig(name="a")
    assert chosen("flag", CARD, SETTINGS, **ENVIRON) == "flag"
    assert chosen(None, CARD, SETTINGS, **ENVIRON) == "card-model"
    assert chosen(None, plain, SETTINGS, **ENVIRON) == "config-model"
    assert chosen(None, None, SETTINGS, **ENVIRON) == "config-model"
    assert chosen(None, plain, NO_SETTINGS, **ENVIRON) == "env-model"
    assert chosen(None, plain, NO_SETTINGS, FAST_AGENT_MODEL=" ") == "local"


def test_files_start_at_the_card_or_the_working_directory() -> None:
    def directory(card: AgentConfig, flag: str | None = None) -> Path | None:
        return select_model(card, SETTINGS, {}, cwd=CWD, flag=flag).directory

    assert directory(CARD) == Path("/cards")
    assert directory(CARD, "flag") == CWD
    assert directory(AgentConfig(name="a", model="m")) == CWD, "an agent made in Python"
    remote = AgentConfig(name="a", model="m", remote="https://example.org/a.md")
    assert directory(remote) is None
    assert directory(remote, "flag") == CWD


@pytest.mark.spec("MODEL-12")
def test_only_the_fallback_is_announced_in_one_line() -> None:
    fallback = select_model(None, NO_SETTINGS, {}, cwd=CWD)
    assert fallback == Selection("local", "fallback", CWD, FALLBACK_NOTICE)
    notice = fallback.notice or ""
    assert "\n" not in notice
    for way in ("--model", "default_model", "FAST_AGENT_MODEL"):
        assert way in notice
    assert select_model(None, SETTINGS, {}, cwd=CWD).notice is None
    assert select_model(None, NO_SETTINGS, {}, cwd=CWD, flag="local").notice is None


@pytest.mark.parametrize(
    ("env", "settings", "text", "message"),
    [
        ({"ANTHROPIC_API_KEY": "k"}, {}, "sonnet", "`ANTHROPIC_API_KEY`"),
        ({"OPENAI_API_KEY": "k"}, {}, "gpt", "`OPENAI_API_KEY`"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, {}, "sonnet", "Anthropic"),
        ({"OPENAI_API_KEY": ""}, {}, "local", "no model is configured"),
        ({}, {"openai": ProviderSettings(api_key="k")}, "gpt", "`openai.api_key`"),
        ({"GENERIC_API_KEY": "k"}, {}, "local", "no model is configured"),
        ({"FAST_AGENT_MODEL": "haiku", "OPENAI_API_KEY": "k"}, {}, "haiku", None),
    ],
)
def test_a_key_in_reach_lets_its_provider_answer(
    env: dict[str, str], settings: dict[str, ProviderSettings], text: str, message: str | None
) -> None:
    chosen = select_model(None, Settings(providers=settings), env, cwd=CWD)
    assert chosen.text == text
    if message is None:
        assert chosen.notice is None
    else:
        assert message in (chosen.notice or "")
        assert "\n" not in (chosen.notice or "")


def test_a_key_whose_package_is_missing_does_not_stop_the_local_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(_modules: Sequence[str]) -> bool:
        return False

    monkeypatch.setattr("fast_agent.models.check.installed", absent)
    chosen = select_model(None, NO_SETTINGS, {"OPENAI_API_KEY": "k"}, cwd=CWD)
    assert (chosen.text, chosen.source) == ("local", "fallback")
    assert "pip install 'fast-agent[openai]'" in (chosen.notice or "")


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=lambda one: one.name)
def test_default_models_are_those_of_their_provider(provider: Provider) -> None:
    if provider.default_model is not None:
        assert parse_model_spec(provider.default_model, {}).provider == provider.name
