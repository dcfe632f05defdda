"""FA10x and FA12x: the fields of one card."""

from __future__ import annotations

from fast_agent.diagnostics.rule import Rule

UNKNOWN_FIELD = "FA101"
WRONG_TYPE = "FA102"
BAD_VALUE = "FA103"
MISSING_FIELD = "FA104"
MISSING_INSTRUCTION = "FA105"
TWO_INSTRUCTIONS = "FA106"
UNKNOWN_TYPE = "FA107"
BAD_NAME = "FA108"
NEWER_SCHEMA = "FA109"
HISTORY_IN_BODY = "FA121"
UNSET_VARIABLE = "FA122"
DEPRECATED_HISTORY_MODE = "FA123"
HISTORY_MODE_CONFLICT = "FA124"
FORBIDDEN_REMOTE = "FA125"

RULES: tuple[Rule, ...] = (
    Rule(
        UNKNOWN_FIELD,
        "unknown-field",
        "error",
        """
A card, or a mapping inside one, has a key that means nothing there. Which fields a card may have
depends on its `type`; `fast-agent schema TYPE` lists them. `--fix` corrects a misspelling.

Wrong:

```yaml
type: agent
instruktion: Answer in one line.
```

Right:

```yaml
type: agent
instruction: Answer in one line.
```
""",
    ),
    Rule(
        WRONG_TYPE,
        "wrong-type",
        "error",
        """
A value is of another type than its field. Nothing is converted silently: the text `"no"` is not
`false`, and the text `two` is not `2`. In the YAML of cards, `yes`, `no`, `on` and `off` are texts.

Wrong:

```yaml
use_history: no
max_parallel: two
servers: time
```

Right:

```yaml
use_history: false
max_parallel: 2
servers: [time]
```
""",
    ),
    Rule(
        BAD_VALUE,
        "bad-value",
        "error",
        """
A value has the right type, but its field does not allow it: a word that is none of the choices, a
number out of bounds, an empty text, a function that is not written as `file.py:name`.

Wrong:

```yaml
history_source: Child
max_parallel: 0
```

Right:

```yaml
history_source: child
max_parallel: 1
```
""",
    ),
    Rule(
        MISSING_FIELD,
        "missing-field",
        "error",
        """
A field without which the card has no meaning is not given, or names nothing. Workflows need the
agents they work with; each card of a file with several needs a `name`.

Wrong:

```yaml
type: chain
name: essay
```

Right:

```yaml
type: chain
name: essay
sequence: [writer, critic]
```
""",
    ),
    Rule(
        MISSING_INSTRUCTION,
        "missing-instruction",
        "error",
        """
A card whose model is asked needs an instruction. In a Markdown card it is the text below the
frontmatter, in a YAML card the field `instruction`. `chain`, `parallel`, `evaluator_optimizer` and
`MAKER` ask no model of their own and may go without. `--fix` puts in a sentence to start from.

Wrong:

```markdown
---
type: agent
---
```

Right:

```markdown
---
type: agent
---
Answer in one line.
```
""",
    ),
    Rule(
        TWO_INSTRUCTIONS,
        "two-instructions",
        "error",
        """
A Markdown card has both the field `instruction` and a text below its frontmatter. Only one of them
can be the system prompt.

Wrong:

```markdown
---
instruction: Answer in one line.
---
Answer in one page.
```

Right:

```markdown
---
type: agent
---
Answer in one page.
```
""",
    ),
    Rule(
        UNKNOWN_TYPE,
        "unknown-type",
        "error",
        """
`type` names none of the card types. Letter case, `-` and `_` make no difference. Without a `type` a
card is an `agent`.

Wrong:

```yaml
type: rooter
agents: [writer]
```

Right:

```yaml
type: router
agents: [writer]
```
""",
    ),
    Rule(
        BAD_NAME,
        "bad-name",
        "error",
        """
A name becomes part of tool names and of file names, so it may not hold `/`, `\\` or control
characters, may not begin with `.`, and may not be empty. Without a `name`, a card is called as its
file, without the suffix.

Wrong:

```yaml
name: team/writer
```

Right:

```yaml
name: team-writer
```
""",
    ),
    Rule(
        NEWER_SCHEMA,
        "newer-schema",
        "error",
        """
`schema_version` says that the card is written for a newer format than this program reads. Most
cards leave it out, which means version 1.

Wrong:

```yaml
schema_version: 2
```

Right:

```yaml
schema_version: 1
```
""",
    ),
    Rule(
        HISTORY_IN_BODY,
        "history-in-body",
        "error",
        """
A line of the body is exactly `---USER`, `---ASSISTANT` or `---RESOURCE`. Such lines divide history
files; a card holds no history. Name a history file in `messages`. Inside a fenced code block these
lines are plain text.

Wrong:

```markdown
---
type: agent
---
Answer in one line.
---USER
How far is the moon?
```

Right:

```markdown
---
type: agent
messages: history.md
---
Answer in one line.
```
""",
    ),
    Rule(
        UNSET_VARIABLE,
        "unset-variable",
        "error",
        """
`${NAME}` stands for an environment variable, and it is not set. `${NAME:default}` gives a value for
that case, and `$${` writes a plain `${`. Variables are replaced in frontmatter and YAML, not in
bodies, and never in cards from a web address.

Wrong, where `WRITER_MODEL` is not set:

```yaml
model: ${WRITER_MODEL}
```

Right:

```yaml
model: ${WRITER_MODEL:passthrough}
```
""",
    ),
    Rule(
        DEPRECATED_HISTORY_MODE,
        "deprecated-history-mode",
        "warning",
        """
`history_mode` is read, but two fields say the same more clearly: what called agents start with, and
where their new messages go. `--fix` writes them.

Wrong:

```yaml
agents: [writer]
history_mode: fork
```

Right:

```yaml
agents: [writer]
history_source: child
history_merge_target: none
```
""",
    ),
    Rule(
        HISTORY_MODE_CONFLICT,
        "history-mode-conflict",
        "error",
        """
A card has `history_mode` together with one of the fields that replace it, so that it is not clear
which of them counts.

Wrong:

```yaml
history_mode: fork
history_source: orchestrator
```

Right:

```yaml
history_source: orchestrator
```
""",
    ),
    Rule(
        FORBIDDEN_REMOTE,
        "forbidden-on-remote",
        "error",
        """
A card loaded from a web address may not reach into this machine: no `messages`, `function_tools`,
`tool_hooks` or `shell`, no commands in `mcp_connect`, no `{{file:…}}` in its instruction. Read such
a card first, then save it and load the file.

Wrong, in a card loaded by its address:

```yaml
shell: true
```

Right:

```yaml
shell: false
```
""",
    ),
)
