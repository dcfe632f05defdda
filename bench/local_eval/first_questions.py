"""Ask a local model what people ask first, and judge what it says.

    python -m bench.local_eval.first_questions [MODEL] [--date DATE]

The agent is that of `fast-agent new`, with its tools, as in the README. An answer is good when it
keeps to its subject (it has words of it), says no line twice and was not used up by `max_tokens`.
Answers are the same on every run: the default of local models is temperature 0, and the date that
the agent is told is fixed. The exit status is 1 when an answer is not good.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from fast_agent import FastAgent

if TYPE_CHECKING:
    from collections.abc import Sequence

DATE = "22 November 2026"


@dataclass(frozen=True, slots=True)
class FirstQuestion:
    """A question, and words of its subject; so many of them must be in the answer.

    Args:
        text: What is asked.
        subject: Beginnings of words, in lower case.
        needed: How many of them an answer has at least.
    """

    text: str
    subject: tuple[str, ...]
    needed: int = 2


FIRST_QUESTIONS = (
    FirstQuestion("Why is the sky blue?", ("sky", "light", "scatter", "atmosphere", "blue")),
    FirstQuestion("What is a rainbow?", ("rainbow", "light", "water", "color", "colour", "sun")),
    FirstQuestion("How do bees make honey?", ("bee", "honey", "nectar", "flower", "hive")),
    FirstQuestion("What is the capital of France?", ("paris",), 1),
    FirstQuestion("Why do we sleep?", ("sleep", "rest", "brain", "body", "health")),
    FirstQuestion(
        "How does a bicycle stay upright?", ("bicycle", "bike", "balance", "wheel", "rider")
    ),
    FirstQuestion("What is photosynthesis?", ("plant", "light", "carbon", "oxygen", "energy")),
    FirstQuestion("Who was Albert Einstein?", ("einstein", "physic", "relativity", "german")),
    FirstQuestion("How do I boil an egg?", ("egg", "boil", "water", "heat", "minute")),
    FirstQuestion("What causes the tides of the sea?", ("tide", "moon", "gravit", "ocean")),
    FirstQuestion("What is a computer virus?", ("virus", "software", "malware", "computer")),
    FirstQuestion(
        "Why do leaves change colour in autumn?", ("leaf", "leaves", "autumn", "chlorophyll")
    ),
    FirstQuestion("How do airplanes fly?", ("airplane", "aircraft", "lift", "wing", "air")),
    FirstQuestion("What is gravity?", ("gravity", "force", "mass", "object", "attract")),
    FirstQuestion("How do I learn to play the guitar?", ("guitar", "practice", "chord", "music")),
    FirstQuestion(
        "What is the Python programming language?", ("python", "language", "program", "code")
    ),
    FirstQuestion("Why is the ocean salty?", ("ocean", "salt", "water", "sea", "mineral")),
    FirstQuestion("How does a volcano erupt?", ("volcano", "magma", "lava", "erupt", "rock")),
    FirstQuestion("What do cats eat?", ("cat", "eat", "meat", "food", "mice")),
    FirstQuestion("Tell me about the moon.", ("moon", "earth", "orbit", "planet", "sky")),
)


@dataclass(frozen=True, slots=True)
class Judged:
    """What is to be said of one answer.

    Args:
        question: What was asked.
        answer: What was answered.
        stop_reason: Why the answer ended.
        tokens: Its tokens.
    """

    question: FirstQuestion
    answer: str
    stop_reason: str
    tokens: int

    @property
    def subject_words(self) -> tuple[str, ...]:
        """The words of the subject that are in the answer."""
        said = set(re.findall(r"\w+", self.answer.lower()))
        return tuple(
            word for word in self.question.subject if any(one.startswith(word) for one in said)
        )

    @property
    def repeated_lines(self) -> tuple[str, ...]:
        """The lines that are in the answer twice."""
        lines = Counter(line.strip() for line in self.answer.splitlines() if line.strip())
        return tuple(line for line, count in lines.items() if count > 1)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with the answer, in words."""
        faults: list[str] = []
        if len(self.subject_words) < self.question.needed:
            faults.append("off its subject")
        if self.repeated_lines:
            faults.append(f"says twice: {self.repeated_lines[0][:40]}")
        if self.stop_reason not in {"endTurn", "repetition"}:
            faults.append(f"ended by {self.stop_reason}")
        return tuple(faults)


async def ask_first(
    questions: Sequence[FirstQuestion], cards: Path, model: str = "local"
) -> list[Judged]:
    """Ask each question in a conversation of its own.

    Args:
        questions: What is asked.
        cards: The cards of the agent.
        model: The model that answers.
    """
    fast = FastAgent(cwd=cards.parent, ignore_config=True)
    fast.load_agents(cards)
    judged: list[Judged] = []
    async with fast.run(model=model) as app:
        for question in questions:
            agent, before = app["assistant"], app["assistant"].usage.output_tokens
            answer = await agent.generate(question.text)
            tokens = agent.usage.output_tokens - before
            judged.append(Judged(question, answer.text, answer.stop_reason or "", tokens))
            agent.clear()
    return judged


def write_starter_set(directory: Path, date: str = DATE) -> Path:
    """Write the cards of `fast-agent new` below a directory, with a fixed date.

    Returns:
        The directory of the cards.
    """
    cards = directory / "cards"
    command = (Path(sys.executable).with_name("fast-agent"), "new", cards)
    subprocess.run(command, check=True, capture_output=True)
    card = cards / "assistant.md"
    text = card.read_text("utf-8")
    assert "{{currentDate}}" in text
    card.write_text(text.replace("{{currentDate}}", date), "utf-8")
    return cards


def _table(judged: Sequence[Judged]) -> str:
    rows = [("question", "ended by", "tokens", "words of its subject", "faults")]
    rows += [
        (
            one.question.text,
            one.stop_reason,
            str(one.tokens),
            ", ".join(one.subject_words),
            "; ".join(one.faults),
        )
        for one in judged
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def main() -> None:
    """Read the arguments, ask, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="?", default="local", help="a model as in a card")
    parser.add_argument("--answers", action="store_true", help="print the answers too")
    parser.add_argument("--date", default=DATE, help="the date in the agent's instruction")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        cards = write_starter_set(Path(directory), given.date)
        judged = anyio.run(ask_first, FIRST_QUESTIONS, cards, given.model)
    if given.answers:
        for one in judged:
            print(f"# {one.question.text}\n\n{one.answer}\n")
    good = sum(not one.faults for one in judged)
    print(f"{_table(judged)}\n\n{good} of {len(judged)} answers are good")
    sys.exit(good < len(judged))


if __name__ == "__main__":
    main()
