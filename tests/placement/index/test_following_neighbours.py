"""Tables that followed changes pod by pod answer as tables made from what is there."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kube.objects.objects import NodeInfo, PodInfo
from kube.tables.changes import Change
from kube.tables.state import ClusterState
from placement.filters.filter import ClusterView
from placement.filters.inter_pod_affinity import InterPodAffinity
from placement.filters.pod_topology_spread import PodTopologySpread
from placement.scores.inter_pod_affinity import InterPodAffinity as InterPodAffinityScore
from placement.scores.pod_topology_spread import PodTopologySpread as PodTopologySpreadScore
from tests.placement.random_neighbours import NODES, nodes, pods
from tests.placement.small_cluster import rejections, scores, view_of_state

Put = NodeInfo | PodInfo
Deleted = tuple[str, str]

names = st.sampled_from(("p0", "p1", "p2", "p3"))
steps: st.SearchStrategy[list[Put | Deleted]] = st.lists(
    st.one_of(
        st.tuples(names, st.sampled_from(NODES[:3])).flatmap(lambda where: pods(*where)),
        st.sampled_from(NODES[:3]).flatmap(nodes),
        st.tuples(st.just("pod"), names),
        st.tuples(st.just("node"), st.sampled_from(NODES[:3])),
    ),
    min_size=1,
    max_size=12,
)


def happens(state: ClusterState, step: Put | Deleted) -> list[Change]:
    match step:
        case NodeInfo():
            return state.put_node(step)
        case PodInfo():
            return state.put_pod(step)
        case ("node", name):
            return state.delete_node(name)
        case (_, name):
            return [change for uid in [u for u in state.pods if u.endswith(name)] for change in state.delete_pod(uid)]


def answers(view: ClusterView, probe: PodInfo) -> list[object]:
    alive = [name for name, row in sorted(view.state.row_of.items()) if view.state.alive[row]]
    return [
        rejections(InterPodAffinity(), probe, view),
        rejections(PodTopologySpread(), probe, view),
        scores(InterPodAffinityScore(), probe, view, alive),
        scores(PodTopologySpreadScore(), probe, view, alive),
    ]


@settings(max_examples=120, deadline=None)
@given(st.lists(steps, min_size=1, max_size=3), pods("probe"))
def test_incremental_equals_rebuilt(batches: list[list[Put | Deleted]], probe: PodInfo) -> None:
    state = ClusterState()
    view = view_of_state(state)
    for batch in batches:
        view.index.apply([change for step in batch for change in happens(state, step)])
        assert answers(view, probe) == answers(view_of_state(state), probe)
    view.index.apply([change for uid in list(state.pods) for change in state.delete_pod(uid)])
    index = view.index
    assert not any((len(index.groups), len(index.groups.owned), len(index.terms.anti_affinity)))
    assert not len(index.terms.preferences)
