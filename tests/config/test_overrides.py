from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.config.conftest import Place


@pytest.mark.spec("CONF-4")
def test_they_go_over_every_file(place: Place) -> None:
    place.write("openai: {api_key: c, base_url: u}")
    place.write("openai: {api_key: s}", "fastagent.secrets.yaml")
    place.environ["OPENAI__API_KEY"] = "e"
    openai = place.load().provider("openai")
    assert (openai.api_key, openai.base_url) == ("e", "u")


def test_names_in_the_files_are_found_in_any_case(place: Place) -> None:
    place.write("mcp: {servers: {My-Time: {command: a, env: {Path: p}}}}")
    place.environ.update(
        {
            "MCP__SERVERS__MY_TIME__COMMAND": "b",
            "MCP__SERVERS__MY_TIME__ARGS": '["-x"]',
            "MCP__SERVERS__MY_TIME__ENV__TOKEN": "t",
            "MCP__SERVERS__NEW__URL": "http://localhost:9/mcp",
        }
    )
    servers = place.load().mcp.servers
    assert set(servers) == {"My-Time", "new"}
    time = servers["My-Time"]
    assert (time.command, time.args) == ("b", ("-x",))
    assert dict(time.env) == {"Path": "p", "TOKEN": "t"}
    assert servers["new"].transport == "http"


def test_values_take_the_type_of_their_key(place: Place) -> None:
    place.environ.update(
        {
            "REQUEST_PARAMS__TEMPERATURE": "0.5",
            "REQUEST_PARAMS__MAX_TOKENS": "7",
            "REQUEST_PARAMS__PARALLEL_TOOL_CALLS": "FALSE",
            "REQUEST_PARAMS__USAGE_LIMITS__MAX_REQUESTS": "2",
            "REQUEST_PARAMS__EXTRA_BODY": '{"a": [1]}',
            "MODEL_ALIASES__FAST": "haiku",
            "LOCAL__PATH": "w.gguf",
            "SKILLS__DIRECTORIES": '["one"]',
            "MCP__SERVERS__T__COMMAND": "x",
            "MCP__SERVERS__T__SAMPLING": "false",
            "MCP__SERVERS__T__ROOTS": '[".", {"uri": "file:///r", "name": "R"}]',
        }
    )
    settings = place.load()
    params = settings.request_params
    assert (params.temperature, params.max_tokens) == (0.5, 7)
    assert params.parallel_tool_calls is False
    assert params.usage_limits is not None
    assert params.usage_limits.max_requests == 2
    assert params.extra_body == {"a": [1]}
    assert dict(settings.model_aliases) == {"fast": "haiku"}
    assert settings.local.path == place.cwd / "w.gguf"
    assert settings.skills.directories == (place.cwd / "one",)
    server = settings.mcp.servers["t"]
    assert server.sampling is False
    assert [(Path(root.uri), root.name) for root in server.roots] == [
        (place.cwd, None),
        (Path("file:///r"), "R"),
    ]


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("SHELL__TIMEOUT_SECONDS", "hunter2", "must be a number above 0, not a text"),
        ("LOCAL__THREADS", "0", "must be an integer from 1"),
        ("SKILLS__DIRECTORIES", "one,two", "must be a list, not a text"),
        ("MCP__SERVERS__T__ENABLED", "maybe", "must be `true` or `false`"),
        ("OPENAI__API_KYE", "k", "there is no `API_KYE` in `openai`"),
        ("OPENAI__", "k", "there is no `` in `openai`"),
        ("OPENAI__API_KEY__X", "k", "has nothing below it"),
        ("MCP__SERVERS__T__PROTOCOL", "3", "`auto` or `legacy`"),
    ],
)
def test_a_wrong_one_names_the_variable_and_not_its_value(
    place: Place, name: str, value: str, told: str
) -> None:
    place.environ[name] = value
    problem = next(one for one in place.problems() if name in one.message)
    assert problem.code == "FA308"
    assert told in problem.message
    assert "hunter2" not in repr(problem)


def test_a_misspelt_key_gets_a_suggestion(place: Place) -> None:
    place.environ["OPENAI__API_KYE"] = "k"
    assert place.problem().hint == "did you mean `API_KEY`?"


@pytest.mark.parametrize(
    "name", ["HOME__X", "openai__api_key", "Openai__Api_Key", "XOPENAI__API_KEY", "__OPENAI"]
)
def test_variables_of_others_do_not_count(place: Place, name: str) -> None:
    place.environ[name] = "1"
    assert place.load().layers == ()


def test_an_empty_one_is_unset_unless_empty_text_means_something(place: Place) -> None:
    place.environ.update({"OPENAI__API_KEY": "", "MCP__SERVERS__T__ENV__A": ""})
    place.write("openai: {api_key: c}\nmcp: {servers: {t: {command: x, env: {A: b}}}}")
    settings = place.load()
    assert settings.provider("openai").api_key == "c"
    assert dict(settings.mcp.servers["t"].env) == {"A": ""}


def test_a_reference_in_a_variable_stays_as_it_is(place: Place) -> None:
    place.environ["MODEL_ALIASES__FAST"] = "${HOME}"
    assert place.load().model_aliases["fast"] == "${HOME}"
