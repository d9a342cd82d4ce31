from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.schedule_answered import AnsweredLoop, cluster_with_zones, waiting_pods
from benchmarks.schedule_in_memory import main, quality
from benchmarks.schedule_stages import Stages


def test_every_configuration_is_timed_and_batches_give_the_same_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):  # at this size no limit holds for certain
        main(["--nodes", "30", "--pods", "40", "--rounds", "1", "--sitting", "8", "--check", "20"])
    printed = capsys.readouterr().out
    for name in ("batches", "bounded scan", "one per cycle", "extender"):
        assert f"identical, {name}" in printed and f"mixed, {name}" in printed
    assert printed.count("30 of 30 pods got the same node by batches as one per cycle") == 2


def test_rounds_leave_the_cluster_as_it_was_and_stages_are_those_of_all_threads() -> None:
    made = cluster_with_zones(20, 10, 200)
    with AnsweredLoop(made) as loop:
        before = quality(loop)
        pods = waiting_pods(made, 60, 3, "first")
        with Stages() as stages:
            first = loop.schedule(pods)
        assert set(first.nodes) == {pod.uid for pod in pods}
        assert quality(loop) != before
        loop.remove(pods)
        assert quality(loop).variation == pytest.approx(before.variation, abs=1e-4)
        assert stages.per_pod(60).keys() >= {"queue: pop", "filters", "place", "assume", "outcome"}
        fed = loop.schedule(waiting_pods(made, 60, 3, "second"), is_fed=True)
        assert fed.n_pods == len(fed.nodes) == 60


def test_a_round_ends_though_some_fit_nowhere_and_counts_the_others() -> None:
    made = cluster_with_zones(4, 2, 5)
    with AnsweredLoop(made) as loop:
        fitting, other = waiting_pods(made, 3, 1, "fitting"), waiting_pods(made, 1, 1, "other")
        huge = [replace(pod, requests={"cpu": 1e6}) for pod in other]
        first = loop.schedule([*fitting, *huge], quiet_seconds=2.0)
        assert first.n_pods == 3 and set(first.nodes) == {pod.uid for pod in fitting}
        loop.remove([*fitting, *huge])
        again = waiting_pods(made, 3, 1, "again")
        assert loop.schedule(again).n_pods == 3
