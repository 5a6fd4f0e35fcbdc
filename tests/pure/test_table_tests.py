"""A table test sees and names every row that fails."""

import pytest

from tests.tables import check_rows


def positive(name: str, number: int) -> None:
    if name == "raises":
        with pytest.raises(ValueError):
            str(number)
    assert number > 0


def test_each_row_that_fails_is_named() -> None:
    rows = [("good", 1), ("bad", -1), ("raises", 2), ("worse", -2), ("last", 3)]
    with pytest.raises(AssertionError) as caught:
        check_rows(positive, rows)
    head, *lines = str(caught.value).splitlines()
    assert head == "3 of 5 rows fail:"
    for name in ("'bad', -1", "'raises', 2", "'worse', -2"):
        assert sum(line.startswith(f"({name})") for line in lines) == 1
    assert "'good'" not in str(caught.value)
    assert "'last'" not in str(caught.value)
    assert "-1 > 0" in str(caught.value.__cause__)


def test_good_rows_pass_and_no_rows_fail() -> None:
    check_rows(positive, [("good", 1), ("better", 2)])
    with pytest.raises(AssertionError, match="no rows"):
        check_rows(positive, [])
