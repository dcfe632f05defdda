"""`fast-agent skills`: from directories, Git checkouts and archives by digest."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from fast_agent.resources.skill import install

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Ran

    Run: TypeAlias = Callable[..., Ran]

HEAD = "---\nname: {0}\ndescription: Does {0} things.\n---\nDo.\n"
PLACE = Path(".agents/skills")


def skill(folder: Path, name: str) -> Path:
    place = folder / name
    (place / "scripts").mkdir(parents=True)
    (place / "SKILL.md").write_text(HEAD.format(name))
    (place / "scripts/run.sh").write_text("#!/bin/sh\n")
    (place / "scripts/run.sh").chmod(0o755)
    return place


@pytest.fixture(name="source")
def _source(project: Path) -> Path:
    source = project / "checkout"
    for name in ("pdf", "web"):
        skill(source / "skills", name)
    (source / ".git").mkdir()
    skill(source / ".git", "hidden")
    (source / "skills/pdf/passwd").symlink_to("/etc/passwd")
    return source


def test_lists_are_json_for_programs(run: Run, source: Path) -> None:
    found = run("skills", "search", str(source), "pdf", "--format", "json").json
    assert found == [{"name": "pdf", "description": "Does pdf things."}]
    assert run("skills", "list", "--format", "json").json == []
    run("skills", "add", str(source), "pdf")
    (listed,) = run("skills", "list", "--format", "json").json
    assert listed["name"] == "pdf"
    assert listed["digest"].startswith("sha256:")
    assert listed["source"] == str(source)


def test_a_skill_that_cannot_be_read_is_reported_and_left_out(run: Run, source: Path) -> None:
    for name, head in (("no-about", "name: no-about\n"), ("Upper", "name: Upper\n"), ("none", "")):
        (source / "skills" / name).mkdir()
        (source / "skills" / name / "SKILL.md").write_text(f"---\n{head}---\nDo.\n")
    for name in ("far", "pipe"):
        (source / "skills" / name).mkdir()
    (source / "skills/far/SKILL.md").symlink_to(source / "skills/pdf/SKILL.md")
    os.mkfifo(source / "skills/pipe/SKILL.md")
    alone = run("skills", "add", str(source / "skills/no-about"))
    assert (alone.code, alone.out) == (1, "")
    assert "there is no `description`" in alone.err
    assert "holds no skill that can be added" in alone.err
    found = run("skills", "search", str(source))
    assert found.out == "pdf  Does pdf things.\nweb  Does web things.\n"
    everything = run("skills", "add", str(source))
    assert everything.out == "added .agents/skills/pdf\nadded .agents/skills/web\n"
    for reported in (found.err, everything.err):
        for name in ("no-about", "Upper", "none", "far", "pipe"):
            assert f"checkout/skills/{name}/SKILL.md" in reported
    assert run("skills", "add", str(source), "pdf", "--force").err == ""
    assert "FA753" in run("skills", "add", str(source), "upper").err


@pytest.mark.spec("SKILLS-CLI-1")
def test_from_a_directory_and_back(run: Run, source: Path) -> None:
    found = run("skills", "search", str(source), "PDF").out
    assert found == "pdf  Does pdf things.\n"
    assert run("skills", "add", str(source), "pdf").out == "added .agents/skills/pdf\n"
    assert sorted(one.name for one in (PLACE / "pdf").rglob("*")) == [
        "SKILL.md",
        "run.sh",
        "scripts",
    ]
    assert os.access(PLACE / "pdf/scripts/run.sh", os.X_OK)
    assert run("skills", "list").out.startswith(f"pdf  {source}  sha256:")
    again = run("skills", "add", str(source))
    assert (again.code, "`pdf` is in `.agents/skills` already" in again.err) == (1, True)
    assert not (PLACE / "web").exists()
    assert run("skills", "add", str(source), "--force").code == 0
    assert run("skills", "remove", "web").out == "removed .agents/skills/web\n"
    assert not (PLACE / "web").exists()
    assert run("skills", "remove", "web").code == 1
    assert "there are: `pdf`, `web`" in run("skills", "add", str(source), "nope").err


@pytest.mark.spec("SKILLS-CLI-2")
def test_updates_take_changes_and_no_edits(run: Run, source: Path) -> None:
    run("skills", "add", str(source), "pdf")
    assert run("skills", "update").out == "unchanged .agents/skills/pdf\n"
    (source / "skills/pdf/more.md").write_text("more")
    assert run("skills", "update", "pdf").out == "updated .agents/skills/pdf\n"
    assert (PLACE / "pdf/more.md").read_text() == "more"
    (PLACE / "pdf/more.md").write_text("mine")
    (source / "skills/pdf/more.md").write_text("theirs")
    refused = run("skills", "update")
    assert (refused.code, "was edited" in refused.err) == (1, True)
    assert run("skills", "update", "--force").code == 0
    assert (PLACE / "pdf/more.md").read_text() == "theirs"


@pytest.mark.spec("SKILLS-CLI-3")
@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_archives_need_their_digest(run: Run, project: Path, suffix: str) -> None:
    file = project / f"skills{suffix}"
    pack(file, {"a/pdf/SKILL.md": HEAD.format("pdf")})
    asked = run("skills", "add", file.name)
    digest = f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
    assert (asked.code, f"--digest {digest}" in asked.err) == (1, True)
    wrong = run("skills", "add", file.name, "--digest", "sha256:00")
    assert (wrong.code, PLACE.exists()) == (1, False)
    assert run("skills", "add", file.name, "--digest", digest).code == 0
    assert (PLACE / "pdf/SKILL.md").is_file()


@pytest.mark.spec("SKILLS-CLI-3")
@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
@pytest.mark.parametrize("name", ["../out/SKILL.md", "/tmp/out/SKILL.md", "a\\..\\..\\b"])
def test_archives_do_not_lead_out(run: Run, project: Path, suffix: str, name: str) -> None:
    file = project / f"bad{suffix}"
    pack(file, {name: HEAD.format("out"), "pdf/SKILL.md": HEAD.format("pdf")})
    digest = f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
    done = run("skills", "add", file.name, "--digest", digest)
    assert (done.code, "leads out of it" in done.err, PLACE.exists()) == (1, True, False)


@pytest.mark.spec("SKILLS-CLI-3")
def test_archives_are_not_inflated_without_bound(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "_MAX_UNPACKED", 1 << 22)
    bomb = project / "bomb.tar.gz"
    with gzip.open(bomb, "wb") as file:
        member = tarfile.TarInfo("a" * 90)
        # The header of a longer name: `tarfile` reads as much as it claims before it lists a file.
        member.type, member.size = tarfile.XHDTYPE, 1 << 23
        file.write(member.tobuf())
        file.write(bytes(1 << 23))
    done = run("skills", "add", bomb.name, "--digest", digest_of(bomb))
    assert (done.code, "too large to be unpacked" in done.err, PLACE.exists()) == (1, True, False)
    pack(bomb, {"pdf/SKILL.md": HEAD.format("pdf")})
    assert run("skills", "add", bomb.name, "--digest", digest_of(bomb)).code == 0


@pytest.mark.parametrize("name", ["cut.tar.gz", "flipped.tar.gz", "locked.zip"])
def test_damaged_archives_are_one_line(run: Run, project: Path, name: str) -> None:
    file = project / name
    pack(file, {"pdf/SKILL.md": HEAD.format("pdf")})
    data = bytearray(file.read_bytes())
    if name == "cut.tar.gz":
        del data[-12:]
    elif name == "flipped.tar.gz":
        data[len(data) // 2] ^= 0xFF
    else:  # the flag of an encrypted file, in the file's own header and in the list
        data[6] |= 1
        data[data.index(b"PK\x01\x02") + 8] |= 1
    file.write_bytes(data)
    done = run("skills", "add", file.name, "--digest", digest_of(file))
    assert (done.code, "cannot be unpacked" in done.err, "Traceback" in done.err) == (
        1,
        True,
        False,
    )


def test_no_skill_of_the_user_is_touched_through_a_link(
    run: Run, source: Path, tmp_path: Path
) -> None:
    assert run("skills", "add", "--user", source, "pdf").code == 0
    Path(".agents").symlink_to(tmp_path / "home/.agents")
    for command in (("add", source, "web"), ("update", "--force"), ("remove", "pdf"), ("list",)):
        done = run("skills", *command)
        assert (done.code, "outside of this directory" in done.err) == (1, True)
    assert sorted(one.name for one in (tmp_path / "home" / PLACE).glob("[a-z]*")) == ["pdf"]
    assert run("skills", "remove", "--user", "pdf").code == 0


def digest_of(file: Path) -> str:
    return f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"


def test_wrong_sources(run: Run, project: Path) -> None:
    (project / "empty").mkdir()
    (project / "broken.zip").write_text("x")
    digest = f"sha256:{hashlib.sha256(b'x').hexdigest()}"
    for arguments in (("empty",), ("nowhere",), ("broken.zip", "--digest", digest)):
        done = run("skills", "add", *arguments)
        assert (done.code, done.err.startswith("error")) == (1, True)


def pack(file: Path, files: dict[str, str]) -> None:
    if file.suffix == ".zip":
        with zipfile.ZipFile(file, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return
    with tarfile.open(file, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


@pytest.mark.spec("SKILLS-CLI-1")
def test_empty_lists_say_so_and_sources_are_kept_without_detours(run: Run, source: Path) -> None:
    none = run("skills", "search", str(source), "zebra")
    assert (none.code, none.out) == (0, "")
    assert none.err == f"none of the 2 skills of `{source}` matches\n"
    assert run("skills", "list").err == "no skill was added to `.agents/skills`\n"
    detour = source / "skills" / ".." / "skills"
    assert run("skills", "add", str(detour), "pdf").code == 0
    assert run("skills", "list").out.startswith(f"pdf  {source / 'skills'}  sha256:")
