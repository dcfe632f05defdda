"""FA20x and FA21x: what the cards of a set must agree on."""

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
ATTACHED_AGENT_GONE = "FA212"
HISTORY_WITHOUT_FILE = "FA213"
CALLS_NO_AGENTS = "FA214"

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
        ATTACHED_AGENT_GONE,
        "attached-agent-gone",
        "warning",
        """
While a program ran, an agent was given to another as a tool (`/card --tool`, `--card-tool`), and
now no card has its name: the file was taken away, or renamed its agent. The other agents go on
without it. When a card of that name is loaded again, it becomes a tool again.

Wrong:

```yaml
# helper.yaml, which was loaded as `helper`
name: assistant
instruction: Help.
```

Right:

```yaml
# helper.yaml
name: helper
instruction: Help.
```
""",
    ),
    Rule(
        CALLS_NO_AGENTS,
        "calls-no-agents",
        "warning",
        """
While a program was started, agents were given as tools to one of a type that calls none: a chain,
a parallel, an evaluator-optimizer or a MAKER has others do the work, and has no tools itself. The
cards are loaded, and nothing calls them. It happens where the default agent is such a workflow and
there are cards in `.fast-agent/tool-cards/`, or `--card-tool` was given.

Wrong, when `essay` is a chain and the default agent:

```sh
fast-agent go --card essay.md --card writer.md --card-tool lookup.md --message hello
```

Right: give them to an agent that calls others.

```sh
fast-agent go --card essay.md --card writer.md --card-tool lookup.md --agent writer --message hello
```
""",
    ),
    Rule(
        HISTORY_WITHOUT_FILE,
        "history-without-file",
        "error",
        """
What a called agent says is to be merged into the first file of its card's `messages`, and its card
names none. Name a file there, which may be empty, or merge somewhere else.

Wrong:

```yaml
# lead.yaml
instruction: Lead the team.
agents: [writer]
history_merge_target: messages
```

```yaml
# writer.yaml
instruction: Write.
```

Right:

```yaml
# lead.yaml
instruction: Lead the team.
agents: [writer]
history_merge_target: child
```

```yaml
# writer.yaml
instruction: Write.
```
""",
    ),
)
