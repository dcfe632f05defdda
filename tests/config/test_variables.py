from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.config.conftest import Place


@pytest.mark.spec("CONF-4")
def test_variables_and_defaults_take_the_type_of_their_key(place: Place) -> None:
    place.environ.update(NAME="haiku", ARGS='["-a", "b c"]', YES="true")
    place.write(
        """\
default_model: ${NAME}.high
shell: {timeout_seconds: "${T:2.5}", max_output_bytes: "${N:10}"}
mcp:
  servers:
    t: {command: x, args: "${ARGS}", enabled: "${YES}", env: {A: "${B:}"}}
"""
    )
    settings = place.load()
    assert settings.default_model == "haiku.high"
    assert settings.shell.timeout_seconds == 2.5
    assert settings.shell.max_output_bytes == 10
    server = settings.mcp.servers["t"]
    assert server.args == ("-a", "b c")
    assert server.enabled is True
    assert dict(server.env) == {"A": ""}


def test_an_unset_variable_is_an_error_at_its_value(place: Place) -> None:
    problem = place.problem("default_model: ${NOPE}")
    assert problem.code == "FA307"
    assert "`NOPE`" in problem.message
    assert problem.hint is not None
    assert "${NOPE:default}" in problem.hint
    assert problem.span is not None
    assert problem.span.start.column == 16


@pytest.mark.parametrize("environ", [{}, {"OPENAI_API_KEY": ""}])
def test_a_key_from_an_unset_variable_is_unset(place: Place, environ: dict[str, str]) -> None:
    place.environ.update(environ)
    place.write("openai: {api_key: '${OPENAI_API_KEY}'}")
    assert place.load().provider("openai").api_key is None


def test_an_unset_variable_of_a_server_is_an_error(place: Place) -> None:
    problem = place.problem("mcp: {servers: {t: {command: x, env: {TOKEN: '${NOPE}'}}}}")
    assert problem.code == "FA307"


def test_a_value_is_not_searched_for_variables_again(place: Place) -> None:
    place.environ["A"] = "${B}"
    place.write("default_model: ${A}")
    assert place.load().default_model == "${B}"


def test_a_variable_of_the_wrong_type_does_not_tell_its_value(place: Place) -> None:
    place.environ["T"] = "hunter2"
    problem = place.problem("shell: {timeout_seconds: '${T}'}")
    assert problem.code == "FA304"
    assert "hunter2" not in repr(problem)


def test_texts_inside_extra_body_are_expanded(place: Place) -> None:
    place.environ["A"] = "x"
    place.write("request_params: {extra_body: {deep: [{k: '${A}'}], n: 1}}")
    extra = place.load().request_params.extra_body
    assert extra == {"deep": [{"k": "x"}], "n": 1}
