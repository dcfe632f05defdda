"""What was found in a directory: read, never acted upon."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.app import FastAgent
from fast_agent.cli.card_test.testing import cards_of_tests, found_tests
from fast_agent.cli.loading import expect_cards
from fast_agent.cli.resources_here import expect_guide
from fast_agent.config.home import CONFIG_NAMES, home_directory
from fast_agent.errors import ConfigError
from fast_agent.trust.earlier_approvals import EarlierApprovals
from fast_agent.trust.gate import TrustOptions
from fast_agent.trust.origin import remote_root, root_of
from fast_agent.trust.policy import STARTED_VARIABLE, check_own, own_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.trust.approvals import Approvals
    from fast_agent.trust.found_set import FoundSet
    from fast_agent.trust.policy import Policy


class FoundHere:
    """The found sets of directories, and what the person answered about them.

    Args:
        cards: Given cards, as `go --card` takes them: projects are judged as in a run with them.
        tools: Given cards that become tools of the receiving agent.
        servers: MCP servers the receiving agent gets.
        shared: Options that add tools to every agent, such as `--shell`.

    Raises:
        ConfigError: This process was started by an agent or a server, which approve nothing.
    """

    def __init__(
        self,
        *,
        cards: Sequence[str] = (),
        tools: Sequence[str] = (),
        servers: Sequence[str] = (),
        shared: Sequence[str] = (),
    ) -> None:
        environ = dict(os.environ)
        if environ.get(STARTED_VARIABLE):
            raise ConfigError(
                "nothing can be approved here: this process was started by an agent or its server",
                hint="approve it at a terminal of your own",
            )
        self._environ = environ
        self._program = self._look(Path.cwd())
        self.workspace = self._program.workspace
        self._cards, self._tools = self._absolute(cards), self._absolute(tools)
        self._servers, self._shared = servers, shared

    @property
    def approvals(self) -> Approvals:
        """The answers the person gave."""
        return self._program.gate.approvals

    @property
    def policy(self) -> Policy:
        """What the person allows without a question."""
        return self._program.gate.policy

    @property
    def earlier(self) -> tuple[str, ...]:
        """The card files that were approved before sets were."""
        return EarlierApprovals(home_directory(self._environ)).paths

    def sets(self, *paths: str) -> list[FoundSet]:
        """Work out what projects would do.

        Args:
            paths: Projects, or files in them; without any, the one around the working directory.

        Returns:
            One for each root, without those that are the person's own.

        Raises:
            FastAgentError: Something there cannot be read.
        """
        found: dict[Path, FoundSet] = {}
        for path in paths or (str(self.workspace),):
            if path.startswith(("http://", "https://")):
                found[remote_root(path)] = self._remote(path)
                continue
            place = self.workspace / path
            if not place.exists():
                raise ConfigError(f"`{path}` does not exist")
            program = self._look(root_of(place) if paths else self.workspace)
            expect_cards(
                program,
                cards=self._cards,
                tools=self._tools,
                servers=self._servers,
                shared=self._shared,
                multi_card=True,
            )
            for given in program.admission.expected.roots.values():
                if given.grant is None:
                    given.load.raise_errors()
            expect_guide(program)
            root = Path(os.path.realpath(program.workspace))
            tests = tuple(found_tests(program.workspace))
            program.admission.expected.add_files(root, tests=tests)
            _expect_found(program, cards_of_tests(tests, root), root)
            _read_settings(program)
            if paths and not program.admission.decisions.found_sets():
                # Cards that something else names, such as a test file of another project.
                _expect_found(program, [place], root)
            for one in program.admission.decisions.found_sets():
                if (one.files or one.effects) and not program.gate.owns(one.root):
                    found[one.root] = one
        return list(found.values())

    def _remote(self, address: str) -> FoundSet:
        """Fetch a card to report what it would do.

        Raises:
            CardError: It cannot be fetched, or is wrong.
        """
        options = TrustOptions(passive=True, fetches=True)
        program = FastAgent(cwd=self.workspace, environ=self._environ, trust=options)
        (root,) = program.expect(cards=[address], multi_card=True).values()
        root.load.raise_errors()
        return next(one for one in program.admission.decisions.found_sets() if one.is_remote)

    def revoke(self, roots: list[str], paths: list[str]) -> list[str]:
        """Forget the answers for roots, and earlier ones for card files.

        Args:
            roots: Real paths of roots.
            paths: Real paths of files and directories.

        Returns:
            What had an answer.
        """
        earlier = EarlierApprovals(home_directory(self._environ))
        return [*self.approvals.revoke(roots), *earlier.revoke(paths)]

    def add_own(self, folder: Path) -> Path:
        """Declare what a directory holds as the person's own, in the configuration of the home.

        Args:
            folder: The directory, absolute and without links.

        Returns:
            The configuration.

        Raises:
            ConfigError: It is too wide, or the configuration cannot be changed.
        """
        from fast_agent.text.atomic_file import write_atomic

        check_own(folder, self._environ)
        fault = self._program.gate.fault
        home = home_directory(self._environ)
        if fault is not None:
            raise ConfigError(
                f"`{home}` {fault}, so it cannot say what is yours",
                hint="set FAST_AGENT_HOME to a directory of yours outside the project",
            )
        file = next((one for name in CONFIG_NAMES if (one := home / name).is_file()), None)
        file = file or home / CONFIG_NAMES[0]
        text = ""
        with suppress(FileNotFoundError):
            text = file.read_text(encoding="utf-8")
        own = dict.fromkeys((*self.policy.home.own, folder))
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(file, own_text(text, own).encode())
        return file

    def _absolute(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return paths from here, which a project elsewhere understands as well."""
        return tuple(one if "://" in one else str(self.workspace / one) for one in paths)

    def _look(self, folder: Path) -> FastAgent:
        return FastAgent(cwd=folder, environ=self._environ, trust=TrustOptions(passive=True))


def _expect_found(program: FastAgent, cards: Sequence[Path], root: Path) -> None:
    """Read cards that do not load automatically, as far as there are any."""
    program.expect(cards=cards, multi_card=True, found=cards, root=root, optional=cards)


def _read_settings(program: FastAgent) -> None:
    """Read the configuration; an unset variable does not prevent that."""
    from fast_agent.diagnostics.rules import UNSET_CONFIG_VARIABLE

    try:
        _ = program.settings
    except ConfigError as error:
        if {one.code for one in error.diagnostics} != {UNSET_CONFIG_VARIABLE.code}:
            raise
