from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fast_agent.config.load import find_files

if TYPE_CHECKING:
    from tests.config.conftest import Place


@pytest.mark.spec("CONF-1")
def test_the_nearest_directory_wins_then_the_preferred_name(place: Place) -> None:
    far = place.write("default_model: far", "../../fastagent.config.yaml")
    middle = place.write("default_model: middle", "../fast-agent.yaml")
    assert place.load().default_model == "middle"
    near = place.write("default_model: near", "fast-agent.yaml")
    assert place.load().default_model == "near"
    near.unlink()
    middle.unlink()
    settings = place.load()
    assert settings.default_model == "far"
    assert settings.sources == (str(far),)


@pytest.mark.spec("CONF-1")
def test_the_home_comes_last(place: Place) -> None:
    place.write("default_model: home", str(place.home / "fastagent.config.yaml"))
    assert place.load().default_model == "home"
    place.write("default_model: project", "../fastagent.config.yaml")
    assert place.load().default_model == "project"


def test_a_second_name_beside_the_first_is_a_warning(place: Place) -> None:
    place.write("default_model: first", "fastagent.config.yaml")
    place.write("default_model: second", "fast-agent.yaml")
    settings = place.load()
    assert settings.default_model == "first"
    (warning,) = settings.warnings
    assert (warning.code, warning.severity) == ("FA310", "warning")
    assert warning.path.endswith("fast-agent.yaml")


@pytest.mark.spec("CONF-2")
@pytest.mark.parametrize("where", ["..", "../..", "home"])
def test_secrets_are_merged_from_beside_above_or_home(place: Place, where: str) -> None:
    folder = str(place.home) if where == "home" else where
    place.write("openai: {base_url: http://a/}\ndefault_model: m", "../fast-agent.yaml")
    place.write("openai: {api_key: s}", f"{folder}/fastagent.secrets.yaml")
    settings = place.load()
    assert settings.provider("openai").api_key == "s"
    assert settings.provider("openai").base_url == "http://a/"
    assert len(settings.sources) == 2


def test_secrets_beside_the_configuration_come_first(place: Place) -> None:
    place.write("default_model: m", "../other/mine.yaml")
    place.write("openai: {api_key: beside}", "../other/fastagent.secrets.yaml")
    place.write("openai: {api_key: here}", "fastagent.secrets.yaml")
    assert place.load(Path("../other/mine.yaml")).provider("openai").api_key == "beside"
    assert place.load().provider("openai").api_key == "here"


def test_secrets_alone_are_enough_and_win_over_the_configuration(place: Place) -> None:
    place.write("openai: {api_key: s}", "fastagent.secrets.yaml")
    assert place.load().provider("openai").api_key == "s"
    place.write("openai: {api_key: c}")
    assert place.load().provider("openai").api_key == "s"


def test_a_directory_of_that_name_is_passed_over(place: Place) -> None:
    (place.cwd / "fastagent.config.yaml").mkdir()
    place.write("default_model: above", "../fastagent.config.yaml")
    assert place.load().default_model == "above"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_stranger_s_file_in_a_directory_open_to_all_is_passed_over(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = place.write("mcp: {servers: {evil: {command: x}}}", "../fastagent.config.yaml")
    safe = place.write("default_model: safe", "../../fastagent.config.yaml")
    assert find_files(place.cwd, place.home).config == planted
    planted.parent.chmod(0o777)
    assert find_files(place.cwd, place.home).config == planted, "it is ours"
    os.chown(planted, 4242, -1) if os.geteuid() == 0 else monkeypatch.setattr(
        os, "geteuid", lambda: 4242
    )
    found = find_files(place.cwd, place.home)
    assert found.config == safe
    (warning,) = found.warnings
    assert warning.code == "FA309"
    assert warning.path == str(planted)
    assert find_files(place.cwd, place.home, planted).config == planted, "it was named"


@pytest.mark.spec("SECRETS-1")
@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o660, 0o600, 0o400])
def test_secrets_that_others_may_read_or_write_are_reported(place: Place, mode: int) -> None:
    path = place.write("openai: {api_key: s}", "fastagent.secrets.yaml")
    path.chmod(mode)
    settings = place.load()
    assert settings.provider("openai").api_key == "s"
    if mode & 0o077 == 0:
        assert settings.warnings == ()
        return
    (warning,) = settings.warnings
    assert (warning.code, warning.severity, warning.path) == ("FA311", "warning", str(path))
    assert f"{mode:04o}" in warning.message
    assert warning.hint == f"`chmod 600 {path}`"
