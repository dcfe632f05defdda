"""FA6xx: functions, hooks and directories a card names for its tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics.diagnostic import Diagnostic, Fix
from fast_agent.diagnostics.rule import Rule
from fast_agent.errors import CardError
from fast_agent.text.span import Position, Span

if TYPE_CHECKING:
    from fast_agent.diagnostics.diagnostic import Severity

FUNCTION_SPELLING = "FA601"
FUNCTION_FILE_MISSING = "FA602"
FUNCTION_FILE_OUTSIDE = "FA603"
FUNCTION_FILE_SYNTAX = "FA604"
FUNCTION_FILE_IMPORT = "FA605"
FUNCTION_NAME_MISSING = "FA606"
FUNCTION_NOT_CALLABLE = "FA607"
FUNCTION_PARAMETERS = "FA608"
HOOK_SIGNATURE = "FA609"
DUPLICATE_TOOL = "FA610"
SHELL_DIRECTORY = "FA611"

NOWHERE = Span(Position(0, 0), Position(0, 0))
"""Stands for the place in the card that names the function, until that is known."""


def function_error(
    code: str,
    message: str,
    *,
    hint: str | None = None,
    path: str = "",
    span: Span | None = None,
    source_line: str | None = None,
    replacement: str | None = None,
) -> CardError:
    """Make the error for one function of a card.

    Args:
        code: The rule.
        message: What is wrong.
        hint: What to do, or None.
        path: The file it is wrong in; empty for the card's own.
        span: The place in that file, or None.
        source_line: The line at that place, or None.
        replacement: What the card should say in the place of the function, or None.

    Returns:
        The error, with one diagnostic. Where `path` is empty, the caller knows the place.
    """
    fix = None if replacement is None else Fix(NOWHERE, replacement)
    severity: Severity = "error"
    diagnostic = Diagnostic(code, message, path, span, severity, hint, fix, source_line=source_line)
    return CardError(message, hint=hint, diagnostics=(diagnostic,))


def syntax_error(problem: SyntaxError, path: str) -> CardError:
    """Make the error for a Python file that cannot be parsed.

    Args:
        problem: What the compiler says.
        path: The file, as it is to be shown.

    Returns:
        The error, at the line and column of the Python file.
    """
    span: Span | None = None
    line: str | None = None
    if problem.lineno is not None:
        column = max(1, problem.offset or 1)
        end_line, end = problem.end_lineno, problem.end_offset
        width = end - column if end and end_line == problem.lineno and end > column else 1
        span = Span.at(problem.lineno, column, width)
        line = problem.text.rstrip("\r\n") if problem.text else None
    message = f"`{path}` is not valid Python: {problem.msg}"
    return function_error(FUNCTION_FILE_SYNTAX, message, path=path, span=span, source_line=line)


RULES: tuple[Rule, ...] = (
    Rule(
        FUNCTION_SPELLING,
        "function-spelling",
        "error",
        """
An entry of `function_tools` or `tool_hooks` names a Python file and a function in it, with a colon
between them. The file ends in `.py`, and the function is a plain name.

Wrong:

```yaml
function_tools: [tools.add]
```

Right:

```yaml
function_tools: ["tools.py:add"]
```
""",
    ),
    Rule(
        FUNCTION_FILE_MISSING,
        "function-file-missing",
        "error",
        """
The Python file an entry names does not exist. A relative path starts from the directory of the
card, not from where the command is run. `--fix` writes the closest file name beside it.

Wrong, when the file beside the card is `tools.py`:

```yaml
function_tools: ["tool.py:add"]
```

Right:

```yaml
function_tools: ["tools.py:add"]
```
""",
    ),
    Rule(
        FUNCTION_FILE_OUTSIDE,
        "function-file-outside",
        "error",
        """
A relative path leads out of the card's directory and out of the workspace, by `..` or through a
link. Code that a card runs should travel with it. An absolute path says openly that the code lives
elsewhere and is allowed.

Wrong:

```yaml
function_tools: ["../../elsewhere/tools.py:add"]
```

Right:

```yaml
function_tools: ["tools.py:add"]
```
""",
    ),
    Rule(
        FUNCTION_FILE_SYNTAX,
        "function-file-syntax",
        "error",
        """
The Python file of a tool or hook cannot be read or is no valid Python. The place shown is in the
Python file. The file must be UTF-8 text of at most 1 MiB.

Wrong:

```python
def add(a: int, b: int) -> int
    return a + b
```

Right:

```python
def add(a: int, b: int) -> int:
    return a + b
```
""",
    ),
    Rule(
        FUNCTION_FILE_IMPORT,
        "function-file-import",
        "error",
        """
The Python file of a tool or hook raised an error while it was imported. The place shown is the line
of the card's own code it came from. `fast-agent check` does not run such files and so does not
report this; loading the cards to run them does.

A module that is not found must be installed in the same environment as `fast-agent`, or lie beside
the file. Files beside a tool file are imported by their name, as `import rates` for `rates.py`.

Wrong, when neither is there:

```python
import rates
```

Right: put `rates.py` beside the file, or leave the import out.
""",
    ),
    Rule(
        FUNCTION_NAME_MISSING,
        "function-name-missing",
        "error",
        """
The Python file exists and does not define the name. `--fix` writes the closest name it defines.

Wrong, when `tools.py` defines `add`:

```yaml
function_tools: ["tools.py:ad"]
```

Right:

```yaml
function_tools: ["tools.py:add"]
```
""",
    ),
    Rule(
        FUNCTION_NOT_CALLABLE,
        "function-not-callable",
        "error",
        """
The name stands for a value or a class. Tools and hooks are functions.

Wrong:

```python
add = 3
```

Right:

```python
def add(a: int, b: int) -> int:
    return a + b
```
""",
    ),
    Rule(
        FUNCTION_PARAMETERS,
        "function-parameters",
        "error",
        """
A function cannot be offered as a tool because of a parameter. A model gives arguments by name and
as JSON, so a tool has no `*args` and no parameters that are given by position only, its type hints
can be resolved, and its types have a JSON form: numbers, text, booleans, lists, dicts, tuples,
sets, literals, enums, dataclasses, typed dicts, pydantic models and unions of these.

Wrong:

```python
def add(*numbers: int) -> int:
    return sum(numbers)
```

Right:

```python
def add(numbers: list[int]) -> int:
    return sum(numbers)
```
""",
    ),
    Rule(
        HOOK_SIGNATURE,
        "hook-signature",
        "error",
        """
A hook is a coroutine function. In the list form it is called with three arguments: the context, the
arguments of the tool call, and what calls the next hook or the tool. In the mapping form it is
called with the context alone.

Wrong:

```python
def audit(ctx):
    print(ctx.tool_name)
```

Right, for `tool_hooks: ["hooks.py:audit"]`:

```python
async def audit(ctx, args, call_next):
    print(ctx.tool_name)
    return await call_next(args)
```

Right, for `tool_hooks: {after_llm_call: ["hooks.py:report"]}`:

```python
async def report(ctx):
    print(ctx.message.text)
```
""",
    ),
    Rule(
        DUPLICATE_TOOL,
        "duplicate-tool",
        "warning",
        """
Two function tools of an agent have one name, which is the function's own unless `tool` gives
another. The first keeps it, and the model never sees the second.

Wrong:

```yaml
function_tools: ["sums.py:add", "lists.py:add"]
```

Right: give one of them another name.

```python
from fast_agent.tools.function import tool

@tool(name="append")
def add(items: list[str], item: str) -> list[str]:
    return [*items, item]
```
""",
    ),
    Rule(
        SHELL_DIRECTORY,
        "shell-directory",
        "warning",
        """
`cwd` names where shell commands run, relative to the card. There is no such directory, so every
command fails until it is made.

Wrong, when there is no `work` beside the card:

```yaml
shell: true
cwd: work
```

Right:

```yaml
shell: true
cwd: .
```
""",
    ),
)
