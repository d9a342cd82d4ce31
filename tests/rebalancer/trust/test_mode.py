"""Whether the rebalancer may act tonight."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.night_grades import NightRecord, Trust, Verdict, mode_from
from rebalancer.rebalance_settings import RebalanceMode, TrustOptions
from testing.constants import with_constants

FIRST = date(2026, 11, 1)
VERDICTS = {"g": Verdict.GOOD, "b": Verdict.BAD, "n": Verdict.NO_MOVES, "u": Verdict.UNKNOWN, ".": None}


def lived(
    verdicts: str, options: TrustOptions | None = None, configured: RebalanceMode = RebalanceMode.ON
) -> list[NightRecord]:
    """The records of nights as the rebalancer itself lives them: each in the mode that follows from those before."""
    records: list[NightRecord] = []
    for n, letter in enumerate(verdicts):
        mode = mode_from(records, configured, options or TrustOptions()).mode
        records.append(NightRecord(FIRST + timedelta(days=n), configured, mode, VERDICTS[letter]))
    return records


@pytest.mark.parametrize(
    ("verdicts", "return_after", "expected"),
    [
        ("", None, RebalanceMode.ON),
        ("b", None, RebalanceMode.ON),
        ("bb", None, RebalanceMode.SHADOW),
        ("bgb", None, RebalanceMode.ON),
        ("gggbb", None, RebalanceMode.SHADOW),
        ("bnb", None, RebalanceMode.SHADOW),  # nights that say nothing neither add nor end a row
        ("bu.b", None, RebalanceMode.SHADOW),
        ("uuuu", None, RebalanceMode.ON),
        ("nnnn", None, RebalanceMode.ON),
        ("bbgggggggg", None, RebalanceMode.SHADOW),  # it does not return by itself
        ("bbb", None, RebalanceMode.SHADOW),
        ("bbgg", 3, RebalanceMode.SHADOW),
        ("bbggg", 3, RebalanceMode.ON),
        ("bbgngug", 3, RebalanceMode.ON),
        ("bbggbg", 3, RebalanceMode.SHADOW),
        ("bbgggb", 3, RebalanceMode.ON),
        ("bbgggbb", 3, RebalanceMode.SHADOW),
        ("bbgggbbgg", 3, RebalanceMode.SHADOW),
    ],
)
def test_it_stands_down_after_two_bad_nights_in_a_row_and_may_return_after_good_ones(
    verdicts: str, return_after: int | None, expected: RebalanceMode
) -> None:
    options = TrustOptions(return_after=return_after)
    assert mode_from(lived(verdicts, options), RebalanceMode.ON, options).mode is expected


def test_a_stand_down_is_reported_with_its_day() -> None:
    trust = mode_from(lived("gbb"), RebalanceMode.ON, TrustOptions())
    assert trust == Trust(RebalanceMode.SHADOW, "stood down after 2 bad nights in a row, since 2026-11-03", 2)
    assert trust.stood_down and not mode_from(lived("gb"), RebalanceMode.ON, TrustOptions()).stood_down
    for configured in (RebalanceMode.OFF, RebalanceMode.SHADOW):  # never more than is configured
        for verdicts in ("", "ggggg", "bb"):
            trust = mode_from(lived(verdicts), configured, TrustOptions())
            assert trust.mode is configured and not trust.stood_down


def test_a_person_sets_it_on_again_at_once() -> None:
    records = lived("bb")
    today = FIRST + timedelta(days=2)
    forgiven = TrustOptions(counts_from=today)
    assert mode_from(records, RebalanceMode.ON, forgiven).mode is RebalanceMode.ON
    again = [*records, NightRecord(today, RebalanceMode.ON, RebalanceMode.ON, Verdict.BAD)]
    assert mode_from(again, RebalanceMode.ON, forgiven).mode is RebalanceMode.ON
    again.append(NightRecord(today + timedelta(days=1), RebalanceMode.ON, RebalanceMode.ON, Verdict.BAD))
    assert mode_from(again, RebalanceMode.ON, forgiven).mode is RebalanceMode.SHADOW
    # A night for which shadow was configured says the same as the date.
    between = [*records, NightRecord(today, RebalanceMode.SHADOW, RebalanceMode.SHADOW, Verdict.BAD)]
    assert mode_from(between, RebalanceMode.ON, TrustOptions()).mode is RebalanceMode.ON


def test_a_verdict_that_comes_after_the_next_plan_counts_all_the_same() -> None:
    late = [
        NightRecord(FIRST + timedelta(days=n), RebalanceMode.ON, RebalanceMode.ON, v)
        for n, v in enumerate([Verdict.BAD] * 2)
    ]
    late.append(NightRecord(FIRST + timedelta(days=2), RebalanceMode.ON, RebalanceMode.ON))
    for records in (late, late[::-1]):
        assert mode_from(records, RebalanceMode.ON, TrustOptions()).mode is RebalanceMode.SHADOW


@given(st.text("gbnu.", max_size=30), st.one_of(st.none(), st.integers(1, 5)), st.integers(1, 4), st.integers(0, 30))
def test_it_never_moves_when_the_last_graded_nights_were_bad(
    verdicts: str, return_after: int | None, bad_nights: int, kept: int
) -> None:
    options = with_constants(TrustOptions(), bad_nights=bad_nights, return_after=return_after)
    records = lived(verdicts, options)
    graded = [one for one in records if one.verdict in (Verdict.GOOD, Verdict.BAD)]
    last = graded[-bad_nights:]
    if len(last) == bad_nights and all(one.verdict is Verdict.BAD for one in last):
        assert mode_from(records, RebalanceMode.ON, options).mode is RebalanceMode.SHADOW
    elif return_after is None and any(one.stood_down for one in records):
        assert mode_from(records, RebalanceMode.ON, options).mode is RebalanceMode.SHADOW
        assert mode_from(records[-max(1, kept) :], RebalanceMode.ON, options).mode is RebalanceMode.SHADOW
