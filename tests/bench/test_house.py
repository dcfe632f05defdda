"""The counts of the house, in small trees whose counts are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bench.house.__main__ import ROOT
from bench.house.source import LATER, PACKAGE, House

if TYPE_CHECKING:
    from pathlib import Path


def house(root: Path, **files: str) -> House:
    for name, text in files.items():
        path = root / f"{name.replace('__in__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return House(root)


IMPORT_BY_STRING = {
    "fast_agent",  # public names, imported when a program first uses them
    "fast_agent.cli.command_table",  # subcommands, imported when they are called
    "fast_agent.tools.functions.loader",  # what the code of cards imports
}

ROOM = "from fast_agent.a.one import One\n__all__ = ['One']\n"


def test_lines_and_files_are_counted(tmp_path: Path) -> None:
    found = house(tmp_path, one="x = 1\ny = 2\n", two="\n")
    assert (found.lines(later=False), len(found.modules)) == (3, 2)


def test_later_features_are_counted_apart(tmp_path: Path) -> None:
    found = house(tmp_path, tui__in__one="x = 1\n", tui_like="x = 1\ny = 2\n", types="x = 1\n")
    assert (found.lines(later=True), found.lines(later=False)) == (2, 2)
    assert (found.files(later=True), found.files(later=False)) == (2, 1)


def test_later_features_exist() -> None:
    source = ROOT / "src"
    paths = [path.relative_to(source).with_suffix("") for path in source.rglob("*.py")]
    names = {".".join((*path.parts, "")) for path in paths}
    assert [one for one in LATER if not any(name.startswith(f"{one}.") for name in names)] == []


@pytest.mark.parametrize(
    ("room", "chapters"),
    [
        ("", {"fast_agent.a.one": "fast_agent.b"}),
        (ROOM, {"fast_agent.a.one": "fast_agent.b"}),
        (f"{ROOM}def make(): return One()\n", {}),
    ],
)
def test_a_file_with_one_importer_is_a_chapter_whatever_is_exported_again(
    tmp_path: Path, room: str, chapters: dict[str, str]
) -> None:
    found = house(
        tmp_path,
        a__in____init__=room,
        a__in__one="class One: ...\n",
        b="def late():\n    from fast_agent.a.one import One\n",
    )
    assert found.chapters() == chapters


def test_a_file_with_two_importers_or_none_is_no_chapter(tmp_path: Path) -> None:
    found = house(
        tmp_path, one="", two="import fast_agent.one\n", three="from fast_agent import one\n"
    )
    assert found.chapters() == {}


def test_type_only_imports_make_circles(tmp_path: Path) -> None:
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fast_agent.{} import x\n"
    found = house(
        tmp_path,
        a=typed.format("b"),
        b="from fast_agent.c import x\n",
        c="import fast_agent.a\n",
        d=typed.format("e"),
        e="from fast_agent.d import x\n",
        f="from fast_agent.a import x\n",
    )
    assert [sorted(ring) for ring in found.circles()] == [
        ["fast_agent.a", "fast_agent.b", "fast_agent.c"],
        ["fast_agent.d", "fast_agent.e"],
    ]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("if journal is None: ...\n", 1),
        ("x = self._listener is not None\n", 1),
        ("if None is pool: ...\n", 0),
        ("if pool == None: ...\n", 0),
        ("if other is None: ...\n", 0),
        ("if recording is None or self.steps is None: ...\n", 2),
        ("# journal is None\n", 0),
    ],
)
def test_branches_on_collaborators_are_counted(tmp_path: Path, text: str, count: int) -> None:
    assert len(house(tmp_path, one=text).optional_branches()) == count


def test_rooms_that_may_know_of_the_recording_are_not_counted(tmp_path: Path) -> None:
    text = "from fast_agent.recording import tape\n"
    found = house(tmp_path, cli__in__go=text, serve__in__edge=text, app="self._tape = 1\n")
    assert sorted(found.know_recording()) == ["fast_agent.app", "fast_agent.serve.edge"]


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ('ok = message.get("jsonrpc") == "2.0"\n', True),
        ('ok = message["jsonrpc"] != "2.0"\n', True),
        ("types.jsonrpc_message_adapter.validate_json(line)\n", True),
        ("app = server.streamable_http_app(path='/')\n", True),
        ('encode({"jsonrpc": "2.0", "id": 1})\n', False),
        ('ok = version == "1.0"\n', False),
    ],
)
def test_readers_of_json_rpc_are_found(tmp_path: Path, text: str, reads: bool) -> None:
    assert bool(house(tmp_path, serve__in__one=text).readers()) is reads


def test_edges_are_our_own_and_that_of_the_sdk(tmp_path: Path) -> None:
    sdk = (
        "from typing import TYPE_CHECKING\ndef run():\n    from mcp.server.lowlevel import Server\n"
    )
    typed = "if TYPE_CHECKING:\n    from mcp.server import x\n"
    own = 'def read(m):\n    return m.get("jsonrpc") == "2.0"\n'
    both = house(tmp_path / "a", serve__in__sdk=sdk, serve__in__own=own)
    assert both.edges() == ["our own", "the SDK's server"]
    assert house(tmp_path / "b", serve__in__sdk=sdk).edges() == ["the SDK's server"]
    assert house(tmp_path / "c", serve__in__own=own, serve__in__t=typed).edges() == ["our own"]
    through = "from fast_agent.rpc.peer import Peer\n"
    assert house(tmp_path / "d", serve__in__edge=through).edges() == ["our own"]


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("import_module('fast_agent.serve.http')\n", True),
        ("importlib.import_module(f'fast_agent.{name}')\n", True),
        ("import_module(name)\n", True),
        ("__import__('fast_agent')\n", True),
        ("import_module('xllamacpp')\n", False),
        ("import_module(f'pydantic_ai.{name}')\n", False),
        ("import fast_agent.one\n", False),
    ],
)
def test_imports_by_a_string_are_found(tmp_path: Path, text: str, hidden: bool) -> None:
    assert bool(house(tmp_path, app=text).hidden_imports()) is hidden


def test_no_files_of_the_product_import_each_other_in_a_circle() -> None:
    found = House(ROOT / "src" / PACKAGE)
    assert [sorted(ring) for ring in found.circles()] == []
    assert set(found.hidden_imports()) <= IMPORT_BY_STRING, "import them, so that linters see it"
