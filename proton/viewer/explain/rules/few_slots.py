"""Roles that wait for each other: one for a full buffer, the other for an empty one."""

from __future__ import annotations

import numpy as np

from proton.viewer.explain.finding import LEAST_PART, Finding, Said, Unrecorded
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import KernelView, Subject

WORDS = ("copies", "barriers")


def find(subject: Subject) -> Said:
    """The roles of each kernel that wait for each other most."""
    for kernel in subject.kernels:
        if not kernel.has_roles:
            continue
        if missing := [word for word in WORDS if not kernel.has(word)]:
            yield Unrecorded(rule=RULE.name, kernel=kernel.label,
                             needs="which group of warps waits for which",
                             option=f'auto="{",".join(missing)}"')  # fmt: skip
            continue
        waits, time = _waits(kernel), _times(kernel)
        parts = {
            pair: subject.total(rows, subject.dur_ns[rows]) / max(time[pair[0]], 1.0)
            for pair, rows in waits.items()
        }
        pairs = [(a, b) for a, b in parts if a < b and (b, a) in parts]
        least = [min(parts[a, b], parts[b, a]) for a, b in pairs]
        if least and max(least) >= LEAST_PART:
            a, b = pairs[int(np.argmax(least))]
            # The one that waits less decides how fast both are.
            a, b = (a, b) if parts[a, b] <= parts[b, a] else (b, a)
            yield _finding(kernel, (a, b), (parts[a, b], parts[b, a]), waits[a, b])


def _finding(
    kernel: KernelView, roles: tuple[str, str], parts: tuple[float, float], rows: np.ndarray
) -> Finding:
    """`rows` are the waits of the first role, which waits less."""
    (one, other), (less, more) = roles, parts
    times = kernel.subject.dur_ns[rows]
    scope = kernel.subject.scopes[int(kernel.records.scope[rows[np.argmax(times)]])]
    return Finding(
        rule=RULE.name,
        kernel=kernel.label,
        sentence=f"{one} waits {100 * less:.0f} % of its time for {other}, which waits "
        f"{100 * more:.0f} % of its own for {one}: what lies between them holds too little",
        gain_ns=kernel.gain(less),
        advice=f"more buffers, each with its barriers, so that {other} is further ahead",
        visits=int(rows.size),
        error_ns=kernel.error_ns(rows),
        numbers={"wait_ns": float(times.mean()), "wait_percent": 100 * less,
                 "other_wait_percent": 100 * more},
        slices=kernel.open(kernel.nearest(rows, float(times.mean()))),
        file=scope.file,
        line=scope.line,
    )  # fmt: skip


def _roles(kernel: KernelView, rows: np.ndarray) -> np.ndarray:
    """The role of the unit that left each of these records."""
    records = kernel.records
    return np.array(kernel.kernel.roles, object)[records.tracks.unit[records.track[rows]]]


def _waits(kernel: KernelView) -> dict[tuple[str, str], np.ndarray]:
    """The waits, as rows of records, by who waits and for whom; but for the first of each unit, in
    which what lies between them fills."""
    flights, track = kernel.records.flights, kernel.records.track
    first = np.unique(track[np.sort(flights.wait)], return_index=True)[1]
    own = np.isin(flights.wait, kernel.rows) & ~np.isin(flights.wait, np.sort(flights.wait)[first])
    rows = flights.wait[own]
    waiter, other = _roles(kernel, rows), _roles(kernel, flights.issue[own])
    pairs = set(zip(waiter.tolist(), other.tolist(), strict=True))
    return {
        (a, b): np.unique(rows[(waiter == a) & (other == b)]) for a, b in sorted(pairs) if a != b
    }


def _times(kernel: KernelView) -> dict[str, float]:
    """How long the units of each role ran that wait for another's."""
    waiting = np.unique(kernel.records.track[kernel.records.flights.wait])
    tracks = kernel.tracks[np.isin(kernel.tracks, waiting)]
    roles = np.array(kernel.kernel.roles, object)[kernel.records.tracks.unit[tracks]]
    return {role: kernel.unit_ns(tracks[roles == role]) for role in sorted(set(roles.tolist()))}


RULE = Rule(name="few-slots", about="roles that wait for each other's buffers", find=find)
