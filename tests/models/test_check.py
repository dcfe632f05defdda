from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.card import Card
from fast_agent.config.load import load_settings
from fast_agent.config.settings import NO_SETTINGS, LocalSettings, ProviderSettings, Settings
from fast_agent.models import check
from fast_agent.models.check import (
    Selection,
    check_aliases,
    check_model,
    check_selection,
    check_settings,
    endpoint_of,
    model_probe,
)
from fast_agent.models.spec import parse_model_spec

KEYS = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GOOGLE_API_KEY": "k"}


def codes(text: str, **environ: str) -> list[str]:
    return [one.code for one in check_model(text, NO_SETTINGS, environ)]


@pytest.mark.parametrize("text", ["gpt-5", "sonnet", "gemini", "passthrough", "slow?seconds=1"])
def test_what_has_all_it_needs_is_right(text: str) -> None:
    assert codes(text, **KEYS) == []


@pytest.mark.spec("MODEL-3")
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpt-5", ["`OPENAI_API_KEY`", "`openai.api_key`"]),
        ("sonnet", ["`ANTHROPIC_API_KEY`", "`anthropic.api_key`"]),
        ("gemini", ["`GOOGLE_API_KEY`", "`GEMINI_API_KEY`", "`google.api_key`"]),
        ("openrouter.x/y", ["`OPENROUTER_API_KEY`", "`openrouter.api_key`"]),
    ],
)
def test_a_missing_key_names_the_variable_and_the_setting(text: str, names: list[str]) -> None:
    (problem,) = check_model(text, NO_SETTINGS, {})
    assert (problem.code, problem.path) == ("FA506", "")
    for name in names:
        assert name in (problem.hint or "")


def test_a_key_may_come_from_the_card_the_configuration_or_the_environment() -> None:
    settings = Settings(
        providers=MappingProxyType({"openai": ProviderSettings(api_key="configured")})
    )
    spec = check.endpoint_of
    from fast_agent.models.spec import parse_model_spec

    gpt = parse_model_spec("gpt-5")
    environ = {"OPENAI_API_KEY": "environment", "OPENAI_BASE_URL": "http://e/"}
    assert spec(gpt, settings, environ, "card").api_key == "card"
    assert spec(gpt, settings, environ).api_key == "configured"
    assert spec(gpt, NO_SETTINGS, environ).api_key == "environment"
    assert spec(gpt, NO_SETTINGS, environ).base_url == "http://e/"
    assert spec(gpt, NO_SETTINGS, {"OPENAI_API_KEY": ""}).api_key is None
    gemini = parse_model_spec("gemini")
    assert spec(gemini, NO_SETTINGS, {"GEMINI_API_KEY": "old"}).api_key == "old"


def test_a_missing_address_is_named() -> None:
    (problem,) = check_model("azure.gpt-5", NO_SETTINGS, {"AZURE_OPENAI_API_KEY": "k"})
    assert problem.code == "FA507"
    assert "`AZURE_OPENAI_ENDPOINT`" in (problem.hint or "")
    assert "`azure.base_url`" in (problem.hint or "")


@pytest.mark.spec("MODEL-18")
def test_generic_has_the_local_address_and_needs_no_key() -> None:
    assert codes("generic.qwen3") == []
    endpoint = endpoint_of(parse_model_spec("generic.qwen3"), NO_SETTINGS, {})
    assert (endpoint.base_url, endpoint.api_key) == ("http://localhost:11434/v1", None)


@pytest.mark.parametrize(
    ("text", "install"),
    [
        ("gpt-5", "pip install 'fast-agent[openai]'"),
        ("sonnet", "pip install 'fast-agent[anthropic]'"),
        ("local", "pip install 'fast-agent[local]'"),
    ],
)
def test_a_missing_package_names_what_to_install(
    text: str, install: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(name: str) -> object:
        return None if name in {"openai", "anthropic", "xllamacpp"} else object()

    monkeypatch.setattr(check, "find_spec", found)
    monkeypatch.setattr(check, "_INSTALLED", set[str]())
    weights = tmp_path / "w.gguf"
    weights.write_bytes(b"GGUF")
    settings = Settings(local=LocalSettings(path=weights))
    (problem,) = check_model(text, settings, KEYS)
    assert problem.code == "FA508"
    assert install in (problem.hint or "")


def test_a_package_in_a_namespace_that_is_not_there_is_missing() -> None:
    assert check.installed(("json", "email.message"))
    assert not check.installed(("no_such_namespace.inner",))
    assert not check.installed(("json.no_such_module",))


def test_missing_weights_say_how_to_get_them(tmp_path: Path) -> None:
    environ = {"FAST_AGENT_HOME": str(tmp_path)}
    problems = check_model("local", NO_SETTINGS, environ)
    missing = next(one for one in problems if one.code == "FA509")
    assert "fast-agent models pull smollm2" in (missing.hint or "")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "smollm2.gguf").write_bytes(b"GGUF")
    assert "FA509" not in codes("local", **environ)
    assert "FA509" not in codes("smollm2", **environ)
    assert "FA509" in codes("local.other", **environ)


def test_weights_named_in_the_configuration_or_the_spec(tmp_path: Path) -> None:
    weights = tmp_path / "q.gguf"
    environ = {"FAST_AGENT_HOME": str(tmp_path / "none")}
    settings = Settings(local=LocalSettings(models=MappingProxyType({"qwen": weights})))

    def missing(text: str) -> bool:
        problems = check_model(text, settings, environ, directory=tmp_path)
        return any(one.code == "FA509" for one in problems)

    assert missing("local.qwen")
    assert missing("local?path=q.gguf")
    weights.write_bytes(b"GGUF")
    assert not missing("local.qwen")
    assert not missing("local?path=q.gguf")
    assert missing("local")


def test_only_what_is_written_is_checked_when_nothing_is_to_run() -> None:
    assert check_model("gpt-5", NO_SETTINGS, {}, ready=False) == ()
    assert check_model("local", NO_SETTINGS, {"FAST_AGENT_HOME": "/nowhere"}, ready=False) == ()
    (problem,) = check_model("sonet", NO_SETTINGS, {}, ready=False)
    assert problem.code == "FA501"


def test_files_of_offline_models_are_read(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"messages": [{"role": "nobody", "content": []}]}')
    (tmp_path / "good.json").write_text('{"messages": []}')
    (tmp_path / "script.yaml").write_text("agents: {cook: [{text: a}]}")

    def found(text: str, agent: str | None = None) -> list[tuple[str, str]]:
        problems = check_model(text, NO_SETTINGS, {}, directory=tmp_path, agent=agent)
        return [(one.code, Path(one.path).name) for one in problems]

    assert found("playback?file=good.json") == []
    assert found("playback?file=none.json") == [("FA509", "")]
    ((code, path),) = found("playback?file=bad.json")
    assert code.startswith("FA4")
    assert path == "bad.json"
    assert found("scripted?file=script.yaml") == []
    assert found("scripted?file=script.yaml", "cook") == []
    assert found("scripted?file=script.yaml", "waiter") == [("FA510", "script.yaml")]


@pytest.mark.parametrize("text", ["playback?file=/etc/hostname", "scripted?file=a", "local?path=a"])
def test_a_card_from_the_network_may_not_name_files(text: str) -> None:
    problems = check_model(text, NO_SETTINGS, {}, directory=None)
    assert "FA504" in [one.code for one in problems]


def test_a_fallback_that_is_not_there_says_the_three_ways_out(tmp_path: Path) -> None:
    environ = {"FAST_AGENT_HOME": str(tmp_path)}
    selection = Selection("local", "fallback", tmp_path)
    (problem,) = check_selection(selection, NO_SETTINGS, environ)
    assert problem.code == "FA509"
    for way in ("fast-agent models pull smollm2", "ANTHROPIC_API_KEY", "--model passthrough"):
        assert way in (problem.hint or "")
    asked_for = check_selection(Selection("local", "flag", tmp_path), NO_SETTINGS, environ)
    assert "--model passthrough" not in (asked_for[-1].hint or "")


def test_aliases_are_checked_at_their_place(tmp_path: Path) -> None:
    (tmp_path / "fastagent.config.yaml").write_text(
        "model_aliases:\n  good: sonnet\n  bad: nonsense\n  a: b\n  b: a\n"
    )
    settings = load_settings(cwd=tmp_path, environ={}, home=tmp_path / "home")
    problems = check_aliases(settings)
    assert [(one.code, one.span.start.line) for one in problems if one.span] == [
        ("FA501", 3),
        ("FA505", 4),
        ("FA505", 5),
    ]
    assert all(one.path == "fastagent.config.yaml" for one in problems)
    assert "alias `bad` means `nonsense`" in problems[0].message


@pytest.mark.spec("MODEL-2")
def test_the_probe_blames_a_card_for_its_own_model_only(tmp_path: Path) -> None:
    def found(model: str | None, *, flag: str | None = None, ready: bool = True) -> list[str]:
        probe = model_probe(NO_SETTINGS, {}, cwd=tmp_path, flag=flag, ready=ready)
        card = Card(AgentConfig(name="a", model=model), "a.md")
        problems = list(probe(card))
        assert all(one.path == "a.md" for one in problems)
        return [one.code for one in problems]

    assert found("sonet") == ["FA501"]
    assert found("sonnet") == ["FA506"]
    assert found("sonnet", ready=False) == []
    assert found(None) == []
    assert found("sonet", flag="passthrough") == []


def test_a_misspelt_name_of_a_limit_is_found(tmp_path: Path) -> None:
    file = tmp_path / "fastagent.config.yaml"
    file.write_text("model_limits:\n  anthropic: {in_flight: 2}\n  sonet: {in_flight: 2}\n")
    settings = load_settings(cwd=tmp_path, environ={}, home=tmp_path / "home")
    [problem] = check_settings(settings, {}, cwd=tmp_path)
    assert "did you mean `sonnet`" in (problem.hint or "")
    assert problem.span is not None
    assert problem.span.start.line == 3
