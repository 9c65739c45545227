"""What programs that make figures share: text between a page's marks, the profile of a slice of a card."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def with_made(text, mark, made):
    """The page with what is made in the one place between `<!-- mark -->` and the end."""
    pattern = rf"(<!-- {mark} -->\n).*?(<!-- end -->)"
    changed, found = re.subn(pattern, lambda marks: marks[1] + made + marks[2], text, flags=re.DOTALL)
    assert found == 1, mark
    return changed


def slice_profile(card, multiprocessors):
    """The card's shipped profile with so many multiprocessors, and two channels."""
    text = (ROOT / "topologies/devices" / f"{card}.yaml").read_text()
    text = re.sub(r"(?m)^multiprocessors: \d+", f"multiprocessors: {multiprocessors}", text)
    return re.sub(r"channels: \d+", "channels: 2", text)
