"""`fast-agent trust`."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fast_agent.app import FastAgent
from fast_agent.cli import options
from fast_agent.cli.card_options import expect_cards
from fast_agent.cli.card_test.testing import cards_of_tests, found_tests
from fast_agent.cli.output import report_note, standard_error, standard_output
from fast_agent.cli.resource_options import expect_guide
from fast_agent.config.home import CONFIG_NAMES, home_directory
from fast_agent.errors import ConfigError, FastAgentError
from fast_agent.trust.earlier_approvals import EarlierApprovals
from fast_agent.trust.gate import TrustOptions
from fast_agent.trust.origin import address_of_root, remote_root, root_of
from fast_agent.trust.policy import STARTED_VARIABLE, check_own, own_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.trust.approvals import Approval, Approvals
    from fast_agent.trust.found_set import FoundSet
    from fast_agent.trust.policy import Policy


class FoundHere:
    """The found sets of directories, and what the user answered about them.

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
        self._program = self._passive_program(Path.cwd())
        self.workspace = self._program.workspace
        self._cards, self._tools = self._absolute(cards), self._absolute(tools)
        self._servers, self._shared = servers, shared

    @property
    def approvals(self) -> Approvals:
        """The answers the user gave."""
        return self._program.gate.approvals

    @property
    def policy(self) -> Policy:
        """What the user allows without a question."""
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
            One for each root, without those that are the user's own.

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
            program = self._passive_program(root_of(place) if paths else self.workspace)
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
        """Declare what a directory holds as the user's own, in the configuration of the home.

        Args:
            folder: The directory, absolute and without links.

        Returns:
            The configuration.

        Raises:
            ConfigError: It is too wide, or the configuration cannot be changed.
        """
        from fast_agent.text.safe_file import write_atomic

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

    def _passive_program(self, folder: Path) -> FastAgent:
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


@click.command()
@click.argument("paths", metavar="[PATH…]", nargs=-1)
@click.option("--yes", is_flag=True, help="Approve without asking.")
@click.option("--view", is_flag=True, help="Print the files, or the changes to approved files.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="The output format; json includes every effect and the digest.",
)  # fmt: skip
@click.option("--text", "prose", is_flag=True, help="Also approve later changes to text only.")
@click.option("--own", is_flag=True, help="Treat everything in PATH as yours, and stop asking.")
@click.option("--list", "listing", is_flag=True, help="List approvals and their state.")
@click.option("--revoke", is_flag=True, help="Revoke the approval of PATH.")
@click.option(
    "--card", "cards", multiple=True, metavar="PATH|URL",
    help="Include what the project does in a run with your card; may be repeated.",
)  # fmt: skip
@click.option(
    "--card-tool", "tools", multiple=True, metavar="PATH|URL",
    help="The same for a card whose agents become tools; may be repeated.",
)  # fmt: skip
@options.servers("Include what the project does in a run with these MCP servers.")
@options.shell("Include what the project does in a run whose agents have a shell.")
def command(
    paths: tuple[str, ...],
    *,
    cards: tuple[str, ...],
    tools: tuple[str, ...],
    servers: tuple[str, ...],
    shell: bool,
    yes: bool,
    view: bool,
    form: str,
    prose: bool,
    own: bool,
    listing: bool,
    revoke: bool,
) -> None:
    """Review and approve what found projects do on this machine.

    The effects of cards, configuration and skills that load automatically need your approval: the
    programs they run, the addresses they connect to, the keys they send, the files they read and
    write. PATH is a project; the default is the one that contains the working directory. Every
    change asks again. With --card and the other options of a run, the effects are those of that
    run: what your agents would use of the project, or it of them.
    """
    if listing and (paths or revoke or own or yes or prose or view):
        raise click.UsageError("--list stands alone")
    if sum((revoke, own, view)) > 1 or ((revoke or own or view) and (yes or prose)):
        raise click.UsageError("--revoke, --own and --view each stand alone")
    if (listing or revoke or own) and (cards or tools or servers or shell):
        raise click.UsageError("--list, --revoke and --own take no options of a run")
    from fast_agent.registry.expected import shared_options

    here = FoundHere(cards=cards, tools=tools, servers=servers, shared=shared_options(shell=shell))
    if listing:
        _list(here)
    elif revoke:
        _revoke(here, paths)
    elif own:
        _claim_ownership(here, paths)
    elif view:
        _view(here, paths)
    elif form == "json":
        _print_json(here, paths)
    else:
        _approve(here, paths, yes=yes, prose=prose)


def _approve(here: FoundHere, paths: Sequence[str], *, yes: bool, prose: bool) -> None:
    from fast_agent.trust.question import at_terminal, refusal, render_question, shown_root

    approvals = here.approvals
    # Agents without effects act unasked, but their turns are bounded until a user approves them.
    sets = [one for one in here.sets(*paths) if one.effects or one.is_strange or one.agents]
    if not sets:
        report_note("nothing there acts on this machine, so there is nothing to approve")
    ask = at_terminal(approvals)
    for found in sets:
        standing = approvals.standing(found)
        root = shown_root(found.root)
        if standing.state == "approved" and not prose:
            standard_output().line(f"{root} is approved already")
            continue
        if not found.effects and not found.is_strange and not yes and ask is None:
            report_note(
                f"nothing in {root} acts on this machine, so there is nothing to approve;"
                " `--yes` lets its turns make more than 50 model requests"
            )
            continue
        if not yes and ask is None:
            raise refusal(found, standing.added or found.effects, agent=None)
        if ask is not None and not yes:
            reply = ask(found, standing)
            if reply == "no":
                approvals.decline(found)
                standard_output().line(f"declined {root}")
                continue
        else:
            standard_error().write_whole(render_question(found, standing))
        approvals.approve(found, prose=prose)
        standard_output().line(f"approved {root} as it is now, {found.digest}")


def _view(here: FoundHere, paths: Sequence[str]) -> None:
    from fast_agent.trust.question import file_lines

    for found in here.sets(*paths):
        for line in file_lines(found, here.approvals):
            standard_output().line(line)


def _print_json(here: FoundHere, paths: Sequence[str]) -> None:
    import json

    from fast_agent.trust.question import as_json

    approvals = here.approvals
    whole = [as_json(one, approvals.standing(one)) for one in here.sets(*paths)]
    standard_output().line(json.dumps(whole, indent=2, ensure_ascii=False))


def _list(here: FoundHere) -> None:
    from fast_agent.text.visible import visible

    approvals = here.approvals
    lines = [(one.root, _state(here, approvals, one), one) for one in approvals.all()]
    for root, state, one in sorted(lines, key=lambda line: line[0]):
        effects = f"{len(one.effects)} effects in {len(one.files)} files"
        shown = visible(address_of_root(root) or root)
        standard_output().line(f"{state:<9} {shown}   {effects}, {one.on.isoformat()}")
    owned = [str(one) for one in here.policy.home.own]
    for own in owned:
        standard_output().line(f"{'own':<9} {visible(own)}")
    for path in here.earlier:
        standard_output().line(f"{'earlier':<9} {visible(path)}")
    if not lines and not owned and not here.earlier:
        standard_output().line("nothing is approved")


def _state(here: FoundHere, approvals: Approvals, approval: Approval) -> str:
    if address_of_root(approval.root) is not None:
        return approval.answer  # listing fetches nothing
    if not Path(approval.root).is_dir():
        return "gone"
    try:
        found = {str(one.root): one for one in here.sets(approval.root)}
    except FastAgentError:
        return "changed"
    now: FoundSet | None = found.get(approval.root)
    if now is None:
        return "gone"
    state = approvals.standing(now).state
    return "changed" if state == "new" else state


def _revoke(here: FoundHere, paths: Sequence[str]) -> None:
    from fast_agent.text.visible import visible

    given = [remote_root(path) if "://" in path else here.workspace / path for path in paths]
    meant = [os.path.realpath(path) for path in given or [here.workspace]]
    roots = [one.root for one in here.approvals.all()]
    # A file or directory of a set means its root.
    chosen = [root for root in roots if any(Path(path).is_relative_to(root) for path in meant)]
    for root in here.revoke(chosen, meant):
        standard_output().line(visible(f"revoked {address_of_root(root) or root}"))
    if not chosen:
        report_note("nothing there is approved, so there is nothing to revoke")


def _claim_ownership(here: FoundHere, paths: Sequence[str]) -> None:
    from fast_agent.text.visible import visible

    for path in paths or (".",):
        place = Path(os.path.realpath(here.workspace / path))
        if not place.is_dir():
            raise click.UsageError(f"`{path}` is not a directory")
        file = here.add_own(place)
        standard_output().line(
            visible(f"what {place} holds counts as yours from now on, by `trust.own` of {file}")
        )
