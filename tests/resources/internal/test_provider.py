"""The packaged documents: the manifest, the provider, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.errors import ResourceError
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.internal import provider as internal
from fast_agent.resources.internal.provider import InternalProvider, read_manifest
from fast_agent.resources.problem import InvalidUri, NotFound, UnavailableResource
from fast_agent.resources.provider import Provider
from fast_agent.resources.resource import TAGS, TOKENS, WHY, estimate
from fast_agent.resources.search import SearchIndex

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
PLACE = Path(internal.__file__).with_name("documents")


def entry(**changes: object) -> dict[str, Any]:
    """Make a sound entry, with some of it changed; None leaves a field out."""
    made = {
        "uri": "internal://fast-agent/notes",
        "title": "Notes",
        "description": "What was noted.",
        "why": "Use when something was noted.",
        "mime_type": "text/markdown",
        "source": "notes.md",
        "tags": ["notes"],
        "size": 6,
        "tokens": 2,
        **changes,
    }
    return {name: value for name, value in made.items() if value is not None}


def manifest(*entries: object) -> str:
    return json.dumps({"version": 1, "resources": list(entries)})


@pytest.fixture(name="provider")
def _provider() -> InternalProvider:
    return InternalProvider()


@pytest.fixture(name="catalog")
def _catalog(provider: InternalProvider) -> Catalog:
    return Catalog([provider])


@pytest.mark.spec("INTERNAL-1", "INTERNAL-5", "INTERNAL-6")
def test_every_listed_document_reads_as_the_manifest_says(
    catalog: Catalog, provider: InternalProvider
) -> None:
    listed = catalog.listing().entries(catalog.listing().uris)
    assert len(listed) >= 9
    for resource in listed:
        (content,) = catalog.read(resource.uri)
        assert content.uri == resource.uri
        assert content.mime_type == resource.mime_type == "text/markdown"
        assert content.text is not None
        assert len(content.text.encode()) == resource.size
        assert resource.meta is not None
        assert resource.meta[TOKENS] == estimate(len(content.text))
        assert resource.title
        assert resource.description
        assert str(resource.meta[WHY]).startswith("Use ")
        assert resource.meta[TAGS]


@pytest.mark.spec("INTERNAL-2")
def test_guides_to_everything_a_card_needs_are_there(provider: InternalProvider) -> None:
    ids = {one.id for one in provider.by_uri.values()}
    assert ids >= {
        "smart-agent-cards",
        "workflows",
        "histories",
        "resources",
        "configuration",
        "hooks",
        "skills/index",
    }


@pytest.mark.spec("INTERNAL-3", "INTERNAL-4", "INTERNAL-7")
@pytest.mark.parametrize(
    "uri",
    [
        "internal://fast-agent/manifest.json",
        "internal://fast-agent/smart-agent-cards.md",
        "internal://fast-agent/../provider.py",
        "internal://fast-agent/%2e%2e/internal.py",
        "internal://fast-agent/skills/..%2f..%2fmanifest.json",
        "internal://fast-agent/Smart-Agent-Cards",
        "internal://fast-agent/%2Fetc%2Fpasswd",
        "internal:///etc/passwd",
        "internal://other/smart-agent-cards",
        "internal://fast-agent",
        "internal://fast-agent/skills/none/SKILL.md",
    ],
)
def test_only_what_the_manifest_lists_can_be_read(catalog: Catalog, uri: str) -> None:
    with pytest.raises((NotFound, InvalidUri)) as raised:
        catalog.read(uri)
    assert str(PLACE) not in raised.value.message + (raised.value.hint or "")


@pytest.mark.spec("INTERNAL-7")
def test_an_unknown_uri_names_the_closest(catalog: Catalog) -> None:
    with pytest.raises(NotFound) as raised:
        catalog.read("internal://fast-agent/workflow")
    assert raised.value.suggestions == ("internal://fast-agent/workflows",)


@pytest.mark.spec("INTERNAL-4")
def test_a_provider_offers_no_way_to_write(provider: InternalProvider) -> None:
    before = {path: path.read_bytes() for path in PLACE.rglob("*") if path.is_file()}
    public = {name for name in dir(provider) if not name.startswith("_")}
    contract = {name for name in dir(Provider) if not name.startswith("_")}
    assert public - contract == {"by_uri", "index", "find", "text_of"}
    for uri in provider.by_uri.values():
        provider.read(uri.uri)
    assert {path: path.read_bytes() for path in PLACE.rglob("*") if path.is_file()} == before


@pytest.mark.spec("INTERNAL-6")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "the manifest is not JSON"),
        ("[]", "not an object with a list `resources`"),
        ('{"version": 1, "resources": {}}', "not an object with a list `resources`"),
        ('{"version": 2, "resources": []}', "not of version 1"),
        (manifest(3), "entry 0 of the manifest is not an object"),
        (manifest(entry(title=None)), "has no text `title`"),
        (manifest(entry(why=" ")), "has no text `why`"),
        (manifest(entry(description=4)), "has no text `description`"),
        (manifest(entry(mime_type=None)), "has no text `mime_type`"),
        (manifest(entry(size=-1)), "has no number `size`"),
        (manifest(entry(size=True)), "has no number `size`"),
        (manifest(entry(tokens="2")), "has no number `tokens`"),
        (manifest(entry(tags="notes")), "`tags` that are not a list"),
        (manifest(entry(tags=[1])), "`tags` that are not a list"),
        (manifest(entry(source="../provider.py")), "leads out of its directory"),
        (manifest(entry(source="/etc/passwd")), "is an absolute path"),
        (manifest(entry(uri="guide://fast-agent/notes")), "does not start with"),
        (manifest(entry(uri="internal://else/notes")), "does not start with"),
        (manifest(entry(uri="internal://fast-agent")), "does not start with"),
        (manifest(entry(uri="notes")), "is not a resource URI"),
        (manifest(entry(), entry()), "is in the manifest twice"),
    ],
)
def test_a_wrong_manifest_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ResourceError) as raised:
        read_manifest(text)
    assert problem in raised.value.message


def test_a_sound_manifest_is_read() -> None:
    (document,) = read_manifest(manifest(entry(tags=None)))
    assert document.id == "notes"
    assert document.tags == ()


def changed(place: Path) -> None:
    (place / "notes.md").write_text("longer than it was")


def binary(place: Path) -> None:
    (place / "notes.md").write_bytes(b"\xff\xfe\xfd\xfc\xfb\xfa")


def gone(place: Path) -> None:
    (place / "notes.md").unlink()


@pytest.mark.spec("INTERNAL-7")
@pytest.mark.parametrize("damage", [changed, binary, gone])
def test_a_damaged_installation_is_reported_without_a_path(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    (tmp_path / "manifest.json").write_text(manifest(entry()))
    (tmp_path / "notes.md").write_text("a note")
    catalog = Catalog([InternalProvider(tmp_path)])
    assert catalog.read("internal://fast-agent/notes")[0].text == "a note"
    damage(tmp_path)
    with pytest.raises(UnavailableResource) as raised:
        catalog.read("internal://fast-agent/notes")
    assert "installation" in raised.value.message
    assert str(tmp_path) not in raised.value.message


def test_files_that_an_installer_linked_are_read(tmp_path: Path) -> None:
    place = tmp_path / "installed"
    place.mkdir()
    (tmp_path / "cached.md").write_text("a note")
    (place / "manifest.json").write_text(manifest(entry()))
    (place / "notes.md").symlink_to(tmp_path / "cached.md")
    assert Catalog([InternalProvider(place)]).read("internal://fast-agent/notes")


def test_a_missing_manifest_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UnavailableResource):
        InternalProvider(tmp_path).resources()


@pytest.mark.spec("INTERNAL-8")
@pytest.mark.parametrize("name", ["smart-agent-cards", "smart_agent_cards", "Smart_Agent_Cards"])
def test_a_document_is_found_by_its_id_in_any_spelling(
    provider: InternalProvider, name: str
) -> None:
    assert provider.find(name).uri.text == "internal://fast-agent/smart-agent-cards"


@pytest.mark.spec("INTERNAL-8")
def test_an_unknown_id_names_the_closest_or_all(provider: InternalProvider) -> None:
    with pytest.raises(NotFound) as raised:
        provider.find("workflow")
    assert raised.value.suggestions == ("workflows",)
    with pytest.raises(NotFound) as raised:
        provider.find("nothing-like-it-at-all")
    assert "histories" in raised.value.suggestions


@pytest.mark.spec("INTERNAL-9")
def test_skills_have_an_index_and_full_bodies(catalog: Catalog, provider: InternalProvider) -> None:
    (index,) = catalog.read("internal://fast-agent/skills/index")
    names = provider.complete("internal://fast-agent/skills/{name}/SKILL.md", "name", "", {})
    folders = sorted(path.name for path in (PLACE / "skills").iterdir() if path.is_dir())
    assert sorted(names) == folders
    assert len(folders) >= 3
    for name in folders:
        uri = f"internal://fast-agent/skills/{name}/SKILL.md"
        (content,) = catalog.read(uri)
        assert content.text == (PLACE / "skills" / name / "SKILL.md").read_text("utf-8")
        assert f"`{uri}`" in (index.text or "")


def test_names_of_skills_are_completed(catalog: Catalog) -> None:
    template = "internal://fast-agent/skills/{name}/SKILL.md"
    assert catalog.complete(template, "name", "writing", {}) == ("writing-agent-cards",)
    with pytest.raises(NotFound):
        catalog.complete(template, "path", "", {})


def test_the_index_leaves_single_skills_to_the_list_of_skills(provider: InternalProvider) -> None:
    ids = [one.id for one in provider.index]
    assert "skills/index" in ids
    assert not any(name.endswith("SKILL.md") for name in ids)


def test_the_documents_are_searched(catalog: Catalog) -> None:
    index = SearchIndex(catalog)
    try:
        hits = index.search("child_timeout_sec")
        assert "internal://fast-agent/smart-agent-cards" in [hit.uri for hit in hits]
    finally:
        index.close()


@pytest.mark.spec("INTERNAL-5")
def test_nothing_changes(provider: InternalProvider) -> None:
    (first, *_) = provider.by_uri.values()
    assert provider.revision == 0
    assert provider.places() == ()
    assert not provider.refresh()
    assert provider.fingerprint(first.uri)
    assert provider.fingerprint(first.uri.child("none")) == ""
    assert provider.resources() is provider.resources()


@pytest.mark.spec("INTERNAL-10")
def test_the_wheel_holds_the_manifest_and_every_document(tmp_path: Path) -> None:
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    wheel = tmp_path / done.stdout.strip().splitlines()[-1]
    held = set(zipfile.ZipFile(wheel).namelist())
    sources = [one.source for one in InternalProvider().by_uri.values()]
    for name in ("manifest.json", *sources):
        assert f"fast_agent/resources/internal/documents/{name}" in held
