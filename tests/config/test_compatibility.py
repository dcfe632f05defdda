"""Configurations of the nearest peer: read as ours, named in a note, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from fast_agent.config import compatibility
from fast_agent.config.fields import SETTINGS
from fast_agent.errors import ConfigError, ModelError
from fast_agent.models.spec import parse_model_spec

if TYPE_CHECKING:
    from tests.config.conftest import Place


def server(place: Place, **values: Any) -> Any:
    place.write(yaml.safe_dump({"mcp": {"servers": {"s": values}}}), "fast-agent.yaml")
    return place.load().mcp.servers["s"]


@pytest.mark.spec("CONF-5")
@pytest.mark.parametrize(
    ("target", "command", "args", "url"),
    [
        ("uvx mcp-server-fetch", "uvx", ("mcp-server-fetch",), None),
        ("npx -y 'a b' .", "npx", ("-y", "a b", "."), None),
        ("@scope/server --at 1", "npx", ("-y", "@scope/server", "--at", "1"), None),
        ("  https://a.example/mcp?login ", None, (), "https://a.example/mcp?login"),
        ("uvx thing --at ${PLACE:here}", "uvx", ("thing", "--at", "here"), None),
    ],
)
def test_a_target_is_an_address_or_a_command_line(
    place: Place, target: str, command: str | None, args: tuple[str, ...], url: str | None
) -> None:
    made = server(place, target=target)
    assert (made.command, made.args, made.url) == (command, args, url)
    assert made.transport == ("http" if url else "stdio")
    assert place.load().warnings == ()


@pytest.mark.spec("CONF-5")
@pytest.mark.parametrize(
    ("values", "name", "wanted"),
    [
        ({"protocol_mode": "modern"}, "protocol", "2026-07-28"),
        ({"protocol_mode": "legacy"}, "protocol", "legacy"),
        ({"protocol_mode": "auto"}, "protocol", "auto"),
        ({"http_timeout_seconds": 5}, "connect_timeout_seconds", 5),
        ({"elicitation": {"mode": "auto-cancel"}, "load_on_start": True}, "elicitation", False),
        ({"name": "s", "auth": {"oauth": False}}, "name", "s"),
        ({"access_token": "t"}, "headers", {"Authorization": "Bearer t"}),
    ],
)
def test_keys_of_a_server(place: Place, values: dict[str, Any], name: str, wanted: object) -> None:
    assert getattr(server(place, target="https://a.example/mcp", **values), name) == wanted


def test_defaults_of_servers_give_way_to_their_own(place: Place) -> None:
    place.write(
        "mcp:\n  defaults: {protocol_mode: modern, include_instructions: true}\n"
        "  client: {auto_sampling: false}\n  diagnostics: {enabled: true}\n"
        "  servers:\n    a: {target: x}\n"
        "    b: {target: y, protocol_mode: legacy, sampling: {model: haiku}}\n"
    )
    servers = place.load().mcp.servers
    assert [one.protocol for one in servers.values()] == ["2026-07-28", "legacy"]
    assert [one.sampling for one in servers.values()] == [False, True]
    assert servers["b"].sampling_model == "haiku"


@pytest.mark.spec("CONF-5")
def test_keys_of_providers_at_the_top_are_theirs(place: Place) -> None:
    text = "openai_api_key: abc\nanthropic_api_key:\ngoogle_api_key: xyz\n"
    place.write(text, "fast-agent.secrets.yaml").chmod(0o600)
    place.write("google: {api_key: own}\n")
    settings = place.load()
    keys = {name: settings.provider(name).api_key for name in ("openai", "anthropic", "google")}
    assert keys == {"openai": "abc", "anthropic": None, "google": "xyz"}
    assert settings.warnings == ()


@pytest.mark.parametrize("peer", [{}, {"reconnect_on_disconnect": True, "description": "x"}])
def test_our_settings_hold_beside_keys_of_the_peer(place: Place, peer: dict[str, Any]) -> None:
    """A key that the peer and this program share is never dropped as one of the peer's."""
    made = server(place, target="x", load_on_start=True, include_instructions=False, **peer)
    assert (made.load_on_start, made.include_instructions) == (True, False)
    noted = sorted(warning.message.split("`")[1] for warning in place.load().warnings)
    assert noted == sorted(f"mcp.servers.s.{key}" for key in peer)


def test_default_instructions_reach_servers_that_do_not_choose(place: Place) -> None:
    place.write(
        "mcp:\n  defaults: {include_instructions: false}\n"
        "  servers:\n    a: {target: x}\n    b: {target: y, include_instructions: true}\n"
    )
    servers = place.load().mcp.servers
    assert [one.include_instructions for one in servers.values()] == [False, True]


@pytest.mark.parametrize(
    ("table", "at"),
    [
        (compatibility._SERVER_DISPLAY, ("mcp", "servers", "s")),
        (compatibility._SERVER_UNSUPPORTED, ("mcp", "servers", "s")),
        (compatibility._MCP_DISPLAY, ("mcp",)),
        (compatibility._COMPACTION, ("compaction",)),
        (compatibility._TERMINAL, ("tui",)),
        (compatibility._SKILLS, ("skills",)),
    ],
)
def test_no_table_of_the_peer_names_a_setting_of_ours(
    table: dict[str, str], at: tuple[str, ...]
) -> None:
    ours = compatibility._names_at(SETTINGS, at)
    assert ours
    assert not ours & table.keys()


@pytest.mark.spec("CONF-5")
def test_references_to_models_are_aliases(place: Place) -> None:
    place.write("model_references: {system: {fast: haiku}}\ndefault_model: $system.fast\n")
    settings = place.load()
    spec = parse_model_spec(settings.default_model or "", settings.model_aliases)
    assert spec.text == parse_model_spec("haiku").text
    assert settings.warnings == ()
    with_effort = parse_model_spec("$system.fast.high", settings.model_aliases)
    assert (with_effort.name, with_effort.effort) == (spec.name, "high")
    place.write("model_references: {system: haiku}\n")
    with pytest.raises(ConfigError, match=r"`model_references\.system` is not a table"):
        place.load()


@pytest.mark.parametrize(
    "name", ["$system.fsat", "$system.fsat.high", "$system.fsat?temperature=0"]
)
def test_an_unknown_reference_is_refused_with_the_known_ones(place: Place, name: str) -> None:
    place.write("model_references: {system: {fast: haiku, default: sonnet}}\n")
    with pytest.raises(ModelError, match=r"unknown model reference `\$system\.fsat") as caught:
        parse_model_spec(name, place.load().model_aliases)
    hint = caught.value.hint or ""
    assert "did you mean `$system.fast`? " in hint
    assert "the references are `$system.default`, `$system.fast`" in hint
    with pytest.raises(ModelError) as caught:
        parse_model_spec("$system.low")
    assert caught.value.hint == (
        "add `model_references: {system: {low: sonnet}}` to the configuration"
    )


def test_a_section_both_programs_have(place: Place) -> None:
    place.write("tui: {completion_menu_reserved_lines: 9}\n")
    (note,) = place.load().warnings
    assert (note.code, "`tui.completion_menu_reserved_lines`" in note.message) == ("FA312", True)


def test_values_that_moved(place: Place) -> None:
    place.write(
        "llm_retries: 3\ncompaction: {auto: true, threshold: 0.7}\n"
        "shell_execution: {timeout_seconds: 9, output_byte_limit: 99}\n"
        "skills: {directories: [a], marketplace_urls: [https://a.example]}\n"
    )
    settings = place.load()
    assert settings.request_params.retries == 3
    assert getattr(settings.compaction, "share", None) == 0.7
    assert (settings.shell.timeout_seconds, settings.shell.max_output_bytes) == (9, 99)
    assert settings.skills.directories == (place.cwd / "a",)
    place.write("compaction: {auto: false, keep_turns: 2}")
    assert place.load().compaction is False
    place.write("compaction: {auto: true}\nllm_retries:\nshell_execution:\n")
    assert place.load().compaction is None


@pytest.mark.spec("CONF-6")
def test_what_is_only_shown_is_a_note_and_what_does_something_a_warning(place: Place) -> None:
    place.write(
        "logger: {show_chat: true}\nexecution_engine: asyncio\n"
        "anthropic:\n  reasoning: high\n  cache_mode:\n"
        "otel: {enabled: true}\nmcp:\n  servers:\n    s: {target: x, description: d}\n"
    )
    notes = place.load().warnings
    assert [(one.code, one.severity, one.span.start.line) for one in notes if one.span] == [
        ("FA312", "info", 1),
        ("FA312", "info", 2),
        ("FA313", "warning", 6),
        ("FA313", "warning", 4),
        ("FA312", "info", 9),
    ]
    assert "`anthropic.reasoning` has no effect here" in notes[3].message
    assert notes[3].hint == "write the level behind the model: `NAME.high`"


@pytest.mark.spec("CONF-6")
def test_unknown_keys_stay_errors(place: Place) -> None:
    problems = place.problems(
        "logger: {}\nlooger: {}\nmcp:\n  servers:\n"
        "    s: {target: x, targt: y, protocol_mode: no}\n"
    )
    assert [(one.code, one.span.start.line) for one in problems if one.span] == [
        ("FA303", 2),
        ("FA303", 5),
        ("FA305", 5),
    ]
    assert "2026-07-28" in (problems[2].message)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("target: x, command: y", "has a `target` and also"),
        ("target: 'npx \"a'", "is not a command line"),
        ("target: 3", "has no key `target`"),
    ],
)
def test_wrong_targets(place: Place, values: str, message: str) -> None:
    found = place.problem(f"mcp:\n  servers:\n    s: {{{values}}}\n")
    assert message in found.message
    assert found.span is not None
    assert found.span.start.line == 3


def test_secrets_in_a_file_of_that_name(place: Place) -> None:
    place.write("default_model: sonnet\n", "fast-agent.yaml")
    place.write("anthropic: {api_key: k}\n", "fast-agent.secrets.yaml").chmod(0o600)
    settings = place.load()
    assert settings.provider("anthropic").api_key == "k"
    assert settings.warnings == ()
