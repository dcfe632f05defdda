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
    Rule(UNKNOWN_AGENT, "unknown-agent", "error"),
    Rule(REFERENCE_CYCLE, "reference-cycle", "error"),
    Rule(SELF_REFERENCE, "self-reference", "error"),
    Rule(DUPLICATE_NAME, "duplicate-name", "error"),
    Rule(SIMILAR_NAMES, "similar-names", "warning"),
    Rule(UNKNOWN_SERVER, "unknown-server", "error"),
    Rule(FILTER_WITHOUT_SERVER, "filter-without-server", "error"),
    Rule(TOOL_ONLY_DEFAULT, "tool-only-default", "error"),
    Rule(SEVERAL_DEFAULTS, "several-defaults", "error"),
    Rule(HISTORY_WITHOUT_CHILD, "history-without-child", "error"),
    Rule(REPEATED_NAME, "repeated-name", "warning"),
    Rule(ATTACHED_AGENT_GONE, "attached-agent-gone", "warning"),
    Rule(CALLS_NO_AGENTS, "calls-no-agents", "warning"),
    Rule(HISTORY_WITHOUT_FILE, "history-without-file", "error"),
)
