from __future__ import annotations

import base64
import json
import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.config.home import is_never_served
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.resources.skill.check import check_provider
from fast_agent.resources.skill.files import folded
from fast_agent.resources.skill.methods import skill_addition
from fast_agent.resources.skill.provider import SkillOptions, SkillProvider
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.text.json_value import JsonObject

CORPUS = Path(__file__).parents[2] / "corpus/skills"
META: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """The corpus of good skills, with what a version control system or some disk cannot hold."""
    root = tmp_path / "good"
    shutil.copytree(CORPUS / "good", root)
    folder = root / "odd-names"
    (folder / 'what? <is> "this" | *.md').write_text("signs\n")
    (folder / "empty").mkdir()
    (folder / "deep/er/est").mkdir(parents=True)
    (folder / "deep/er/est/last.md").write_text("last\n")
    return root


def refuse(problem: Diagnostic) -> None:
    pytest.fail(f"{problem.path}: {problem.message}")


def caller(provider: SkillProvider) -> Callable[..., Any]:
    service = ResourceService(
        Catalog([provider]), ServerInfo("test", "1"), [skill_addition(provider)]
    )
    session = service.open(lambda _method, _params: None)

    def call(method: str, **params: object) -> Any:
        answer = service.answer(session, method, {**params, "_meta": META}, 1)  # pyright: ignore[reportArgumentType]
        assert answer is not None
        assert json.loads(answer.json) == json.loads(json.dumps(answer.data))
        return json.loads(answer.json)

    return call


def body(call: Callable[..., Any], uri: str) -> bytes:
    (content,) = call("resources/read", uri=uri)["contents"]
    assert content["uri"] == uri
    if "text" in content:
        return content["text"].encode()
    return base64.b64decode(content["blob"])


def entries(call: Callable[..., Any]) -> list[Any]:
    found: list[Any] = []
    params: dict[str, str] = {}
    while True:
        page = call("skills/list", **params)
        found += page["skills"]
        if "nextCursor" not in page:
            return found
        params = {"cursor": page["nextCursor"]}


def agree(call: Callable[..., Any], provider: SkillProvider, root: Path) -> int:
    """Check that all inventories say the same, and that it is what is read and what is on disk."""
    checked = 0
    index = {one["uri"]: one for one in json.loads(body(call, "skill://index.json"))["skills"]}
    for entry in entries(call):
        skill_uri = entry["uri"].removesuffix("/SKILL.md")
        owner = provider.owner(Uri.parse(skill_uri))
        assert owner is not None
        skill = owner[0]
        manifest = json.loads(body(call, f"{skill_uri}/_manifest"))
        files = manifest["files"]
        assert files[0]["path"] == "SKILL.md"
        assert [one["path"] for one in files[1:]] == sorted(one["path"] for one in files[1:])
        assert len(files) == len(entry["resources"])
        for file, resource in zip(files, entry["resources"], strict=True):
            data = body(call, resource["uri"])
            assert data == (root / skill.files[file["path"]]).read_bytes()
            assert file["hash"] == resource["digest"] == f"sha256:{sha256(data).hexdigest()}"
            assert file["size"] == resource["size"] == len(data)
            assert resource["uri"] == str(Uri.parse(resource["uri"]))
            assert resource["uri"].startswith(f"{skill_uri}/")
            checked += 1
        assert index.pop(entry["uri"])["resources"] == entry["resources"]
        assert call("skills/get", uri=entry["uri"])["skill"] == entry
    assert index == {}
    return checked


@pytest.mark.spec("S6", "S7", "S8", "SEED-SKILL-18")
def test_inventories_reads_and_disk_agree(good: Path) -> None:
    provider = SkillProvider([good], report=refuse)
    call = caller(provider)
    on_disk = sum(len(files) for _, _, files in os.walk(good))
    nested = 2  # the files of `inner` are those of `team` as well
    assert agree(call, provider, good) == on_disk + nested
    assert agree(call, provider, good) == on_disk + nested


@pytest.mark.spec("SEED-SKILL-2", "SEED-SKILL-3")
@pytest.mark.parametrize("list_files", [False, True])
def test_every_listed_uri_reads(good: Path, list_files: bool) -> None:
    provider = SkillProvider([good], SkillOptions(list_files=list_files), report=refuse)
    call = caller(provider)
    listed = call("resources/list")["resources"]
    assert len(listed) > (40 if list_files else 20)
    for resource in listed:
        data = body(call, resource["uri"])
        assert resource.get("size", len(data)) == len(data)


@pytest.mark.spec("S6")
def test_frontmatter_is_passed_on_whole(good: Path) -> None:
    by_name = {one["frontmatter"]["name"]: one for one in entries(caller(SkillProvider([good])))}
    assert by_name["code-review"]["frontmatter"] == {
        "name": "code-review",
        "description": "Review a change for defects. Use when someone asks for a review.",
        "license": "MIT",
        "compatibility": "Needs git.",
        "allowed-tools": "Read Grep",
        "metadata": {"author": "example", "version": "1.0"},
    }
    assert by_name["values"]["frontmatter"]["metadata"]["released"] == "2026-01-02"
    assert by_name["values"]["frontmatter"]["description"].count("\n") == 2
    assert by_name["crlf"]["frontmatter"] == by_name["bom"]["frontmatter"] | {"name": "crlf"}


@pytest.mark.spec("SEED-SKILL-5")
def test_markup_in_a_description_stays_text(good: Path) -> None:
    from xml.etree import ElementTree as ET

    provider = SkillProvider([good])
    (content,) = provider.read(Uri.parse("skill://prompt-xml"))
    assert content.mime_type == "application/xml"
    skills = ET.fromstring(content.text or "")
    assert [one.tag for one in skills] == ["skill"] * len(provider.skills.skills)
    texts = {one.findtext("name"): one.findtext("description") for one in skills}
    assert texts["markup"] == (
        "Turns <b>&amp;</b> into 'text'. </description></skill><skill> \"Use\" it when asked."
    )
    for one in skills:
        assert provider.read(Uri.parse(one.findtext("location") or ""))


def test_no_answer_holds_a_path_of_the_machine(good: Path) -> None:
    call = caller(SkillProvider([good]))
    answers = [
        call(method)
        for method in ("resources/list", "skills/list", "tools/list", "server/discover")
    ]
    answers += [
        call("resources/read", uri=f"skill://{name}") for name in ("index.json", "prompt-xml")
    ]
    answers += [call("resources/directory/read", uri="skill://odd-names")]
    assert str(good.parent) not in json.dumps(answers)


def test_the_checks_find_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CORPUS)
    found = [
        f"{one.path}{f':{one.span.start.line}:{one.span.start.column}' if one.span else ''}"
        f" {one.code} {one.severity}"
        for one in check_provider(SkillProvider(["bad"]))
    ]
    assert found == (CORPUS / "bad.txt").read_text(encoding="utf-8").splitlines()
    assert all(
        one.hint
        for one in check_provider(SkillProvider(["bad"]))
        if one.code not in {"FA764", "FA762"}
    )
    assert check_provider(SkillProvider(["good"])) == []


def test_what_is_wrong_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CORPUS)
    wrong = {
        line.split(":")[0].split(" ")[0]
        for line in (CORPUS / "bad.txt").read_text(encoding="utf-8").splitlines()
        if line.endswith(" error")
    }
    provider = SkillProvider(["bad"], report=lambda _problem: None)
    served = {f"bad/{one.files['SKILL.md']}" for one in provider.skills.skills}
    heads = {str(one) for one in Path("bad").rglob("SKILL.md")}
    assert served == heads - wrong
    call = caller(provider)
    for resource in call("resources/list")["resources"]:
        assert body(call, resource["uri"])


NAMES = st.text(
    st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="/\\"),
    min_size=1,
    max_size=12,
).filter(
    lambda name: name not in {".", ".."} and len(name.encode()) < 60 and not is_never_served(name)
)
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map(tuple), st.binary(max_size=40), max_size=6
)


@pytest.mark.spec("S7", "S8")
@given(tree=TREES, edit=st.binary(max_size=40))
def test_any_tree_is_served_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[tuple[str, ...], bytes], edit: bytes
) -> None:
    root = tmp_path_factory.mktemp("tree")
    folder = root / "any"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: any\ndescription: Any.\n---\n")
    taken: set[str] = {"skill.md"}
    files: list[Path] = []
    for path, data in tree.items():
        ways = {folded("/".join(path[: end + 1])) for end in range(len(path))}
        if ways & taken or "_manifest" in path:
            continue
        taken |= ways
        file = folder.joinpath(*path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        files.append(file)
    provider = SkillProvider([root], report=refuse)
    call = caller(provider)
    assert agree(call, provider, root) == len(files) + 1
    for file in files[:2]:
        file.write_bytes(edit)
    assert agree(call, provider, root) == len(files) + 1
    shutil.rmtree(root)
