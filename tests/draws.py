"""From which seed tests draw, and how much.

A run draws the same each time, so that a red gate is a fault of the change. `make fuzz` sets
PROTON_TEST_FUZZ, which says how many times a test's count of examples is drawn, of which other runs
draw half, and a seed of its own.
PROTON_TEST_SEED repeats one.
"""

import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.conjecture.engine import ConjectureRunner

TIMES = int(os.environ.get("PROTON_TEST_FUZZ") or 1)
IS_SEEDED = bool(os.environ.get("PROTON_TEST_SEED"))
SEED = int(os.environ.get("PROTON_TEST_SEED") or 0)
IS_FUZZ = TIMES > 1


def times(count: int) -> int:
    """How many examples a run draws: `make test`, which draws the same ones each time, half of the
    count, and `make fuzz` so many times the count."""
    return count * TIMES if IS_FUZZ else -(-count // 2)


PROGRAMS = int(os.environ.get("PROTON_TEST_PROGRAMS") or times(200))

settings.register_profile(
    "proton",
    deadline=None,  # no test depends on how long something takes
    database=None,
    derandomize=not IS_SEEDED,
    print_blob=True,
    max_examples=times(100),
)


def examples(count: int) -> settings:
    """Draws so many examples, or half of them."""
    return settings(max_examples=times(count))


# hypothesis draws the constants of all modules that the process has imported, too. What a process
# of `pytest -n` has imported depends on which files it was given before.
providers._get_local_constants = lambda: providers._local_constants

_mutate, _ONLY_NEW = ConjectureRunner.generate_mutations_from, (Phase.generate,)


def _mutate_cheap_ones(runner: ConjectureRunner, data: object) -> None:
    """Behind each example hypothesis runs five with parts of it repeated. Of kernels that is not
    worth their time. Of kinds of nodes within each other, their types, and shapes, 200 kernels had
    724 so; 100 new ones have 1,013."""
    if runner.settings.phases != _ONLY_NEW:
        _mutate(runner, data)


ConjectureRunner.generate_mutations_from = _mutate_cheap_ones


def kernels(count: int) -> settings:
    """Draws that many whole kernels, each a new one: a smaller one is seldom clearer, and costs
    minutes."""
    return settings(max_examples=count, phases=_ONLY_NEW, suppress_health_check=list(HealthCheck))
