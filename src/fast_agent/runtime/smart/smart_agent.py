"""The agent of type `smart`: it has tools to write, check and run cards, and to read documents."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.agents.agent_tool import Crew
from fast_agent.cards.card_files import is_skill
from fast_agent.cards.document import read_markdown, read_yaml
from fast_agent.cards.dump import dump_card
from fast_agent.cards.fields import CARD_TYPES
from fast_agent.cards.validate import Origin, validate_card
from fast_agent.errors import CardError, FastAgentError, ToolError, os_reason
from fast_agent.messages.content import TextContent
from fast_agent.messages.message import ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.runtime.blueprint import LlmBlueprint
from fast_agent.runtime.smart.card_reach import AGENT_CARDS, CardReach
from fast_agent.runtime.smart.smart_tools import SmartTools, told
from fast_agent.text.source import Source
from fast_agent.text.yaml_writer import UnwritableValueError, write_yaml
from fast_agent.tools.result import error_result
from fast_agent.tools.tool import RuntimeTool
from fast_agent.tools.tool_arguments import ToolArguments, object_schema

if TYPE_CHECKING:
    from fast_agent.cards.card import Card
    from fast_agent.cards.document import Reading
    from fast_agent.cards.grant import CardGrant
    from fast_agent.messages.message import ToolCall
    from fast_agent.runtime.blueprint import Blueprint
    from fast_agent.runtime.context import RuntimeContext
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.tool import ToolContext


_PROMPT = Path(__file__).with_name("smart_prompt.md")
_INDEX: Final = "{{agentInternalResources}}"
_AGENTS: Final = "{{agents}}"


NAME: Final = "create_agent_card"
MAX_BYTES: Final = 256 * 1024
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SPEC = ToolSpec(
    NAME,
    "Write an agent card. It is checked first, and written only when it is sound; one that exists"
    " is kept unless `overwrite` is true.",
    object_schema(
        name=("string", "the agent's name: letters, digits, `-` and `_`"),
        instruction=("string", "the system prompt"),
        description=("string", "one line on what it does, for its callers"),
        type=("string", f"one of {', '.join(CARD_TYPES)}; `agent` unless given"),
        fields=("object", "further fields of the card"),
        overwrite=("boolean", "whether to replace a card of this name"),
        required=("name",),
    ),
)
_SPEC_NAME: Final = "letters, digits, `-` and `_`, at most 64, beginning with a letter or digit"


def smart_blueprint(card: Card, context: RuntimeContext) -> Blueprint:
    """Make the blueprint of a card of type `smart`.

    Args:
        card: The card.
        context: What it is made with.

    Raises:
        FastAgentError: As for a card of type `agent`.
    """
    config = card.config
    reach = CardReach(context.settings, context.options, context.inner)
    crew = Crew(config, reach.max_depth)
    return LlmBlueprint(
        replace(card, config=replace(config, resource_tools=True)),
        context,
        tools=(*SmartTools(reach, crew).tools, CardWriter(reach, config.grant)),
        instruction=smart_instruction(config.instruction or ""),
    )


def smart_instruction(own: str) -> str:
    """Append a card's own instruction to the packaged one.

    Args:
        own: The card's. What it places itself, the packaged one leaves out.

    Returns:
        The whole, with its placeholders.
    """
    packaged = _packaged()
    for placeholder in (_INDEX, _AGENTS):
        if placeholder in own:
            packaged = packaged.replace(placeholder, "")
    return f"{packaged.strip()}\n\n{own.strip()}\n"


@cache
def _packaged() -> str:
    return _PROMPT.read_text(encoding="utf-8")


class CardWriter(RuntimeTool):
    """The tool.

    Args:
        reach: What its agent can reach.
        grant: What the project of the agent may do, which writes cards among its own, as its
            approval says; None, for an agent of the person, writes to those of the home directory.
    """

    __slots__ = ("_directory", "_grant", "_reach")

    def __init__(self, reach: CardReach, grant: CardGrant | None = None) -> None:
        self._reach = reach
        self._grant = grant
        own = reach.home if grant is None else grant.root / ".fast-agent"
        self._directory = own / AGENT_CARDS

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        return _SPEC

    @property
    def repeatable(self) -> bool:
        """Always False: the card may be there already."""
        return False

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Write a card; nothing is written where anything is wrong with it."""
        del context
        try:
            text = self._create(ToolArguments(_SPEC, call.arguments))
        except FastAgentError as error:
            return error_result(call.id, told(error))
        return ToolResult(call.id, (TextContent(text),))

    def _create(self, args: ToolArguments) -> str:
        name = args.required_text("name")
        if not _FILE_NAME.fullmatch(name) or is_skill(f"{name}.md"):
            raise ToolError(f"`{name[:80]}` is no name of a card", hint=_SPEC_NAME)
        file = self._directory / f"{name}.md"
        exists = self._look(file)
        if self._grant is not None:
            self._grant.check_write(file)
        if exists and not args.flag("overwrite"):
            raise ToolError(
                f"there is a card `{name}` already", hint="set `overwrite` to true to replace it"
            )
        text, card = self._card(name, args, file)
        self._check(card, file)
        self._write(file, text, exists=exists)
        shown = self._reach.shown(file)
        if len(self._siblings(card, file)) and _refers(card):
            directory = self._reach.shown(self._directory)
            return f"wrote `{shown}`; run it with `smart`: `{directory}` and `agent` `{name}`"
        return f"wrote `{shown}`; run it with `smart` and this path"

    def _card(self, name: str, args: ToolArguments, file: Path) -> tuple[str, Card]:
        """Make the text of the card, and the card that the loader makes of it."""
        given: dict[str, JsonValue] = {"type": args.text("type") or "agent", "name": name}
        for key in ("description", "instruction"):
            if (value := args.text(key)) is not None:
                given[key] = value
        fields = args.mapping("fields")
        if twice := sorted({*fields} & {"name", "type", "description", "instruction"} & {*given}):
            raise ToolError(f"`{twice[0]}` is given twice", hint="leave it out of `fields`")
        given |= fields
        shown = self._reach.shown(file)
        try:
            written = write_yaml(given)
        except UnwritableValueError as error:
            raise ToolError(f"the card cannot be written: {error}") from None
        first = self._sound(read_yaml(Source.of(shown, written), multi_card=False), name, file)
        text = dump_card(first.config, directory=file.parent, written=first.written)
        if len(text.encode()) > MAX_BYTES:
            raise ToolError(f"the card is larger than {MAX_BYTES // 1024} KiB")
        return text, self._sound(
            read_markdown(Source.of(shown, text), multi_card=False), name, file
        )

    def _sound(self, reading: Reading, name: str, file: Path) -> Card:
        """Read a card as the loader would; `${VARIABLES}` stay as they are written."""
        problems = [*reading.diagnostics]
        card = None
        if reading.documents:
            card, found = validate_card(
                reading.documents[0], Origin(name, source=file), self._reach.variables
            )
            problems += found
        if errors := [problem for problem in problems if problem.severity == "error"]:
            raise CardError("the card was not written", diagnostics=errors)
        if card is None:
            raise CardError("the card was not written: it cannot be read back")
        return card

    def _check(self, card: Card, file: Path) -> None:
        """Check that the card fits its neighbours, and may be run by an agent like this."""
        found = self._reach.problems([*self._siblings(card, file), card])
        own = [one for one in found if one.path == card.path and one.severity == "error"]
        if problems := [*self._reach.refusals([card]), *own]:
            raise CardError("the card was not written", diagnostics=problems)

    def _siblings(self, card: Card, file: Path) -> list[Card]:
        if not self._directory.is_dir():
            return []
        try:
            cards = self._reach.load(self._directory)
        except ToolError:  # it holds no cards
            return []
        return [one for one in cards if one.config.source != file and one.path != card.path]

    def _look(self, file: Path) -> bool:
        """Return whether the card exists; check that nothing leads out of its directory."""
        if self._directory.is_symlink() or file.is_symlink():
            raise ToolError(
                f"`{self._reach.shown(self._directory)}` or the card is a link, which is not "
                "written through"
            )
        if file.exists() and not file.is_file():
            raise ToolError(f"`{self._reach.shown(file)}` is no file")
        return file.exists()

    def _write(self, file: Path, text: str, *, exists: bool) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            if exists:
                from fast_agent.text.atomic_file import write_atomic

                write_atomic(file, text.encode())
            else:
                # Fails if a file appeared there in between, a link too.
                with file.open("x", encoding="utf-8") as stream:
                    stream.write(text)
        except OSError as error:
            reason = os_reason(error)
            raise ToolError(f"`{self._reach.shown(file)}` cannot be written: {reason}") from None


def _refers(card: Card) -> bool:
    from fast_agent.cards.references import references

    return any(True for _ in references(card.config))
