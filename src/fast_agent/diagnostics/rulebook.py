"""Look up rules by code or name, and write their pages."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from fast_agent.diagnostics import rules as table
from fast_agent.diagnostics.rules import Rule
from fast_agent.errors import ConfigError
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@cache
def rules() -> Mapping[str, Rule]:
    """Return the rules by code, in the order of their codes.

    Raises:
        ValueError: When two rules share a code or a name; a test keeps that from happening.
    """
    return index_rules([one for one in vars(table).values() if isinstance(one, Rule)])


def index_rules(gathered: Iterable[Rule]) -> Mapping[str, Rule]:
    """Order rules by code, and check that each code and each name identifies one rule."""
    by_code: dict[str, Rule] = {}
    names: set[str] = set()
    for rule in sorted(gathered, key=lambda one: one.code):
        if rule.code in by_code or rule.name in names:
            raise ValueError(f"the rule {rule.code} {rule.name} is defined twice")
        by_code[rule.code] = rule
        names.add(rule.name)
    return MappingProxyType(by_code)


def find_rule(word: str) -> Rule:
    """Find a rule by its code or its name, in any letter case.

    Args:
        word: Such as `FA101` or `unknown-field`.

    Returns:
        The rule.

    Raises:
        ConfigError: There is none; the hint names the closest.
    """
    known = rules()
    wanted = word.strip().lower().replace("_", "-").replace(" ", "-")
    for rule in known.values():
        if wanted in {rule.code.lower(), rule.name}:
            return rule
    near = closest(word.strip().upper(), tuple(known)) or closest(
        wanted, tuple(rule.name for rule in known.values())
    )
    hint = did_you_mean(near, f"the codes go from {_range(known)}")
    raise ConfigError(f"there is no rule `{word}`", hint=hint)


def explain(word: str) -> str:
    """Write a rule's page as Markdown.

    Args:
        word: The rule's code or name.

    Returns:
        The page with a heading and a final line end.

    Raises:
        ConfigError: There is no such rule.
    """
    return _page(find_rule(word), "#")


def docs_page() -> str:
    """Write all rules as one Markdown page, for the documentation."""
    known = rules()
    rows = [
        f"| [{rule.code}](#{rule.code.lower()}-{rule.name}) | {rule.name} | {rule.severity} |"
        for rule in known.values()
    ]
    head = [
        "# Rules",
        "",
        "Every problem `fast-agent check` can report. `fast-agent explain CODE` prints one page.",
        "",
        "| code | name | severity |",
        "|---|---|---|",
        *rows,
        "",
    ]
    pages = [_page(rule, "##") for rule in known.values()]
    return "\n".join(["\n".join(head), *pages])


def _page(rule: Rule, heading: str) -> str:
    severity = "" if rule.severity == "error" else f"Severity: {rule.severity}.\n\n"
    return f"{heading} {rule.code} {rule.name}\n\n{severity}{rule.page}"


def _range(known: Mapping[str, Rule]) -> str:
    codes = list(known)
    return f"`{codes[0]}` to `{codes[-1]}`" if codes else "nothing"
