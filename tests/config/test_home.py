from __future__ import annotations

from pathlib import Path

from fast_agent.config.home import from_home, home_directory


def test_the_variable_goes_before_the_user_s_home(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "FAST_AGENT_HOME": str(tmp_path / "mine")}
    assert home_directory(environ) == tmp_path / "mine"
    assert home_directory({**environ, "FAST_AGENT_HOME": "~/x"}) == tmp_path / "x"
    assert home_directory({**environ, "FAST_AGENT_HOME": ""}) == tmp_path / ".fast-agent"
    assert home_directory({"FAST_AGENT_HOME": "rel"}).is_absolute()


def test_only_a_leading_tilde_is_the_home() -> None:
    environ = {"HOME": "/people/me"}
    assert from_home("~/a", environ) == Path("/people/me/a")
    assert from_home("~", environ) == Path("/people/me")
    assert from_home("a/~/b", environ) == Path("a/~/b")
    assert from_home("~other/a", environ) == Path("~other/a")
