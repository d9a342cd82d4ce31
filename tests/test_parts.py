"""No test file is left out of the runs: a journey that was renamed would otherwise leave the default run in silence."""

from __future__ import annotations

from tests.parts import JOURNEYS, PARTS, TESTS, belongs, recorded

FILES = sorted(TESTS.rglob("test_*.py"))


def test_journeys_and_recorded_files_are_there() -> None:
    paths = {file.relative_to(TESTS).as_posix() for file in FILES}
    assert set(JOURNEYS) <= paths
    assert set(recorded()) <= paths, "run `make durations`"


def test_each_file_runs_in_one_part_of_the_long_run() -> None:
    for file in FILES:
        assert sum(belongs(file, part) for part in ("random", *PARTS)) == 1, file


def test_journeys_run_by_default() -> None:
    assert all(belongs(TESTS / path, "default") for path in JOURNEYS)
