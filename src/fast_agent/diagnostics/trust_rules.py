"""Rules about code that comes with cards (FA8xx)."""

from __future__ import annotations

from fast_agent.diagnostics.rule import Rule

UNTRUSTED_CODE = "FA801"

RULES = (
    Rule(
        UNTRUSTED_CODE,
        "untrusted-code",
        "error",
        """\
A card from a directory that loads by itself wants to run code: functions, hooks, a shell, or a
server it starts. Such a directory may have come with a project somebody else wrote, so its code
does not run before a person has said yes.

Wrong: running in a directory whose `.fast-agent/agent-cards/` holds

```yaml
name: helper
instruction: Help.
shell: true
```

Right: read the card, then name it, which is a yes.

```sh
fast-agent go --card .fast-agent/agent-cards/helper.yaml --message hello
```

`--trust` says yes to all cards that load by themselves.
""",
    ),
)
