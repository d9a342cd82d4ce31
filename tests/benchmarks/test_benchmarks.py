"""Every benchmark can be imported, and what they share measures, compares and judges as it says."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from benchmarks import harness

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in (ROOT / "benchmarks").rglob("*.py")
    if file.stem != "__main__"
)


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_can_be_imported(name: str) -> None:
    importlib.import_module(name)


def test_configurations_take_turns_and_every_second_round_is_backwards() -> None:
    order: list[tuple[str, int]] = []

    def measure(name: str, number: int) -> int:
        order.append((name, number))
        return 10 * number + len(name)

    assert harness.in_turn(["ours", "rival"], 3, measure) == {"ours": [4, 14, 24], "rival": [5, 15, 25]}
    assert [name for name, _ in order] == ["ours", "rival", "rival", "ours", "ours", "rival"]


def test_figures_are_compared_within_a_round() -> None:
    assert harness.ratios([2.0, 9.0], [4.0, 3.0], float) == [0.5, 3.0]
    assert harness.median_ratio([2.0, 9.0, 4.0], [4.0, 3.0, 4.0], float) == 1.0
    assert harness.spread([1043.4, 812.0]) == "(812 to 1043)"
    assert [harness.quantile([3.0, 1.0, 2.0], share) for share in (0.0, 0.5, 0.67, 1.0)] == [1.0, 2.0, 3.0, 3.0]
    assert harness.microseconds(lambda: None, 3) < 1e6 and harness.peak_gib() > 0
    assert harness.numbers("1000,5000") == [1000, 5000]
    assert harness.command_line("As it is\n  written.").format_help().endswith("exit\n")


def test_a_missed_aim_is_named_and_ends_the_process_with_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert not harness.print_aims([("fast", True), ("small", False)])
    assert capsys.readouterr().out == "holds  fast\nMISSED  small\n"
    for holds, status in ((True, 0), (False, 1)):
        with pytest.raises(SystemExit) as ended:
            harness.finish(holds)
        assert ended.value.code == status
