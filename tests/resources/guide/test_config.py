from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.config.fields import config_schema
from fast_agent.config.load import load_settings
from fast_agent.diagnostics.render_human import render_human
from fast_agent.errors import ConfigError
from fast_agent.resources.guide.config import configured_guide, load_guide
from fast_agent.resources.guide.provider import GuideProvider
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.resources.guide.config import GuideConfig


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def guide(root: Path, text: str) -> GuideConfig:
    return load_guide(write(root, {".guide.yaml": text}), "docs")


def problems(root: Path, text: str) -> list[tuple[str, str, str | None, tuple[int, int] | None]]:
    with pytest.raises(ConfigError) as raised:
        guide(root, text)
    return [
        (
            one.code,
            one.message,
            one.hint,
            None if one.span is None else (one.span.start.line, one.span.start.column),
        )
        for one in raised.value.diagnostics
    ]


@pytest.mark.spec("GUIDE-29", "GUIDE-30", "GUIDE-31")
def test_a_file_beside_the_documents(tmp_path: Path) -> None:
    config = guide(
        tmp_path,
        """\
categories:
  howto: { dir: guides/how, patterns: ["*.md", intro], description: How to do it }
  api: {}
collections:
  start: { members: [howto/install, api/**/*.md, api], description: To begin with }
  all: { members: [start, howto] }
""",
    )
    assert config.docroot == str(tmp_path.resolve())
    assert config.shown == "docs"
    howto = config.categories["howto"]
    assert (howto.dir, howto.description) == ("guides/how", "How to do it")
    assert [pattern.text for pattern in howto.patterns] == ["*.md", "intro"]
    assert config.categories["api"].dir == "api"
    assert config.categories["api"].patterns == ()
    members = config.collections["start"].members
    assert [(one.category, one.pattern) for one in members] == [
        ("howto", "install"),
        ("api", "**/*.md"),
        ("api", None),
    ]
    assert [one.collection for one in config.collections["all"].members] == ["start", None]
    assert config.collections["start"].description == "To begin with"


@pytest.mark.spec("GUIDE-29")
def test_the_section_of_the_configuration(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "fastagent.config.yaml": """\
guide:
  docroot: docs
  categories:
    howto: { dir: guides }
  collections:
    start: { members: [howto] }
""",
            "docs/guides/a.md": "a",
        },
    )
    settings = load_settings(cwd=tmp_path, environ={}, home=tmp_path / "home")
    config = configured_guide(settings)
    assert config is not None
    assert GuideProvider(config).read(Uri.parse("guide://collection/start"))[0].text == "a"
    assert "guide" in config_schema()["properties"]  # type: ignore[operator]


def test_no_section_is_no_guide(tmp_path: Path) -> None:
    settings = load_settings(cwd=tmp_path, environ={}, home=tmp_path / "home")
    assert configured_guide(settings) is None


def test_a_docroot_alone_is_that_directorys_own_guide(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "fastagent.config.yaml": "guide: { docroot: docs }",
            "docs/.guide.yaml": "categories: { howto: { dir: guides } }",
            "docs/guides/a.md": "a",
        },
    )
    settings = load_settings(cwd=tmp_path, environ={}, home=tmp_path / "home")
    config = configured_guide(settings)
    assert config is not None
    assert list(config.categories) == ["howto"]


def test_a_section_needs_a_docroot(tmp_path: Path) -> None:
    write(tmp_path, {"fastagent.config.yaml": "guide:\n  categories: { a: {} }\n"})
    settings = load_settings(cwd=tmp_path, environ={}, home=tmp_path / "home")
    with pytest.raises(ConfigError, match="lacks `docroot`") as raised:
        configured_guide(settings)
    (problem,) = raised.value.diagnostics
    assert (problem.code, problem.path) == ("FA771", "fastagent.config.yaml")
    assert problem.span is not None


@pytest.mark.spec("GUIDE-33")
def test_a_wrong_section_is_reported_at_its_place(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "fastagent.config.yaml": """\
guide:
  docroot: .
  categories: { howto: {} }
  collections:
    start:
      members:
        - hwoto/install
""",
        },
    )
    settings = load_settings(cwd=tmp_path, environ={}, home=tmp_path / "home")
    with pytest.raises(ConfigError) as raised:
        configured_guide(settings)
    (problem,) = raised.value.diagnostics
    assert problem.code == "FA776"
    assert problem.hint == "did you mean `howto/install`?"
    assert render_human([problem], color=False).splitlines()[:4] == [
        "error[FA776]: there is no category `hwoto`",
        "  --> fastagent.config.yaml:7:11",
        "7 |         - hwoto/install",
        "  |           ^^^^^^^^^^^^^",
    ]


@pytest.mark.spec("GUIDE-33")
@pytest.mark.parametrize(
    ("member", "message", "hint"),
    [
        ("howtoo", "there is no category or collection `howtoo`", "did you mean `howto`?"),
        ("strat", "there is no category or collection `strat`", "did you mean `start`?"),
        ("zzz", "there is no category or collection `zzz`", "there are: `howto`, `start`, `other`"),
        (
            "start/install",
            "`start` is a collection; only a category takes a name or pattern after it",
            "write `start` alone, or name the category of the document",
        ),
    ],
)
def test_unknown_members(tmp_path: Path, member: str, message: str, hint: str) -> None:
    text = f"""\
categories: {{ howto: {{}} }}
collections:
  start: {{ members: [howto] }}
  other: {{ members: [howto, {member}] }}
"""
    assert problems(tmp_path, text) == [("FA776", message, hint, (4, 29))]


@pytest.mark.spec("GUIDE-32")
@pytest.mark.parametrize(
    ("collections", "ring"),
    [
        ("a: { members: [a] }", "`a` → `a`"),
        ("a: { members: [b] }\n  b: { members: [a] }", "`a` → `b` → `a`"),
        (
            """x: { members: [a] }
  a: { members: [c, b] }
  b: { members: [c, a] }
  c: { members: [d] }""",
            "`a` → `b` → `a`",
        ),
    ],
)
def test_rings_of_collections(tmp_path: Path, collections: str, ring: str) -> None:
    found = problems(tmp_path, f"categories: {{ d: {{}} }}\ncollections:\n  {collections}\n")
    assert [(code, message.partition(": ")[2]) for code, message, _, _ in found] == [
        ("FA777", ring)
    ]
    assert found[0][3] is not None


def test_a_long_chain_of_collections_is_no_ring(tmp_path: Path) -> None:
    chain = "".join(f"  c{n}: {{ members: [c{n + 1}] }}\n" for n in range(3000))
    config = guide(
        write(tmp_path, {"d/a.md": "a"}),
        f"categories: {{ d: {{}} }}\ncollections:\n{chain}  c3000: {{ members: [d] }}\n",
    )
    assert GuideProvider(config).read(Uri.parse("guide://collection/c0"))[0].text == "a"


def test_a_member_may_have_the_name_of_its_own_collection(tmp_path: Path) -> None:
    config = guide(
        write(tmp_path, {"d/a.md": "a"}),
        "categories: { d: {} }\ncollections: { d: { members: [d] } }\n",
    )
    assert config.collections["d"].members[0].category == "d"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("categories: { 'a/b': {} }", "FA772", "holds a `/`"),
        ("categories: { 'a*': {} }", "FA772", "holds a wildcard"),
        ("categories: { '..': { dir: a } }", "FA772", "has the segment `..`"),
        ("collections: { 'a?': { members: [] } }", "FA772", "holds a wildcard"),
        ("categories: { é: {}, e\u0301: {} }", "FA772", "composed form"),
        ("categories: { a: { dir: ../b } }", "FA773", "leads out of its directory"),
        ("categories: { a: { dir: /etc } }", "FA773", "is an absolute path"),
        ("categories: { a: { patterns: [/x] } }", "FA775", "`/x` can match no document"),
        ("categories: { a: { patterns: ['x//y'] } }", "FA775", "can match no document"),
        ("categories: { a: { patterns: ['../y'] } }", "FA775", "can match no document"),
        ("categories: { a: {} }\ncollections: { c: { members: ['a/'] } }", "FA775", "can match no"),
        ("categories: { a: { dri: b } }", "FA303", "has no key `dri`"),
        ("categories: { a: { patterns: '*.md' } }", "FA304", "must be a list"),
        ("collections: { c: {} }", "FA305", "needs `members`"),
        ("categories: {\n", "FA302", ""),
        ("docroot: missing", "FA771", "the docroot `missing` cannot be read"),
        ("docroot: ..", "FA771", "leads out of the directory"),
        ("docroot: /", "FA771", "leads out of the directory"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, code: str, message: str) -> None:
    found = problems(tmp_path, text)
    assert [one[0] for one in found] == [code]
    assert message in found[0][1]
    assert found[0][3] is not None
    assert str(tmp_path) not in str(found)


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    text = """\
categories: { 'a*': { dir: .. }, b: { patterns: [/x, '**'] } }
collections: { c: { members: [zz, yy] }, d: { members: [d] } }
"""
    codes = [one[0] for one in problems(tmp_path, text)]
    assert codes == ["FA772", "FA773", "FA775", "FA776", "FA776", "FA777"]


def test_a_file_named_itself_may_lead_elsewhere(tmp_path: Path) -> None:
    write(tmp_path, {"conf/my.yaml": "docroot: ../docs\n", "docs/howto/a.md": "a"})
    config = load_guide(tmp_path / "conf" / "my.yaml")
    assert config.docroot == str((tmp_path / "docs").resolve())
    assert list(config.categories) == ["howto"]


def test_a_directory_without_a_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"howto/x/a.md": "", "b.md": "", ".git/c": "", "node_modules/d": "", "odd[1]/e.md": ""},
    )
    config = load_guide(tmp_path)
    assert {name: one.dir for name, one in config.categories.items()} == {
        "documents": "",
        "howto": "howto",
    }
    index = GuideProvider(config)
    assert list(index.resources()) == [
        "guide://help",
        "guide://document/documents/b.md",
        "guide://document/howto/x/a.md",
    ]


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file or directory"):
        load_guide(tmp_path / "nothing")


def test_a_missing_directory_is_reported_with_the_name_that_was_meant(tmp_path: Path) -> None:
    write(tmp_path, {"guides/a.md": "a"})
    (tmp_path / "linked").symlink_to(tmp_path / "guides")
    config = guide(
        tmp_path,
        "categories:\n  howto: { dir: giudes }\n  link: { dir: linked }\n  all: { dir: . }\n",
    )
    found = [(one.code, one.message, one.hint) for one in GuideProvider(config).diagnostics()]
    assert ("FA774", "the directory `giudes` does not exist", "did you mean `guides`?") in found
    assert ("FA774", "the directory `linked` is a link; links are not followed") in [
        one[:2] for one in found
    ]


def test_members_that_fit_nothing_are_reported(tmp_path: Path) -> None:
    config = guide(
        write(tmp_path, {"a/install.md": "", "b/.hidden": ""}),
        "categories: { a: {}, b: {} }\ncollections: { c: { members: [a/instal.md, 'a/*.txt'] } }\n",
    )
    found = [(one.code, one.message, one.hint) for one in GuideProvider(config).diagnostics()]
    assert found == [
        ("FA778", "the category `b` holds no document", "check its directory and patterns"),
        ("FA778", "`a/instal.md` matches no document", "did you mean `a/install.md`?"),
        ("FA778", "`a/*.txt` matches no document", None),
    ]
