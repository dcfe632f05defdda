from __future__ import annotations

import gc
import sys
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.errors import CardError
from fast_agent.tools.functions.function import FunctionTool
from fast_agent.tools.functions.loader import FunctionLoader

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), "utf-8")
    return path


def load(text: str, directory: Path) -> Any:
    loader = FunctionLoader(directory)
    function: Any = loader.load(text, directory)
    # The loader lives as long as the function, as it does with a tool.
    function.loader = loader
    return function


def problem(text: str, directory: Path) -> Any:
    with pytest.raises(CardError) as caught:
        FunctionLoader(directory).load(text, directory)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == caught.value.message
    return diagnostic


@pytest.mark.spec("CARD-68")
def test_two_directories_have_each_their_own_tools(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name / "tools.py", f"def who(): return {name!r} + __name__[-6:]")
    loader = FunctionLoader(tmp_path)
    functions = [loader.load("tools.py:who", tmp_path / name) for name in ("one", "two")]
    assert [function() for function in functions] == ["one.tools", "two.tools"]


def test_a_file_is_run_once_by_a_loader_and_again_by_the_next(tmp_path: Path) -> None:
    file = write(
        tmp_path / "tools.py", "runs = []\ndef a(): return 1\ndef b(): runs.append(1); return runs"
    )
    loader = FunctionLoader(tmp_path)
    first = loader.load("tools.py:b", tmp_path)
    assert loader.load("tools.py:b", tmp_path) is first
    first()
    assert loader.load("tools.py:b", tmp_path)() == [1, 1]
    # The same length and, on some file systems, the same time: no cache may be believed.
    file.write_text(file.read_text("utf-8").replace("return 1", "return 2"), "utf-8")
    assert loader.load("tools.py:a", tmp_path)() == 1
    assert FunctionLoader(tmp_path).load("tools.py:a", tmp_path)() == 2
    assert not (tmp_path / "__pycache__").exists()


def test_files_beside_are_imported_and_stay_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        here = tmp_path / name
        write(
            here / "tools.py",
            """
            import rates
            import units.length as length
            from rates import NAME
            from . import rates as again
            from units import mass, length as long
            from .units.mass import KILO

            def all():
                import late
                assert again is rates and long is length and late.rates is rates
                return [rates.NAME, NAME, length.METRE, mass.KILO, KILO]
            """,
        )
        write(here / "rates.py", f"NAME = {name!r}")
        write(here / "late.py", "import rates")
        write(here / "units" / "__init__.py", "")
        write(here / "units" / "length.py", "METRE = 'm'")
        write(here / "units" / "mass.py", "from .length import METRE\nKILO = 'k' + METRE")
    before = list(sys.path), set(sys.modules)
    one, two = load("tools.py:all", tmp_path / "one"), load("tools.py:all", tmp_path / "two")
    assert one() == ["one", "one", "m", "km", "km"]
    assert two() == ["two", "two", "m", "km", "km"]
    assert sys.path == before[0]
    added = set(sys.modules) - before[1]
    assert all(name.startswith("_card_code_") for name in added)


def test_a_file_beside_never_stands_in_for_the_standard_library(tmp_path: Path) -> None:
    write(tmp_path / "json.py", "raise SystemExit('the wrong json')")
    write(tmp_path / "tools.py", "import json\ndef dump(x): return json.dumps(x)")
    assert load("tools.py:dump", tmp_path)([1]) == "[1]"


def test_dataclasses_and_late_hints_find_their_module(tmp_path: Path) -> None:
    write(
        tmp_path / "tools.py",
        """
        from __future__ import annotations
        from dataclasses import dataclass, field
        from pydantic import BaseModel

        class Later(BaseModel):
            other: Other | None = None

        @dataclass
        class Point:
            x: int
            seen: list[Later] = field(default_factory=list)

        class Other(BaseModel):
            n: int

        def place(point: Point, later: Later) -> int:
            @dataclass
            class Inner:
                x: int
            return Inner(point.x).x + later.other.n
        """,
    )
    loader = FunctionLoader(tmp_path)
    made = FunctionTool(loader.load("tools.py:place", tmp_path), keep=loader)
    assert made.spec.input_schema["required"] == ["point", "later"]


def test_modules_go_when_their_loader_does_and_not_before(tmp_path: Path) -> None:
    write(tmp_path / "tools.py", "def a() -> int: return 1")
    loader = FunctionLoader(tmp_path)
    made = FunctionTool(loader.load("tools.py:a", tmp_path), keep=loader)
    name = str(made.function.__module__)
    del loader
    gc.collect()
    assert name in sys.modules
    del made
    gc.collect()
    assert name not in sys.modules
    assert name.partition(".")[0] not in sys.modules


def test_close_may_be_called_twice(tmp_path: Path) -> None:
    write(tmp_path / "tools.py", "def a(): return 1")
    loader = FunctionLoader(tmp_path)
    name = str(loader.load("tools.py:a", tmp_path).__module__)
    loader.close()
    loader.close()
    assert name not in sys.modules


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("tools.add", "write `tools.py:name`"),
        ("tools.py", "add the function's name: `tools.py:name`"),
        ("tools:add", "the file must end in `.py`"),
        ("tools.py:", "write `tools.py:name`"),
        ("tools.py:a.b", "write `tools.py:name`"),
        ("to\0ols.py:a", "write `tools.py:name`"),
        (":add", "the file must end in `.py`"),
    ],
)
def test_a_wrong_spelling(tmp_path: Path, text: str, hint: str) -> None:
    found = problem(text, tmp_path)
    assert found.code == "FA601"
    assert hint in found.hint


def test_a_missing_file_suggests_one_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "lib" / "tools.py", "")
    found = problem("lib/tool.py:add", tmp_path)
    assert (found.code, found.message) == ("FA602", "the file `lib/tool.py` does not exist")
    assert found.hint == "did you mean `lib/tools.py`?"
    assert found.fix.replacement == "lib/tools.py:add"
    assert problem("no/where.py:add", tmp_path).fix is None
    (tmp_path / "dir.py").mkdir()
    assert problem("dir.py:add", tmp_path).message == "the file `dir.py` is a directory"


def test_a_path_may_lead_up_to_the_workspace_and_no_further(tmp_path: Path) -> None:
    write(tmp_path / "outside.py", "def add(): return 1")
    write(tmp_path / "work" / "shared" / "tools.py", "def add(): return 2")
    cards = tmp_path / "work" / "cards"
    cards.mkdir()
    loader = FunctionLoader(tmp_path / "work")
    assert loader.load("../shared/tools.py:add", cards)() == 2
    (cards / "link.py").symlink_to(tmp_path / "outside.py")
    for text in ("../../outside.py:add", "link.py:add"):
        with pytest.raises(CardError) as caught:
            loader.load(text, cards)
        assert caught.value.diagnostics[0].code == "FA603"
    assert loader.load(f"{tmp_path / 'outside.py'}:add", cards)() == 1


def test_a_card_outside_the_workspace_finds_the_files_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "cards" / "tools.py", "def add(): return 1")
    (tmp_path / "work").mkdir()
    assert FunctionLoader(tmp_path / "work").load("tools.py:add", tmp_path / "cards")() == 1


def test_a_syntax_error_is_placed_in_the_python_file(tmp_path: Path) -> None:
    write(tmp_path / "tools.py", "x = 1\ndef add(a, b)\n    return a + b\n")
    found = problem("tools.py:add", tmp_path)
    assert found.code == "FA604"
    assert found.path == "tools.py"
    assert (found.span.start.line, found.span.start.column) == (2, 14)
    assert found.source_line == "def add(a, b)"
    assert "expected ':'" in found.message


def test_a_syntax_error_of_a_file_beside_names_that_file(tmp_path: Path) -> None:
    write(tmp_path / "lib" / "tools.py", "import rates\ndef add(): ...")
    write(tmp_path / "lib" / "rates.py", "def (")
    found = problem("lib/tools.py:add", tmp_path)
    assert (found.code, found.path) == ("FA604", "lib/rates.py")


def test_an_error_while_importing_is_placed_at_the_cards_own_line(tmp_path: Path) -> None:
    write(tmp_path / "tools.py", "import rates\ndef add(): ...")
    write(tmp_path / "rates.py", "import json\n\njson.loads('nothing')\n")
    found = problem("tools.py:add", tmp_path)
    assert (found.code, found.path, found.span.start.line) == ("FA605", "rates.py", 3)
    assert found.source_line == "json.loads('nothing')"
    assert "JSONDecodeError" in found.message


def test_a_module_that_is_not_there_has_a_hint(tmp_path: Path) -> None:
    write(tmp_path / "tools.py", "def add(): ...\nif True:\n    import no_such_module_here\n")
    found = problem("tools.py:add", tmp_path)
    assert found.code == "FA605"
    assert "No module named 'no_such_module_here'" in found.message
    assert (found.span.start.line, found.span.start.column) == (3, 5)
    assert "install it" in found.hint


@pytest.mark.parametrize("line", ["import fast_agent.core", "from fast_agent import Nothing"])
def test_a_name_this_package_does_not_have_has_a_hint(tmp_path: Path, line: str) -> None:
    write(tmp_path / "tools.py", f"{line}\ndef add(): ...\n")
    found = problem("tools.py:add", tmp_path)
    assert (found.code, found.span.start.line) == ("FA605", 1)
    assert "public names are in `fast_agent`" in found.hint


def test_a_file_that_exits_does_not_end_the_program(tmp_path: Path) -> None:
    write(tmp_path / "tools.py", "import sys\nsys.exit(4)")
    assert "SystemExit: 4" in problem("tools.py:add", tmp_path).message


def test_a_file_that_failed_is_run_again_when_asked_again(tmp_path: Path) -> None:
    file = write(tmp_path / "tools.py", "raise ValueError")
    loader = FunctionLoader(tmp_path)
    with pytest.raises(CardError):
        loader.load("tools.py:add", tmp_path)
    file.write_text("def add(): return 1", "utf-8")
    assert loader.load("tools.py:add", tmp_path)() == 1


def test_a_missing_name_suggests_what_the_file_defines(tmp_path: Path) -> None:
    write(
        tmp_path / "tools.py",
        "from json import dumps\nLIMIT = 3\ndef add(): ...\ndef _hidden(): ...",
    )
    found = problem("tools.py:ad", tmp_path)
    assert (found.code, found.message) == ("FA606", "`tools.py` does not define `ad`")
    assert found.hint == "did you mean `add`?"
    assert found.fix.replacement == "tools.py:add"
    assert problem("tools.py:nothing", tmp_path).hint == "it defines `add`"


def test_a_value_is_no_function(tmp_path: Path) -> None:
    write(tmp_path / "tools.py", "add = 3")
    found = problem("tools.py:add", tmp_path)
    assert (found.code, found.message) == ("FA607", "`tools.py:add` is not a function but a `int`")


def test_a_file_that_is_not_utf_8_says_so(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_bytes("def añadir(): ...".encode("latin-1"))
    found = problem("tools.py:add", tmp_path)
    assert found.code == "FA604"
    assert "not UTF-8" in found.message
