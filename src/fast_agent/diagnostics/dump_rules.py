"""FA22x: what stops a dump."""

from __future__ import annotations

from fast_agent.diagnostics.rule import Rule

DUMP_OUTSIDE = "FA221"
DUMP_FILE_COLLISION = "FA222"
DUMP_CALLABLE = "FA223"
DUMP_PATH = "FA224"
DUMP_VALUE = "FA225"
DUMP_FAILED = "FA226"
DUMP_FILE_NAME = "FA227"

RULES: tuple[Rule, ...] = (
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
