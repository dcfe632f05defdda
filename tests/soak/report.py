"""Report: a soak's figures as text, and the bounds of what a server may come to hold."""

from __future__ import annotations

from statistics import median, quantiles
from typing import TYPE_CHECKING

from tests.soak.growth import WARM_UP, growth_of

from fast_agent.serve.agent_scopes import MAX_OPEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.soak.findings import Findings
    from tests.soak.growth import Growth
    from tests.soak.settled import Settling
    from tests.soak.soak import Soak

MEMORY_GAIN = 8 * 1024.0
"""Most KiB a server may gain after the warm-up, with what its allocator keeps for later."""
ALLOCATED_GAIN = 1024.0
"""Most KiB its objects may gain, as far as they are large."""
BLOCK_GAIN = 6_000.0
"""Most pieces of memory its objects may gain."""
PER_MESSAGE = {"memory": 1.0, "allocated": 0.3, "blocks": 8.0}
"""What more for each message of the one conversation that lives as long as its server."""
PER_CONVERSATION = {"memory": 5.0, "allocated": 1.0, "blocks": 60.0}
"""What more for each conversation that is held because nobody could say that it is over."""
DESCRIPTOR_GAIN = 8.0
PER_SESSION = 4
"""Descriptors of a conversation that is held with its session open: two files, an index, a lock.

Clients that came without a handshake do not say that they leave. The sessions of up to `MAX_OPEN`
of them stay open, 256 descriptors, which a run of a minute is still filling up."""
THREAD_GAIN = 40.0
"""Worker threads come up to the event loop's limit of 40 where many calls are open at once, and
leave after ten seconds without work: in a run of a minute a wave of calls looks like growth."""
CHILD_GAIN = 1.5
_LOG = 20_000
"""Characters of a server's log that are shown where something went wrong."""


def growths(settling: Settling, server: str) -> dict[str, Growth]:
    """Fit lines through what a server held."""
    samples, heaps = settling.samples[server], settling.heaps[server]
    return {
        "memory": growth_of([(at, one.memory) for at, one in samples]),
        "allocated": growth_of([(at, one.allocated) for at, one in heaps]),
        "blocks": growth_of([(at, one.blocks) for at, one in heaps]),
        "descriptors": growth_of([(at, one.descriptors) for at, one in samples]),
        "threads": growth_of([(at, one.threads) for at, one in samples]),
        "children": growth_of([(at, one.children) for at, one in samples]),
    }


def check_growth(findings: Findings, settling: Settling) -> None:
    """Note a violation where a server came to hold more than it may."""
    for one in settling.served:
        messages = settling.said.get(one.name, 0) * (1 - WARM_UP)
        bounds = {
            "memory": MEMORY_GAIN,
            "allocated": ALLOCATED_GAIN,
            "blocks": BLOCK_GAIN,
            "descriptors": DESCRIPTOR_GAIN,
            "threads": THREAD_GAIN,
            "children": CHILD_GAIN,
        }
        early = one.conversations * WARM_UP
        filled = min(MAX_OPEN, one.conversations) - min(MAX_OPEN, early)
        bounds["descriptors"] += PER_SESSION * filled
        conversations = one.conversations * (1 - WARM_UP)
        for many, each in ((messages, PER_MESSAGE), (conversations, PER_CONVERSATION)):
            for what, most in each.items():
                bounds[what] += most * many
        for what, growth in growths(settling, one.name).items():
            held = growth.gain <= bounds[what]
            findings.expect(
                held, f"{one.name}: {what} grew by {growth.gain:.0f}, over {bounds[what]:.0f}"
            )


def render(soak: Soak, settling: Settling) -> str:
    """Return the report."""
    findings = soak.findings
    lines = [f"{soak.clock() / 60:.1f} minutes, seed {soak.plan.seed}, {soak.rounds} rounds"]
    lines += [f"  {count:>9,}  {what}" for what, count in sorted(findings.counts.items())]
    lines += [f"  {_spread(values)}  until {what}" for what, values in findings.seconds.items()]
    for one in settling.served:
        lines.append(one.name)
        if one.name in settling.said:
            lines.append(f"  said in it: {settling.said[one.name]:,} messages")
        if one.conversations:
            lines.append(
                f"  begun without a word of their end: {one.conversations:,} conversations"
            )
        lines += _held(settling, one.name)
    many = findings.violation_count
    lines.append("no violations" if not many else f"{many} violations")
    lines += [f"  {violation}" for violation in findings.violations]
    if many:
        for one in settling.served:
            lines += [f"log of {one.name}", one.log.read_text("utf-8", errors="replace")[-_LOG:]]
    return "\n".join(lines) + "\n"


def _held(settling: Settling, server: str) -> Iterable[str]:
    samples = settling.samples[server]
    for what, growth in growths(settling, server).items():
        unit = " KiB" if what in {"memory", "allocated"} else ""
        yield (
            f"  {what}: {growth.level:,.0f}{unit} after the warm-up,"
            f" {growth.gain:+,.1f}{unit} in {growth.minutes:.1f} minutes"
            f" ({growth.per_minute:+,.2f}{unit} a minute, {growth.samples} samples)"
        )
    if samples:
        tenths = [samples[at * (len(samples) - 1) // 10][1].children for at in range(11)]
        yield f"  children at every tenth: {' '.join(str(children) for children in tenths)}"
        yield f"  processor: {samples[-1][1].cpu_seconds:.0f} s"


def _spread(values: Sequence[float]) -> str:
    late = quantiles(values, n=20)[-1] if len(values) > 1 else values[0]
    return f"{median(values):.2f} s median, {late:.2f} s 95th of 100, {max(values):.2f} s most"
