"""Rules about code that comes with cards (FA8xx)."""

from __future__ import annotations

from fast_agent.diagnostics.rule import Rule

UNTRUSTED_CODE = "FA801"
CHANGED_CODE = "FA802"

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

Right: read the card and the files it runs, then approve them as they are.

```sh
fast-agent trust .fast-agent/agent-cards/helper.yaml
fast-agent go --message hello
```

Naming the card with `--card` is a yes too, and `--trust` says yes to all cards that load by
themselves, this once.
""",
    ),
    Rule(
        CHANGED_CODE,
        "changed-code",
        "error",
        """\
A card from a directory that loads by itself was approved, and then it changed, or a file it runs
did: one of its functions or hooks, a Python file beside them, a program it starts. What was not
read was not approved, so it does not run before a person has said yes again. A program that is
running keeps the agents it had.

Wrong: running after `tools.py`, which an approved card uses, was edited or came by a `git pull`.

Right: look at what changed, then approve it.

```sh
fast-agent trust .fast-agent/agent-cards/helper.yaml
```
""",
    ),
)
