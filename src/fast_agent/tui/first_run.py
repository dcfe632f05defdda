"""First run: what a conversation can do without a chosen model, and what to do next."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fast_agent.cards.fields import FIELDS_OF
from fast_agent.errors import FastAgentError
from fast_agent.models.check import LOCAL_MODULES, LOCAL_REQUIREMENT, installed
from fast_agent.models.local.weights import DEFAULT, WEIGHTS, weights_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fast_agent.commands.controller import ConversationController
    from fast_agent.models.check import Selection

_MIB = 1 << 20
STAND_IN = "passthrough"
"""The model that answers where there is none: it repeats what it is sent."""


async def settle_model(
    controller: ConversationController, *, can_hide_keys: bool = True
) -> str | None:
    """Use the stand-in for every agent without a usable model.

    Args:
        controller: The conversation.
        can_hide_keys: Whether what is typed can be hidden, as `/auth` needs.

    Returns:
        What the user can do, as Markdown; None if models were chosen.
    """
    unchosen = [name for name in controller.app.agent_names() if _is_unchosen(controller, name)]
    if not unchosen:
        return None
    if is_local_ready(os.environ):
        return _ready_text(can_hide_keys) if controller.agent in unchosen else None
    for name in unchosen:
        await controller.app.choose_model(name, STAND_IN)
    some_answer = len(unchosen) < len(controller.app.agent_names())
    return _missing_text(some_answer) + _provider_steps(can_hide_keys)


async def take_local(controller: ConversationController) -> None:
    """Switch the agents with the stand-in to the model that was fetched."""
    for name in controller.app.agent_names():
        if _selection(controller, name) == (STAND_IN, "flag"):
            await controller.app.choose_model(name, None)


def is_local_ready(environ: Mapping[str, str]) -> bool:
    """Whether the small local model can answer on this machine."""
    return installed(LOCAL_MODULES) and weights_path(DEFAULT, environ).is_file()


def fetch(source: str, environ: Mapping[str, str], progress: Callable[[str], None]) -> str:
    """Fetch the weights of a local model; run it in a worker thread.

    Args:
        source: A name of `WEIGHTS`, or the path of a file.
        environ: The environment.
        progress: Called with how far it is, for people.

    Returns:
        Its spec.

    Raises:
        ModelError: It cannot be fetched.
    """
    from fast_agent.models.local.pull import pull

    def report(doing: str, done: int, total: int | None) -> None:
        of = f" of {total // _MIB}" if total else ""
        progress(f"{doing}: {done // _MIB}{of} MiB")

    pulled = pull(source, environ, progress=report)
    return f"local.{pulled.name}"


def _is_unchosen(controller: ConversationController, name: str) -> bool:
    found = _selection(controller, name)
    return found is not None and found[1] == "fallback"


def _selection(controller: ConversationController, name: str) -> tuple[str, str] | None:
    card = controller.app.load_set.cards.get(name)
    if card is None or "model" not in FIELDS_OF[card.config.type]:
        return None  # a chain or a parallel uses no model itself
    try:
        selection: Selection = controller.app.runtime.model_of(name)
    except (FastAgentError, KeyError):  # a workflow, or one that waits for approval
        return None
    return selection.text, selection.source


def _ready_text(can_hide_keys: bool) -> str:
    return (
        "A small model on this machine answers: enough for a first try, too small for tools.\n\n"
        + _provider_steps(can_hide_keys)
    )


def _missing_text(some_answer: bool) -> str:
    who = "No model is set up: `passthrough` answers, which repeats"
    if some_answer:
        who = "For some agents no model is set up: `passthrough` answers for them, which repeats"
    size = WEIGHTS[DEFAULT].download_size // _MIB
    local = f"`/pull` fetches a small model to this machine ({size} MiB, no key needed)"
    if not installed(LOCAL_MODULES):
        local = f"`pip install '{LOCAL_REQUIREMENT}'`; then {local}"
    return f"{who} what you write.\n\n- {local}\n"


def _provider_steps(can_hide_keys: bool) -> str:
    from fast_agent.config.providers import PROVIDERS

    keys = [
        provider.key_variables[0]
        for provider in PROVIDERS.values()
        if provider.default_model is not None
    ]
    listed = ", ".join(f"`{key}`" for key in keys[:3])
    how = f"`/auth PROVIDER` keeps its key (or set {listed} …)"
    if not can_hide_keys:
        how = f"set its key ({listed} …) and start again"
    return (
        f"- a provider: {how}; "
        "`fast-agent models` lists them all\n"
        "- agents of your own: `fast-agent new` writes a card, `/card PATH` loads one"
    )
