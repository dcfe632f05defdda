"""FA2xx: what a set of cards must agree on, and what stops a dump."""

from __future__ import annotations

from fast_agent.diagnostics.rule import Rule

UNKNOWN_AGENT = "FA201"
REFERENCE_CYCLE = "FA202"
SELF_REFERENCE = "FA203"
DUPLICATE_NAME = "FA204"
SIMILAR_NAMES = "FA205"
UNKNOWN_SERVER = "FA206"
FILTER_WITHOUT_SERVER = "FA207"
TOOL_ONLY_DEFAULT = "FA208"
SEVERAL_DEFAULTS = "FA209"
HISTORY_WITHOUT_CHILD = "FA210"
REPEATED_NAME = "FA211"
DUMP_OUTSIDE = "FA221"
DUMP_FILE_COLLISION = "FA222"
DUMP_CALLABLE = "FA223"
DUMP_PATH = "FA224"
DUMP_VALUE = "FA225"
DUMP_FAILED = "FA226"
DUMP_FILE_NAME = "FA227"

RULES: tuple[Rule, ...] = (
    Rule(
        UNKNOWN_AGENT,
        "unknown-agent",
        "error",
        """
A card names another agent, and no card of the load-set has that name. The names are compared
letter by letter. All of `agents`, `sequence`, `fan_out`, `fan_in`, `generator`, `evaluator` and
`worker` are looked at. `--fix` writes the closest known name.

Wrong, when the set has `writer` and `critic`:

```yaml
type: chain
name: essay
sequence: [writter, critic]
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
        REFERENCE_CYCLE,
        "reference-cycle",
        "error",
        """
Agents refer to each other in a ring, so that none of them could finish. The message shows the way
round. Every ring is reported once, at the reference that closes it; taking all reported references
out leaves a set without rings.

Wrong:

```yaml
# editor.yaml
instruction: Edit the text.
agents: [reviewer]
```

```yaml
# reviewer.yaml
instruction: Review the text.
agents: [editor]
```

Right: let one of them be called by the other only.

```yaml
# reviewer.yaml
instruction: Review the text.
```
""",
    ),
    Rule(
        SELF_REFERENCE,
        "self-reference",
        "error",
        """
A card names itself as its own child. An agent is never its own tool or its own step.

Wrong:

```yaml
name: planner
instruction: Plan the work.
agents: [planner, worker]
```

Right:

```yaml
name: planner
instruction: Plan the work.
agents: [worker]
```
""",
    ),
    Rule(
        DUPLICATE_NAME,
        "duplicate-name",
        "error",
        """
Two cards of a load-set have the same name. A card without `name` takes the name of its file, so
`notes.md` and `notes.yaml` clash too. Both places are shown.

Wrong:

```yaml
# a.yaml
name: helper
instruction: Translate.
```

```yaml
# b.yaml
name: helper
instruction: Summarise.
```

Right: give each its own name.

```yaml
# b.yaml
name: summariser
instruction: Summarise.
```
""",
    ),
    Rule(
        SIMILAR_NAMES,
        "similar-names",
        "warning",
        """
An agent offered to a model as a tool is called `agent__` and its name. Providers take letters,
digits, `_` and `-` only, so any other character becomes `_`, and a hash is added to tell such a
name from others. Two agents whose tool names differ in nothing but that hash work, but a model
mixes them up easily.

Wrong:

```yaml
instruction: Ask both teams.
agents: ["team a", "team.a"]
```

Right: names that differ in letters or digits.

```yaml
instruction: Ask both teams.
agents: [team-a, team-b]
```
""",
    ),
    Rule(
        UNKNOWN_SERVER,
        "unknown-server",
        "error",
        """
A card uses an MCP server that the configuration does not define. `--fix` writes the closest name
that is defined.

Wrong, when `fastagent.config.yaml` defines `github`:

```yaml
instruction: Read the issues.
servers: [gihub]
```

Right:

```yaml
instruction: Read the issues.
servers: [github]
```
""",
    ),
    Rule(
        FILTER_WITHOUT_SERVER,
        "filter-without-server",
        "error",
        """
`tools`, `resources` or `prompts` narrow a server that the card does not use. A filter that applies
to nothing would let a reader believe in a limit that is not there.

Wrong:

```yaml
instruction: Read the issues.
servers: [github]
tools:
  time: [get_time]
```

Right: name the server the filter is for.

```yaml
instruction: Read the issues.
servers: [github, time]
tools:
  time: [get_time]
```
""",
    ),
    Rule(
        TOOL_ONLY_DEFAULT,
        "tool-only-default",
        "error",
        """
A card is both `tool_only` and `default`. A tool-only agent is hidden from people, so it cannot be
the one they talk to first.

Wrong:

```yaml
instruction: Format the code.
tool_only: true
default: true
```

Right: keep one of the two.

```yaml
instruction: Format the code.
tool_only: true
```
""",
    ),
    Rule(
        SEVERAL_DEFAULTS,
        "several-defaults",
        "error",
        """
More than one card of a load-set says `default: true`. The second and each further one is reported
with the place of the first.

Wrong:

```yaml
# a.yaml
instruction: Greet.
default: true
```

```yaml
# b.yaml
instruction: Say goodbye.
default: true
```

Right: take `default` out of all but one.

```yaml
# b.yaml
instruction: Say goodbye.
```
""",
    ),
    Rule(
        HISTORY_WITHOUT_CHILD,
        "history-without-child",
        "error",
        """
`child_history` sets the history of an agent that is not among the card's `agents`. `--fix` writes
the closest child.

Wrong:

```yaml
instruction: Lead the team.
agents: [writer]
child_history:
  writr: {source: child}
```

Right:

```yaml
instruction: Lead the team.
agents: [writer]
child_history:
  writer: {source: child}
```
""",
    ),
    Rule(
        REPEATED_NAME,
        "repeated-name",
        "warning",
        """
`agents` or `servers` names the same thing twice. It is offered to the model once. (In `sequence`
and `fan_out` a name may stand several times: each is a step or a branch of its own.)

Wrong:

```yaml
instruction: Lead the team.
agents: [writer, critic, writer]
```

Right:

```yaml
instruction: Lead the team.
agents: [writer, critic]
```
""",
    ),
    Rule(
        DUMP_OUTSIDE,
        "dump-outside",
        "error",
        """
A dump would write somewhere else than into the directory it was given: the agent's name holds a
path separator or is not usable as a file name, or the directory or the file is a symbolic link.
Nothing is written.

Wrong: an agent made in Python with the name `../notes`.

```python
@fast.agent(name="../notes", instruction="Take notes.")
```

Right: a plain name.

```python
@fast.agent(name="notes", instruction="Take notes.")
```
""",
    ),
    Rule(
        DUMP_FILE_COLLISION,
        "dump-file-collision",
        "error",
        """
Two agents would be dumped to one file. File names are compared without regard to case and Unicode
form, since common file systems do the same. Nothing is written.

Wrong: agents named `Writer` and `writer` in one dump.

```yaml
name: Writer
```

Right: names that differ in more than case.

```yaml
name: second-writer
```
""",
    ),
    Rule(
        DUMP_CALLABLE,
        "dump-callable",
        "error",
        """
An agent made in Python has a function that a card cannot name: cards say `file.py:name`, and a
callable given to a decorator has no such place of its own.

Wrong, when the agent is to be dumped:

```python
@fast.agent(name="calc", instruction="Add.", function_tools=[add])
```

Right:

```python
@fast.agent(name="calc", instruction="Add.", function_tools=["tools.py:add"])
```
""",
    ),
    Rule(
        DUMP_PATH,
        "dump-path",
        "error",
        """
A relative path of a card cannot be written so that the dumped card finds the same file: the two
directories are on different drives, or the card came from a remote address.

Wrong: a card on drive `D:` dumped to drive `C:`.

```yaml
messages: history.md
```

Right: dump to the same drive, or name the file absolutely.

```yaml
messages: D:/cards/history.md
```
""",
    ),
    Rule(
        DUMP_VALUE,
        "dump-value",
        "error",
        """
An agent made in Python holds a value that no card can hold, such as a number that is not finite, a
character that is not a Unicode scalar value, or a field its type does not have.

Wrong, when the agent is to be dumped:

```python
@fast.agent(name="odd", instruction="Half a pair: \\ud800")
```

Right:

```python
@fast.agent(name="odd", instruction="A whole character: \\U0001f600")
```
""",
    ),
    Rule(
        DUMP_FAILED,
        "dump-failed",
        "error",
        """
The system refused to write the dump: the directory is a file, may not be written, or the disk is
full. What was there before is unchanged.

Wrong, when `notes.txt` is a file:

```text
fast-agent go --card cards --dump notes.txt
```

Right:

```text
fast-agent go --card cards --dump exported
```
""",
    ),
    Rule(
        DUMP_FILE_NAME,
        "dump-file-name",
        "error",
        """
The file an agent would be dumped to could not be loaded as a card again. In a directory `SKILL.md`,
`fast-agent.yaml`, `fastagent.config.yaml` and `*.secrets.yaml` are never cards. A single agent goes
to a file that ends in `.md` or `.markdown` as Markdown, in `.yaml` or `.yml` as YAML.

Wrong: an agent called `SKILL`, dumped as Markdown, or a Markdown dump to `writer.txt`.

```text
fast-agent go --card cards --dump-agent writer --dump-agent-path writer.txt
```

Right: another name for the agent, or a fitting one for the file.

```text
fast-agent go --card cards --dump-agent writer --dump-agent-path writer.md
```
""",
    ),
)
