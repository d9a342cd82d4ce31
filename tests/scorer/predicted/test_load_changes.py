"""A reader learns every change once, or that it must look at everything."""

from __future__ import annotations

from scorer.predicted.changed_rows import ChangedRows


def told(log: ChangedRows, position: int) -> list[int]:
    rows = log.since(position)
    assert rows is not None
    return sorted(rows.tolist())


def test_changes_since_a_position_are_told_once_each() -> None:
    log = ChangedRows()
    for row in (3, 1, 3):
        log.append(row, longest=10)
    assert told(log, 0) == [1, 3]
    assert told(log, 2) == [3]
    nothing = log.since(log.position)
    assert nothing is not None
    assert not len(nothing)


def test_who_missed_too_much_must_look_at_everything() -> None:
    log = ChangedRows()
    early = log.position
    for row in range(1000):
        log.append(row % 7, longest=10)
    assert log.since(early) is None
    late = log.position
    log.append(5, longest=10)
    assert told(log, late) == [5]
    assert log.position == 1001
