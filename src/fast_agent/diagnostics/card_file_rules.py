"""FA11x and FA13x: the files cards are in."""

from __future__ import annotations

from fast_agent.diagnostics.rule import Rule

BAD_YAML = "FA110"
DUPLICATE_KEY = "FA111"
UNCLOSED_FRONTMATTER = "FA112"
TOML_FRONTMATTER = "FA113"
LOOSE_FENCE = "FA114"
NOT_A_MAPPING = "FA115"
NO_FRONTMATTER = "FA116"
SEVERAL_CARDS = "FA117"
ENCODING = "FA118"
MISSING_FILE = "FA131"
UNREADABLE_FILE = "FA132"
FILE_TOO_LARGE = "FA133"
NOT_A_CARD_FILE = "FA134"
REMOTE_FAILED = "FA135"
SKIPPED_FILE = "FA136"
NO_CARDS = "FA137"

RULES: tuple[Rule, ...] = (
    Rule(
        BAD_YAML,
        "bad-yaml",
        "error",
        """
The frontmatter or the YAML file is not YAML 1.2, or holds what cards do not use: tags (`!name`),
keys that are not text, infinities, more than 64 levels, aliases that grow without bound.

Wrong:

```yaml
description: warning: this is loud
```

Right:

```yaml
description: "warning: this is loud"
```
""",
    ),
    Rule(
        DUPLICATE_KEY,
        "duplicate-key",
        "error",
        """
A mapping gives one key twice. Other readers of YAML take one of them without a word; here neither
is chosen.

Wrong:

```yaml
model: passthrough
model: local
```

Right:

```yaml
model: local
```
""",
    ),
    Rule(
        UNCLOSED_FRONTMATTER,
        "unclosed-frontmatter",
        "error",
        """
The first line of a Markdown card is `---`, and no later line is. The fields end at a line that is
exactly `---`; the instruction follows.

Wrong:

```markdown
---
type: agent

Answer in one line.
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
        TOML_FRONTMATTER,
        "toml-frontmatter",
        "error",
        """
The frontmatter stands between `+++` lines, which means TOML elsewhere. Cards are written in YAML.

Wrong:

```markdown
+++
type = "agent"
+++
Answer in one line.
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
        LOOSE_FENCE,
        "loose-fence",
        "error",
        """
A fence of the frontmatter has blanks behind it. A fence is a line that is exactly `---`, so that a
rule in the text is never taken for one. `--fix` removes the blanks. In the example `·` is a blank.

Wrong:

```markdown
---··
type: agent
---
Answer in one line.
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
        NOT_A_MAPPING,
        "not-a-mapping",
        "error",
        """
The frontmatter, or the whole YAML card, is a list or a single value instead of fields.

Wrong:

```yaml
- type: agent
- name: writer
```

Right:

```yaml
type: agent
name: writer
instruction: Write one paragraph.
```
""",
    ),
    Rule(
        NO_FRONTMATTER,
        "no-frontmatter",
        "error",
        """
A Markdown file that was named as a card has no frontmatter: its first line is not `---`. In a
directory such files are passed over, so that a README can stand beside cards.

Wrong:

```markdown
Answer in one line.
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
        SEVERAL_CARDS,
        "several-cards",
        "error",
        """
A file holds more than one card. That is allowed only where it is asked for, with `--multi-card` or
`load_agents(..., multi_card=True)`, and every card then needs a `name`. A `---` line in a fenced
code block begins no card.

Wrong:

```yaml
name: writer
instruction: Write one paragraph.
---
name: critic
instruction: Say what is weak.
```

Right, with the other card in its own file:

```yaml
name: writer
instruction: Write one paragraph.
```
""",
    ),
    Rule(
        ENCODING,
        "encoding",
        "error",
        """
The file is not UTF-8. The message says at which byte the trouble begins and what the file looks
like. A byte order mark and CRLF line ends are fine.

Wrong: a card saved as UTF-16 or Latin-1.

Right: the same card after `iconv -f LATIN1 -t UTF-8 card.md > new.md`.
""",
    ),
    Rule(
        MISSING_FILE,
        "missing-file",
        "error",
        """
A path that was named leads to nothing. Relative paths start from the working directory.

Wrong, where the directory is called `cards`:

```sh
fast-agent check crads/
```

Right:

```sh
fast-agent check cards/
```
""",
    ),
    Rule(
        UNREADABLE_FILE,
        "unreadable-file",
        "error",
        """
A card file cannot be read: permission is missing, or it is no regular file. Pipes and devices are
never opened for reading, so that a load cannot hang.

Wrong: a card with mode `000`.

Right: the same card after `chmod u+r card.md`.
""",
    ),
    Rule(
        FILE_TOO_LARGE,
        "file-too-large",
        "error",
        """
A card file is larger than 1 MiB. A system prompt of that size fits no model; it is more likely that
the file is something else.

Wrong: a card with a whole manual as its body.

Right: a card that names the manual where the agent can look it up.
""",
    ),
    Rule(
        NOT_A_CARD_FILE,
        "not-a-card-file",
        "error",
        """
A file that was named cannot be a card. Cards end in `.md`, `.markdown`, `.yaml` or `.yml`. A
`SKILL.md` is a skill, and configuration files are read by other means.

Wrong:

```sh
fast-agent check writer.txt
```

Right:

```sh
fast-agent check writer.md
```
""",
    ),
    Rule(
        REMOTE_FAILED,
        "remote-failed",
        "error",
        """
A card could not be loaded from its address: it is not `http://` or `https://`, the server did not
answer in time, or it answered with an error or with too much.

Wrong:

```sh
fast-agent check ftp://example.com/writer.md
```

Right:

```sh
fast-agent check https://example.com/writer.md
```
""",
    ),
    Rule(
        SKIPPED_FILE,
        "skipped-file",
        "info",
        """
A file in a directory of cards was passed over, because it does not say that it is a card: a
Markdown file without frontmatter, a YAML file with none of `type`, `name` and `instruction`, a
`SKILL.md`. Name the file itself to have it checked as a card.

Passed over:

```yaml
title: Notes
```

A card:

```yaml
name: notes
instruction: Answer from the notes.
```
""",
    ),
    Rule(
        NO_CARDS,
        "no-cards",
        "error",
        """
A directory that was named holds no card. Directories below it are not loaded, and files that do not
say that they are cards are passed over: a Markdown file whose first line is not `---` (a heading
above the frontmatter is enough), a YAML file with none of `type`, `name` and `instruction`, a file
with another suffix. The notes below the error name what was passed over, and why.

`fast-agent check DIRECTORY` checks the directories below instead, and reports this only where none
of them holds a card. A directory that loads by itself, such as `.fast-agent/agent-cards/`, may hold
no card; where files in it were passed over, it is a warning.

Wrong, where the cards are in `project/cards/`:

```sh
fast-agent go --card project/
```

Right:

```sh
fast-agent go --card project/cards/
```
""",
    ),
)
