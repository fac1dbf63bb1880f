"""Points, canonical JSON, the clock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.canonical import canonical_json, sha256_hex
from common.clock import BEFORE_THE_FIRST_MOVE, ReplayClock, SystemClock
from common.points import as_points, hundredths
from testkit.fixtures import Started

Run = Callable[..., AbstractAsyncContextManager[Started]]


@given(st.integers(-(10**9), 10**9))
def test_points_are_read_back_as_they_were_written(value: int) -> None:
    assert hundredths(as_points(value)) == value


@pytest.mark.parametrize(
    ("text", "value"), [("7.7", 770), ("-0.5", -50), ("142", 14200), ("1.250", 125), ("+3.1", 310)]
)
def test_points_are_read_exactly(text: str, value: int) -> None:
    assert hundredths(text) == value


@pytest.mark.parametrize("text", ["", "x", "1.234", "1e3", "NaN", ".5", "1,5", "--1", "١"])
def test_what_is_no_number_of_points_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="at most two decimals"):
        hundredths(text)


def test_canonical_json_is_rfc_8785() -> None:
    # The example of RFC 8785, section 3.2.3, and a number of its appendix B.
    assert canonical_json({"€": 1, "\r": 2, "1": 3, "ö": 4}) == '{"\\r":2,"1":3,"ö":4,"€":1}'.encode()
    assert canonical_json([333333333.33333329, 1e30, 4.50, 2e-3]) == b"[333333333.3333333,1e+30,4.5,0.002]"
    assert sha256_hex(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


async def test_the_system_clock_is_the_databases_and_moves_within_a_transaction(run: Run) -> None:
    async with run() as service, service.runtime.database.transaction() as connection:
        clock = SystemClock()
        first, second = await clock.now(connection), await clock.now(connection)
        assert first.tzinfo is UTC
        assert timedelta(0) < second - first < timedelta(seconds=5)


async def test_a_replay_clock_stands_still_and_never_goes_back(run: Run) -> None:
    async with run() as service, service.runtime.database.transaction() as connection:
        clock = ReplayClock()
        assert await clock.now(connection) == BEFORE_THE_FIRST_MOVE
        noon = datetime(2017, 9, 10, 12, tzinfo=UTC)
        assert await clock.move(connection, noon) == 1
        assert await clock.move(connection, noon - timedelta(seconds=1)) is None
        assert await clock.now(connection) == noon
        assert await clock.move(connection, noon + timedelta(hours=1)) == 2
