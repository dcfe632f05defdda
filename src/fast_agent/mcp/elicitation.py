"""Elicitation: a server asks the person a question, by a form or by an address to open."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fast_agent.mcp.untrusted import block, one_line
from fast_agent.tools.human import HumanRequest
from fast_agent.tools.human_form import schema_problem

if TYPE_CHECKING:
    from mcp.types import (
        ElicitRequestFormParams,
        ElicitRequestParams,
        ElicitRequestURLParams,
        ElicitResult,
    )

    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.human import Human

MESSAGE_LIMIT = 4_000
ATTEMPTS = 3
"""How often a person is asked for an answer that fits the form."""

_log = logging.getLogger(__name__)


async def answer_elicitation(
    params: ElicitRequestParams, *, server_name: str, agent_name: str, human: Human | None
) -> ElicitResult:
    """Serve one `elicitation/create`.

    Args:
        params: The question.
        server_name: The server that asks.
        agent_name: The agent or agents it asks for, as people are shown them.
        human: The way to the person, or None; then the answer is `decline`.
    """
    from mcp.types import ElicitRequestURLParams, ElicitResult

    if human is None:
        return ElicitResult(action="decline")
    if isinstance(params, ElicitRequestURLParams):
        return await _open(params, server_name, agent_name, human)
    return await _fill(params, server_name, agent_name, human)


async def _open(
    params: ElicitRequestURLParams, server_name: str, agent_name: str, human: Human
) -> ElicitResult:
    from mcp.types import ElicitResult

    if not opens_safely(params.url):
        _log.warning("server `%s` asked to open `%s`: declined", server_name, one_line(params.url))
        return ElicitResult(action="decline")
    answer = await human.ask(
        HumanRequest(
            message=block(params.message, MESSAGE_LIMIT),
            agent_name=agent_name,
            server_name=server_name,
            url=params.url,
        )
    )
    return ElicitResult(action=answer.action)


async def _fill(
    params: ElicitRequestFormParams, server_name: str, agent_name: str, human: Human
) -> ElicitResult:
    from mcp.types import ElicitResult

    schema = params.requested_schema
    wrong = form_problem(schema)
    if wrong is not None:
        _log.warning("server `%s` asked with a form that is no JSON Schema: %s", server_name, wrong)
        return ElicitResult(action="decline")
    question = block(params.message, MESSAGE_LIMIT)
    message = question
    for _ in range(ATTEMPTS):
        answer = await human.ask(
            HumanRequest(
                message=message, agent_name=agent_name, server_name=server_name, schema=schema
            )
        )
        if answer.action != "accept":
            return ElicitResult(action=answer.action)
        content: dict[str, Any] = dict(answer.content or {})
        problem = answer_problem(content, schema)
        if problem is None:
            return ElicitResult(action="accept", content=content)
        message = f"{question}\n\nthe answer does not fit: {problem}"
    return ElicitResult(action="cancel")


def opens_safely(url: str) -> bool:
    """Whether an address may be shown to a person to open: `http` or `https`, without tricks."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    hidden = parts.username is not None or not url.isprintable() or " " in url
    return parts.scheme in ("http", "https") and bool(host) and not hidden


def form_problem(schema: JsonObject) -> str | None:
    """Say what is wrong with a form's schema, or None."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as problem:
        return one_line(problem.message)
    return None


def answer_problem(content: JsonObject, schema: JsonObject) -> str | None:
    """Say where an answer does not fit the form's schema, or None."""
    # A form's fields are all it asks for; a person's shell has no business sending others.
    problem = schema_problem(content, {**schema, "additionalProperties": False})
    return None if problem is None else one_line(problem)
