"""Rules FA7xx: placeholders in instructions."""

from __future__ import annotations

from typing import Final

from fast_agent.diagnostics.rule import Rule

UNKNOWN_PLACEHOLDER: Final = Rule(
    "FA701",
    "unknown-placeholder",
    "warning",
    """\
Two braces hold a word that is no placeholder, so the model reads the text as it is written.
Placeholders are spelt exactly, without spaces; `file`, `file_silent`, `url` and `internal` need
something after a colon, the others take nothing. To write braces for the model, put a backslash
before them: `\\{{word}}`.

Wrong:

```text
Today is {{current_date}}.
```

Right:

```text
Today is {{currentDate}}.
```
""",
)

INSTRUCTION_FILE: Final = Rule(
    "FA702",
    "instruction-file",
    "error",
    """\
A file that `{{file:}}` names is missing, is no UTF-8 text, is larger than 1 MiB, or does not lie
below the directory of the card or the workspace: an absolute path, `..` and links are refused.
`{{file_silent:}}` leaves a missing file out, and is as strict in everything else. A card from the
network may not name files at all.

Wrong:

```text
{{file:../../style.md}}
```

Right, with the file beside the card:

```text
{{file:style.md}}
```
""",
)

INSTRUCTION_SOURCE: Final = Rule(
    "FA703",
    "instruction-source",
    "error",
    """\
A placeholder names something that cannot be had: `{{url:}}` takes an `http` or `https` address,
and `{{internal:}}` the id of a document that comes with the program.

Wrong:

```text
{{url:ftp://example.com/style.md}}
```

Right:

```text
{{url:https://example.com/style.md}}
```
""",
)

RULES: tuple[Rule, ...] = (UNKNOWN_PLACEHOLDER, INSTRUCTION_FILE, INSTRUCTION_SOURCE)
