"""Origin: roots, what is inside them, whose files are, and whether the home is the person's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fast_agent.trust.origin import (
    Root,
    account_home,
    home_fault,
    is_wide,
    looks_secret,
    ownership_of,
    root_of,
)

SOMEBODY = 12_345


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "desk"
    (folder / ".fast-agent" / "agent-cards").mkdir(parents=True)
    return folder


def put(file: Path, text: str = "text") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def environ(home: Path | str) -> dict[str, str]:
    return {"HOME": str(home)}


@pytest.mark.parametrize(
    ("place", "root_is"),
    [
        (".fast-agent/agent-cards/lead.md", "."),
        (".fast-agent/agent-cards", "."),
        (".claude/skills/one/SKILL.md", "."),
        ("cards/lead.md", "cards"),
        ("fastagent.config.yaml", "."),
        (".", "."),
    ],
)
def test_a_root_is_the_directory_that_brings_the_set(root: Path, place: str, root_is: str) -> None:
    if place.endswith((".md", ".yaml")):
        put(root / place)
    assert root_of(root / place) == root / root_is


@pytest.mark.spec("TR-G5.1a")
def test_what_is_inside_is_judged_by_where_it_ends(root: Path, tmp_path: Path) -> None:
    outside = put(tmp_path / "other" / "notes.md")
    (root / "link.md").symlink_to(outside)
    (root / "folder").symlink_to(outside.parent)
    inside = put(root / "notes.md")
    (tmp_path / "back.md").symlink_to(inside)
    found = Root.of(root, environ(tmp_path / "home"))
    assert not found.holds(root / "link.md")
    assert not found.holds(root / "folder" / "notes.md")
    assert not found.holds(root / ".." / "other" / "notes.md")
    assert not found.holds(tmp_path / "desk-2" / "notes.md")
    assert found.holds(tmp_path / "back.md")
    assert found.name(tmp_path / "back.md") == "notes.md"
    assert found.name(root / "link.md") == str(outside.resolve())
    assert found.holds(root / "missing.md")


@pytest.mark.spec("TR-G5.1a")
def test_another_spelling_of_the_same_directory_is_inside(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a file system that ignores case, `realpath` keeps the case that was written."""
    put(root / "notes.md")
    found = Root.of(root, environ("/nowhere"))
    other = root.with_name("DESK")
    assert not found.holds(other / "notes.md")
    real_stat = os.stat

    def any_case(path: str | Path, **options: bool) -> os.stat_result:
        return real_stat(str(path).replace("/DESK", "/desk"), **options)

    monkeypatch.setattr(os, "stat", any_case)
    assert found.holds(other / "notes.md")
    assert found.name(other / "notes.md") == "notes.md"
    assert not found.is_free(other / ".ENV")


@pytest.mark.parametrize(
    ("place", "secret"),
    [
        ("notes.md", False),
        (".fast-agent/agent-cards/lead.md", False),
        (".env", True),
        (".ENV.local", True),
        (".git/config", True),
        ("keys/server.PEM", True),
        ("id_rsa", True),
        ("app/my-secrets.yaml", True),
        ("secrets/plain.txt", True),
        ("identity.md", False),
        ("sub/.hidden/notes.md", True),
    ],
)
@pytest.mark.spec("TR-E.read")
def test_hidden_files_and_names_of_secrets(place: str, secret: bool) -> None:
    assert looks_secret(place) is secret


@pytest.mark.spec("TR-E.read")
def test_a_file_of_the_set_is_free_whatever_it_is_called(root: Path) -> None:
    card = put(root / ".fast-agent" / "agent-cards" / "id_card.md")
    assert not Root.of(root, environ("/nowhere")).is_free(card)
    assert Root.of(root, environ("/nowhere"), [card]).is_free(card)


@pytest.mark.spec("TR-F5.1")
def test_in_a_wide_root_only_the_files_of_the_set_are_inside(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    card = put(home / ".fast-agent" / "agent-cards" / "lead.md")
    bystander = put(home / "diary.md")
    found = Root.of(home, environ(home), [card])
    assert found.is_wide
    assert found.holds(card)
    assert found.is_free(card)
    assert not found.holds(bystander)
    assert not found.holds(home / "missing.md")


@pytest.mark.spec("TR-F5.1")
def test_which_roots_are_wide(tmp_path: Path) -> None:
    home = tmp_path.resolve() / "home"
    (home / "Downloads").mkdir(parents=True)
    (home / "src" / "desk").mkdir(parents=True)
    (tmp_path / "scratch").mkdir()
    known = {**environ(home), "TMPDIR": str(tmp_path / "scratch")}
    assert is_wide(home, known)
    assert is_wide(home.parent, known)
    assert is_wide(Path("/"), known)
    assert is_wide(home / "Downloads", known)
    assert is_wide(tmp_path.resolve() / "scratch", known)
    assert is_wide(Path(os.path.realpath("/tmp")), known)
    assert not is_wide(home / "src" / "desk", known)
    assert not is_wide(tmp_path.resolve() / "scratch" / "desk", known)


@pytest.mark.spec("TR-F5.1")
def test_the_home_of_the_account_is_wide_whatever_the_environment_says() -> None:
    account = account_home()
    assert account is not None
    assert is_wide(account, {"HOME": "/nowhere"})


@pytest.mark.spec("TR-F4.1a")
def test_files_of_another_user_are_strange(root: Path) -> None:
    card = put(root / ".fast-agent" / "agent-cards" / "lead.md")
    me = os.geteuid()
    assert not ownership_of({str(card): None}, root, user=me).is_strange
    if me != 0:
        pytest.skip("only root can give files away")
    os.chown(card, SOMEBODY, SOMEBODY)
    found = ownership_of({str(card): None}, root)
    assert found.is_strange
    assert found.owner == str(SOMEBODY)


@pytest.mark.spec("TR-F4.1a")
def test_files_of_root_are_not_strange(root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("the files here are not root's")
    card = put(root / "lead.md")
    assert not ownership_of({str(card): None}, root, user=SOMEBODY).is_strange


@pytest.mark.parametrize("place", [".", ".fast-agent", ".fast-agent/agent-cards/lead.md"])
@pytest.mark.spec("TR-F4.1a")
def test_files_and_directories_everyone_may_write_to_are_strange(root: Path, place: str) -> None:
    card = put(root / ".fast-agent" / "agent-cards" / "lead.md")
    (root / place).chmod(0o777)
    found = ownership_of({str(card): None}, root)
    assert found.open_path == str(root / place if place != "." else root)
    assert found.is_strange
    assert found.owner is None


@pytest.mark.spec("TR-F3.1")
def test_the_home_is_ones_own_outside_of_projects(tmp_path: Path) -> None:
    home = tmp_path / "home" / ".fast-agent"
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "sub").mkdir()
    assert home_fault(home, cwd=project) is None
    home.mkdir(parents=True)
    assert home_fault(home, cwd=project, roots=[project]) is None
    assert home_fault(project / ".home", cwd=project / "sub", account=tmp_path) is not None
    assert home_fault(project / "a" / "b", cwd=tmp_path, roots=[project / "a"]) is not None
    home.chmod(0o777)
    assert home_fault(home, cwd=project) == "may be written to by everyone"


@pytest.mark.spec("TR-F3.1")
def test_a_repository_of_the_accounts_home_may_hold_the_home(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    home = tmp_path / ".fast-agent"
    assert home_fault(home, cwd=tmp_path, account=tmp_path) is None
    assert home_fault(home, cwd=tmp_path, account=tmp_path / "other") is not None


@pytest.mark.spec("TR-F3.1")
def test_the_home_of_another_user_is_not_ones_own(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, SOMEBODY, SOMEBODY)
    assert home_fault(home, cwd=tmp_path / "project") == f"belongs to the user `{SOMEBODY}`"
