"""Rules about cards that a model reaches by their path (FA81x)."""

from __future__ import annotations

from typing import Final

from fast_agent.diagnostics.rule import Rule

REACHED_CODE: Final = Rule(
    "FA811",
    "reached-code",
    "error",
    """\
A smart agent was told to run a card that brings code or opens connections of its own: functions,
hooks, a shell, a server under `mcp_connect`, or a web page under `{{url:}}`. The model that named
the card may have written it, or been talked into it, so this needs a person's yes.

Wrong, where a smart agent is to run it:

```yaml
name: cleaner
instruction: Clean up.
shell: true
```

Right: leave the code out, or let a person who has read the card run it by its name:

```sh
fast-agent go --card cleaner.yaml --message hello
```
""",
)

REACHED_FILE: Final = Rule(
    "FA812",
    "reached-file",
    "error",
    """\
A card that a smart agent reaches by its path names a file outside the workspace and the cards of
the home directory, a hidden file, or a configuration file. Its content would come before a model
that nobody meant to show it to.

Wrong:

```yaml
name: reader
messages: [../../.ssh/config]
instruction: Go on.
```

Right, with the file beside the card:

```yaml
name: reader
messages: [examples.txt]
instruction: Go on.
```
""",
)

RULES: tuple[Rule, ...] = (REACHED_CODE, REACHED_FILE)
