from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.agent_config import RequestParams, UsageLimits
from fast_agent.config.settings import NO_SETTINGS
from fast_agent.diagnostics.diagnostic import Diagnostic

if TYPE_CHECKING:
    from tests.config.conftest import Place


At = Callable[[Diagnostic, str], str]


def test_no_configuration_is_all_defaults(place: Place) -> None:
    settings = place.load()
    assert settings == NO_SETTINGS
    assert settings.sources == ()
    assert settings.provider("openai").api_key is None


@pytest.mark.parametrize("text", ["", "# nothing\n", "mcp:\n", "openai:\nmcp:\n  servers:\n"])
def test_an_empty_file_or_section_is_all_defaults(place: Place, text: str) -> None:
    place.write(text)
    assert place.load() == NO_SETTINGS


def test_every_section(place: Place) -> None:
    place.write(
        """\
default_model: haiku
request_params: {maxTokens: 99, stop_sequences: [END], usage_limits: {max_requests: 3}}
model_aliases: {fast: gpt-mini}
openai: {api_key: k1, base_url: http://localhost:1/v1}
local: {path: weights/a.gguf, threads: 2, context: 512, models: {qwen: /m/q.gguf}}
shell: {timeout_seconds: 1.5, max_output_bytes: 100}
sessions: {disk_seconds: 0}
skills: {directories: [skills, ~/mine]}
"""
    )
    place.environ["HOME"] = "/people/me"
    settings = place.load()
    assert settings.default_model == "haiku"
    assert settings.request_params == RequestParams(
        max_tokens=99, stop_sequences=("END",), usage_limits=UsageLimits(max_requests=3)
    )
    assert dict(settings.model_aliases) == {"fast": "gpt-mini"}
    assert settings.provider("openai").api_key == "k1"
    assert settings.provider("openai").base_url == "http://localhost:1/v1"
    assert settings.local.path == place.cwd / "weights/a.gguf"
    assert (settings.local.threads, settings.local.context) == (2, 512)
    assert dict(settings.local.models) == {"qwen": Path("/m/q.gguf")}
    assert settings.shell.timeout_seconds == 1.5
    assert settings.shell.max_output_bytes == 100
    assert settings.sessions.disk_seconds == 0
    assert settings.skills.directories == (place.cwd / "skills", Path("/people/me/mine"))


def test_no_skills_and_unset_skills_differ(place: Place) -> None:
    place.write("skills: {directories: []}")
    assert place.load().skills.directories == ()
    place.write("skills: {directories: null}")
    assert place.load().skills.directories is None


def test_an_explicit_file_stands_for_the_search(place: Place) -> None:
    place.write("default_model: near")
    other = place.write("default_model: other\nlocal: {path: w.gguf}", "../elsewhere/mine.yaml")
    settings = place.load(Path("../elsewhere/mine.yaml"))
    assert settings.default_model == "other"
    assert settings.local.path is not None
    assert settings.local.path.resolve() == other.parent / "w.gguf"


def test_an_explicit_file_must_be_there(place: Place) -> None:
    place.write("default_model: near")
    from fast_agent.errors import ConfigError

    with pytest.raises(ConfigError) as caught:
        place.load(Path("nowhere.yaml"))
    (problem,) = caught.value.diagnostics
    assert problem.code == "FA301"
    assert problem.path == "nowhere.yaml"
    assert "no such file" in problem.message


def test_a_card_that_is_named_as_a_configuration_says_which_option_loads_it(place: Place) -> None:
    from fast_agent.errors import ConfigError

    (place.cwd / "ann.md").write_text("---\ntype: agent\n---\nHelp.\n")
    with pytest.raises(ConfigError) as caught:
        place.load(Path("ann.md"))
    (problem,) = caught.value.diagnostics
    assert problem.code == "FA301"
    assert problem.hint == "load a card with `--card`"


def test_a_file_of_another_encoding_says_so(place: Place) -> None:
    (place.cwd / "fastagent.config.yaml").write_bytes("default_model: é".encode("latin-1"))
    problem = place.problem()
    assert problem.code == "FA301"
    assert "UTF-8" in problem.message


def test_a_byte_order_mark_and_crlf_are_tolerated(place: Place) -> None:
    (place.cwd / "fastagent.config.yaml").write_bytes(b"\xef\xbb\xbfdefault_model: a\r\n")
    assert place.load().default_model == "a"


def test_duplicate_keys_name_the_first(place: Place, at: At) -> None:
    text = "default_model: a\nshell: {}\ndefault_model: b\n"
    problem = place.problem(text)
    assert problem.code == "FA302"
    assert at(problem, text) == "default_model"
    assert problem.span is not None
    assert problem.span.start.line == 3
    (first,) = problem.related
    assert first.span is not None
    assert first.span.start.line == 1


def test_yaml_that_is_none_is_placed(place: Place) -> None:
    problem = place.problem("default_model: [a\nb: 1\n")
    assert problem.code == "FA302"
    assert problem.span is not None


@pytest.mark.spec("CONF-3")
@pytest.mark.parametrize(
    ("text", "pointed", "hint"),
    [
        ("defualt_model: a", "defualt_model", "did you mean `default_model`?"),
        ("openai: {bas_url: x}", "bas_url", "did you mean `base_url`?"),
        ("openia: {}", "openia", "did you mean `openai`?"),
        ("mcp: {server: {}}", "server", "did you mean `servers`?"),
        ("mcp: {servers: {t: {comand: x}}}", "comand", "did you mean `command`?"),
        ("request_params: {temprature: 1}", "temprature", "did you mean `temperature`?"),
    ],
)
def test_an_unknown_key_is_an_error_with_a_suggestion(
    place: Place, at: At, text: str, pointed: str, hint: str
) -> None:
    problem = next(one for one in place.problems(text) if one.code == "FA303")
    assert at(problem, text) == pointed
    assert problem.hint == hint


@pytest.mark.parametrize(
    ("text", "code", "pointed", "expected"),
    [
        (
            "default_model: 3",
            "FA304",
            "3",
            "must be a string or a list of strings, not a whole number",
        ),
        ('shell: {timeout_seconds: "5"}', "FA304", '"5"', "must be a number above 0, not a string"),
        ("shell: {timeout_seconds: 0}", "FA305", "0", "must be a number above 0"),
        (
            "local: {threads: 1.5}",
            "FA304",
            "1.5",
            "must be a whole number of at least 1, not a number",
        ),
        (
            "local: {threads: true}",
            "FA304",
            "true",
            "must be a whole number of at least 1, not `true`",
        ),
        ("skills: {directories: here}", "FA304", "here", "must be a list of paths, not a string"),
        ("openai: [a]", "FA304", "[a]", "must be a mapping of its fields, not a list"),
        ('default_model: " "', "FA305", '" "', "must not be empty"),
        ("skills: {directories: [a, 2]}", "FA304", "2", "`skills.directories[1]`"),
        ("mcp: {servers: {t: {command: x, enabled: no}}}", "FA304", "no", "`true` or `false`"),
    ],
)
def test_a_wrong_value_is_placed_and_says_what_is_expected(
    place: Place, at: At, text: str, code: str, pointed: str, expected: str
) -> None:
    problem = place.problem(text)
    assert problem.code == code
    assert at(problem, text) == pointed
    assert expected in problem.message


def test_a_file_that_is_no_mapping(place: Place) -> None:
    problem = place.problem("- a\n- b\n")
    assert problem.code == "FA304"
    assert problem.message == "the configuration must be a mapping of its fields, not a list"


def test_both_spellings_of_a_key_are_one_too_many(place: Place) -> None:
    problem = place.problem("request_params: {max_tokens: 1, maxTokens: 2}")
    assert problem.code == "FA304"
    assert "as `max_tokens` and as `maxTokens`" in problem.message


@pytest.mark.spec("CONF-3")
def test_every_problem_of_every_file_is_reported_at_once_in_order(place: Place) -> None:
    place.write("shell: {timeout_seconds: x}\nnonsense: 1\nmcp: {servers: {a: {}}}\n")
    place.write("openai: {api_key: 5}\n", "fastagent.secrets.yaml")
    place.environ["SHELL__MAX_OUTPUT_BYTES"] = "many"
    problems = place.problems()
    assert [(one.path, one.code) for one in problems] == [
        ("fastagent.config.yaml", "FA304"),
        ("fastagent.config.yaml", "FA303"),
        ("fastagent.config.yaml", "FA306"),
        ("fastagent.secrets.yaml", "FA304"),
        ("", "FA308"),
    ]


def test_the_message_names_the_file_and_how_many_more(place: Place) -> None:
    from fast_agent.errors import ConfigError

    place.write("a: 1\nb: 2\n")
    with pytest.raises(ConfigError, match=r"(?m)^`fastagent\.config\.yaml`: .* \(and 1 more\)$"):
        place.load()


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
    ("name", "value", "expected"),
    [
        ("SHELL__TIMEOUT_SECONDS", "hunter2", "must be a number above 0, not a string"),
        ("LOCAL__THREADS", "0", "must be a whole number of at least 1"),
        ("SKILLS__DIRECTORIES", "one,two", "must be a list of paths, not a string"),
        ("MCP__SERVERS__T__ENABLED", "maybe", "must be `true` or `false`"),
        ("OPENAI__API_KYE", "k", "there is no `API_KYE` in `openai`"),
        ("OPENAI__", "k", "there is no `` in `openai`"),
        ("OPENAI__API_KEY__X", "k", "has nothing below it"),
        ("MCP__SERVERS__T__PROTOCOL", "3", "`auto`, `legacy` or"),
    ],
)
def test_a_wrong_one_names_the_variable_and_not_its_value(
    place: Place, name: str, value: str, expected: str
) -> None:
    place.environ[name] = value
    problem = next(one for one in place.problems() if name in one.message)
    assert problem.code == "FA308"
    assert expected in problem.message
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
