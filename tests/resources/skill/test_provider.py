from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, cast

import pytest

from fast_agent.resources.catalog import Catalog
from fast_agent.resources.folder import Folder
from fast_agent.resources.problem import InvalidUri, NotFound, TooLarge, UnavailableResource
from fast_agent.resources.skill import files as skill_files
from fast_agent.resources.skill.provider import SkillOptions, SkillProvider
from fast_agent.resources.uri import Uri
from fast_agent.text.safe_file import RefusedFileError

if TYPE_CHECKING:
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.skill.files import NamePolicy
    from fast_agent.text.json_value import JsonObject
    from fast_agent.text.safe_file import FileBytes

HEAD = "---\nname: {name}\ndescription: Does {name}.\n---\n# {name}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "skills"
    add(root, "code-review", {"references/REFERENCE.md": b"# Reference\n"})
    add(root, "git-commit-review")
    return root


def add(root: Path, name: str, files: dict[str, bytes] | None = None, head: str = HEAD) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    skill = name.rpartition("/")[2]
    (folder / "SKILL.md").write_text(head.format(name=skill), encoding="utf-8")
    for path, data in (files or {}).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder


def serve(
    *roots: Path, policy: NamePolicy = "frontmatter", list_files: bool = False
) -> tuple[SkillProvider, list[Diagnostic]]:
    problems: list[Diagnostic] = []
    options = SkillOptions(name_policy=policy, list_files=list_files)
    return SkillProvider(roots, options, report=problems.append), problems


def listed(provider: SkillProvider) -> list[str]:
    provider.scan()
    return list(provider.resources())


def read(provider: SkillProvider, uri: str) -> bytes:
    (content,) = provider.read(Uri.parse(uri))
    assert content.uri.text == str(Uri.parse(uri))
    return content.bytes


def manifest(provider: SkillProvider, name: str) -> dict[str, tuple[int, str]]:
    data = json.loads(read(provider, f"skill://{name}/_manifest"))
    assert data["skill"] == name.rpartition("/")[2]
    files = cast("list[dict[str, object]]", data["files"])
    return {
        cast("str", one["path"]): (cast("int", one["size"]), cast("str", one["hash"]))
        for one in files
    }


def facts(data: bytes) -> tuple[int, str]:
    return len(data), f"sha256:{sha256(data).hexdigest()}"


@pytest.mark.spec("SEED-SKILL-1", "SEED-SKILL-4", "SEED-SKILL-7", "SEED-SKILL-8")
def test_lists_the_head_and_the_manifest_of_every_skill(root: Path) -> None:
    provider, problems = serve(root)
    assert problems == []
    assert listed(provider) == [
        "skill://code-review/SKILL.md",
        "skill://code-review/_manifest",
        "skill://git-commit-review/SKILL.md",
        "skill://git-commit-review/_manifest",
        "skill://prompt-xml",
    ]
    first, second, *_ = provider.resources().values()
    assert (first.name, first.description) == ("code-review", "Does code-review.")
    assert (first.mime_type, second.mime_type) == ("text/markdown", "application/json")
    assert first.size == (root / "code-review/SKILL.md").stat().st_size
    assert [one.template for one in provider.templates()] == ["skill://{name}/{+path}"]


def test_a_closed_root_is_reported_and_nothing_else_is_lost(root: Path, tmp_path: Path) -> None:
    provider, problems = serve(tmp_path / "missing", root)
    assert [one.code for one in problems] == ["FA766"]
    assert len(listed(provider)) == 5


@pytest.mark.parametrize(
    "uri",
    [
        "skill://code-review/../git-commit-review/SKILL.md",
        "skill://code-review/%2e%2e/git-commit-review/SKILL.md",
        "skill://code-review/references%2FREFERENCE.md",
        "skill://code-review//SKILL.md",
        "skill://code-review/SKILL.md#x",
        "skill://code-review/SKILL.md?x",
        "skill://code-review/SKILL%00.md",
    ],
)
@pytest.mark.spec("SEED-SKILL-14")
def test_no_uri_leads_out(root: Path, uri: str) -> None:
    provider, _ = serve(root)
    with pytest.raises(InvalidUri):
        Catalog([provider]).read(uri)


@pytest.mark.parametrize(
    "uri", ["SKILL://code-review/SKILL.md", "skill://code%2Dreview/%53KILL.md"]
)
def test_other_spellings_of_a_uri_read_the_same(root: Path, uri: str) -> None:
    provider, _ = serve(root)
    (content,) = Catalog([provider]).read(uri)
    assert content.uri.text == "skill://code-review/SKILL.md"


def test_search_finds_what_is_text(root: Path) -> None:
    (root / "code-review/logo.png").write_bytes(b"\xff\x00")
    provider, _ = serve(root)
    documents = {one.uri.text: one for one in provider.documents()}
    assert list(documents) == [
        "skill://code-review/SKILL.md",
        "skill://code-review/references/REFERENCE.md",
        "skill://git-commit-review/SKILL.md",
    ]
    reference = documents["skill://code-review/references/REFERENCE.md"]
    assert reference.text() == "# Reference\n"
    (root / "code-review/references/REFERENCE.md").write_text("# More\n")
    stamps = {one.uri.text: one.stamp for one in provider.documents()}
    assert stamps[reference.uri.text] != reference.stamp
    assert stamps["skill://code-review/SKILL.md"] == documents["skill://code-review/SKILL.md"].stamp


def test_listing_files_is_a_choice(root: Path) -> None:
    provider, _ = serve(root, list_files=True)
    assert "skill://code-review/references/REFERENCE.md" in listed(provider)
    first = provider.revision
    (root / "code-review/new.md").write_text("new")
    assert "skill://code-review/new.md" in listed(provider)
    assert provider.revision > first


def test_looking_takes_a_small_part_of_the_time(root: Path) -> None:
    clock = [10**18]

    def now() -> int:
        clock[0] += 1_000_000  # each question costs a millisecond
        return clock[0]

    provider = SkillProvider([root], report=lambda _problem: None, now=now)
    looks = 0
    scan = provider.scan

    def counted() -> bool:
        nonlocal looks
        looks += 1
        return scan()

    provider.scan = counted
    for _ in range(1000):
        assert provider.revision
    assert 1 <= looks <= 50
    add(root, "late")
    clock[0] += 10**9
    assert provider.revision == 2


@pytest.mark.spec("SEED-SKILL-4", "SEED-SKILL-9")
def test_reads_every_file_and_the_manifest_says_the_same_of_it(root: Path) -> None:
    provider, _ = serve(root)
    for name, files in {
        "code-review": ["SKILL.md", "references/REFERENCE.md"],
        "git-commit-review": ["SKILL.md"],
    }.items():
        assert list(manifest(provider, name)) == files
        for path in files:
            data = (root / name / path).read_bytes()
            assert read(provider, f"skill://{name}/{path}") == data
            assert manifest(provider, name)[path] == facts(data)


@pytest.mark.parametrize(
    "uri",
    [
        "skill://code-review/references/REFERENC.md",
        "skill://code-review/references",
        "skill://code-review",
        "skill://code-reviev/SKILL.md",
        "skill://nothing",
    ],
)
def test_what_is_not_there_is_not_found(root: Path, uri: str) -> None:
    provider, _ = serve(root)
    with pytest.raises(NotFound) as caught:
        provider.read(Uri.parse(uri))
    assert str(root) not in f"{caught.value.message} {caught.value.hint}"
    if "revie" in uri:
        assert caught.value.suggestions


def test_changes_are_seen_at_once(root: Path) -> None:
    provider, _ = serve(root)
    first = provider.revision
    assert manifest(provider, "code-review")
    new = root / "code-review/references/NEW.md"
    new.write_bytes(b"new")
    assert manifest(provider, "code-review")["references/NEW.md"] == facts(b"new")
    new.write_bytes(b"old")
    assert read(provider, "skill://code-review/references/NEW.md") == b"old"
    assert manifest(provider, "code-review")["references/NEW.md"] == facts(b"old")
    new.unlink()
    assert "references/NEW.md" not in manifest(provider, "code-review")
    with pytest.raises(NotFound):
        read(provider, "skill://code-review/references/NEW.md")
    assert provider.revision == first
    add(root, "third")
    assert "skill://third/SKILL.md" in listed(provider)
    assert provider.revision > first


def test_a_new_file_reads_before_anything_lists_it(root: Path) -> None:
    provider, _ = serve(root)
    (root / "code-review/late.md").write_bytes(b"late")
    assert read(provider, "skill://code-review/late.md") == b"late"
    add(root, "fourth")
    assert read(provider, "skill://fourth/SKILL.md").startswith(b"---\nname: fourth")


@pytest.mark.spec("SEED-SKILL-14")
def test_links_and_pipes_are_not_served(root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    folder = root / "code-review"
    (folder / "link.md").symlink_to(secret)
    (folder / "linked").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    (folder / ".env").write_text("KEY=1")
    provider, problems = serve(root)
    assert list(manifest(provider, "code-review")) == ["SKILL.md", "references/REFERENCE.md"]
    for path in ("link.md", "linked/secret.md", "pipe", ".env"):
        with pytest.raises(NotFound):
            read(provider, f"skill://code-review/{path}")
    assert {one.code for one in problems} == {"FA762"}
    assert len(problems) == 3


def test_a_file_swapped_for_a_link_is_refused(root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    provider, _ = serve(root)
    file = root / "code-review/references/REFERENCE.md"
    file.unlink()
    file.symlink_to(secret)
    with pytest.raises((NotFound, UnavailableResource)):
        read(provider, "skill://code-review/references/REFERENCE.md")


@pytest.mark.spec("SEED-SKILL-16")
def test_a_large_file_is_in_the_manifest_and_not_read(root: Path) -> None:
    data = b"x" * (1 << 20) + b"x"
    (root / "code-review/big.bin").write_bytes(data)
    provider, _ = serve(root)
    (entry,) = [
        one
        for one in json.loads(read(provider, "skill://code-review/_manifest"))["files"]
        if one["path"] == "big.bin"
    ]
    size, digest = facts(data)
    assert entry == {"path": "big.bin", "size": size, "hash": digest, "tooLarge": True}
    with pytest.raises(TooLarge):
        read(provider, "skill://code-review/big.bin")


def test_a_file_that_may_not_be_read_is_reported_in_its_place(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "code-review/closed.md").write_bytes(b"closed")
    closed = Folder.read

    def refused(self: Folder, path: str, limit: int) -> FileBytes:
        if path.endswith("closed.md"):  # tests may run as a user who may read everything
            raise RefusedFileError("may not be read by this user")
        return closed(self, path, limit)

    monkeypatch.setattr(Folder, "read", refused)
    provider, _ = serve(root)
    files = json.loads(read(provider, "skill://code-review/_manifest"))["files"]
    assert {"path": "closed.md", "size": 6, "unreadable": True} in files
    assert [one["path"] for one in files if "hash" in one] == [
        "SKILL.md",
        "references/REFERENCE.md",
    ]
    entry = json.loads(provider.snapshot(Uri.parse("skill://code-review")).entry)
    assert len(entry["resources"]) == 2
    assert provider.fingerprint(Uri.parse("skill://code-review/closed.md")) == ""
    with pytest.raises(UnavailableResource, match="may not be read"):
        read(provider, "skill://code-review/closed.md")


def test_a_folder_that_may_not_be_listed_is_reported(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = skill_files.open_root

    def refused(path: str) -> int:
        if path.endswith("references"):
            raise RefusedFileError("may not be read by this user")
        return known(path)

    monkeypatch.setattr(skill_files, "open_root", refused)
    provider, problems = serve(root)
    assert list(manifest(provider, "code-review")) == ["SKILL.md"]
    assert [(one.code, one.message) for one in problems] == [
        ("FA762", "may not be read by this user")
    ]


class Judge:
    """Lets a skill through while its script is as it was approved; never a new decision."""

    def stamp(self) -> int:
        return 1

    def is_found(self, folder: str) -> bool:
        del folder
        return True

    def refuses(self, folder: str, frontmatter: JsonObject | None) -> bool:
        del frontmatter
        return (Path(folder) / "scripts/run.sh").read_text() != "echo knit\n"

    def approved_fields(self, folder: str, frontmatter: JsonObject) -> frozenset[str] | None:
        del folder, frontmatter


def test_a_skill_that_was_left_out_comes_back_when_only_its_script_changes(root: Path) -> None:
    script = add(root, "knit", {"scripts/run.sh": b"echo knit\n"}) / "scripts/run.sh"
    an_hour_ago(root)
    provider = SkillProvider([root / "knit"], SkillOptions(judge=Judge()))
    assert "skill://knit/SKILL.md" in listed(provider)
    script.write_bytes(b"curl evil\n")
    an_hour_ago(root / "knit", minutes=50)
    # Neither a folder nor the head says that anything changed: what is read is judged.
    with pytest.raises(NotFound):
        provider.snapshot(Uri.parse("skill://knit"))
    provider.refresh()
    (root / "knit/new").touch()
    assert "skill://knit/SKILL.md" not in listed(provider)
    an_hour_ago(root / "knit", minutes=40)
    assert "skill://knit/SKILL.md" not in listed(provider)
    script.write_bytes(b"echo knit\n")
    assert "skill://knit/SKILL.md" in listed(provider)


def an_hour_ago(folder: Path, minutes: int = 60) -> None:
    """Make everything below a folder, and the folder, look as if it was last changed long ago."""
    changed = time() - 60 * minutes
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            os.utime(Path(place, name), (changed, changed))
        os.utime(place, (changed, changed))
