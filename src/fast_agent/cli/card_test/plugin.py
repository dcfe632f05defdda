"""The pytest plugin: with `pytest --fast-agent`, cases of test files are tests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fast_agent.cli.card_test.case_file import CaseFile
    from fast_agent.config.case_fields import Case


class CaseFailedError(Exception):
    """A case was not as expected; its text says why."""


class CaseItem(pytest.Item):
    """One case; one with data is run for each line of it."""

    def __init__(self, *, file: CaseFile, case: Case, **options: Any) -> None:
        super().__init__(**options)  # pyright: ignore[reportUnknownMemberType] (pytest's)
        self._cases = replace(file, cases=(case,))

    def runtest(self) -> None:
        """Run the case.

        Raises:
            CaseFailedError: Something was not as expected.
        """
        import anyio

        from fast_agent.cli.card_test.testing import run_case_files

        async def run() -> str:
            results = await run_case_files([self._cases], only=None, recording="never")
            problems = [(one.name, text) for one in results for text in one.problems]
            return "\n".join(f"{name}: {text}" for name, text in problems)

        failed = anyio.run(run)
        if failed:
            raise CaseFailedError(failed)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return why the case failed, without a traceback of this program."""
        if isinstance(excinfo.value, CaseFailedError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the file and name of the case."""
        return self.path, None, self.name


class CardTestFile(pytest.File):
    """A `name.test.yaml` file."""

    def collect(self) -> Iterator[CaseItem]:
        """Yield the cases of the file.

        Raises:
            CollectError: The file is wrong; says where.
        """
        from fast_agent.cli.card_test.case_file import read_case_file
        from fast_agent.errors import ConfigError

        try:
            file = read_case_file(self.path, str(self.path))
        except ConfigError as error:
            raise self.CollectError(str(error)) from error
        for case in file.cases:
            item: CaseItem = CaseItem.from_parent(  # pyright: ignore[reportUnknownMemberType]
                self, name=case.name, file=file, case=case
            )
            yield item


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--fast-agent`."""
    group = parser.getgroup("fast-agent", "cards")
    group.addoption(
        "--fast-agent",
        action="store_true",
        help="run the cases of `*.test.yaml` files next to cards",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CardTestFile | None:
    """Collect test files where `--fast-agent` was given."""
    if not parent.config.getoption("--fast-agent") or not file_path.name.lower().endswith(
        (".test.yaml", ".test.yml")
    ):
        return None
    file: CardTestFile = CardTestFile.from_parent(  # pyright: ignore[reportUnknownMemberType]
        parent, path=file_path
    )
    return file
