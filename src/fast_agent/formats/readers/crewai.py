"""Crews of CrewAI: `agents.yaml` and `tasks.yaml`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fast_agent.diagnostics import rules
from fast_agent.formats.draft import Draft

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.formats.foreign import Fields, ForeignFile

SYSTEM: Final = "{{ .System }}"
TEMPLATES: Final = {
    "prompt_template": "{{ .Prompt }}",
    "response_template": "{{ .Response }}",
}
"""Templates that change nothing; CrewAI ignores one of the system prompt without them."""

_JOINED = re.compile(
    r"You are (?P<role>[^\n]+)\.(?:\n\n(?P<backstory>.+?))??(?:\n\nYour goal: (?P<goal>.+))?",
    re.DOTALL,
)
_INPUT = re.compile(r"\{([A-Za-z_]\w*)\}")
_AGENT = {
    "tools": ("Python objects", "write `function_tools: [file.py:name]`, or name MCP `servers`"),
    "function_calling_llm": ("a second model for tools", "a card has one `model`"),
    "verbose": ("it prints more", "the terminal shows every step"),
    "allow_delegation": ("it may ask the others of its crew", "name them under `agents`"),
    "max_rpm": ("requests a minute", "set `usage_limits` in `request_params`"),
    "max_execution_time": ("its longest run", "set `child_timeout_sec` in its caller's card"),
    "max_retry_limit": ("how often it tries again", "failed requests are repeated automatically"),
    "allow_code_execution": ("it runs code", "write `shell: true` in the card"),
    "code_execution_mode": ("how it runs code", "write `shell: true` in the card"),
    "respect_context_window": ("long conversations are cut", "that is done automatically"),
    "knowledge_sources": ("documents it knows", "write `{{file:PATH}}`, or serve a `guide`"),
    "knowledge": ("documents it knows", "write `{{file:PATH}}`, or serve a `guide`"),
    "embedder": ("a model for searching", "a `guide` is searched without one"),
    "memory": ("it keeps what it learned", "sessions are kept automatically"),
    "cache": ("results of tools are kept", None),
    "step_callback": ("a function after each step", "write `tool_hooks`"),
    "system_template": ("a template of the prompt", "write the whole text as the instruction"),
    "prompt_template": ("a template of the prompt", "write the whole text as the instruction"),
    "response_template": ("a template of answers", "say it in the instruction"),
    "use_system_prompt": ("whether there is a system prompt", None),
    "inject_date": ("it adds the date", "write `{{currentDate}}` in the instruction"),
    "date_format": ("how the date is written", "write `{{currentDate}}` in the instruction"),
    "multimodal": ("it reads images", "models that can are given images automatically"),
    "reasoning": ("it plans first", "write `model: NAME.high`"),
    "max_reasoning_attempts": ("how often it plans", "write `model: NAME.high`"),
    "guardrail": ("a check of answers", "use a card of type `evaluator_optimizer`"),
    "guardrail_max_retries": ("a check of answers", "use `max_refinements`"),
    "apps": ("apps of the platform", "name MCP `servers`"),
    "mcps": ("MCP servers", "name them under `servers`"),
}
_TASK = {
    "tools": ("Python objects", "write `function_tools: [file.py:name]` in the agent's card"),
    "async_execution": ("it does not wait", "use a card of type `parallel`"),
    "human_input": ("the user reviews the answer", "write `human_input: true` in the agent's card"),
    "output_file": ("where the answer is written", "start `fast-agent go` with `--results FILE`"),
    "output_json": ("the shape of the answer", "start `fast-agent go` with `--json-schema FILE`"),
    "output_pydantic": ("the shape of the answer", "give a class to `structured` in Python"),
    "create_directory": ("where the answer is written", None),
    "markdown": ("the answer is Markdown", "say it in the instruction"),
    "callback": ("a function after it", "write `tool_hooks`"),
    "guardrail": ("a check of the answer", "use a card of type `evaluator_optimizer`"),
    "guardrail_max_retries": ("a check of the answer", "use `max_refinements`"),
    "max_retries": ("how often it is tried", "use a card of type `evaluator_optimizer`"),
    "security_config": ("settings of the library", None),
}


def read_crew_agents(file: ForeignFile) -> list[Draft]:
    """Read the agents of an `agents.yaml`, whose instruction is made of role, goal, backstory."""
    drafts: list[Draft] = []
    for draft, fields in _members(file):
        role = fields.text("role") or draft.name
        goal, backstory = fields.text("goal"), fields.text("backstory")
        draft.values["description"] = goal or role
        draft.instruction = crew_instruction(role, goal, backstory)
        _take_template(draft, fields)
        draft.take_model(fields, "llm")
        draft.request(fields, "max_iter", "max_iterations", above=0)
        fields.none_of(_AGENT)
        fields.close("an agent of CrewAI")
        _note_inputs(draft)
        drafts.append(draft)
    return drafts


def crew_instruction(role: str, goal: str | None, backstory: str | None) -> str:
    """Join what an agent of CrewAI is described by."""
    lines = [f"You are {role}."]
    lines += [backstory] if backstory else []
    lines += [f"Your goal: {goal}"] if goal else []
    return "\n\n".join(lines)


def crew_parts(instruction: str) -> dict[str, str] | None:
    """Return role, backstory and goal that give an instruction; None where none do."""
    found = _JOINED.fullmatch(instruction)
    if found is None:
        return None
    parts = {name: found[name] or "" for name in ("role", "goal", "backstory")}
    return parts if crew_instruction(**parts) == instruction else None


def _take_template(draft: Draft, fields: Fields) -> None:
    """Take a template of the system prompt for the instruction."""
    template = fields.text("system_template")
    if template is None:
        return
    if SYSTEM not in template and fields.has("backstory"):
        fields.adapted("backstory", "`system_template` is in its place, there as in the card")
    draft.instruction = template.replace(SYSTEM, draft.instruction)
    for name, plain in TEMPLATES.items():
        if fields.values.get(name) == plain:
            fields.take(name)


def read_crew_tasks(file: ForeignFile) -> list[Draft]:
    """Read the tasks of a `tasks.yaml`: a card for each, and a `chain` of all in order."""
    drafts: list[Draft] = []
    for draft, fields in _members(file):
        description = fields.text("description") or draft.name
        expected = fields.text("expected_output")
        draft.values["description"] = " ".join(description.split())[:200]
        draft.values["tool_only"] = True
        draft.instruction = f"Your task: {description}"
        if expected:
            draft.instruction += f"\n\nExpected answer: {expected}"
        _take_worker(draft, fields)
        if fields.has("context"):
            fields.words("context")
            fields.adapted(
                "context", "the chain gives each task the answers of all tasks before it"
            )
        fields.none_of(_TASK)
        fields.close("a task of CrewAI")
        _note_inputs(draft)
        drafts.append(draft)
    return drafts


def _members(file: ForeignFile) -> Iterator[tuple[Draft, Fields]]:
    """Yield a draft for each agent or task of a file, with its fields."""
    top = file.fields()
    for name in top.values:
        fields = top.below(name)
        if fields is not None:
            yield Draft(file, (name,), name=name), fields


def _take_worker(draft: Draft, fields: Fields) -> None:
    agent = fields.text("agent")
    if agent is not None:
        draft.worker = agent


def _note_inputs(draft: Draft) -> None:
    for name in dict.fromkeys(_INPUT.findall(draft.instruction)):
        draft.file.note(
            rules.LOST_FIELD,
            f"`{{{name}}}` is filled in by Python there; in the card it is plain text",
            draft.keys,
            "write its value, or let the request say it",
        )
