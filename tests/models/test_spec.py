from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.cards.agent_config import NO_PARAMS, RequestParams
from fast_agent.config.providers import EFFORTS, PROVIDERS
from fast_agent.errors import ModelError
from fast_agent.models.spec import (
    NO_OPTIONS,
    OFFLINE,
    ModelOptions,
    built_in_names,
    parse_model_spec,
)

if TYPE_CHECKING:
    from fast_agent.diagnostics.diagnostic import Diagnostic


def refused(text: str, aliases: dict[str, str] | None = None) -> Diagnostic:
    with pytest.raises(ModelError) as caught:
        parse_model_spec(text, aliases)
    first = caught.value.diagnostics[0]
    assert caught.value.message == first.message
    assert caught.value.hint == first.hint
    return first


@pytest.mark.spec("MODEL-1")
@pytest.mark.parametrize(
    ("text", "provider", "name", "effort"),
    [
        ("anthropic.claude-sonnet-5", "anthropic", "claude-sonnet-5", None),
        ("claude-sonnet-5", "anthropic", "claude-sonnet-5", None),
        ("o3-mini.high", "openai", "o3-mini", "high"),
        ("openai.o3-mini.low", "openai", "o3-mini", "low"),
        ("openai.gpt-5?reasoning=low", "openai", "gpt-5", "low"),
        ("gpt-4.1", "openai", "gpt-4.1", None),
        ("gpt-4.1.medium", "openai", "gpt-4.1", "medium"),
        ("openai.gpt-4.1", "openai", "gpt-4.1", None),
        ("generic.qwen2.5", "generic", "qwen2.5", None),
        ("generic.qwen3:latest", "generic", "qwen3:latest", None),
        ("generic.my.org/model-7.b", "generic", "my.org/model-7.b", None),
        ("groq.openai/gpt-oss-120b", "groq", "openai/gpt-oss-120b", None),
        (
            "bedrock.us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "bedrock",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            None,
        ),
        ("gemini-3.1-pro-preview", "google", "gemini-3.1-pro-preview", None),
        ("mistral-large-latest", "mistral", "mistral-large-latest", None),
        ("deepseek-v4-pro", "deepseek", "deepseek-v4-pro", None),
        ("grok-4.7", "xai", "grok-4.7", None),
        ("local", "local", "", None),
        ("local.qwen", "local", "qwen", None),
        ("passthrough", "passthrough", "", None),
        ("  passthrough  ", "passthrough", "", None),
        ("playback", "playback", "", None),
        ("slow", "slow", "", None),
        ("anthropic.a-model-of-next-year", "anthropic", "a-model-of-next-year", None),
    ],
)
def test_parts(text: str, provider: str, name: str, effort: str | None) -> None:
    spec = parse_model_spec(text)
    assert (spec.provider, spec.name, spec.effort) == (provider, name, effort)
    assert spec.given == text


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("local?path=/models/x.gguf", ModelOptions(path="/models/x.gguf")),
        ("local?path=/a%26b.gguf&threads=2", ModelOptions(path="/a&b.gguf", threads=2)),
        ("slow?seconds=0.2", ModelOptions(seconds=0.2)),
        ("slow?seconds=0", ModelOptions(seconds=0)),
        ("scripted?file=a/b.yaml&seed=-3", ModelOptions(file="a/b.yaml", seed=-3)),
        ("playback?file=h.json", ModelOptions(file="h.json")),
    ],
)
def test_what_a_model_is_made_with(text: str, options: ModelOptions) -> None:
    spec = parse_model_spec(text)
    assert spec.options == options
    assert spec.params == NO_PARAMS


def test_request_parameters() -> None:
    spec = parse_model_spec("gpt-5?temperature=0.5&max_tokens=9&seed=1&top_p=1&timeout_seconds=3")
    assert spec.params == RequestParams(
        temperature=0.5, max_tokens=9, seed=1, top_p=1, timeout_seconds=3
    )
    assert spec.options == NO_OPTIONS
    assert parse_model_spec("local?seed=4").params == RequestParams(seed=4)


@pytest.mark.spec("MODEL-2")
@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ("", "FA502", "the model is empty", "write `provider.name`"),
        ("openai", "FA502", "names the provider `openai` but no model", "write `openai.`"),
        ("openai.", "FA502", "names the provider `openai` but no model", "write `openai.`"),
        ("local.", "FA502", "but no model", "write `local.`"),
        ("scripted", "FA502", "names no script", "scripted?file="),
        ("passthrough.high", "FA502", "has no reasoning effort", "leave out `.high`"),
        ("local.high", "FA502", "`local` has no reasoning effort", "leave out `.high`"),
        ("gpt-5?low", "FA502", "`low` in the model", "?key=value"),
        ("gpt-5?=low", "FA502", "is not `key=value`", "?key=value"),
        ("claude-sonet-5", "FA501", "unknown model `claude-sonet-5`", "`claude-sonnet-5`?"),
        ("sonet", "FA501", "unknown model `sonet`", "did you mean `sonnet`?"),
        ("pasthrough", "FA501", "unknown model", "did you mean `passthrough`?"),
        ("antropic.claude-x", "FA501", "unknown provider `antropic`", "`anthropic.claude-x`?"),
        ("OpenAI.gpt-5", "FA501", "unknown provider `OpenAI`", "did you mean `openai.gpt-5`?"),
        ("openai:gpt-5", "FA501", "unknown model", "did you mean `openai.gpt-5`?"),
        ("zzzzzzzzzzzz", "FA501", "unknown model", "write `provider.name`"),
        ("passthrough.x", "FA501", "unknown model", "did you mean `passthrough`?"),
        ("slow?delay=1", "FA503", "unknown parameter `delay`", "`slow` supports `seconds`"),
        ("slow?second=1", "FA503", "unknown parameter `second`", "did you mean `seconds`?"),
        ("passthrough?a=1", "FA503", "unknown parameter `a`", "`passthrough` takes none"),
        ("gpt-5?path=x", "FA503", "unknown parameter `path`", "supports `reasoning`"),
        ("local?reasoning=low", "FA503", "unknown parameter `reasoning`", "supports `path`"),
        ("gpt-5?temperature=warm", "FA504", "must be a number of at least 0, not `warm`", ""),
        ("gpt-5?temperature=-1", "FA504", "must be a number of at least 0", ""),
        ("gpt-5?temperature=nan", "FA504", "must be a number", ""),
        ("gpt-5?temperature=1_0", "FA504", "must be a number", ""),
        ("gpt-5?top_p=0", "FA504", "must be a number above 0 and up to 1", ""),
        ("gpt-5?max_tokens=1.5", "FA504", "must be a whole number of at least 1", ""),
        ("gpt-5?reasoning=hgih", "FA504", "must be one of `none`", "did you mean `high`?"),
        ("local?path=", "FA504", "must be a string", ""),
        ("gpt-5.low?reasoning=high", "FA504", "both as `low` and as `high`", "keep one"),
        ("gpt-5?seed=1&seed=2", "FA504", "both as `1` and as `2`", "keep one"),
    ],
)
def test_what_is_refused(text: str, code: str, message: str, hint: str) -> None:
    problem = refused(text)
    assert problem.code == code
    assert message in problem.message
    assert hint in (problem.hint or "")


@pytest.mark.spec("MODEL-2")
def test_every_wrong_parameter_is_reported() -> None:
    with pytest.raises(ModelError) as caught:
        parse_model_spec("slow?a=1&seconds=x&b")
    assert [one.code for one in caught.value.diagnostics] == ["FA503", "FA504", "FA502"]


@pytest.mark.parametrize("alias", sorted(built_in_names().aliases))
def test_every_alias_of_the_program_leads_to_a_model(alias: str) -> None:
    spec = parse_model_spec(alias)
    assert spec.provider in {*PROVIDERS, "local"}
    assert spec.name
    assert parse_model_spec(spec.text).text == spec.text


@pytest.mark.parametrize("name", built_in_names().known)
def test_every_suggested_name_is_accepted(name: str) -> None:
    spec = parse_model_spec(name)
    assert spec.is_cloud
    assert spec.name == name


@pytest.mark.spec("MODEL-1")
def test_aliases_of_the_user_extend_and_override() -> None:
    aliases = {"fast": "haiku", "haiku": "openai.tiny", "deep": "o3.high?seed=1", "a.b": "gpt-5"}
    assert parse_model_spec("fast", aliases).text == "openai.tiny"
    assert parse_model_spec("sonnet", aliases).provider == "anthropic"
    deep = parse_model_spec("deep", aliases)
    assert (deep.name, deep.effort, deep.params.seed) == ("o3", "high", 1)
    assert parse_model_spec("a.b.low", aliases).text == "openai.gpt-5.low"


def test_the_outer_effort_and_query_win() -> None:
    aliases = {"deep": "o3.high?seed=1&top_k=2"}
    spec = parse_model_spec("deep.low?seed=5", aliases)
    assert (spec.effort, spec.params.seed, spec.params.top_k) == ("low", 5, 2)
    assert parse_model_spec("deep?reasoning=max", aliases).effort == "max"


def test_alias_loops_are_refused() -> None:
    problem = refused("a.high", {"a": "b?seed=1", "b": "c", "c": "b.low"})
    assert problem.code == "FA505"
    assert "`b` → `c` → `b`" in problem.message
    assert refused("x", {"x": "x"}).code == "FA505"


def test_what_is_wrong_behind_an_alias_is_reported_with_what_was_asked_for() -> None:
    problem = refused("mine", {"mine": "nonsense-model"})
    assert problem.code == "FA501"
    assert "`mine`" in problem.message


@given(
    provider=st.sampled_from(sorted(PROVIDERS)),
    name=st.text(st.sampled_from("abz09-./:_"), min_size=1, max_size=12),
    effort=st.sampled_from([None, *EFFORTS]),
)
def test_any_name_is_accepted_behind_a_provider(
    provider: str, name: str, effort: str | None
) -> None:
    if name.rpartition(".")[2] in EFFORTS:
        name += "x"
    text = f"{provider}.{name}" + (f".{effort}" if effort else "")
    spec = parse_model_spec(text)
    assert (spec.provider, spec.name, spec.effort) == (provider, name, effort)
    assert spec.text == text


@given(st.text(max_size=30))
def test_any_text_is_a_spec_or_a_model_error(text: str) -> None:
    refusal: ModelError | None = None
    provider = ""
    try:
        provider = parse_model_spec(text).provider
    except ModelError as error:
        refusal = error
    if refusal is None:
        assert provider in {*PROVIDERS, *OFFLINE, "local"}
    else:
        assert refusal.diagnostics


@pytest.mark.spec("MODEL-18")
@pytest.mark.parametrize(
    ("text", "provider", "name"),
    [
        ("anthropic/claude-x", "anthropic", "claude-x"),
        ("openrouter/qwen/qwen3-max.high", "openrouter", "qwen/qwen3-max"),
        ("openrouter.qwen/qwen3-max", "openrouter", "qwen/qwen3-max"),
        ("ollama/qwen3:8b", "ollama", "qwen3:8b"),
    ],
)
def test_a_slash_is_read_as_the_point_behind_a_provider(
    text: str, provider: str, name: str
) -> None:
    spec = parse_model_spec(text)
    assert (spec.provider, spec.name) == (provider, name)


@pytest.mark.spec("MODEL-18")
def test_ollama_needs_no_address() -> None:
    from fast_agent.config.settings import NO_SETTINGS
    from fast_agent.models.check import endpoint_of, endpoint_problems

    spec = parse_model_spec("ollama.qwen3")
    endpoint = endpoint_of(spec, NO_SETTINGS, {})
    assert endpoint.base_url == "http://localhost:11434/v1"
    assert endpoint_problems(endpoint) == []
    environ = {"OLLAMA_BASE_URL": "http://box:1/v1"}
    assert endpoint_of(spec, NO_SETTINGS, environ).base_url == "http://box:1/v1"
