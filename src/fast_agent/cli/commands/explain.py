"""`fast-agent explain`."""

from __future__ import annotations

import click

from fast_agent.cli.output import standard_output


@click.command()
@click.argument("rule", required=False)
def command(rule: str | None) -> None:
    """Print the page of RULE, a code such as FA101 or a name; without RULE, list them all."""
    from fast_agent.diagnostics.rulebook import explain, rules

    if rule is not None:
        standard_output().write(explain(rule))
        return
    for code, one in rules().items():
        standard_output().line(f"{code}  {one.severity:<8} {one.name}")
