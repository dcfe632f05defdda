"""Rules FA771 to FA789: the configuration of `guide://` and the documents it serves."""

from __future__ import annotations

from typing import Final

from fast_agent.diagnostics.rule import Rule

WRONG_DOCROOT: Final = Rule(
    "FA771",
    "wrong-guide-docroot",
    "error",
    """\
The docroot of a guide is missing, is no directory, or cannot be read. A `.guide.yaml` that was
found in a directory must stay inside of it: it may have come with documents somebody else wrote.

Wrong, in `handbook/.guide.yaml`:

```yaml
docroot: ../..
```

Right:

```yaml
docroot: .
```

A file that is named itself, with `--guide handbook/.guide.yaml`, may lead elsewhere.
""",
)

WRONG_GUIDE_NAME: Final = Rule(
    "FA772",
    "wrong-guide-name",
    "error",
    """\
The name of a category or collection stands in URIs and in lists of members, so it holds no `/`, no
wildcard (`*`, `?`, `[`), no control character, and is not `.` or `..`.

Wrong:

```yaml
categories:
  api/v2: { dir: api }
```

Right:

```yaml
categories:
  api-v2: { dir: api }
```
""",
)

WRONG_GUIDE_DIRECTORY: Final = Rule(
    "FA773",
    "wrong-guide-directory",
    "error",
    """\
The directory of a category leads out of the docroot. It is a relative path without `..`.

Wrong:

```yaml
categories:
  api: { dir: ../api }
```

Right:

```yaml
categories:
  api: { dir: api }
```
""",
)

MISSING_GUIDE_DIRECTORY: Final = Rule(
    "FA774",
    "missing-guide-directory",
    "warning",
    """\
The directory of a category is not there, cannot be read, or is a link, which is not followed. The
category is empty until it is there.

Wrong, where the directory is called `guides`:

```yaml
categories:
  howto: { dir: giudes }
```

Right:

```yaml
categories:
  howto: { dir: guides }
```
""",
)

WRONG_GUIDE_PATTERN: Final = Rule(
    "FA775",
    "wrong-guide-pattern",
    "error",
    """\
A pattern can match nothing: it begins or ends with `/`, or holds `//`, `\\`, `.` or `..`. Patterns
are relative to the directory of the category.

Wrong:

```yaml
categories:
  api: { dir: api, patterns: [/reference/*.md] }
```

Right:

```yaml
categories:
  api: { dir: api, patterns: [reference/*.md] }
```
""",
)

UNKNOWN_GUIDE_MEMBER: Final = Rule(
    "FA776",
    "unknown-guide-member",
    "error",
    """\
A member of a collection is no category, no collection, and no `category/pattern` of a category.

Wrong:

```yaml
categories:
  howto: { dir: guides }
collections:
  start: { members: [hwoto/install] }
```

Right:

```yaml
categories:
  howto: { dir: guides }
collections:
  start: { members: [howto/install] }
```
""",
)

GUIDE_COLLECTION_LOOP: Final = Rule(
    "FA777",
    "guide-collection-loop",
    "error",
    """\
Collections are members of each other in a ring, so that it cannot be said what they hold.

Wrong:

```yaml
collections:
  basics: { members: [everything] }
  everything: { members: [basics] }
```

Right:

```yaml
categories:
  howto: {}
collections:
  basics: { members: [howto/install] }
  everything: { members: [basics, howto] }
```
""",
)

EMPTY_GUIDE_MEMBER: Final = Rule(
    "FA778",
    "empty-guide-member",
    "warning",
    """\
A category, or a member of a collection, holds no document now. It may be misspelt.

Wrong, where the file is `install.md`:

```yaml
collections:
  start: { members: [howto/instal] }
```

Right:

```yaml
collections:
  start: { members: [howto/install] }
```
""",
)

UNSERVED_GUIDE_FILE: Final = Rule(
    "FA779",
    "unserved-guide-file",
    "warning",
    """\
A file below the docroot is not served: it is a link or no regular file, its name cannot stand in a
URI (a control character, a backslash, broken UTF-8, too long), or equals the name of a neighbour
once both are in Unicode's composed form.

Wrong: a file called `read\\me.md`, or a link to a document elsewhere.

Right: a regular file called `read-me.md`. Hidden files and `node_modules` are passed over without
a word.
""",
)

GUIDE_TREE_TOO_LARGE: Final = Rule(
    "FA780",
    "guide-tree-too-large",
    "error",
    """\
The directory of a category holds more files than a guide serves. Nothing of the category is served,
since what was left out could not be told.

Wrong:

```yaml
categories:
  all: { dir: . }
```

Right: name the directories that hold documents.

```yaml
categories:
  handbook: { dir: docs/handbook }
```
""",
)

BROKEN_GUIDE_FRONTMATTER: Final = Rule(
    "FA781",
    "broken-guide-frontmatter",
    "warning",
    """\
The frontmatter of a document cannot be read. The document is served as it is, without a title,
description or priority.

Wrong:

```markdown
---
title: "Install
---
```

Right:

```markdown
---
title: Install
---
```
""",
)

WRONG_GUIDE_METADATA: Final = Rule(
    "FA782",
    "wrong-guide-metadata",
    "warning",
    """\
A field of a document's frontmatter is not what the guide can tell its clients: `title`,
`description`, `why` and `type` are texts, `tags` a list of texts, `priority` a number from 0 to 1,
and `audience` is `user`, `assistant`, or a list of them. The field is left out.

Wrong:

```markdown
---
priority: high
audience: developers
---
```

Right:

```markdown
---
priority: 0.9
audience: [user, assistant]
---
```
""",
)

RULES: Final = (
    WRONG_DOCROOT,
    WRONG_GUIDE_NAME,
    WRONG_GUIDE_DIRECTORY,
    MISSING_GUIDE_DIRECTORY,
    WRONG_GUIDE_PATTERN,
    UNKNOWN_GUIDE_MEMBER,
    GUIDE_COLLECTION_LOOP,
    EMPTY_GUIDE_MEMBER,
    UNSERVED_GUIDE_FILE,
    GUIDE_TREE_TOO_LARGE,
    BROKEN_GUIDE_FRONTMATTER,
    WRONG_GUIDE_METADATA,
)
