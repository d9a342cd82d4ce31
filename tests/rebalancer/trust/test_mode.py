"""Whether the rebalancer may act tonight."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast.errors import InputError
from rebalancer.options import Mode, TrustOptions
from rebalancer.trust.grade import Verdict
from rebalancer.trust.mode import NightRecord, Trust, mode_from

FIRST = date(2026, 11, 1)
VERDICTS = {"g": Verdict.GOOD, "b": Verdict.BAD, "n": Verdict.NO_MOVES, "u": Verdict.UNKNOWN, ".": None}


def lived(verdicts: str, options: TrustOptions | None = None, configured: Mode = Mode.ON) -> list[NightRecord]:
    """The records of nights as the rebalancer itself lives them: each in the mode that follows from those before."""
    records: list[NightRecord] = []
    for n, letter in enumerate(verdicts):
        mode = mode_from(records, configured, options or TrustOptions()).mode
        records.append(NightRecord(FIRST + timedelta(days=n), configured, mode, VERDICTS[letter]))
    return records


def mode(verdicts: str, **options: int | date) -> Mode:
    chosen = TrustOptions(**options)  # type: ignore[arg-type]
    return mode_from(lived(verdicts, chosen), Mode.ON, chosen).mode


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ("", Mode.ON),
        ("b", Mode.ON),
        ("bb", Mode.SHADOW),
        ("bgb", Mode.ON),
        ("gggbb", Mode.SHADOW),
        ("bnb", Mode.SHADOW),  # nights that say nothing neither add nor end a row
        ("bu.b", Mode.SHADOW),
        ("uuuu", Mode.ON),
        ("nnnn", Mode.ON),
        ("bbgggggggg", Mode.SHADOW),  # it does not return by itself
        ("bbb", Mode.SHADOW),
    ],
)
def test_two_bad_nights_in_a_row(verdicts: str, expected: Mode) -> None:
    assert mode(verdicts) is expected


def test_the_number_of_bad_nights_is_a_setting() -> None:
    assert mode("bb", bad_nights=3) is Mode.ON and mode("bbb", bad_nights=3) is Mode.SHADOW
    assert mode("b", bad_nights=1) is Mode.SHADOW


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ("bbgg", Mode.SHADOW),
        ("bbggg", Mode.ON),
        ("bbgngug", Mode.ON),
        ("bbggbg", Mode.SHADOW),
        ("bbgggb", Mode.ON),
        ("bbgggbb", Mode.SHADOW),
        ("bbgggbbgg", Mode.SHADOW),
    ],
)
def test_it_may_return_after_good_shadow_nights(verdicts: str, expected: Mode) -> None:
    assert mode(verdicts, return_after=3) is expected


@pytest.mark.parametrize("configured", [Mode.OFF, Mode.SHADOW])
def test_it_never_does_more_than_is_configured(configured: Mode) -> None:
    for verdicts in ("", "ggggg", "bb"):
        trust = mode_from(lived(verdicts), configured, TrustOptions())
        assert trust.mode is configured and not trust.stood_down


def test_a_stand_down_is_reported_with_its_day() -> None:
    trust = mode_from(lived("gbb"), Mode.ON, TrustOptions())
    assert trust == Trust(Mode.SHADOW, "stood down after 2 bad nights in a row, since 2026-11-03", 2)
    assert trust.stood_down and not mode_from(lived("gb"), Mode.ON, TrustOptions()).stood_down


def test_a_stand_down_is_remembered_by_the_newest_record_alone() -> None:
    records = lived("bbggg")
    for n in range(1, 4):
        assert mode_from(records[-n:], Mode.ON, TrustOptions()).mode is Mode.SHADOW


def test_a_person_sets_it_on_again_at_once() -> None:
    records = lived("bb")
    today = FIRST + timedelta(days=2)
    forgiven = TrustOptions(counts_from=today)
    assert mode_from(records, Mode.ON, forgiven).mode is Mode.ON
    again = [*records, NightRecord(today, Mode.ON, Mode.ON, Verdict.BAD)]
    assert mode_from(again, Mode.ON, forgiven).mode is Mode.ON
    again.append(NightRecord(today + timedelta(days=1), Mode.ON, Mode.ON, Verdict.BAD))
    assert mode_from(again, Mode.ON, forgiven).mode is Mode.SHADOW


def test_a_person_sets_it_on_again_after_a_night_in_shadow() -> None:
    records = [*lived("bb"), NightRecord(FIRST + timedelta(days=2), Mode.SHADOW, Mode.SHADOW, Verdict.BAD)]
    assert mode_from(records, Mode.ON, TrustOptions()).mode is Mode.ON


def test_a_verdict_that_comes_after_the_next_plan_counts_all_the_same() -> None:
    late = [NightRecord(FIRST + timedelta(days=n), Mode.ON, Mode.ON, v) for n, v in enumerate([Verdict.BAD] * 2)]
    late.append(NightRecord(FIRST + timedelta(days=2), Mode.ON, Mode.ON))
    assert mode_from(late, Mode.ON, TrustOptions()).mode is Mode.SHADOW


def test_the_order_of_records_does_not_matter() -> None:
    records = lived("gbbg")
    assert mode_from(reversed(records), Mode.ON, TrustOptions()) == mode_from(records, Mode.ON, TrustOptions())


@given(st.text("gbnu.", max_size=30), st.one_of(st.none(), st.integers(1, 5)), st.integers(1, 4), st.integers(0, 30))
def test_it_never_moves_when_the_last_graded_nights_were_bad(
    verdicts: str, return_after: int | None, bad_nights: int, kept: int
) -> None:
    options = TrustOptions(bad_nights=bad_nights, return_after=return_after)
    records = lived(verdicts, options)
    graded = [one for one in records if one.verdict is not None and one.verdict.is_grade]
    last = graded[-bad_nights:]
    if len(last) == bad_nights and all(one.verdict is Verdict.BAD for one in last):
        assert mode_from(records, Mode.ON, options).mode is Mode.SHADOW
    elif return_after is None and any(one.stood_down for one in records):
        assert mode_from(records, Mode.ON, options).mode is Mode.SHADOW
        assert mode_from(records[-max(1, kept) :], Mode.ON, options).mode is Mode.SHADOW


@given(
    st.dates(),
    st.sampled_from(list(Mode)),
    st.sampled_from(list(Mode)),
    st.one_of(st.none(), st.sampled_from(list(Verdict))),
)
def test_a_record_survives_the_api_server(
    night: date, configured: Mode, made_in: Mode, verdict: Verdict | None
) -> None:
    record = NightRecord(night, configured, made_in, verdict)
    assert NightRecord.from_status(json.loads(json.dumps(record.as_status()))) == record


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"night": "2026-11-01", "configured": "on"},
        {"night": "yesterday", "configured": "on", "mode": "on"},
        {"night": 5, "configured": "on", "mode": "on"},
        {"night": "2026-11-01", "configured": "maybe", "mode": "on"},
        {"night": "2026-11-01", "configured": "on", "mode": "on", "verdict": "fine"},
    ],
)
def test_a_status_that_is_not_ours_is_refused(status: dict[str, object]) -> None:
    with pytest.raises(InputError, match="delete the RebalancePlan"):
        NightRecord.from_status(status)
