from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.config.conftest import Place

SECRET = "s3cr3t-value"


def test_a_setting_knows_its_place(place: Place) -> None:
    place.write("default_model: a\nmcp:\n  servers:\n    t:\n      command: x\n")
    place.write("openai: {api_key: k}", "fastagent.secrets.yaml")
    place.environ["MODEL_ALIASES__FAST"] = "haiku"
    settings = place.load()
    server = settings.place_of("mcp", "servers", "t", key=True)
    assert server is not None
    assert server.path == "fastagent.config.yaml"
    assert server.span is not None
    assert (server.span.start.line, server.span.start.column) == (4, 5)
    assert server.source_line == "    t:"
    key = settings.place_of("openai", "api_key")
    assert key is not None
    assert (key.path, key.source_line) == ("fastagent.secrets.yaml", None)
    alias = settings.place_of("model_aliases", "fast")
    assert alias is not None
    assert alias.variable == "MODEL_ALIASES__FAST"
    whole = settings.place_of("model_aliases")
    assert whole is not None
    assert whole.variable == "MODEL_ALIASES__FAST"
    assert settings.place_of("shell", "timeout_seconds") is None


def test_no_secret_is_in_a_repr(place: Place) -> None:
    place.write(
        f"""\
openai: {{api_key: {SECRET}}}
mcp:
  servers:
    a: {{command: x, args: ["--token={SECRET}"], env: {{T: {SECRET}}}}}
    b: {{url: "http://h/?t={SECRET}", headers: {{X: {SECRET}}}}}
"""
    )
    settings = place.load()
    assert settings.provider("openai").api_key == SECRET
    assert SECRET not in repr(settings)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fastagent.config.yaml", f"openai: {{api_key: {SECRET}, nope: 1}}"),
        ("fastagent.config.yaml", f"openai: {{api_key: [{SECRET}]}}"),
        ("fastagent.config.yaml", f"mcp: {{servers: {{a: {{env: {{PAT: {SECRET}}}, x: 1}}}}}}"),
        (
            "fastagent.config.yaml",
            f"mcp:\n servers:\n  a:\n   headers:\n    X: {SECRET}\n   cwd: [{SECRET}]\n",
        ),
        ("fastagent.config.yaml", f"openai: {{api_key: {SECRET}"),
        ("fastagent.config.yaml", f"url: https://user:{SECRET}@example.org/"),
        ("fastagent.secrets.yaml", f"default_model: {{{SECRET}: 1}}"),
        ("fastagent.secrets.yaml", f"nope: {SECRET}"),
        ("fastagent.secrets.yaml", f"nope: {{{SECRET}"),
    ],
)
def test_no_secret_is_in_a_problem(place: Place, name: str, text: str) -> None:
    place.write(text, name)
    problems = place.problems()
    assert problems
    assert SECRET not in repr(problems)


def test_a_harmless_line_is_shown(place: Place) -> None:
    problem = place.problem("shell: {timeout_seconds: soon}")
    assert problem.source_line == "shell: {timeout_seconds: soon}"
