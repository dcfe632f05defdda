from __future__ import annotations

from pathlib import Path

import pytest

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.config.settings import NO_SETTINGS, Settings
from fast_agent.models.selection import Selection, select_model

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
    assert fallback == Selection("local", "fallback", CWD)
    notice = fallback.notice or ""
    assert "\n" not in notice
    for way in ("--model", "default_model", "FAST_AGENT_MODEL"):
        assert way in notice
    assert select_model(None, SETTINGS, {}, cwd=CWD).notice is None
    assert select_model(None, NO_SETTINGS, {}, cwd=CWD, flag="local").notice is None
