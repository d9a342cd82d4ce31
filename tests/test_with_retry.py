"""A failed test gets one more chance, alone, and the log names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.with_retry import MOST, run

_FLAKY = """
from pathlib import Path
def test_flaky():
    seen = Path(__file__).with_name("seen")
    assert seen.exists() or seen.write_text("") is None and False
def test_good():
    pass
"""


@pytest.mark.parametrize(
    ("text", "status", "named"),
    [
        pytest.param("def test_good(): pass", 0, "", id="all pass"),
        pytest.param(_FLAKY, 0, "test_flaky", id="one fails once"),
        pytest.param(_FLAKY + "def test_bad(): assert False", 1, "test_flaky", id="one of two fails again"),
        pytest.param("".join(f"def test_{n}(): assert False\n" for n in range(MOST + 1)), 1, "", id="too many fail"),
        pytest.param("import nothing_of_this_name", 2, "", id="no test can be collected"),
    ],
)
def test_the_status_is_that_of_the_repetition(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    text: str,
    status: int,
    named: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("test_it.py").write_text(text)
    Path("pytest.ini").touch()  # the root of the run
    assert run(["test_it.py", "--quiet"]) == status
    _, _, flaky = capfd.readouterr().out.partition("DEFECT: ")
    assert (f"::{named}" in flaky) if named else not flaky
    assert "test_bad" not in flaky
