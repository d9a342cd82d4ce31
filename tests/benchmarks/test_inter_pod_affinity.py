from __future__ import annotations

from benchmarks.inter_pod_affinity import large_cluster_times, run


def test_two_phases_place_a_rollout_as_the_direct_loop_does() -> None:
    outcome = run(n_nodes=12, n_pods=400, n_new=15, n_sample=15, seed=1)
    assert outcome.n_compared == 15
    assert outcome.n_placed > 0


def test_every_kind_of_pod_is_timed() -> None:
    times = large_cluster_times(n_nodes=30, n_services=40, replicas=3, repeats=1)
    assert len(times) == 5 and all(microseconds for microseconds in times.values())
