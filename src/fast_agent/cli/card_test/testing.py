"""The run of `fast-agent test`: the files, their cases, what came of them."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.app import FastAgent
from fast_agent.cards.card_files import is_test_file
from fast_agent.cli.card_test.case_file import cases_of, read_case_file
from fast_agent.cli.card_test.case_run import CaseResult, CaseRunner, NetworkGuard
from fast_agent.cli.output import hide_in_errors, report_left_out
from fast_agent.config.home import CONFIG_NAMES
from fast_agent.errors import ConfigError, FastAgentError, TrustError
from fast_agent.text.json_value import as_object
from fast_agent.trust.effects.card_effects import names_in
from fast_agent.trust.origin import end_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fast_agent.cli.card_test.case_file import Case, CaseFile
    from fast_agent.cli.card_test.case_run import Recording
    from fast_agent.config.layer import FileLayer

_MAX_DEPTH = 12


def find_case_files(paths: Iterable[str]) -> list[CaseFile]:
    """Read the test files that paths denote: files, and directories with everything below them.

    Args:
        paths: What a user named; `.` where there is nothing.

    Returns:
        The files in order, each once.

    Raises:
        ConfigError: A path leads nowhere, a directory holds none, or a file is wrong; with every
            problem of every file.
    """
    files: dict[Path, CaseFile] = {}
    problems: list[ConfigError] = []
    for named in paths:
        for path in _files_below(Path(named)):
            if path not in files:
                try:
                    files[path] = read_case_file(path, str(path))
                except ConfigError as error:
                    problems.append(error)
    if problems:
        found = tuple([one for error in problems for one in error.diagnostics])
        raise ConfigError(problems[0].message, hint=problems[0].hint, diagnostics=found)
    return list(files.values())


async def run_case_files(
    files: Sequence[CaseFile],
    *,
    only: str | None,
    recording: Recording,
    config_path: Path | None = None,
    found: bool = False,
    models: Sequence[str] = (),
    soft: bool = False,
) -> list[CaseResult]:
    """Run the cases of some files, one after another.

    Args:
        files: The files.
        only: A part of the names of the cases to run, `file: case`; None runs all.
        recording: Which recordings are made.
        config_path: The configuration file, or None to search for one next to each file.
        found: Whether no user named the files: their cards act once that was approved.
        models: Models to run every case with, live; none runs the cases as they say.
        soft: Answer requests that differ from the recorded ones by their place.
    """
    guard = NetworkGuard()
    results: list[CaseResult] = []
    for file in files:
        cases = [case for case in file.cases if case.data or _is_wanted(file, case, only)]
        if not cases:
            continue
        try:
            records = recording != "never"
            program, root = _program(file, config_path, found=found, records=records)
            check = partial(program.admission.decisions.check_read, root) if found else None
            runner = CaseRunner(file, program, os.environ, guard, recording, check, soft=soft)
        except FastAgentError as error:
            results += [_not_run_result(file, case, error) for case in cases]
            continue
        for case in cases:
            try:
                chosen = [one for one in cases_of(file, case, check) if _is_wanted(file, one, only)]
            except FastAgentError as error:  # in its data
                if _is_wanted(file, case, only) or case.name in (only or ""):
                    results.append(_not_run_result(file, case, error))
                continue
            for one in chosen:
                results.extend([await runner.run(one, model) for model in models or (None,)])
    return results


def _not_run_result(file: CaseFile, case: Case, error: FastAgentError) -> CaseResult:
    text = error.message if error.hint is None else f"{error.message}\nhint: {error.hint}"
    return CaseResult(file.shown, case.name, (text,), refused=isinstance(error, TrustError))


def found_tests(root: Path) -> Iterator[FileLayer]:
    """Read the test files of a project that can be read, without those of projects inside it.

    Args:
        root: The directory of the project.
    """
    for path in _files_in(root, 0):
        if _project_of(path.absolute().parent) == root:
            with suppress(ConfigError):
                yield read_case_file(path, str(path)).layer


def cards_of_tests(tests: Iterable[FileLayer], root: Path) -> list[Path]:
    """Return the cards that test files name, as far as these lie in their project.

    Args:
        tests: The test files.
        root: The root of their set.
    """
    texts = (
        (test.directory, names_in(as_object(test.document.value).get("cards"))) for test in tests
    )
    places = (directory / name for directory, names in texts for name in names if "://" not in name)
    return [one for one in dict.fromkeys(places) if one.exists() and _is_inside(one, root)]


def _is_inside(path: Path, root: Path) -> bool:
    return end_of(path).is_relative_to(root)


def _program(
    file: CaseFile, config_path: Path | None, *, found: bool, records: bool
) -> tuple[FastAgent, Path]:
    """Load the cards of a test file.

    Returns:
        The program, and the root of the set that the file belongs to.

    Raises:
        TrustError: No user named the file, and it may not act.
        FastAgentError: The cards or the configuration are wrong.
    """
    directory = file.path.absolute().parent
    project = _project_of(directory)
    program = FastAgent(config_path=config_path, cwd=project)
    hide_in_errors(program.redact)
    cards = [card if "://" in card else str(directory / card) for card in file.cards]
    root = Path(os.path.realpath(project))
    strange = cards if found else []
    if found:
        program.admission.expected.add_files(root, tests=[file.layer], records=records)
        inside = [card for card in cards if _is_inside(Path(card), root)]
        if any("://" not in card and card not in inside for card in cards):
            # Those outside of the root are not even read before that was approved.
            program.expect(cards=inside, multi_card=file.multi_card, found=inside, root=root)
            program.admission.decisions.decide()
            program.admission.decisions.check_test(file.path.name)
    program.load(cards=cards, multi_card=file.multi_card, found=strange, root=root)
    program.admission.decisions.check_test(file.path.name)
    for line in program.admission.decisions.lines():
        report_left_out(f"{file.shown}: {line}")
    program.admission.require_some(program.names())
    return program, root


def _project_of(directory: Path) -> Path:
    """Return the directory a run would start in: the nearest above that has a configuration."""
    for one in (directory, *directory.parents):
        if any((one / name).is_file() for name in CONFIG_NAMES):
            return one
    return directory


def _is_wanted(file: CaseFile, case: Case, only: str | None) -> bool:
    return only is None or only.lower() in f"{file.shown}: {case.name}".lower()


def _files_below(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise ConfigError(f"there is no `{path}`", hint="name test files or directories of them")
    if not path.is_dir():
        if not is_test_file(path.name):
            raise ConfigError(
                f"`{path}` is not a test file", hint="its name must end in `.test.yaml`"
            )
        yield path
        return
    yield from _files_in(path, 0)


def _files_in(directory: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(directory.iterdir())
    except FileNotFoundError:  # deleted since it was listed
        return
    for entry in entries:
        if is_test_file(entry.name) and entry.is_file():
            yield entry
    for entry in entries:
        followed = entry.is_dir() and not entry.is_symlink() and not entry.name.startswith(".")
        if followed and depth < _MAX_DEPTH:
            yield from _files_in(entry, depth + 1)
