"""`fast-agent explain`."""

from __future__ import annotations

import click


@click.command()
@click.argument("rule", required=False)
def command(rule: str | None) -> None:
    """Print the page of RULE, a code such as FA101 or a name; without RULE, list them all."""
    from fast_agent.diagnostics.rulebook import explain, rules

    if rule is not None:
        click.echo(explain(rule), nl=False)
        return
    for code, one in rules().items():
        click.echo(f"{code}  {one.severity:<8} {one.name}")
