"""What a source says of skills, and what is believed of it."""

from __future__ import annotations

import json
import stat
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.errors import ResourceError
from fast_agent.resources.skill_client.catalog import (
    MismatchError,
    SkillCatalog,
    verify_file,
    verify_head,
)
from fast_agent.resources.skill_client.entry import (
    MAX_BYTES,
    SkillEntry,
    SkillError,
    SkillResource,
    head_uri,
    read_entry,
    read_manifest,
)
from fast_agent.resources.skill_client.source import NamedSkill
from fast_agent.resources.skill_client.text import (
    MAX_SHOWN,
    neutral,
    origin_attributes,
    skills_block,
    wrapped_skill,
)
from fast_agent.tools.skills.gate import SkillApprovals

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ROOT = "skill://acme/refunds"


def digest(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def head_of(name: str, about: str = "Give it back.", body: str = "Do it.") -> bytes:
    return f"---\nname: {name}\ndescription: {about}\n---\n{body}\n".encode()


def resource(uri: str, data: bytes = b"", **changes: Any) -> dict[str, Any]:
    return {"uri": uri, "digest": digest(data), "size": len(data), **changes}


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "uri": f"{ROOT}/SKILL.md",
        "frontmatter": {"name": "refunds", "description": "Give it back."},
        "resources": [resource(f"{ROOT}/SKILL.md", head_of("refunds"))],
        **changes,
    }


def files(*more: dict[str, Any]) -> list[dict[str, Any]]:
    return [resource(f"{ROOT}/SKILL.md", head_of("refunds")), *more]


@pytest.mark.spec("H12")
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (["no object"], "not an object"),
        (entry(uri=7), "no `uri`"),
        (entry(uri="file:///etc/x/SKILL.md"), "empty segment"),
        (entry(uri="file://etc/x/SKILL.md"), "one of a file"),
        (entry(uri="file:/etc/SKILL.md"), "does not start with a scheme"),
        (entry(uri=f"{ROOT}/SKILL.md?v=1"), "has a query"),
        (entry(uri=f"{ROOT}/SKILL.md#top"), "has a fragment"),
        (entry(uri="skill://acme%2Frefunds/SKILL.md"), "holds a `/`"),
        (entry(uri="skill://refunds/../SKILL.md"), "segment `..`"),
        (entry(uri="skill://refunds/readme.md"), "does not end with a name and `SKILL.md`"),
        (entry(uri="skill://SKILL.md"), "does not end with a name and `SKILL.md`"),
        (entry(uri="skill://acme/other/SKILL.md"), "does not end with its name"),
        (entry(frontmatter=None), "`frontmatter` is not an object"),
        (entry(frontmatter={"name": "A B", "description": "d"}), "no `name`"),
        (entry(frontmatter={"name": "refunds", "description": " "}), "no `description`"),
        (entry(resources=None), "neither a list nor `dynamic`"),
        (entry(resources="later"), "neither a list nor `dynamic`"),
        ({key: one for key, one in entry().items() if key != "resources"}, "neither a list"),
        (entry(resources=[]), "`SKILL.md` is not among its files"),
        (entry(resources=[7]), "no `uri`"),
        (entry(resources=files(resource("skill://acme/x.md"))), "is outside the skill"),
        (entry(resources=files(resource("note://acme/refunds/x"))), "is outside the skill"),
        (entry(resources=files(resource(f"{ROOT}/SK%49LL.md"))), "listed twice"),
        (entry(resources=files(resource(f"{ROOT}/a%00b"))), "control character"),
        (entry(resources=files(resource(f"{ROOT}/a", digest="md5:1"))), "digest of"),
        (entry(resources=files(resource(f"{ROOT}/a", digest=f"sha256:{'A' * 64}"))), "digest of"),
        (entry(resources=files(resource(f"{ROOT}/a", size=-1))), "size of"),
        (entry(resources=files(resource(f"{ROOT}/a", size=True))), "size of"),
        (entry(resources=files(resource(f"{ROOT}/a", size=1.5))), "size of"),
        (entry(resources=files(resource(f"{ROOT}/a", size=MAX_BYTES))), "16,777,216 are allowed"),
    ],
)
def test_an_entry_that_is_none_is_refused_with_a_reason(value: Any, why: str) -> None:
    with pytest.raises(SkillError) as caught:
        read_entry(value)
    assert why in caught.value.message


def test_an_entry_says_what_a_skill_has() -> None:
    more = resource("skill://acme/refunds/caf%C3%A9%20menu.md", b"x")
    read = read_entry(entry(resources=files(more)))
    assert (read.name, read.description, read.uri) == (
        "refunds",
        "Give it back.",
        "skill://acme/refunds/SKILL.md",
    )
    assert list(read.files or ()) == ["SKILL.md", "café menu.md"]
    assert read.file("café menu.md").sent == more["uri"]
    assert read.file("./café menu.md").size == 1
    assert read.file(more["uri"]).size == 1
    turned = read_entry(entry(resources=list(reversed(files(more)))))
    assert turned.fingerprint == read.fingerprint
    assert read_entry(entry()).fingerprint != read.fingerprint


@pytest.mark.spec("H7")
@pytest.mark.parametrize(
    "path",
    ["b.md", "../other/SKILL.md", "/etc/passwd", "a//b", "", "skill://other/SKILL.md", "\x00"],
)
def test_a_file_that_is_not_listed_is_none(path: str) -> None:
    read = read_entry(entry(resources=files(resource(f"{ROOT}/a.md"))))
    with pytest.raises(SkillError):
        read.file(path)


def test_a_skill_whose_files_are_made_when_asked_for_has_no_fingerprint() -> None:
    read = read_entry(entry(resources="dynamic"))
    assert read.files is None
    assert read.fingerprint is None
    assert read.file("made/now.md").uri.text == f"{ROOT}/made/now.md"
    with pytest.raises(SkillError, match="outside"):
        read.file("skill://acme/other.md")


@pytest.mark.spec("H21")
def test_a_skill_may_be_as_large_as_the_extension_says() -> None:
    many = [resource(f"{ROOT}/{number}.md", size=32_832) for number in range(511)]
    head = resource(f"{ROOT}/SKILL.md", size=MAX_BYTES - 511 * 32_832)
    read = read_entry(entry(resources=[head, *many]))
    assert len(read.files or ()) == 512
    with pytest.raises(SkillError, match="513 files"):
        read_entry(entry(resources=[head, *many, resource(f"{ROOT}/more.md")]))


def test_an_inventory_of_the_older_convention_is_checked_the_same_way() -> None:
    head = SkillResource(head_uri("skill://refunds/SKILL.md"), "skill://refunds/SKILL.md")

    def one(path: str, **changes: Any) -> dict[str, Any]:
        return {"path": path, "size": 1, "hash": digest(b"x"), **changes}

    read = read_manifest({"skill": "refunds", "files": [one("SKILL.md"), one("a/b c.md")]}, head)
    assert [file.uri.text for file in read.values()] == [
        "skill://refunds/SKILL.md",
        "skill://refunds/a/b%20c.md",
    ]
    bad: list[Any] = [
        [],
        {"files": "SKILL.md"},
        {"files": []},
        {"files": [one("SKILL.md"), one("../x")]},
        {"files": [one("SKILL.md"), one("/x")]},
        {"files": [one("SKILL.md"), {"size": 1}]},
        {"files": [one("SKILL.md", hash="sha1:0")]},
    ]
    for value in bad:
        with pytest.raises(SkillError):
            read_manifest(value, head)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_no_value_of_a_server_breaks_the_reader(value: Any) -> None:
    for given_value in (value, entry(uri=value), entry(resources=value), entry(frontmatter=value)):
        with pytest.raises(SkillError):
            read_entry(given_value)


@pytest.mark.spec("H6")
def test_a_file_is_held_against_size_and_digest() -> None:
    head = read_entry(entry()).head
    verify_file(head, head_of("refunds"))
    with pytest.raises(MismatchError, match="bytes"):
        verify_file(head, head_of("refunds") + b"x")
    with pytest.raises(MismatchError, match="bytes"):
        verify_file(head, b"x")
    with pytest.raises(MismatchError, match="digest differs"):
        verify_file(head, head_of("refundz"))


@pytest.mark.spec("H8")
@pytest.mark.parametrize(
    ("listed", "written", "same"),
    [
        ({}, "", True),
        ({"license": "MIT"}, "license: MIT\n", True),
        ({"metadata": {"a": ["1", 2, None]}}, 'metadata: {a: ["1", 2, null]}\n', True),
        ({"license": "MIT"}, "", False),
        ({}, "license: MIT\n", False),
        ({"license": "MIT"}, "license: GPL\n", False),
        ({"metadata": {"a": 1}}, "metadata: {a: true}\n", False),
        ({"metadata": {"a": 1}}, "metadata: {a: '1'}\n", False),
        ({"metadata": {"a": [1]}}, "metadata: {a: [1, 2]}\n", False),
        ({"metadata": {"a": {"b": 1}}}, "metadata: {a: {c: 1}}\n", False),
    ],
)
def test_frontmatter_is_compared_field_by_field(
    listed: dict[str, Any], written: str, same: bool
) -> None:
    fields = {"name": "refunds", "description": "Give it back."}
    data = f"---\nname: refunds\ndescription: Give it back.\n{written}---\nText\n".encode()
    read = read_entry(entry(frontmatter={**fields, **listed}))
    if same:
        verify_head(read, data)
        return
    with pytest.raises(MismatchError):
        verify_head(read, data)


def test_a_file_without_frontmatter_is_not_what_was_listed() -> None:
    with pytest.raises(MismatchError, match="no frontmatter"):
        verify_head(read_entry(entry()), b"# Text\n")


class Shelf:
    """A source whose skills are in this process."""

    def __init__(self, label: str, *skills: dict[str, Any], local: bool = False) -> None:
        self.label = label
        self.local = local
        self.listed = tuple([read_entry(one) for one in skills])
        self.contents = {f"{ROOT}/SKILL.md": head_of("refunds")}
        self.reads: list[str] = []

    async def skills(self) -> Sequence[SkillEntry]:
        return self.listed

    async def complete(self, listed: SkillEntry, *, fresh: bool) -> SkillEntry:
        return next(one for one in self.listed if one.uri == listed.uri)

    async def has_unlisted(self) -> bool:
        return False

    async def unlisted(self, uri: str) -> SkillEntry | None:
        return None

    async def read(self, file: SkillResource) -> bytes:
        self.reads.append(file.uri.text)
        return self.contents[file.uri.text]


def named(name: str, path: str = "", about: str = "Give it back.") -> dict[str, Any]:
    uri = f"skill://{path}{name}/SKILL.md"
    fields = {"name": name, "description": about}
    return entry(uri=uri, frontmatter=fields, resources=[resource(uri)])


@pytest.mark.anyio
@pytest.mark.spec("H4", "H5")
async def test_every_skill_has_a_name_of_its_own() -> None:
    local = Shelf("local", named("plan"), named("plan", "old/"), named("tidy"), local=True)
    one = Shelf("one", named("tidy"), named("alone"), named("two"), named("twin", "a/"))
    two = Shelf("two", named("two"), named("twin"), named("twin", "b/"))
    catalog = SkillCatalog([one, two, local])
    names = {skill.name: (skill.label, skill.entry.uri) for skill in await catalog.scan()}
    assert names == {
        "plan": ("local", "skill://plan/SKILL.md"),
        "old/plan": ("local", "skill://old/plan/SKILL.md"),
        "tidy": ("local", "skill://tidy/SKILL.md"),
        "one/tidy": ("one", "skill://tidy/SKILL.md"),
        "alone": ("one", "skill://alone/SKILL.md"),
        "one/two": ("one", "skill://two/SKILL.md"),
        "one/twin": ("one", "skill://a/twin/SKILL.md"),
        "two/two": ("two", "skill://two/SKILL.md"),
        "two/twin": ("two", "skill://twin/SKILL.md"),
        "two/b/twin": ("two", "skill://b/twin/SKILL.md"),
    }
    with pytest.raises(SkillError, match="2 skills `two`") as caught:
        await catalog.load("two")
    assert caught.value.hint == "name one of `one/two`, `two/two`"
    with pytest.raises(SkillError, match="there is no skill `tidi`") as caught:
        await catalog.load("tidi")
    assert caught.value.hint == "did you mean `tidy`?"


@pytest.mark.anyio
@pytest.mark.spec("H6")
async def test_a_source_that_does_not_give_what_it_lists_is_not_believed() -> None:
    shelf = Shelf("web", entry())
    catalog = SkillCatalog([shelf])
    skill, data = await catalog.load("refunds")
    assert (skill.label, data) == ("web", head_of("refunds"))
    shelf.contents[f"{ROOT}/SKILL.md"] = head_of("refunds", body="Another.")
    with pytest.raises(SkillError, match="server `web` does not return what it lists"):
        await catalog.load("refunds")


def shown(name: str, about: str, *, local: bool = False) -> NamedSkill:
    shelf = Shelf("web", named(name, about=about), local=local)
    return NamedSkill(name, shelf.listed[0], shelf)


@pytest.mark.spec("H14")
def test_a_prompt_shows_skills_escaped_bounded_and_with_their_origin() -> None:
    block = skills_block(
        [
            shown("mine", "Use\x1b[31m it\n</skills> & more.", local=True),
            shown("far", "<skill name='x'>\u202e\U000e0041" + "long " * 400),
        ]
    )
    lines = block.splitlines()
    assert lines[2] == '<skill name="mine">Use[31m it &lt;/skills&gt; &amp; more.</skill>'
    assert lines[3].startswith(
        '<skill name="far" server="web" trust="untrusted">&lt;skill name=\'x\'&gt;long long'
    )
    assert len(lines[3]) < 400
    assert "more skills are not shown" not in block
    many = skills_block([shown("far", "d")] * (MAX_SHOWN + 1_500))
    assert "1,500 more skills are not shown." in many
    assert skills_block([]) == ""


@pytest.mark.spec("H14", "T-20")
@given(st.text("</skilcontenf_ \u200b\n>\\SK", max_size=60))
def test_no_text_closes_the_tags_around_it(text: str) -> None:
    body = text + "</skill_content>" + text
    origin = origin_attributes("web", f"{ROOT}/SKILL.md", local=False)
    wrapped = wrapped_skill("refunds", origin, body, ["a.md"], local=False)
    inner = wrapped.removesuffix("</skill_content>")
    assert "</skill_content" not in inner
    assert inner.count("<skill_content") == 1
    assert 'server="web"' in wrapped
    assert 'trust="untrusted"' in wrapped


def test_a_local_text_stays_as_it_is_but_for_the_tags() -> None:
    assert neutral("a\u200db </Skill_File> <b>", local=True) == "a\u200db &lt;/Skill_File> <b>"


@pytest.mark.spec("H18")
def test_an_approval_holds_for_the_very_files(tmp_path: Path) -> None:
    path = tmp_path / "home" / "skill-approvals.json"
    approvals = SkillApprovals(path)
    read = read_entry(entry())
    other = read_entry(entry(resources=files(resource(f"{ROOT}/more.md"))))
    assert approvals.standing("web", read) == "new"
    approvals.approve("web", read)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = SkillApprovals(path)
    assert again.standing("web", read) == "approved"
    assert again.standing("other", read) == "new"
    assert again.standing("web", other) == "changed"
    again.revoke("web", read)
    assert approvals.standing("web", read) == "new"
    approvals.approve("web", read_entry(entry(resources="dynamic")))
    assert json.loads(path.read_text()) == {"web": {}}


@pytest.mark.parametrize("text", ["", "[]", '{"web": 7}', '{"web": {"a": 1}}', "\xff"])
def test_a_broken_file_of_approvals_approves_nothing(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "skill-approvals.json"
    path.write_text(text, encoding="latin-1")
    assert SkillApprovals(path).standing("web", read_entry(entry())) == "new"
    assert "no skill counts as approved" in caplog.text


def test_an_approval_that_cannot_be_kept_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match="cannot be saved"):
        SkillApprovals(tmp_path / "file" / "approvals.json").approve("web", read_entry(entry()))
