"""What programs that make figures share: text between a page's marks, the profile of a slice of a card, speedups over a ring."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def with_made(text, mark, made):
    """The page with what is made in the one place between `<!-- mark -->` and the end."""
    pattern = rf"(<!-- {mark} -->\n).*?(<!-- end -->)"
    changed, found = re.subn(pattern, lambda marks: marks[1] + made + marks[2], text, flags=re.DOTALL)
    assert found == 1, mark
    return changed


def slice_profile(card, multiprocessors, queues=0):
    """The card's shipped profile with so many multiprocessors, two channels, so many hardware queues, and the room that NCCL's buffer
    of a channel has at a receiver."""
    text = (ROOT / "topologies/devices" / f"{card}.yaml").read_text()
    own = f"multiprocessors: {multiprocessors}" + (f"\nqueues: {queues}" if queues else "")
    text = re.sub(r"(?m)^multiprocessors: \d+", own, text)
    text = re.sub(r"channels: \d+", "channels: 2", text)
    text, found = re.subn(r"(?m)^(  network: *\{)", r"\1run_ahead: 4 MiB, ", text)
    assert found == 1, card
    return text


def speedups(points, case):
    """(measured, predicted) times as fast as a ring by (Gb/s, schedule), of 16 slices on a star that ran the case; points are
    (what, predicted time, measured time)."""
    times = {}
    for what, predicted, measured in points:
        found = re.fullmatch(rf"slices-star-16-([\d.]+): .*{case} --kernel cuda --schedule (\S+).*", what)
        if found and "cuda-graph" not in what:
            times[float(found[1]), found[2]] = (measured, predicted)
    rates = sorted({rate for rate, _ in times if (rate, "ring") in times})
    return {(rate, schedule): tuple(ring / own for ring, own in zip(times[rate, "ring"], both))
            for rate in rates for (other, schedule), both in times.items() if other == rate}
