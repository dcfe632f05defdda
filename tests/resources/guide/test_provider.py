from __future__ import annotations

import email.parser
import email.policy
import hashlib
import os
from email.message import EmailMessage
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast_agent.errors import ResourceError
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.guide.config import load_guide
from fast_agent.resources.guide.provider import GuideProvider
from fast_agent.resources.problem import (
    AmbiguousName,
    InvalidUri,
    NotFound,
    TooLarge,
    UnavailableResource,
    error_object,
)
from fast_agent.resources.resource import Limits
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fast_agent.resources.resource import ResourceContent

GUIDE = """\
categories:
  howto: { dir: guides, description: How to do | it }
  api: { patterns: ["**/*.md"] }
  both: {}
collections:
  start: { members: [howto/install, "api/v?/*"], description: To begin with }
  both: { members: [api] }
  one: { members: [howto/use.md] }
  all: { members: [start, both, howto] }
  none: { members: ["howto/*.nothing"] }
"""
FILES = {
    "guides/install.md": b"# Install\r\nwith \xc3\xa9\r\n",
    "guides/use.md": b"# Use",
    "guides/use.txt": b"use",
    "guides/deep/more.md": b"more\n",
    "guides/pic.png": b"\x89PNG\xff\n\n",
    "guides/empty.md": b"",
    "guides/odd[1] *?#%.md": b"odd",
    "api/v1/ref.md": b"v1",
    "api/v2/ref.md": b"v2",
    "api/v2/ref.txt": b"no member of the category",
    "both/ref.md": b"both",
    "both/own.md": b"own",
}


def write(root: Path, files: Mapping[str, bytes], guide: str = GUIDE) -> Path:
    for name, data in {**files, ".guide.yaml": guide.encode()}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def catalog(root: Path, limits: Limits | None = None) -> Catalog:
    limits = limits or Limits()
    return Catalog([GuideProvider(load_guide(root, "docs"), limits)], limits)


@pytest.fixture
def guide(tmp_path: Path) -> Catalog:
    return catalog(write(tmp_path, FILES))


def read(guide: Catalog, uri: str) -> ResourceContent:
    (content,) = guide.read(uri)
    return content


def parts(content: ResourceContent) -> list[EmailMessage]:
    parser = email.parser.BytesParser(policy=email.policy.HTTP)
    message = parser.parsebytes(content.bytes)
    assert isinstance(message, EmailMessage)
    assert message.get_content_type() == "multipart/mixed"
    assert content.mime_type == message["Content-Type"]
    assert message["MIME-Version"] == "1.0"
    assert not message.defects
    found = list(message.iter_parts())
    assert all(isinstance(part, EmailMessage) and not part.defects for part in found)
    return [part for part in found if isinstance(part, EmailMessage)]


def bodies(content: ResourceContent) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for part in parts(content):
        payload = part.get_payload(decode=True)
        assert isinstance(payload, bytes)
        found[str(part["Content-Location"])] = payload
    return found


def howto(*names: str) -> list[str]:
    return [Uri.of("guide", ("document", "howto", *name.split("/"))).text for name in names]


@pytest.mark.spec("GUIDE-2", "GUIDE-8", "GUIDE-9", "GUIDE-12")
@pytest.mark.parametrize(
    ("uri", "names"),
    [
        (
            "guide://category/howto",
            [
                "deep/more.md",
                "empty.md",
                "install.md",
                "odd[1] *?#%.md",
                "pic.png",
                "use.md",
                "use.txt",
            ],
        ),
        ("guide://category/howto/use.*", ["use.md", "use.txt"]),
        ("guide://category/howto/us%3F.md", ["use.md"]),
        ("guide://category/howto/%5Be-i%5D*.md", ["empty.md", "install.md"]),
        ("guide://category/howto/[e-i]*.md", ["empty.md", "install.md"]),
        ("guide://category/howto/**/*more.md", ["deep/more.md"]),
        ("guide://category/howto/deep/**", ["deep/more.md"]),
        ("guide://category/howto/odd%5B1%5D%20%2A%3F%23%25.md", ["odd[1] *?#%.md"]),
    ],
)
def test_categories_and_patterns(guide: Catalog, uri: str, names: list[str]) -> None:
    content = read(guide, uri)
    if len(names) == 1:
        assert [content.uri.text] == howto(*names)
        assert content.bytes == FILES[f"guides/{names[0]}"]
    else:
        expected = {
            uri: FILES[f"guides/{name}"] for uri, name in zip(howto(*names), names, strict=True)
        }
        assert bodies(content) == expected
        assert content.uri == Uri.parse(uri)


@pytest.mark.spec("GUIDE-12")
def test_an_exact_document_is_united_with_what_its_name_fits(tmp_path: Path) -> None:
    write(tmp_path, {"d/a[1].md": b"exact", "d/a1.md": b"fits", "d/a2.md": b"neither"}, "")
    content = read(catalog(tmp_path), "guide://category/d/a%5B1%5D.md")
    assert bodies(content) == {
        "guide://document/d/a%5B1%5D.md": b"exact",
        "guide://document/d/a1.md": b"fits",
    }
    exact = read(catalog(tmp_path), "guide://document/d/a%5B1%5D.md")
    assert exact.text == "exact"


@pytest.mark.spec("GUIDE-8", "GUIDE-31")
def test_collections(guide: Catalog) -> None:
    assert list(bodies(read(guide, "guide://collection/start"))) == [
        "guide://document/api/v1/ref.md",
        "guide://document/api/v2/ref.md",
        "guide://document/howto/install.md",
    ]
    assert len(bodies(read(guide, "guide://collection/all"))) == 11
    assert read(guide, "guide://collection/one").uri.text == "guide://document/howto/use.md"


def test_a_file_in_two_categories_is_once_in_a_collection(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"a/x.md": b"x", "a/y.md": b"y"},
        "categories: { z: { dir: a }, all: { dir: . } }\ncollections: { c: { members: [z, all] } }",
    )
    guide = catalog(tmp_path)
    assert list(bodies(read(guide, "guide://collection/c"))) == [
        "guide://document/all/a/x.md",
        "guide://document/all/a/y.md",
    ]
    assert list(bodies(read(guide, "guide://category/z"))) == [
        "guide://document/z/x.md",
        "guide://document/z/y.md",
    ]


@pytest.mark.spec("GUIDE-10", "GUIDE-11", "GUIDE-13", "GUIDE-14", "GUIDE-18", "GUIDE-20")
@pytest.mark.parametrize(
    ("uri", "canonical", "file"),
    [
        ("guide://category/howto/use.md", "howto/use.md", "guides/use.md"),
        ("guide://category/howto/install", "howto/install.md", "guides/install.md"),
        ("guide://category/howto/deep/more", "howto/deep/more.md", "guides/deep/more.md"),
        ("guide://document/howto/use.txt", "howto/use.txt", "guides/use.txt"),
        ("guide://document/howto/install", "howto/install.md", "guides/install.md"),
        ("guide://document/start/install", "howto/install.md", "guides/install.md"),
        ("guide://document/all/v1/ref.md", "api/v1/ref.md", "api/v1/ref.md"),
        ("guide://document/both/ref", "both/ref.md", "both/ref.md"),
        ("guide://document/both/v2/ref", "api/v2/ref.md", "api/v2/ref.md"),
        ("GUIDE://document/howto/us%65.md", "howto/use.md", "guides/use.md"),
    ],
)
def test_one_document(guide: Catalog, uri: str, canonical: str, file: str) -> None:
    content = read(guide, uri)
    assert content.uri.text == f"guide://document/{canonical}"
    assert content.bytes == FILES[file]
    assert read(guide, content.uri.text) == content


@pytest.mark.spec("GUIDE-19", "GUIDE-28")
def test_own_media_types(guide: Catalog) -> None:
    assert read(guide, "guide://document/howto/use.md").mime_type == "text/markdown"
    assert read(guide, "guide://document/howto/use.txt").mime_type == "text/plain"
    picture = read(guide, "guide://document/howto/pic.png")
    assert (picture.mime_type, picture.text) == ("image/png", None)
    assert picture.blob == FILES["guides/pic.png"]


@pytest.mark.spec("GUIDE-16")
def test_a_category_and_a_collection_of_one_name(guide: Catalog) -> None:
    assert list(bodies(read(guide, "guide://category/both"))) == [
        "guide://document/both/own.md",
        "guide://document/both/ref.md",
    ]
    assert list(bodies(read(guide, "guide://collection/both"))) == [
        "guide://document/api/v1/ref.md",
        "guide://document/api/v2/ref.md",
    ]


@pytest.mark.spec("GUIDE-15")
@pytest.mark.parametrize(
    ("uri", "candidates"),
    [
        ("guide://category/howto/use", ["howto/use.md", "howto/use.txt"]),
        ("guide://document/howto/use", ["howto/use.md", "howto/use.txt"]),
        ("guide://document/all/use", ["howto/use.md", "howto/use.txt"]),
    ],
)
def test_ambiguous_names(guide: Catalog, uri: str, candidates: list[str]) -> None:
    with pytest.raises(AmbiguousName) as raised:
        guide.read(uri)
    assert list(raised.value.candidates) == [f"guide://document/{one}" for one in candidates]


def test_a_collection_with_one_name_twice(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"a/x.md": b"a", "b/x.md": b"b"},
        "categories: { a: {}, b: {} }\ncollections: { c: { members: [a, b] } }",
    )
    with pytest.raises(AmbiguousName) as raised:
        catalog(tmp_path).read("guide://document/c/x.md")
    assert raised.value.candidates == ("guide://document/a/x.md", "guide://document/b/x.md")


@pytest.mark.spec("GUIDE-13", "GUIDE-17")
@pytest.mark.parametrize(
    ("uri", "suggestions"),
    [
        ("guide://category/hwoto", ["guide://category/howto"]),
        ("guide://category/hwoto/use.md", ["guide://category/howto/use.md"]),
        ("guide://category/start", ["guide://collection/start"]),
        ("guide://collection/api", ["guide://category/api"]),
        ("guide://collection/strat", ["guide://collection/start"]),
        ("guide://document/hwoto/use.md", ["guide://document/howto/use.md"]),
        ("guide://document/howto/instal", howto("install.md")),
        ("guide://document/howto/deep/mroe.md", howto("deep/more.md")),
        ("guide://document/howto/more", howto("deep/more.md")),
        ("guide://document/api/deep/more.md", howto("deep/more.md")),
        ("guide://document/howto/Use.MD", howto("use.md", "use.txt")),
        ("guide://document/howto/*.md", ["guide://category/howto/*.md"]),
        ("guide://document/start/*.md", []),
        ("guide://document/howto/zzzzzz", []),
        ("guide://category/howto/*.zzz", []),
        ("guide://category/howto/deep", []),
        ("guide://collection/none", []),
        ("guide://categry/howto", ["guide://category/howto", "guide://help"]),
        ("guide://howto/use.md", ["guide://category/howto/use.md", "guide://help"]),
        ("guide://hepl", ["guide://help"]),
        ("guide://document/howto", ["guide://category/howto", "guide://help"]),
        ("guide://document/start", ["guide://collection/start", "guide://help"]),
        ("guide://nothing", ["guide://help"]),
    ],
)
def test_close_matches(guide: Catalog, uri: str, suggestions: list[str]) -> None:
    with pytest.raises(NotFound) as raised:
        guide.read(uri)
    assert list(raised.value.suggestions) == suggestions


@pytest.mark.spec("GUIDE-5")
@pytest.mark.parametrize(
    "uri",
    [
        "guide://",
        "guide://category/",
        "guide://category/howto/",
        "guide://category/howto//use.md",
        "guide://category/howto/../api",
        "guide://document/howto/%2e%2e/%2e%2e/etc/passwd",
        "guide://document/howto/..%2f..%2fetc%2fpasswd",
        "guide://document/howto/a%00b",
        "guide://document/howto/use.md#part",
        "guide://category/howto/us?.md",
        "guide:category/howto",
        "guide://document/howto/%zz",
        "guide://document/howto/" + "x" * 3000,
    ],
)
def test_what_is_no_uri(guide: Catalog, uri: str) -> None:
    with pytest.raises(InvalidUri):
        guide.read(uri)


@pytest.mark.spec("GUIDE-5")
def test_other_schemes_are_not_guides(guide: Catalog) -> None:
    with pytest.raises(NotFound):
        guide.read("skill://howto/use.md")


@pytest.mark.spec("GUIDE-6", "GUIDE-7")
def test_help_is_made_of_the_guide(guide: Catalog) -> None:
    page = read(guide, "guide://help")
    assert (page.uri.text, page.mime_type) == ("guide://help", "text/markdown")
    text = page.text or ""
    for template in [one.template for one in guide.templates()]:
        assert f"`{template}`" in text
    assert "| `guide://category/howto` | 7 | How to do \\| it |" in text
    assert (
        "| `guide://collection/start` | 3 | `howto/install`, `api/v?/*` | To begin with |" in text
    )
    for word in ("multipart/mixed", "RFC 2046", "Content-Location", "ETag", "%3F", "200", "4 MiB"):
        assert word in text
    examples = [line.split("`")[1] for line in text.splitlines() if line.startswith("- `guide:")]
    assert len(examples) == 3
    assert all(guide.read(uri) for uri in examples)


@pytest.mark.spec("GUIDE-6")
def test_help_follows_the_documents(tmp_path: Path) -> None:
    guide = catalog(write(tmp_path, FILES))
    before = read(guide, "guide://help").text
    (tmp_path / "both" / "new.md").write_text("new")
    after = read(guide, "guide://help").text
    assert before != after
    assert "| `guide://category/both` | 3 |" in (after or "")


@pytest.mark.spec("GUIDE-6")
def test_help_of_an_empty_guide(tmp_path: Path) -> None:
    text = read(catalog(tmp_path), "guide://help").text or ""
    assert "0 documents in 0 categories" in text


@pytest.mark.spec("GUIDE-21", "GUIDE-22", "GUIDE-23", "GUIDE-28")
def test_multipart_answers(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    for name in FILES:
        os.utime(tmp_path / name, (784111777, 784111777))
    content = read(catalog(tmp_path), "guide://category/howto")
    assert content.text is not None
    assert "# Install\r\nwith é\r\n" in content.text
    assert content.mime_type is not None
    assert content.mime_type.startswith('multipart/mixed; boundary="')
    for part in parts(content):
        uri = str(part["Content-Location"])
        data = read(catalog(tmp_path), uri).bytes
        assert part["Content-Length"] == str(len(data))
        assert part["Last-Modified"] == "Sun, 06 Nov 1994 08:49:37 GMT"
        assert part["ETag"] == f'"sha256-{hashlib.sha256(data).hexdigest()}"'
        assert part.get_content_type() == read(catalog(tmp_path), uri).mime_type
        if not uri.endswith(".png"):
            assert part.get_content_charset() == "utf-8"


@pytest.mark.spec("GUIDE-25")
def test_the_same_read_gives_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    first = read(catalog(tmp_path), "guide://collection/all")
    guide = catalog(tmp_path)
    assert [read(guide, "guide://collection/all").json for _ in range(3)] == [first.json] * 3
    assert list(bodies(first)) == sorted(bodies(first))


NAMES = st.text(
    alphabet=st.characters(exclude_characters="/\\", exclude_categories=["C"]),
    min_size=1,
    max_size=12,
).filter(lambda name: not name.startswith(".") and len(name.encode()) < 100)


@pytest.mark.spec("GUIDE-21", "GUIDE-24")
@settings(max_examples=60)
@given(
    files=st.dictionaries(
        st.tuples(NAMES, st.sampled_from([".md", ".txt", ".png", ""])).map("".join),
        st.binary(max_size=60)
        | st.text(max_size=60).map(str.encode)
        | st.sampled_from([b"--part-\r\n\r\n--", b"\r", b"\n", b"a\r\n", b"\xef\xbb\xbfa", b"."]),
        min_size=2,
        max_size=6,
    )
)
def test_every_content_location_reads_the_same_bytes(
    files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("guide")
    for name, data in files.items():
        (root / "d").mkdir(exist_ok=True)
        (root / "d" / name).write_bytes(data)
    guide = catalog(root)
    names = [one for one in guide.listing().uris if one != "guide://help"]
    if len(names) < 2:  # equal but for letter case or composition
        return
    found = bodies(read(guide, "guide://category/d"))
    assert sorted(found) == names
    for uri, data in found.items():
        assert Uri.parse(uri).text == uri
        assert read(guide, uri).bytes == data
        assert read(guide, uri).uri.text == uri
        name = Uri.parse(uri).segments[-1]
        assert files.get(name, data) == data


@pytest.mark.spec("GUIDE-26")
def test_too_many_parts_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {f"d/{n:03}.md": b"x" for n in range(120)}, "")
    assert len(bodies(read(catalog(tmp_path), "guide://category/d"))) == 120
    with pytest.raises(TooLarge) as raised:
        catalog(tmp_path, Limits(parts=119)).read("guide://category/d")
    problem = raised.value
    assert (problem.count, problem.limit, problem.unit) == (120, 119, "parts")
    assert problem.samples == tuple(f"guide://document/d/{n:03}.md" for n in range(3))
    assert error_object(problem, "modern")["code"] == -32602


@pytest.mark.spec("GUIDE-26")
def test_too_many_bytes_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {f"d/{n}.md": b"x" * 100 for n in range(10)}, "")
    with pytest.raises(TooLarge) as raised:
        catalog(tmp_path, Limits(answer_bytes=999)).read("guide://category/d/*")
    assert (raised.value.count, raised.value.limit, raised.value.unit) == (1000, 999, "bytes")
    assert len(raised.value.samples) == 3


@pytest.mark.spec("GUIDE-26", "GUIDE-27")
def test_a_file_over_the_limit(tmp_path: Path) -> None:
    write(tmp_path, {"d/big.md": b"x" * 101, "d/small.md": b"x" * 100}, "")
    guide = catalog(tmp_path, Limits(file_bytes=100))
    with pytest.raises(TooLarge) as raised:
        guide.read("guide://document/d/big.md")
    assert (raised.value.count, raised.value.limit) == (101, 100)
    found = parts(read(guide, "guide://category/d"))
    assert [str(part["X-Resource-Problem"]) for part in found] == [
        "holds 101 bytes, more than the limit of 100",
        "None",
    ]
    assert bodies(read(guide, "guide://category/d"))["guide://document/d/small.md"] == b"x" * 100


@pytest.mark.spec("GUIDE-27")
def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, {"d/a.md": b"a", "d/b.md": b"b", "d/c.md": b"c"}, "")
    guide = catalog(tmp_path)
    for folder in (tmp_path, tmp_path / "d"):
        os.utime(folder, (1, 1))
    guide.read("guide://category/d")
    (tmp_path / "d" / "b.md").unlink()
    (tmp_path / "d" / "b.md").symlink_to(tmp_path / "d" / "a.md")
    os.utime(tmp_path / "d", (1, 1))  # as if it had been swapped between the look and the read
    with pytest.raises(UnavailableResource, match=r"goes through the link `b\.md`"):
        guide.read("guide://document/d/b.md")
    found = parts(read(guide, "guide://category/d"))
    assert [str(part["X-Resource-Problem"]) for part in found] == [
        "None",
        "goes through the link `b.md`",
        "None",
    ]
    assert bodies(read(guide, "guide://category/d"))["guide://document/d/c.md"] == b"c"


def test_no_problem_holds_an_absolute_path(tmp_path: Path) -> None:
    write(tmp_path, {"d/a.md": b"a" * 200}, "categories: { d: {}, gone: {} }")
    guide = catalog(tmp_path, Limits(file_bytes=100, tree_files=50))
    for uri in ("guide://document/d/a.md", "guide://category/gone", "guide://document/d/b"):
        with pytest.raises(ResourceError) as raised:
            guide.read(uri)
        assert str(tmp_path) not in str(error_object(raised.value, "modern"))
