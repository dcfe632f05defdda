"""The gate: decides, once for each found set, what of it may act in this run."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cached_property
from operator import is_
from typing import TYPE_CHECKING, Final

from fast_agent.config.home import CONFIG_NAMES
from fast_agent.errors import ConfigError
from fast_agent.text.frozen import frozen
from fast_agent.trust.origin import home_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fast_agent.cards.card import Card
    from fast_agent.text.source import Signature
    from fast_agent.trust.approvals import Approvals, ApprovalStatus
    from fast_agent.trust.earlier_approvals import EarlierApprovals
    from fast_agent.trust.effect import Effect, Holder
    from fast_agent.trust.found_set import FoundSet
    from fast_agent.trust.grant import Grant
    from fast_agent.trust.policy import Policy
    from fast_agent.trust.question import Asker, Reply
    from fast_agent.trust.server_tools import ServerTools

log = logging.getLogger(__name__)

_NOTHING: Final[frozenset[Effect]] = frozenset()


@frozen(kw_only=True)
class TrustOptions:
    """How a program treats what it found.

    Args:
        everything: Whether all of it may act in this run: `--trust`.
        without_found: Whether nothing found is loaded: `--no-found`.
        passive: Whether the program only looks: nothing is decided, nothing interpolated.
        replays: Whether the run replays a recording, which starts no server and no command.
        fetches: Whether a program that only looks fetches the addresses it is given.
        asker: Asks the user; None if no user can be asked.
    """

    everything: bool = False
    without_found: bool = False
    passive: bool = False
    replays: bool = False
    fetches: bool = False
    asker: Callable[[Approvals], Asker | None] | None = None


class Gate:
    """Decides about found sets.

    Args:
        home: The home of the program.
        cwd: The working directory.
        environ: The environment.
        options: How the program treats what it found.

    Attributes:
        options: The same.
        environ: The same.
        fault: Why the home is not the user's own; None where it is.
    """

    def __init__(
        self, home: Path, cwd: Path, environ: Mapping[str, str], options: TrustOptions
    ) -> None:
        self.options = options
        self._home = home
        self.environ = environ
        self.fault = home_fault(home, cwd=cwd, roots=(cwd,))
        self._covered: dict[str, frozenset[Effect]] = {}
        self._policy: Policy | None = None
        self._once: set[str] = set()
        self._asked: set[Path] = set()
        self._declined: set[str] = set()
        self._allowed: dict[Path, tuple[tuple[object, ...], frozenset[Effect]]] = {}

    def home_lines(self) -> Iterator[str]:
        """Yield the line about a home that is not the user's own, where it holds anything."""
        if self.fault is None or not self._home.is_dir():
            return
        from fast_agent.trust.approvals import FILE

        if any((self._home / name).is_file() for name in (*CONFIG_NAMES, FILE)):
            yield (
                f"the home `{self._home}` {self.fault}: its configuration counts as found, and its "
                "approvals are not read"
            )

    @cached_property
    def approvals(self) -> Approvals:
        """What the user answered about found sets."""
        # Most runs find nothing and need none of this: it is imported with the first found set.
        from fast_agent.trust.approvals import Approvals

        return Approvals(self._home, readable=self.fault is None)

    @cached_property
    def _earlier(self) -> EarlierApprovals:
        from fast_agent.trust.earlier_approvals import EarlierApprovals

        return EarlierApprovals(self._home, readable=self.fault is None)

    @cached_property
    def _tools(self) -> ServerTools | None:
        from fast_agent.trust.server_tools import FILE, ServerTools

        return None if self.fault is not None else ServerTools(self._home / FILE)

    @property
    def policy(self) -> Policy:
        """What the home and the machine allow, read when first asked for.

        Raises:
            ConfigError: A policy is wrong.
        """
        if self._policy is None:
            from fast_agent.trust.policy import read_policy

            files = () if self.fault is not None else (self._home / name for name in CONFIG_NAMES)
            own = next((file for file in files if file.is_file()), None)
            self._policy = read_policy(own, self.environ, everything=self.options.everything)
        return self._policy

    @property
    def own_home(self) -> Path | None:
        """The home of the program; None where it is not the user's own."""
        return self._home if self.fault is None else None

    @property
    def stand(self) -> Signature | None:
        """The state of the approvals now."""
        from fast_agent.text.source import signature_at

        return signature_at(str(self.approvals.path))

    def owns(self, root: Path) -> bool:
        """Return whether a user declared a directory as their own."""
        return self.policy.owns(root)

    def decide(
        self,
        found: FoundSet,
        needed: Iterable[Effect],
        *,
        may_ask: bool = True,
        examine: Callable[[Holder], Iterable[Effect]] | None = None,
        cards: Sequence[Card] = (),
        workspace: Path | None = None,
    ) -> Grant:
        """Decide what a set may do; the user is asked where something needs it, once for a root.

        Args:
            found: The set.
            needed: The effects something in this run needs.
            may_ask: Whether a user may be asked now.
            examine: Works out the effects of a holder again, for checks at each start.
            cards: The cards of the set, for approvals of card files that were kept earlier.
            workspace: The directory the program works in.
        """
        if cards and workspace is not None and self._earlier:
            self._covered[found.digest] = self._earlier.covered(found.effects, cards, workspace)
        allowed = self.allowed(found)
        missing = [one for one in needed if one not in allowed and not self._is_closed(one)]
        if missing and may_ask:
            self._ask(found, self.approvals.standing(found))
        return self.grant(found, examine)

    def grant(
        self, found: FoundSet, examine: Callable[[Holder], Iterable[Effect]] | None = None
    ) -> Grant:
        """Return what a set may do as already decided; does not ask.

        Args:
            found: The set.
            examine: Works out the effects of a holder again, for checks at each start.
        """
        from fast_agent.trust.grant import Grant

        return Grant(
            found.root,
            self.allowed(found),
            everything=self._policy_for(found).everything,
            examine=examine,
            current=lambda: self.allowed(found),
            approved=lambda: self.is_approved(found),
            place=found.place,
            tools=self._tools,
            denied=self.policy.denies if self.policy.has_denials else None,
            environ=self.environ,
        )

    def allowed(self, found: FoundSet) -> frozenset[Effect]:
        """Return the effects of a set that are allowed at this moment."""
        policy = self._policy_for(found)
        whole = found.digest in self._once or found.digest in policy.digests
        standing = None if whole else self.approvals.standing(found)
        covered = self._covered.get(found.digest, _NOTHING)
        # A set of a thousand cards is asked about several times between two changes of approvals.
        basis = (found, policy, standing, covered)
        known = self._allowed.get(found.root)
        if known is not None and all(map(is_, known[0], basis)):
            return known[1]
        approved = frozenset(found.effects) if standing is None else standing.allowed | covered
        allowed = frozenset(
            one
            for one in found.effects
            if not self._is_closed(one)
            and (one in approved or policy.allows(one) or self._is_only_replayed(one))
        )
        self._allowed[found.root] = basis, allowed
        return allowed

    def _is_only_replayed(self, effect: Effect) -> bool:
        """Return whether the run takes from its recording what an effect would bring about."""
        if not self.options.replays:
            return False
        from fast_agent.trust.effect import ANY_COMMAND

        of_server = effect.holder.kind == "server" or effect.keys[:1] == ("mcp_connect",)
        return of_server or effect.subject == ANY_COMMAND

    def is_approved(self, found: FoundSet) -> bool:
        """Return whether a user approved a set as it is; what a policy allows does not count."""
        policy = self._policy_for(found)
        if policy.everything or found.digest in self._once or found.digest in policy.digests:
            return True
        covered = self._covered.get(found.digest)
        if covered and covered.issuperset(found.effects):
            return True
        return self.approvals.standing(found).state == "approved"

    def is_strange(self, found: FoundSet) -> bool:
        """Return whether a set of another user is ignored because it is not approved."""
        if not found.is_strange or self._policy_for(found).everything:
            return False
        if found.digest in self._once:
            return False
        return self.approvals.standing(found).state != "approved"

    def can_ask(self, found: FoundSet) -> bool:
        """Return whether an answer of the user could let more of a set act."""
        if not self._may_ask(found, self.approvals.standing(found)):
            return False
        allowed = self.allowed(found)
        missing = (one for one in found.effects if one not in allowed and not self._is_closed(one))
        return self.is_strange(found) or any(missing)

    def was_declined_now(self, found: FoundSet) -> bool:
        """Return whether the user was asked about a set in this process, and said no."""
        return found.root in self._asked and self._is_declined(
            found, self.approvals.standing(found)
        )

    def answer(self, found: FoundSet, reply: Reply) -> None:
        """Take the user's answer about a set; a no holds, whether or not it can be kept.

        Raises:
            ConfigError: A yes is to be kept and cannot be.
        """
        if reply == "no":
            self._declined.add(found.digest)
            try:
                self.approvals.decline(found)
            except ConfigError as error:
                log.warning("%s: you will be asked again", error.message)
            return
        if reply == "always":
            self.approvals.approve(found)
        self._once.add(found.digest)

    def _policy_for(self, found: FoundSet) -> Policy:
        """Return the policy of a set: `--trust` covers no card from an address."""
        policy = self.policy
        return replace(policy, everything=False) if found.is_remote else policy

    def _is_closed(self, effect: Effect) -> bool:
        return effect.refusal is not None or self.policy.denies(effect)

    def _may_ask(self, found: FoundSet, standing: ApprovalStatus) -> bool:
        return self.policy.may_ask and not self._is_declined(found, standing)

    def _is_declined(self, found: FoundSet, standing: ApprovalStatus) -> bool:
        return standing.state == "declined" or found.digest in self._declined

    def _ask(self, found: FoundSet, standing: ApprovalStatus) -> bool:
        ask = self.options.asker
        asker = None if ask is None else ask(self.approvals)
        if asker is None or not self._may_ask(found, standing) or found.root in self._asked:
            return False
        self._asked.add(found.root)
        reply = asker(found, standing)
        self.answer(found, reply)
        return reply != "no"


def ask_at_terminal(approvals: Approvals) -> Asker | None:
    """Return what asks the user at the terminal; None where there is none."""
    from fast_agent.trust.question import at_terminal

    return at_terminal(approvals)
