"""Table tests: many rows that one rule covers are one test, which names each row that fails."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def check_rows(check: Callable[..., None], rows: Iterable[tuple[Any, ...]]) -> None:
    """Calls `check(*row)` for each row; fails with all rows that fail, and the first one's cause.

    A table without rows fails, too.
    """
    count, failures, cause = 0, [], None
    for count, row in enumerate(rows, 1):  # noqa: B007 - used after the loop
        try:
            check(*row)
        except (Exception, pytest.fail.Exception) as error:
            cause = cause or error
            failures.append(f"{row}: {type(error).__name__}: {error}")
    assert count, "the table has no rows"
    if failures:
        shown = "\n".join(failures)
        raise AssertionError(f"{len(failures)} of {count} rows fail:\n{shown}") from cause
