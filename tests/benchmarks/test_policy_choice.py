from __future__ import annotations

import sys

import pytest

from benchmarks.policy_choice import CASES, main


def test_every_case_is_timed_and_chosen_as_the_loop_chooses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends with an error where they differ."""
    monkeypatch.setattr(sys, "argv", ["policy_choice", "--rules", "3", "40", "--pods", "300", "--repeats", "2"])
    main()
    printed = capsys.readouterr().out
    assert all(printed.count(name) == 2 for name in CASES)
    assert printed.count("reload, ") == 2
