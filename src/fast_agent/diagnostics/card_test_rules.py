"""Rules about `*.test.yaml` files (FA92x)."""

from __future__ import annotations

from fast_agent.diagnostics.rule import Rule

UNREADABLE_TEST_FILE = Rule(
    "FA921",
    "unreadable-test-file",
    "error",
    """\
A `*.test.yaml` file cannot be read, or is no YAML mapping.

Wrong:

```yaml
- message: hello
```

Right:

```yaml
cases:
  - name: says hello
    message: hello
```
""",
)

UNKNOWN_TEST_KEY = Rule(
    "FA922",
    "unknown-test-key",
    "error",
    """\
A `*.test.yaml` file has a key that there is none of. It would be passed over, and what it asks for
would not be tested.

Wrong:

```yaml
cases:
  - name: says hello
    message: hello
    expect: {contain: hello}
```

Right:

```yaml
cases:
  - name: says hello
    message: hello
    expect: {contains: hello}
```
""",
)

WRONG_TEST_VALUE = Rule(
    "FA923",
    "wrong-test-value",
    "error",
    """\
A value in a `*.test.yaml` file cannot be used: it is of the wrong kind, is no pattern or JSON
Schema, or does not go together with another.

Wrong:

```yaml
cases:
  - name: counts
    message: count to three
    expect: {matches: "one, (two"}
```

Right:

```yaml
cases:
  - name: counts
    message: count to three
    expect: {matches: "one, two"}
```
""",
)

RULES = (UNREADABLE_TEST_FILE, UNKNOWN_TEST_KEY, WRONG_TEST_VALUE)
