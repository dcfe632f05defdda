"""Rules FA5xx: models, their names, their parameters and what they need."""

from __future__ import annotations

from typing import Final

from fast_agent.diagnostics.rule import Rule

UNKNOWN_MODEL: Final = Rule(
    "FA501",
    "unknown-model",
    "error",
    """\
No provider, alias or family of model names fits the text. A model is written
`[provider.]name[.effort][?key=value&…]`. After a provider any name is accepted; a bare name must
be an alias or belong to a known family.

Wrong:

```yaml
model: claude-sonet-5
```

Right, one of:

```yaml
model: claude-sonnet-5
model: sonnet
model: anthropic.some-new-model
```
""",
)

MALFORMED_MODEL: Final = Rule(
    "FA502",
    "malformed-model",
    "error",
    """\
The text cannot be taken apart as `[provider.]name[.effort][?key=value&…]`: it is empty, a provider
stands without a name, a query holds something that is not `key=value`, or an effort is asked of a
model that has none.

Wrong:

```yaml
model: passthrough.high
```

Right:

```yaml
model: passthrough
```
""",
)

UNKNOWN_MODEL_PARAMETER: Final = Rule(
    "FA503",
    "unknown-model-parameter",
    "error",
    """\
A key after `?` is not one this model takes. Models of providers and the local model take
`temperature`, `top_p`, `top_k`, `seed`, `max_tokens`, `presence_penalty`, `frequency_penalty` and
`timeout_seconds`; those of providers also `reasoning`; `local` also `path`, `threads` and
`context`; `slow` takes `seconds`; `playback` takes `file`; `scripted` takes `file` and `seed`.

Wrong:

```yaml
model: slow?delay=1
```

Right:

```yaml
model: slow?seconds=1
```
""",
)

WRONG_MODEL_PARAMETER: Final = Rule(
    "FA504",
    "wrong-model-parameter",
    "error",
    """\
The value of a key after `?` has the wrong type, is out of range, or contradicts another part.

Wrong:

```yaml
model: gpt-5?temperature=warm
```

Right:

```yaml
model: gpt-5?temperature=0.7
```
""",
)

MODEL_ALIAS_LOOP: Final = Rule(
    "FA505",
    "model-alias-loop",
    "error",
    """\
Aliases lead back to themselves, so that no model is ever reached.

Wrong:

```yaml
model_aliases:
  fast: quick
  quick: fast
```

Right:

```yaml
model_aliases:
  fast: quick
  quick: haiku
```
""",
)

MISSING_MODEL_KEY: Final = Rule(
    "FA506",
    "missing-model-key",
    "error",
    """\
The provider of the model wants an API key, and neither the environment nor the configuration nor
the card holds one. This is seen before the first turn.

Wrong: `model: sonnet` with no key anywhere.

Right: set the variable (`ANTHROPIC_API_KEY`), or write the key into `fastagent.secrets.yaml`:

```yaml
anthropic:
  api_key: …
```
""",
)

MISSING_MODEL_ADDRESS: Final = Rule(
    "FA507",
    "missing-model-address",
    "error",
    """\
The provider has no address of its own and none is configured.

Wrong: `model: generic.qwen3` with no address anywhere.

Right: set `GENERIC_BASE_URL`, or configure it:

```yaml
generic:
  base_url: http://localhost:11434/v1
```
""",
)

MISSING_MODEL_PACKAGE: Final = Rule(
    "FA508",
    "missing-model-package",
    "error",
    """\
The model needs a package that is not installed. Providers and the local model are extras, so that
a plain installation stays small.

Wrong: `model: gpt-5` after `pip install fast-agent`.

Right: `pip install 'fast-agent[openai]'`.
""",
)

MISSING_MODEL_FILE: Final = Rule(
    "FA509",
    "missing-model-file",
    "error",
    """\
A file the model needs is not there: the weights of a local model, the script of `scripted`, or the
history of `playback`.

Wrong: `model: local` before any weights were fetched.

Right: `fast-agent models pull smollm2`, or `model: local?path=/models/other.gguf`.
""",
)

WRONG_MODEL_FILE: Final = Rule(
    "FA510",
    "wrong-model-file",
    "error",
    """\
The script of `scripted`, or the history of `playback`, cannot be read as one.

Wrong:

```yaml
steps:
  - txt: hello
```

Right:

```yaml
steps:
  - text: hello
```
""",
)

RULES: Final = (
    UNKNOWN_MODEL,
    MALFORMED_MODEL,
    UNKNOWN_MODEL_PARAMETER,
    WRONG_MODEL_PARAMETER,
    MODEL_ALIAS_LOOP,
    MISSING_MODEL_KEY,
    MISSING_MODEL_ADDRESS,
    MISSING_MODEL_PACKAGE,
    MISSING_MODEL_FILE,
    WRONG_MODEL_FILE,
)
