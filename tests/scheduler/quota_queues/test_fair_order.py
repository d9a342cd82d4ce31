from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.tables.state import ClusterState
from placement.plugins import FlowHead, Pick, Turn
from scheduler.quota_queues.fair_order import FairFlows
from scheduler.quota_queues.owner_shares import Shares
from scheduler.quota_queues.queue_of import QUEUE_ANNOTATION, QueueOf
from scheduler.quota_queues.quota_queue_settings import FairOptions, Order, PodQueue
from tests.scheduler.quota_queues.queue_pods import PROFILES, a_head, a_job_pod, a_node

QUEUES = [
    PodQueue(name="fifo", order=Order.FIFO, weight=3),
    PodQueue(name="edf", order=Order.DEADLINE),
    PodQueue(name="prio", order=Order.PRIORITY, most_per_turn=10),
    PodQueue(name="drf", weight=2, owner_weights={"rich": 2.0}),
]
NOW = 10_000.0


class Flows:
    """Turns over a cluster of 1,000 cores."""

    def __init__(self, options: FairOptions | None = None) -> None:
        self.state = ClusterState()
        self.state.put_node(a_node("n", 1000, 1000))
        queue_of = QueueOf(QUEUES, PROFILES)
        self.shares = Shares(self.state, queue_of=queue_of)
        self.order = FairFlows(queue_of.queues, self.shares, options=options)

    def sits(self, owner: str, n_pods: int, memory: float = 1.0) -> None:
        for number in range(n_pods):
            name = f"{len(self.state.pods)}-{number}"
            said = {QUEUE_ANNOTATION: "drf"}
            sitting = a_job_pod(name, namespace=owner, node="n", annotations=said, memory=memory)
            self.shares.apply(self.state.put_pod(sitting))

    def next(self, *heads: FlowHead, now: float = NOW, taken: int = 1) -> str:
        """Name of the flow whose turn it is; so many of its pods are taken."""
        turn = self.turn(*heads, now=now)
        self.order.taken(heads[turn.position].flow, taken)
        return heads[turn.position].flow

    def turn(self, *heads: FlowHead, now: float = NOW) -> Turn:
        return self.order.next(heads, now)


def counted(names: Sequence[str]) -> dict[str, int]:
    return dict(Counter(names))


def test_a_higher_priority_goes_first_across_everything() -> None:
    flows = Flows()
    heads = [a_head("online", priority=5), a_head("drf/a", priority=6), a_head("fifo/", priority=5)]
    assert [flows.next(*heads, taken=100) for _ in range(5)] == ["drf/a"] * 5


def test_queues_have_turns_by_weight() -> None:
    flows = Flows(FairOptions(unqueued_weight=4))
    heads = [a_head("online"), a_head("fifo/"), a_head("drf/a"), a_head("edf/")]
    assert counted([flows.next(*heads) for _ in range(100)]) == {"online": 40, "fifo/": 30, "drf/a": 20, "edf/": 10}


def test_pods_that_came_back_unseen_do_not_count() -> None:
    flows = Flows(FairOptions(unqueued_weight=1))
    heads = [a_head("edf/"), a_head("online")]
    assert flows.next(*heads, taken=1000) == "edf/"
    flows.order.taken("edf/", -1000)
    assert flows.next(*heads) == "edf/"


def test_a_pod_that_was_not_tried_for_long_goes_whatever_its_priority() -> None:
    flows = Flows()
    heads = [a_head("online", priority=9, waits_since=NOW), a_head("fifo/", waits_since=NOW - 600)]
    assert flows.turn(*heads, now=NOW - 1) == Turn(0)
    turns = [flows.turn(*heads) for _ in range(8)]
    # Every fourth turn: what is of high priority goes on.
    assert [turn.position for turn in turns] == [1, 0, 0, 0, 1, 0, 0, 0]
    assert turns[0] == Turn(1, 64, Pick.LONGEST)
    assert Flows(FairOptions(longest_wait=0)).turn(*heads, now=NOW * 9) == Turn(0)


def test_what_has_to_start_soon_goes_first_in_its_queue_every_other_turn() -> None:
    for queue in ("fifo", "prio", "drf"):
        flows = Flows()
        heads = [a_head(f"{queue}/", due=NOW + 300)]
        assert [flows.turn(*heads).pick for _ in range(4)] == [Pick.DUE, Pick.FIRST, Pick.DUE, Pick.FIRST]
        assert flows.turn(a_head(f"{queue}/", due=NOW + 301)).pick is Pick.FIRST
    flows = Flows()
    assert [flows.turn(a_head("edf/", due=NOW)).pick for _ in range(3)] == [Pick.DUE] * 3


def test_a_due_time_makes_no_priority() -> None:
    heads = [a_head("drf/a", priority=5, due=NOW, due_priority=0), a_head("drf/b", priority=5)]
    assert Flows().turn(*heads).pick is Pick.FIRST
    # A FIFO queue does not heed priorities.
    assert Flows().turn(a_head("fifo/", priority=5, due=NOW, due_priority=0)).pick is Pick.DUE


def test_owners_whose_pods_find_no_node_do_not_stop_others() -> None:
    flows = Flows()
    flows.sits("b", 500)
    heads = [a_head("drf/a"), a_head("drf/b")]
    turns = [flows.turn(*heads) for _ in range(200)]
    served = [at for at, turn in enumerate(turns) if turn.position == 1]
    assert served
    assert all(turns[at].most == 1 for at in served)
    assert max(b - a for a, b in itertools.pairwise(served)) <= 33


def test_turns_grow_while_they_are_in_vain_until_there_is_room() -> None:
    flows = Flows()
    heads = [a_head(f"drf/o{owner}") for owner in range(500)]
    assert [flows.turn(*heads).most for _ in range(8)] == [1, 2, 4, 8, 16, 32, 64, 64]
    flows.sits("o0", 1)
    assert flows.turn(*heads).most == 1
    # What nobody looked at was not in vain.
    flows.order.taken("drf/o1", 1)
    flows.order.taken("drf/o1", -1)
    assert flows.turn(*heads).most == 1
    assert flows.turn(*heads).most == 2
    seated = next(iter(flows.state.pods.values()))
    flows.shares.apply(flows.state.delete_pod(seated.uid))
    assert flows.turn(*heads).most == 1
    assert flows.turn(*heads).most == 2
    flows.shares.apply(flows.state.put_node(a_node("more", 10, 10)))
    assert flows.turn(*heads).most == 1


@settings(max_examples=30)
@given(data=st.data())
def test_no_flow_of_the_highest_priority_waits_for_ever(data: st.DataObject) -> None:
    """Whatever its share, and though nothing that is popped ever gets a node."""
    flows = Flows()
    owners = data.draw(st.integers(1, 6))
    for owner in range(owners):
        flows.sits(f"o{owner}", data.draw(st.integers(0, 30)))
    heads = [a_head("online"), a_head("fifo/"), a_head("edf/"), *(a_head(f"drf/o{owner}") for owner in range(owners))]
    heads += [a_head("drf/urgent", due=NOW)] if data.draw(st.booleans()) else []
    # 10 of weight, of which DRF has 2; every 33 of its turns one for each owner.
    bound = 5 * 33 * (owners + 2)
    names = {flows.next(*heads) for _ in range(bound)}
    assert names == {head.flow for head in heads}
