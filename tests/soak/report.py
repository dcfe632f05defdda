"""Report: a soak's figures as text, and the bounds of what a server may come to hold."""

from __future__ import annotations

from statistics import median, quantiles
from typing import TYPE_CHECKING

from tests.soak.growth import growth_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.soak.findings import Findings
    from tests.soak.growth import Growth
    from tests.soak.settled import Settling
    from tests.soak.soak import Soak

MEMORY_GAIN = 12 * 1024.0
"""Most KiB a server may gain after the warm-up, whatever it was asked."""
MEMORY_PER_MESSAGE = 4.0
"""KiB more for each message of the one conversation that lives as long as its server."""
DESCRIPTOR_GAIN = 8.0
THREAD_GAIN = 8.0
CHILD_GAIN = 1.5


def growths(settling: Settling, server: str) -> dict[str, Growth]:
    """Fit lines through what a server held."""
    samples = settling.samples[server]
    return {
        "memory": growth_of([(at, one.memory) for at, one in samples]),
        "descriptors": growth_of([(at, one.descriptors) for at, one in samples]),
        "threads": growth_of([(at, one.threads) for at, one in samples]),
        "children": growth_of([(at, one.children) for at, one in samples]),
    }


def check_growth(findings: Findings, settling: Settling) -> None:
    """Note a violation where a server came to hold more than it may."""
    for one in settling.served:
        messages = growth_of(settling.messages).gain if one.scope == "shared" else 0.0
        bounds = {
            "memory": MEMORY_GAIN + MEMORY_PER_MESSAGE * messages,
            "descriptors": DESCRIPTOR_GAIN,
            "threads": THREAD_GAIN,
            "children": CHILD_GAIN,
        }
        for what, growth in growths(settling, one.name).items():
            held = growth.gain <= bounds[what]
            findings.expect(
                held, f"{one.name}: {what} grew by {growth.gain:.0f}, over {bounds[what]:.0f}"
            )


def render(soak: Soak, settling: Settling) -> str:
    """Give the report."""
    findings = soak.findings
    lines = [f"{soak.clock() / 60:.1f} minutes, seed {soak.plan.seed}, {soak.rounds} rounds"]
    lines += [f"  {count:>9,}  {what}" for what, count in sorted(findings.counts.items())]
    lines += [f"  {_spread(values)}  until {what}" for what, values in findings.seconds.items()]
    for one in settling.served:
        lines += [one.name, *_held(settling, one.name)]
    many = findings.violation_count
    lines.append("no violations" if not many else f"{many} violations")
    lines += [f"  {violation}" for violation in findings.violations]
    return "\n".join(lines) + "\n"


def _held(settling: Settling, server: str) -> Iterable[str]:
    samples = settling.samples[server]
    for what, growth in growths(settling, server).items():
        unit = " KiB" if what == "memory" else ""
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
