"""Rules FA4xx: history files."""

from __future__ import annotations

from typing import Final

from fast_agent.diagnostics.rule import Rule

UNREADABLE_HISTORY: Final = Rule(
    "FA401",
    "unreadable-history",
    "error",
    """\
A history file is missing, is no regular file, is larger than 64 MiB, may not be read, or is not
UTF-8. A relative path under `messages` starts from the directory of the card.

Wrong, when the file lies in `history/`:

```yaml
messages: ./examples.md
```

Right:

```yaml
messages: ./history/examples.md
```
""",
)

INVALID_HISTORY_JSON: Final = Rule(
    "FA402",
    "invalid-history-json",
    "error",
    """\
A `.json` history, or the JSON under a `---RESOURCE` line, is not JSON. `NaN`, `Infinity`, numbers
of thousands of digits and comments are not JSON either.

Wrong:

```json
{"messages": [{"role": "user", "content": []},]}
```

Right:

```json
{"messages": [{"role": "user", "content": []}]}
```
""",
)

DUPLICATE_HISTORY_KEY: Final = Rule(
    "FA403",
    "duplicate-history-key",
    "error",
    """\
An object in a history has the same key twice. JSON readers differ in which one they take, so
neither is taken.

Wrong:

```json
{"messages": [{"role": "user", "role": "assistant", "content": []}]}
```

Right:

```json
{"messages": [{"role": "assistant", "content": []}]}
```
""",
)

INVALID_MESSAGE: Final = Rule(
    "FA404",
    "invalid-message",
    "error",
    """\
A message, or something in it, does not have the shape a message has: a role of `user` or
`assistant`, a list of content blocks with a `type`, tool calls and results by their id. A message
that is wrong is never left out; the file is refused, with every problem in it.

Wrong:

```json
{"messages": [{"role": "user", "content": "hello"}]}
```

Right:

```json
{"messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]}
```
""",
)

INVALID_RESOURCE_SECTION: Final = Rule(
    "FA405",
    "invalid-resource-section",
    "error",
    """\
What follows a `---RESOURCE` line must be the JSON of one embedded resource, or one line with the
path of a file. The path is relative to the history file and may not leave its directory by `..`,
an absolute path or a link.

Wrong:

```text
---USER
Read this.
---RESOURCE
../secret.txt
```

Right:

```text
---USER
Read this.
---RESOURCE
{"type": "resource", "resource": {"uri": "file:///notes.txt", "text": "Buy milk."}}
```
""",
)

MISPLACED_SECTION: Final = Rule(
    "FA406",
    "misplaced-section",
    "error",
    """\
`---SYSTEM` may stand once, before all messages; text may not stand before the first line that
opens a section; nothing but messages may follow a system section.

Wrong:

```text
Some notes.
---USER
hello
---SYSTEM
Be brief.
```

Right:

```text
---SYSTEM
Be brief.
---USER
hello
```
""",
)

UNUSABLE_ORDER: Final = Rule(
    "FA407",
    "unusable-message-order",
    "warning",
    """\
Models refuse a conversation that starts with the assistant, in which the assistant speaks twice
in a row, or in which a tool call is not answered by exactly one result in the user message right
after it. The file loads, but a turn with it is likely to fail.

Wrong:

```text
---ASSISTANT
Hello, how can I help?
---USER
What is 2 + 2?
```

Right:

```text
---USER
What is 2 + 2?
---ASSISTANT
4
```
""",
)

NEAR_DELIMITER: Final = Rule(
    "FA408",
    "near-delimiter",
    "warning",
    """\
A line almost opens a section of a history and is read as text. A section is opened by a line that
is exactly `---USER`, `---ASSISTANT`, `---RESOURCE` or `---SYSTEM`: capital letters, no spaces.

Wrong:

```text
--- User
hello
```

Right:

```text
---USER
hello
```
""",
)

RULES: tuple[Rule, ...] = (
    UNREADABLE_HISTORY,
    INVALID_HISTORY_JSON,
    DUPLICATE_HISTORY_KEY,
    INVALID_MESSAGE,
    INVALID_RESOURCE_SECTION,
    MISPLACED_SECTION,
    UNUSABLE_ORDER,
    NEAR_DELIMITER,
)
