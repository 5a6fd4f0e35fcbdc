"""How far something is that takes long, and how long the rest of it may take."""

import sys
import time
from collections.abc import Callable

PATIENCE_S = 2.0  # that pass before the first line, and between lines


def to_terminal(text: str) -> None:
    """A line on standard error, where somebody sees it."""
    if sys.stderr.isatty():
        print(f"proton: {text}", file=sys.stderr, flush=True)


class StepCounter:
    """Counts steps, and says a line now and then: "round 3 of 10, about 12 s left". The estimate
    takes the steps that are left for as long as those that were."""

    def __init__(
        self, what: str, total: int, say: Callable[[str], None], patience_s: float = PATIENCE_S
    ) -> None:
        self.what, self.total, self.say, self.patience_s = what, total, say, patience_s
        self.done = 0
        self.began = self.said = time.monotonic()

    def step(self, count: int = 1) -> None:
        """So many more are done."""
        self.done += count
        now = time.monotonic()
        if now - self.said >= self.patience_s and self.done < self.total:
            self.said = now
            left = (now - self.began) / self.done * (self.total - self.done)
            self.say(f"{self.what} {self.done:,} of {self.total:,}, {_about(left)} left")


def _about(seconds: float) -> str:
    """As people say how long."""
    minutes, rest = divmod(round(seconds), 60)
    return f"about {minutes} min {rest} s" if minutes else f"about {rest} s"
