from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.errors import ResourceError
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.problem import error_object
from fast_agent.resources.resource import Limits
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.resources.skill.files import SkillLimits
from fast_agent.resources.skill.methods import EXTENSION, skill_addition
from fast_agent.resources.skill.provider import SkillOptions, SkillProvider

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.resources.skill.files import NamePolicy
    from fast_agent.text.json_value import JsonObject

META: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO: JsonObject = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def add(root: Path, path: str, name: str | None = None, **files: str) -> Path:
    folder = root / path
    folder.mkdir(parents=True)
    name = name or path.rpartition("/")[2]
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Does {name}.\n---\n")
    for file, text in files.items():
        place = folder / file.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


class Client:
    """A client of a service over skills."""

    def __init__(
        self,
        *roots: Path,
        modern: bool = True,
        policy: NamePolicy = "frontmatter",
        limits: Limits | None = None,
    ) -> None:
        options = SkillOptions(policy, SkillLimits(core=limits or Limits()))
        self.provider = SkillProvider(roots, options, report=lambda _problem: None)
        self.service = ResourceService(
            Catalog([self.provider], options.limits.core),
            ServerInfo("test", "1"),
            [skill_addition(self.provider)],
        )
        self.modern = modern
        self.session = self.service.open(lambda _method, _params: None)
        self.hello = None if modern else self.call("initialize", **HELLO)

    def call(self, method: str, **params: Any) -> Any:
        if self.modern:
            params["_meta"] = META
        answer = self.service.answer(self.session, method, params, 1)
        assert answer is not None
        return json.loads(answer.json)

    def error(self, method: str, **params: Any) -> Any:
        with pytest.raises(ResourceError) as caught:
            self.call(method, **params)
        return error_object(caught.value, self.session.era)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "skills"
    add(root, "pdf", references__FORMS="forms", references__deep__more="more")
    add(root, "acme/billing/refunds", email="mail")
    add(root, "outer", notes="notes")
    add(root, "outer/inner", tips="tips")
    return root


URIS = [
    "skill://acme/billing/refunds/SKILL.md",
    "skill://outer/SKILL.md",
    "skill://outer/inner/SKILL.md",
    "skill://pdf/SKILL.md",
]


@pytest.mark.spec("S1", "SEED-SKILL-11")
@pytest.mark.parametrize("modern", [True, False])
def test_the_extension_is_declared(root: Path, modern: bool) -> None:
    client = Client(root, modern=modern)
    declared = (client.hello or client.call("server/discover"))["capabilities"]
    assert declared["extensions"] == {EXTENSION: {"directoryRead": True}}
    assert declared["resources"] == {"subscribe": True, "listChanged": True}


@pytest.mark.spec("S2", "S5", "S9")
@pytest.mark.parametrize("modern", [True, False])
def test_the_methods_answer(root: Path, modern: bool) -> None:
    client = Client(root, modern=modern)
    listed = client.call("skills/list")
    assert [one["uri"] for one in listed["skills"]] == URIS
    got = client.call("skills/get", uri=URIS[0])
    directory = client.call("resources/directory/read", uri="skill://pdf")
    assert {"nextCursor"}.isdisjoint({*listed, *got, *directory})
    for result in (listed, got, directory):
        assert result.get("resultType") == ("complete" if modern else None)
        assert ("ttlMs" in result) == ("cacheScope" in result) == modern


@pytest.mark.spec("S7")
def test_an_enclosing_skill_lists_the_files_of_skills_in_it(root: Path) -> None:
    client = Client(root)
    listed = {one["uri"]: one["resources"] for one in client.call("skills/list")["skills"]}
    outer = {one["uri"]: one["digest"] for one in listed["skill://outer/SKILL.md"]}
    inner = {one["uri"]: one["digest"] for one in listed["skill://outer/inner/SKILL.md"]}
    assert list(outer) == [
        "skill://outer/SKILL.md",
        "skill://outer/inner/SKILL.md",
        "skill://outer/inner/tips",
        "skill://outer/notes",
    ]
    assert inner == {uri: outer[uri] for uri in inner}
    (root / "outer/inner/tips").write_text("better tips")
    changed = client.call("skills/get", uri="skill://outer/SKILL.md")["skill"]["resources"]
    assert [one["uri"] for one in changed if one["digest"] != outer[one["uri"]]] == [
        "skill://outer/inner/tips"
    ]


@pytest.mark.spec("S3", "S4")
def test_only_what_keeps_to_the_specification_is_listed(root: Path) -> None:
    add(root, "Wrong_Name")
    add(root, "other-folder", name="own-name")
    (root / "no-head").mkdir()
    (root / "no-head/SKILL.md").write_text("# Nothing\n")
    (root / "no-skill").mkdir()
    (root / "no-skill/README.md").write_text("---\nname: no-skill\ndescription: No.\n---\n")
    for policy in ("frontmatter", "strict", "lenient"):
        client = Client(root, policy=policy)
        listed = [one["uri"] for one in client.call("skills/list")["skills"]]
        extra = [] if policy == "strict" else ["skill://own-name/SKILL.md"]
        assert listed == sorted([*URIS, *extra])
        for entry in client.call("skills/list")["skills"]:
            assert entry["uri"].split("/")[-2] == entry["frontmatter"]["name"]
        resources = [one["uri"] for one in client.call("resources/list")["resources"]]
        assert ("skill://Wrong_Name/SKILL.md" in resources) == (policy == "lenient")


@pytest.mark.spec("S10")
@pytest.mark.parametrize("limits", [Limits(page=1), Limits(page=3), Limits(answer_bytes=500)])
def test_pages_hold_whole_entries(root: Path, limits: Limits) -> None:
    whole = Client(root).call("skills/list")["skills"]
    client = Client(root, limits=limits)
    found: list[Any] = []
    params: dict[str, str] = {}
    pages = 0
    while True:
        page = client.call("skills/list", **params)
        assert page["skills"]
        found += page["skills"]
        pages += 1
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}
    assert found == whole
    assert pages > 1


@pytest.mark.parametrize("cursor", ["", "x", 7, "AAAA", {}])
@pytest.mark.parametrize("method", ["skills/list", "resources/directory/read"])
def test_a_wrong_cursor_is_refused(root: Path, method: str, cursor: object) -> None:
    client = Client(root)
    assert client.error(method, uri="skill://pdf", cursor=cursor)["code"] == -32602


@pytest.mark.spec("S11")
@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize(
    "params",
    [
        {"uri": "skill://refunds/SKILL.md"},
        {"uri": "skill://pdf"},
        {"uri": "skill://pdf/references/FORMS"},
        {"uri": "skill://pdf/_manifest"},
        {"uri": "skill://pdf/../outer/SKILL.md"},
        {"uri": "https://example.com/SKILL.md"},
        {"uri": "pdf"},
        {"uri": 7},
        {"name": "pdf"},
        {},
    ],
)
def test_what_is_no_skill_is_not_got(root: Path, params: JsonObject, modern: bool) -> None:
    error = Client(root, modern=modern).error("skills/get", **params)
    assert error["code"] == -32602
    assert str(root) not in json.dumps(error)
    if params.get("uri") == "skill://refunds/SKILL.md":
        assert error["data"]["suggestions"] == [URIS[0]]
    if "name" in params:
        assert "`uri`" in error["message"]


@pytest.mark.spec("S11")
def test_an_unlisted_skill_is_got_all_the_same(root: Path) -> None:
    folder = add(root, "loose")
    head = "---\nname: loose\ndescription: Loose.\nlicense: 2\n---\n"
    (folder / "SKILL.md").write_text(head)
    client = Client(root, policy="lenient")
    assert [one["uri"] for one in client.call("skills/list")["skills"]] == URIS
    got = client.call("skills/get", uri="skill://loose/SKILL.md")["skill"]
    assert got["frontmatter"]["license"] == 2
    assert got["resources"][0]["size"] == len(head)


@pytest.mark.spec("S12")
def test_every_folder_is_read(root: Path) -> None:
    (root / "pdf/empty").mkdir()
    client = Client(root)

    def children(uri: str) -> list[tuple[str, str]]:
        found = client.call("resources/directory/read", uri=uri)["resources"]
        assert all(one["uri"] == f"{uri}/{one['uri'].rpartition('/')[2]}" for one in found)
        return [(one["uri"].rpartition("/")[2], one["mimeType"]) for one in found]

    assert children("skill://pdf") == [
        ("SKILL.md", "text/markdown"),
        ("empty", "inode/directory"),
        ("references", "inode/directory"),
    ]
    assert children("skill://pdf/empty") == []
    assert children("skill://pdf/references") == [
        ("FORMS", "application/octet-stream"),
        ("deep", "inode/directory"),
    ]
    assert children("skill://pdf/references/deep") == [("more", "application/octet-stream")]
    assert children("skill://outer") == [
        ("SKILL.md", "text/markdown"),
        ("inner", "inode/directory"),
        ("notes", "application/octet-stream"),
    ]
    (root / "pdf/empty/new.md").write_text("new")
    assert children("skill://pdf/empty") == [("new.md", "text/markdown")]
    first, *_ = client.call("resources/directory/read", uri="skill://outer/inner")["resources"]
    assert (first["name"], first["description"]) == ("inner", "Does inner.")


@pytest.mark.spec("S12")
def test_a_folder_is_read_in_pages(root: Path) -> None:
    for number in range(5):
        (root / f"pdf/references/{number}.md").write_text("x")
    client = Client(root, limits=Limits(page=3))
    uri = "skill://pdf/references"
    first = client.call("resources/directory/read", uri=uri)
    second = client.call("resources/directory/read", uri=uri, cursor=first["nextCursor"])
    third = client.call("resources/directory/read", uri=uri, cursor=second["nextCursor"])
    names = [one["name"] for part in (first, second, third) for one in part["resources"]]
    assert names == ["0.md", "1.md", "2.md", "3.md", "4.md", "FORMS", "deep"]
    assert "nextCursor" not in third
    error = client.error("resources/directory/read", uri="skill://pdf", cursor=first["nextCursor"])
    assert error["code"] == -32602


@pytest.mark.spec("S12")
@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize(
    "uri",
    [
        "skill://pdf/SKILL.md",
        "skill://pdf/_manifest",
        "skill://pdf/nothing",
        "skill://nothing",
        "skill://pdf/",
        "skill://pdf/references/..",
        "guide://help",
        None,
    ],
)
def test_what_is_no_folder_is_refused(root: Path, uri: str | None, modern: bool) -> None:
    params = {} if uri is None else {"uri": uri}
    error = Client(root, modern=modern).error("resources/directory/read", **params)
    assert error["code"] == -32602


@pytest.mark.spec("S13")
def test_what_cannot_be_read_now_is_an_internal_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(root)
    monkeypatch.setattr("fast_agent.resources.skill.snapshot.Hashes.of", stale)
    error = client.error("resources/read", uri="skill://pdf/_manifest")
    assert error["code"] == -32603
    assert str(root) not in json.dumps(error)


def stale(*_: object) -> str:
    from fast_agent.resources.skill.snapshot import StaleError

    raise StaleError


@pytest.mark.spec("S14")
@pytest.mark.parametrize(("modern", "code"), [(True, -32602), (False, -32002)])
def test_an_unknown_file_is_refused(root: Path, modern: bool, code: int) -> None:
    error = Client(root, modern=modern).error("resources/read", uri="skill://pdf/nothing.md")
    assert error["code"] == code
    assert error["data"]["uri"] == "skill://pdf/nothing.md"


def test_too_large_a_file_is_in_no_entry(root: Path) -> None:
    (root / "pdf/large.bin").write_bytes(b"x" * 200)
    client = Client(root, limits=Limits(file_bytes=100))
    entry = client.call("skills/get", uri="skill://pdf/SKILL.md")["skill"]
    assert "skill://pdf/large.bin" not in [one["uri"] for one in entry["resources"]]
    found = client.call("resources/directory/read", uri="skill://pdf")["resources"]
    assert "large.bin" not in [one["name"] for one in found]
    assert client.error("resources/read", uri="skill://pdf/large.bin")["code"] == -32602
