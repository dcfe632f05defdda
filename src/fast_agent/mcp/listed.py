"""What servers list: tools, resources, resource templates and prompts, as values."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from fast_agent.mcp.content import rest, wire
from fast_agent.mcp.untrusted import DESCRIPTION_LIMIT, NAME_LIMIT, block, one_line
from fast_agent.messages.content import NOTHING
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from mcp import types

    from fast_agent.text.json_value import JsonObject

_TOOL = frozenset({"name", "title", "description", "inputSchema", "outputSchema"})
_RESOURCE = frozenset({"uri", "name", "title", "description", "mimeType", "size"})
_TEMPLATE = frozenset({"uriTemplate", "name", "title", "description", "mimeType"})
_PROMPT = frozenset({"name", "title", "description", "arguments"})


@frozen(kw_only=True)
class ListedTool:
    """A tool as its server lists it.

    Args:
        name: Its name at the server.
        title: Its name for people.
        description: What it does; bounded.
        input_schema: JSON Schema of its arguments.
        output_schema: JSON Schema of its structured results.
        read_only: The server says that it changes nothing.
        destructive: The server says that it may destroy something, or does not say.
        idempotent: The server says that calling it again changes nothing more.
        extra: The other fields, such as `annotations`, `icons`, `_meta`.
    """

    name: str
    title: str | None
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None
    read_only: bool
    destructive: bool
    idempotent: bool
    extra: JsonObject = NOTHING

    @property
    def digest(self) -> str:
        """Distinguishes it from the same tool with other words or arguments."""
        facts = (self.title, self.description, self.input_schema, self.output_schema, self.extra)
        text = json.dumps(facts, sort_keys=True, default=dict)
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @classmethod
    def of(cls, tool: types.Tool) -> ListedTool:
        """Read the SDK's value."""
        hints = tool.annotations
        read_only = bool(hints and hints.read_only_hint)
        title = tool.title or (hints.title if hints else None)
        return cls(
            name=tool.name,
            title=_title(title),
            description=block(tool.description or "", DESCRIPTION_LIMIT),
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            read_only=read_only,
            destructive=not read_only and (hints is None or hints.destructive_hint is not False),
            idempotent=bool(hints and hints.idempotent_hint),
            extra=rest(wire(tool), _TOOL),
        )


@frozen(kw_only=True)
class ListedResource:
    """A resource as its server lists it; `size` is in bytes."""

    uri: str
    name: str
    title: str | None = None
    description: str = ""
    mime_type: str | None = None
    size: int | None = None
    extra: JsonObject = NOTHING

    @classmethod
    def of(cls, resource: types.Resource) -> ListedResource:
        """Read the SDK's value."""
        return cls(
            uri=resource.uri,
            name=one_line(resource.name, NAME_LIMIT),
            title=_title(resource.title),
            description=block(resource.description or "", DESCRIPTION_LIMIT),
            mime_type=resource.mime_type,
            size=resource.size,
            extra=rest(wire(resource), _RESOURCE),
        )


@frozen(kw_only=True)
class ListedTemplate:
    """A resource template as its server lists it."""

    uri_template: str
    name: str
    title: str | None = None
    description: str = ""
    mime_type: str | None = None
    extra: JsonObject = NOTHING

    @classmethod
    def of(cls, template: types.ResourceTemplate) -> ListedTemplate:
        """Read the SDK's value."""
        return cls(
            uri_template=template.uri_template,
            name=one_line(template.name, NAME_LIMIT),
            title=_title(template.title),
            description=block(template.description or "", DESCRIPTION_LIMIT),
            mime_type=template.mime_type,
            extra=rest(wire(template), _TEMPLATE),
        )


@frozen(kw_only=True)
class PromptArgument:
    """An argument a prompt takes."""

    name: str
    description: str = ""
    required: bool = False


@frozen(kw_only=True)
class ListedPrompt:
    """A prompt as its server lists it."""

    name: str
    title: str | None = None
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()
    extra: JsonObject = NOTHING

    @classmethod
    def of(cls, prompt: types.Prompt) -> ListedPrompt:
        """Read the SDK's value."""
        return cls(
            name=prompt.name,
            title=_title(prompt.title),
            description=block(prompt.description or "", DESCRIPTION_LIMIT),
            arguments=tuple(
                PromptArgument(
                    name=argument.name,
                    description=block(argument.description or "", DESCRIPTION_LIMIT),
                    required=bool(argument.required),
                )
                for argument in prompt.arguments or ()
            ),
            extra=rest(wire(prompt), _PROMPT),
        )


def _title(title: str | None) -> str | None:
    return one_line(title, NAME_LIMIT) if title else None
