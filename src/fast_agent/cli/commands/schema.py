"""`fast-agent schema`."""

from __future__ import annotations

import json

import click

from fast_agent.cli.output import standard_output


@click.command()
@click.argument("kind", required=False, metavar="[TYPE|config|events]")
def command(kind: str | None) -> None:
    """Print a JSON Schema (draft 2020-12).

    Of cards of TYPE, of all cards, of the configuration, or of the lines of `go --format events`.
    """
    standard_output().line(json.dumps(_schema(kind), indent=2, ensure_ascii=False))


def _schema(kind: str | None) -> object:
    if kind is not None and kind.lower() == "config":
        from fast_agent.config.fields import config_schema

        return config_schema()
    if kind is not None and kind.lower() == "events":
        from fast_agent.cli.running.event_lines import events_schema

        return events_schema()
    from fast_agent.cards.fields import CARD_TYPES
    from fast_agent.cards.schema import schema

    if kind is None:
        return schema()
    wanted = kind.lower().replace("-", "_")
    for card_type in CARD_TYPES:
        if card_type.lower() == wanted:
            return schema(card_type)
    from fast_agent.text.wording import closest, did_you_mean

    kinds = (*CARD_TYPES, "config", "events")
    near = closest(kind, kinds)
    known = ", ".join(kinds)
    hint = did_you_mean(near, f"the types are {known}")
    raise click.UsageError(f"there is no card type `{kind}`; {hint}")
