"""Rules FA3xx: configuration files and the variables that override them."""

from __future__ import annotations

from typing import Final

from fast_agent.diagnostics.rule import Rule

UNREADABLE_CONFIG: Final = Rule(
    "FA301",
    "unreadable-config",
    "error",
    """\
A configuration file is missing, may not be read, is too large, or is not UTF-8 text.

Wrong: `fast-agent go --config-path nowhere.yaml`.

Right: name a file that exists, or leave the option out: the file is then looked for from the
working directory upwards, and in the home directory.
""",
)

INVALID_CONFIG_YAML: Final = Rule(
    "FA302",
    "invalid-config-yaml",
    "error",
    """\
A configuration file is not the YAML this program reads, or gives a key twice.

Wrong:

```yaml
default_model: haiku
default_model: sonnet
```

Right:

```yaml
default_model: sonnet
```
""",
)

UNKNOWN_CONFIG_KEY: Final = Rule(
    "FA303",
    "unknown-config-key",
    "error",
    """\
A key is not one the configuration has. Every key has a meaning, so that a misspelt one is never
passed over in silence. `fast-agent schema config` prints them all.

Wrong:

```yaml
defualt_model: haiku
```

Right:

```yaml
default_model: haiku
```
""",
)

WRONG_CONFIG_TYPE: Final = Rule(
    "FA304",
    "wrong-config-type",
    "error",
    """\
A value has another type than its key asks for. Types are strict: `yes` is a text, `"5"` is no
number.

Wrong:

```yaml
shell:
  timeout_seconds: soon
```

Right:

```yaml
shell:
  timeout_seconds: 30
```
""",
)

WRONG_CONFIG_VALUE: Final = Rule(
    "FA305",
    "wrong-config-value",
    "error",
    """\
A value has the right type, but is out of range, empty, or not one of the words its key allows.

Wrong:

```yaml
mcp:
  servers:
    my__time: { command: mcp-server-time }
```

Right (`__` separates server and tool, so no server name holds it):

```yaml
mcp:
  servers:
    my-time: { command: mcp-server-time }
```
""",
)

WRONG_SERVER: Final = Rule(
    "FA306",
    "wrong-server",
    "error",
    """\
An MCP server needs exactly one of `command` (a process, `stdio`) and `url` (`http`), and only the
keys that go with it.

Wrong:

```yaml
mcp:
  servers:
    time: { args: [--utc] }
```

Right:

```yaml
mcp:
  servers:
    time: { command: mcp-server-time, args: [--utc] }
```
""",
)

UNSET_CONFIG_VARIABLE: Final = Rule(
    "FA307",
    "unset-config-variable",
    "error",
    """\
A value holds `${NAME}`, and the environment has no such variable. An `api_key` is then simply
unset; everywhere else it is an error.

Wrong:

```yaml
default_model: ${MODEL}
```

Right:

```yaml
default_model: ${MODEL:haiku}
```
""",
)

WRONG_OVERRIDE: Final = Rule(
    "FA308",
    "wrong-override",
    "error",
    """\
A variable `SECTION__KEY` begins with a section of the configuration, but names no key of it, or
holds a value its key does not take. Lists and mappings are written as JSON.

Wrong: `SHELL__TIMEOUT_SECONDS=soon`.

Right: `SHELL__TIMEOUT_SECONDS=30`, `MCP__SERVERS__TIME__ARGS='["--utc"]'`.
""",
)

UNSAFE_CONFIG: Final = Rule(
    "FA309",
    "unsafe-config",
    "warning",
    """\
A configuration file was found in a directory everyone may write to, and belongs to another user.
It could start programs in your name, so it was passed over.

Wrong: working below `/tmp` where somebody else left a `fastagent.config.yaml`.

Right: work in a directory of your own, or name the file with `--config-path`.
""",
)

SHADOWED_CONFIG: Final = Rule(
    "FA310",
    "shadowed-config",
    "warning",
    """\
A directory holds both `fastagent.config.yaml` and `fast-agent.yaml`; only the first is read.

Wrong: two files, one of them forgotten.

Right: keep `fastagent.config.yaml`.
""",
)

OPEN_SECRETS: Final = Rule(
    "FA311",
    "open-secrets",
    "warning",
    """\
A secrets file may be read or written by other users of the machine.

Wrong: a `fastagent.secrets.yaml` with the permissions `-rw-r--r--` (0644).

Right: `chmod 600 fastagent.secrets.yaml`.
""",
)

RULES: Final = (
    UNREADABLE_CONFIG,
    INVALID_CONFIG_YAML,
    UNKNOWN_CONFIG_KEY,
    WRONG_CONFIG_TYPE,
    WRONG_CONFIG_VALUE,
    WRONG_SERVER,
    UNSET_CONFIG_VARIABLE,
    WRONG_OVERRIDE,
    UNSAFE_CONFIG,
    SHADOWED_CONFIG,
    OPEN_SECRETS,
)
