"""A reader learns every change once, or that it must look at everything."""

from __future__ import annotations

from cluster.predicted.load_tables import ANYTHING, LoadChanges


def told(log: LoadChanges, position: int) -> list[int]:
    rows = log.rows_since(position)
    assert rows is not None
    return sorted(rows.tolist())


def test_changes_are_told_once_each_in_order_or_everything_is_looked_at() -> None:
    log = LoadChanges()
    for row in (3, 1, 3):
        log.append(row, longest=10)
    assert told(log, 0) == [1, 3]
    assert told(log, 2) == [3]
    nothing = log.rows_since(log.position)
    assert nothing is not None
    assert not len(nothing)
    log = LoadChanges()
    early = log.position
    for row in range(1000):
        log.append(row % 7, longest=10)
    assert log.rows_since(early) is None
    late = log.position
    log.append(5, longest=10)
    assert told(log, late) == [5]
    assert log.position == 1001
    log = LoadChanges()
    log.append(4, longest=10)
    log.extend([2, 4], longest=10, curve=7)
    log.append(2, longest=10, curve=7, pods=-1.0)
    told_in_order = log.since(0)
    assert told_in_order is not None
    assert told_in_order.rows.tolist() == [4, 2, 4, 2]
    assert told_in_order.curves.tolist() == [ANYTHING, 7, 7, 7]
    assert told_in_order.pods.tolist() == [0.0, 1.0, 1.0, -1.0]
    assert log.since(log.position - 1) is not None


def test_what_is_remembered_is_what_happened_last() -> None:
    log = LoadChanges()
    all_of_them: list[int] = []
    for count in (3, 90, 1, 70, 200, 5, 64, 130, 2):
        rows = [(len(all_of_them) + i) % 11 for i in range(count)]
        if count % 2:
            for row in rows:
                log.append(row, longest=10, curve=count)
        else:
            log.extend(rows, longest=10, curve=count)
        all_of_them += rows
        assert log.position == len(all_of_them)
        for back in (0, 1, 5, 60):
            told_since = log.since(log.position - back)
            if back <= 60 and log.position >= back:
                assert told_since is not None
                assert told_since.rows.tolist() == all_of_them[len(all_of_them) - back :]
