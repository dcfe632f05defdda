"""What local models are asked, and what is right: tool calls, structured answers, routes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fast_agent.models.model import ToolSpec

Json: TypeAlias = dict[str, Any]


def _tool(name: str, description: str, required: Json, optional: Json | None = None) -> ToolSpec:
    properties = {**required, **(optional or {})}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name, description, schema)


_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": "number"}

TOOLS = (
    _tool("get_weather", "Get the weather of a city now", {"city": _TEXT}),
    _tool(
        "convert_currency",
        "Convert an amount of money from one currency to another",
        {"amount": _NUMBER, "source": {**_TEXT, "description": "ISO code, such as EUR"}}
        | {"target": {**_TEXT, "description": "ISO code, such as USD"}},
    ),
    _tool("search_files", "Find files whose names match a glob pattern", {"pattern": _TEXT}),
    _tool("read_file", "Read a text file", {"path": _TEXT}),
    _tool(
        "set_timer", "Set a timer that rings after some minutes", {"minutes": {"type": "integer"}}
    ),
    _tool("send_message", "Send a text message to a person", {"person": _TEXT, "text": _TEXT}),
)


@dataclass(frozen=True, slots=True)
class ToolPrompt:
    """A question; the tool to call, or None for none; arguments that must be so, in lower case."""

    text: str
    tool: str | None
    arguments: Json = field(default_factory=dict[str, Any])


TOOL_PROMPTS = (
    ToolPrompt("What is the weather like in Lisbon?", "get_weather", {"city": "lisbon"}),
    ToolPrompt("Do I need an umbrella in Bergen today?", "get_weather", {"city": "bergen"}),
    ToolPrompt("How warm is it in Nairobi right now?", "get_weather", {"city": "nairobi"}),
    ToolPrompt("Is it snowing in Oslo?", "get_weather", {"city": "oslo"}),
    ToolPrompt(
        "How many US dollars are 250 euros?",
        "convert_currency",
        {"amount": 250, "source": "eur", "target": "usd"},
    ),
    ToolPrompt(
        "Convert 80 GBP to JPY.",
        "convert_currency",
        {"amount": 80, "source": "gbp", "target": "jpy"},
    ),
    ToolPrompt(
        "I have 1200 Swiss francs (CHF). What is that in EUR?",
        "convert_currency",
        {"amount": 1200, "source": "chf", "target": "eur"},
    ),
    ToolPrompt(
        "What are 15.5 dollars (USD) in CAD?",
        "convert_currency",
        {"amount": 15.5, "source": "usd", "target": "cad"},
    ),
    ToolPrompt("Find all files matching *.toml", "search_files", {"pattern": "*.toml"}),
    ToolPrompt("Which files match test_*.py?", "search_files", {"pattern": "test_*.py"}),
    ToolPrompt("List the files that fit docs/*.md", "search_files", {"pattern": "docs/*.md"}),
    ToolPrompt("What does the file notes/today.txt say?", "read_file", {"path": "notes/today.txt"}),
    ToolPrompt("Open README.md and show it to me", "read_file", {"path": "readme.md"}),
    ToolPrompt("Show me the contents of /etc/hostname", "read_file", {"path": "/etc/hostname"}),
    ToolPrompt("Read src/main.c for me", "read_file", {"path": "src/main.c"}),
    ToolPrompt("Set a timer for 10 minutes", "set_timer", {"minutes": 10}),
    ToolPrompt("Remind me in half an hour", "set_timer", {"minutes": 30}),
    ToolPrompt("I need an alarm in 45 minutes", "set_timer", {"minutes": 45}),
    ToolPrompt("Tell Ana that I am late", "send_message", {"person": "ana"}),
    ToolPrompt("Text Bob: dinner is at eight", "send_message", {"person": "bob"}),
    ToolPrompt("Send Chen a message saying thank you", "send_message", {"person": "chen"}),
    ToolPrompt("What is two plus two?", None),
    ToolPrompt("Thank you, that was all!", None),
    ToolPrompt("Write one sentence about the sea.", None),
)


@dataclass(frozen=True, slots=True)
class ShapePrompt:
    """A text to read facts from, the schema of the facts, and the facts."""

    text: str
    schema: Json
    right: Json


def _object(**properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_WORD: Json = {"type": "string", "maxLength": 40}
_PERSON = _object(name=_WORD, age={"type": "integer"})
_ORDER = _object(item=_WORD, count={"type": "integer"})
_MOOD = _object(mood={"enum": ["happy", "sad", "angry"]})
_FACT = _object(city=_WORD, country=_WORD)

SHAPE_PROMPTS = (
    ShapePrompt("Maria is 34 years old.", _PERSON, {"name": "maria", "age": 34}),
    ShapePrompt("My uncle Tom turned 61 last week.", _PERSON, {"name": "tom", "age": 61}),
    ShapePrompt("Seven-year-old Kofi likes trains.", _PERSON, {"name": "kofi", "age": 7}),
    ShapePrompt("I would like 3 lemons, please.", _ORDER, {"item": "lemons", "count": 3}),
    ShapePrompt("Please send us 12 chairs.", _ORDER, {"item": "chairs", "count": 12}),
    ShapePrompt("One bicycle for me.", _ORDER, {"item": "bicycle", "count": 1}),
    ShapePrompt("What a wonderful day, I love it!", _MOOD, {"mood": "happy"}),
    ShapePrompt("I miss my dog so much. I cried all night.", _MOOD, {"mood": "sad"}),
    ShapePrompt("How dare you! This is outrageous!", _MOOD, {"mood": "angry"}),
    ShapePrompt("Paris, the capital of France", _FACT, {"city": "paris", "country": "france"}),
    ShapePrompt("We flew to Tokyo in Japan.", _FACT, {"city": "tokyo", "country": "japan"}),
    ShapePrompt("She lives in Lima, Peru.", _FACT, {"city": "lima", "country": "peru"}),
)

AGENTS = {
    "cook": "recipes, food and kitchens",
    "lawyer": "contracts, laws and courts",
    "doctor": "illness, pain and medicine",
    "gardener": "plants, soil and gardens",
}

ROUTE_PROMPTS = (
    ("How long do I boil an egg?", "cook"),
    ("Can I freeze tomato soup?", "cook"),
    ("What goes well with roast chicken?", "cook"),
    ("My landlord wants to end my contract early.", "lawyer"),
    ("Do I have to appear in court as a witness?", "lawyer"),
    ("Is a spoken agreement binding?", "lawyer"),
    ("I have had a headache for three days.", "doctor"),
    ("How much ibuprofen may I take?", "doctor"),
    ("My knee is swollen.", "doctor"),
    ("When should I prune my roses?", "gardener"),
    ("The leaves of my basil turn yellow.", "gardener"),
    ("Which soil do blueberries want?", "gardener"),
)
