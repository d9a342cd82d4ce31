"""A reader learns every change once, or that it must look at everything."""

from __future__ import annotations

from scorer.predicted.load_changes import ANYTHING, LoadChanges


def told(log: LoadChanges, position: int) -> list[int]:
    rows = log.rows_since(position)
    assert rows is not None
    return sorted(rows.tolist())


def test_changes_since_a_position_are_told_once_each() -> None:
    log = LoadChanges()
    for row in (3, 1, 3):
        log.append(row, longest=10)
    assert told(log, 0) == [1, 3]
    assert told(log, 2) == [3]
    nothing = log.rows_since(log.position)
    assert nothing is not None
    assert not len(nothing)


def test_who_missed_too_much_must_look_at_everything() -> None:
    log = LoadChanges()
    early = log.position
    for row in range(1000):
        log.append(row % 7, longest=10)
    assert log.rows_since(early) is None
    late = log.position
    log.append(5, longest=10)
    assert told(log, late) == [5]
    assert log.position == 1001


def test_what_came_to_a_row_is_told_in_order() -> None:
    log = LoadChanges()
    log.append(4, longest=10)
    log.extend([2, 4], longest=10, curve=7)
    log.append(2, longest=10, curve=7, pods=-1.0)
    told_in_order = log.since(0)
    assert told_in_order is not None
    assert (told_in_order.rows, told_in_order.curves) == ([4, 2, 4, 2], [ANYTHING, 7, 7, 7])
    assert told_in_order.pods == [0.0, 1.0, 1.0, -1.0]
    assert log.since(log.position - 1) is not None


def test_many_changes_at_once_are_cut_as_well() -> None:
    log = LoadChanges()
    log.extend(range(1000), longest=10, curve=1)
    assert log.since(0) is None
    assert log.position == 1000
