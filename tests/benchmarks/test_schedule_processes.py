"""The benchmarks of the scheduling loops that need real servers, at toy size."""

from __future__ import annotations

import pytest

from benchmarks import schedule_gangs, schedule_memory, schedule_preemption, schedule_throughput


@pytest.mark.long
def test_a_storm_of_pods_is_bound_by_both_schedulers(capsys: pytest.CaptureFixture[str]) -> None:
    """It ends with an error unless all pods are bound."""
    schedule_preemption.main(["--nodes", "8", "--pods", "6", "--rounds", "1"])
    lines = capsys.readouterr().out.splitlines()
    victims = {line.split()[0]: int(line.split()[-2]) for line in lines if line.startswith(("  kube", "  ours  "))}
    assert victims.keys() == {"kube-scheduler", "ours"}
    assert all(1 <= n <= 12 for n in victims.values())


@pytest.mark.long
def test_every_way_to_bind_pods_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):  # whether the limits hold means nothing at this size
        schedule_throughput.main(["--nodes", "10", "--pods", "30", "--rounds", "1", "--services", "200"])
    printed = capsys.readouterr().out
    for kind in ("identical", "mixed"):
        assert all(f"  {kind}, {name}" in printed for name in ("bare", "kube-scheduler", "ours"))


@pytest.mark.long
def test_gangs_are_bound_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """It ends with an AssertionError where one is not."""
    with pytest.raises(SystemExit):
        schedule_gangs.main(["--nodes", "10", "--groups", "4", "--members", "3", "--rounds", "1"])
    assert "gangs / single: " in capsys.readouterr().out


@pytest.mark.long
def test_memory_is_that_of_the_process(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        schedule_memory.main(["--nodes", "10", "--pods", "100", "--services", "20", "--more", "10"])
    assert ended.value.code == 0
    assert "10 more placed" in capsys.readouterr().out
