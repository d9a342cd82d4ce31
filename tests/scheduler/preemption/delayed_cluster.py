"""The whole loop of preemption beside a made-up API server with a late watch, late answers and slow kubelets.

    API server --events, in order, late--> tables -> queue -> cycle -> executor --requests, answered late--> API server

One thread and one seed: a run can be repeated step by step.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import orjson
import pytest

from kube.client.api_answer import NO_ANSWER, Answer
from kube.decoding.decoding import Kind
from kube.objects.objects import NodeInfo, PodInfo
from kube.session import request_retries
from placement.cluster_events import ClusterEvent, EventKind
from placement.disruption_budgets import DisruptionBudgets
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView
from placement.index.index import INDEXED_KINDS, PlacementIndex
from placement.pod_groups.pod_group import PodGroupInfo
from placement.policies.policy import OnePolicy, Policy
from scheduler.binding.binding_cycles import Done
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.binding.outcome import BindingOutcome, Ending, Reserved
from scheduler.binding_results import BindingResults
from scheduler.cache.assumptions import Assumptions
from scheduler.cycle.cycle import SchedulingCycle
from scheduler.filter_hints import FILTER_HINTS
from scheduler.gangs.directory import GangDirectory
from scheduler.metrics import SchedulingMetrics
from scheduler.pods_to_place import PodsToPlace
from scheduler.preemption import executor
from scheduler.preemption.default_preemption import DefaultPreemption
from scheduler.preemption.executor import PreemptionExecutor
from scheduler.preemption.nominated import NominatedPods
from scheduler.preemption.options import PreemptionOptions
from scheduler.preemption.sitting_pods import SittingPods
from scheduler.profile import SchedulingProfile
from scheduler.queue.options import QueueOptions
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue.sorting import PrioritySort
from scheduler.queue_events import ClusterFollower
from scheduler.scheduler import Scheduler
from scorer.policy import scoring_policy
from scorer.scorer import Scorer
from tests.scheduler.preemption.made_up import NOW, pod

_SCHEDULER = "forecast-scheduler"
_NOT_FOUND = 404
_AT_MOST_STEPS = 20_000


def ours(name: str, on: str = "", *, owner: str = "", **facts: Any) -> PodInfo:
    """A pod that our scheduler places; pods of one owner are popped together."""
    return replace(pod(name, on, **facts), scheduler_name=_SCHEDULER, owner_uid=owner)


async def _at_once(act: Callable[..., object], *arguments: object) -> object:
    """In place of asyncio.to_thread: the same order each time."""
    return act(*arguments)


class _Told:
    """Implements Telling: nothing is reported."""

    def failed(self, pod: PodInfo, message: str, *, reason: str = "Unschedulable") -> None: ...

    def paused(self, pod: PodInfo, message: str, *, by: str) -> None: ...

    def scheduled(self, pod: PodInfo, node: str) -> None: ...

    def forget(self, uid: str) -> None: ...


class DelayedCluster:
    """Nodes full of pods, and preemptors that come at once.

    pods    : as the API server has them, by UID
    evicted : UIDs that the API server was told to delete, in order
    fails   : share of bindings that end without success, and are tried again
    lost    : share of requests that fail, half of them after they were carried out
    """

    def __init__(
        self,
        nodes: Sequence[NodeInfo],
        pods: Sequence[PodInfo],
        *,
        seed: int,
        fails: float = 0.0,
        lost: float = 0.0,
        groups: Sequence[PodGroupInfo] = (),
        restless: bool = False,
    ) -> None:
        self.restless, self._nodes = restless, nodes
        self.random, self.now, self.fails, self.lost = random.Random(seed), NOW, fails, lost
        self.pods = {one.uid: one for one in pods}
        self.evicted: list[str] = []
        self._watch: deque[tuple[bool, PodInfo]] = deque()  # whether it is still there, and how it is then
        self._bindings: list[tuple[Reserved, Done]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.scorer = Scorer(clock=lambda: self.now)
        with self.scorer.tables.reading() as cluster:
            self.cluster = cluster
            view = ClusterView(cluster, PlacementIndex(cluster.state))
            budgets = DisruptionBudgets()
            gangs = GangDirectory(
                cluster.state, is_ours=lambda pod: pod.scheduler_name == _SCHEDULER,
                is_assumed=cluster.assumed.__contains__, clock=lambda: self.now,
            )  # fmt: skip
            self.gangs = gangs
            self.sitting = SittingPods(cluster.state, budgets, gangs)
            self.nominated = NominatedPods(cluster.state, ended=self._nomination_ended)
            preemption = DefaultPreemption(
                self.sitting, budgets, self.nominated, clock=lambda: self.now, assumed=cluster.assumed, gangs=gangs,
                options=PreemptionOptions(protect_started=0.0),
            )  # fmt: skip
            hints = {**FILTER_HINTS, preemption.name: preemption, self.nominated.name: self.nominated}
            self.queue = SchedulingQueue(
                sort=PrioritySort(), gate=gangs.gate, hints=lambda pod: hints, units=gangs,
                options=QueueOptions(), clock=lambda: self.now,
            )  # fmt: skip
            follower = ClusterFollower(cluster, view.index, self.queue, PodsToPlace(frozenset({_SCHEDULER})))
            profile = SchedulingProfile(
                "online", _SCHEDULER, OnePolicy(Policy(scoring_policy(self.scorer.tables.options))),
                BindingPlugins(bind=()),
                filters=(*standard_filters(), self.nominated), post_filters=(preemption,),
            )  # fmt: skip
            assumptions = Assumptions(
                cluster, seconds=1e9, binding_seconds=10.0, ask=lambda reserved: None, clock=lambda: self.now
            )
            preempting = PreemptionExecutor(
                self, self.nominated, locked=self.scorer.tables.reading, failed=self._try_again, clock=lambda: self.now
            )
            cycle = SchedulingCycle(
                view, cluster, {_SCHEDULER: profile}, gangs, preempt=preempting.carry_out, withdraw=preempting.withdraw
            )
            metrics, told = SchedulingMetrics(), _Told()
            settling = BindingResults(
                self.scorer, self.queue, follower, assumptions, self,  # type: ignore[arg-type]
                telling=told, metrics=metrics, clock=lambda: self.now,
            )  # fmt: skip
            self.loop = Scheduler(
                self.scorer, view, self.queue, follower, cycle, settling,
                telling=told, may_schedule=lambda: True, metrics=metrics, clock=lambda: self.now,
            )  # fmt: skip
            gangs.listeners.append(self._group_changed)
            for table in (view.index, gangs, self.sitting, self.nominated, settling):
                self.scorer.tables.attach((), table)
            self.scorer.tables.attach(INDEXED_KINDS, follower)
        self.scorer.tables.replace(Kind.NODES, nodes)
        self.scorer.tables.replace(Kind.PODS, pods)
        with self.scorer.tables.reading():
            gangs.replace_groups(groups)

    # What the executor and the settling are given

    def submit(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return Future()

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> Answer:
        for _ in range(self.random.randrange(12)):
            await asyncio.sleep(0)
        if self.random.random() < self.lost / 2:
            return Answer(500)
        answer = self._answer(method, path, body)
        return Answer(NO_ANSWER) if self.random.random() < self.lost / 2 else answer

    def _answer(self, method: str, path: str, body: bytes | None) -> Answer:
        name = path.split("/pods/")[1].split("/")[0]
        found = self.pods.get(name)
        if found is None:
            return Answer(_NOT_FOUND, b"{}")
        if method == "DELETE":
            if not found.terminating:
                self.evicted.append(name)
            self._change(replace(found, terminating=True))
        elif "nominatedNodeName" in (status := orjson.loads(body or b"{}")["status"]):
            self._change(replace(found, nominated_node=status["nominatedNodeName"] or ""))
        else:
            self._change(replace(found))
        return Answer(200, b"{}")

    @property
    def unfinished(self) -> int:
        return len(self._bindings)

    def start(self, reserved: Sequence[Reserved], done: Done) -> None:
        self._bindings += [(one, done) for one in reserved]

    # What happens

    def create(self, *pods: PodInfo) -> None:
        """They exist from now on; the watch will show them."""
        for one in pods:
            self._change(one)

    def restart(self) -> None:
        """Another process takes over: it knows what pods say in their status, and nothing else."""
        while self._watch:
            self._show()
        with self.scorer.tables.reading() as cluster:
            waiting = [one for one in cluster.state.pods.values() if not one.node and one.scheduler_name == _SCHEDULER]
            self.nominated.start_over(waiting, self.gangs.group_of)

    @property
    def is_asking(self) -> bool:
        """Whether requests of the executor are under way."""
        return bool(self._tasks)

    def run(self, *, steps: int = 0, until: Callable[[], bool] | None = None) -> None:
        """Until every pod of ours has a node; everything happens in an order of its own, and without pauses.

        steps : so many and no more; 0 = as many as it takes
        until : ends earlier, when this is so
        """
        with pytest.MonkeyPatch.context() as quick:
            quick.setattr(request_retries, "_PAUSE_SECONDS", 0.0)
            quick.setattr(executor, "_AGAIN_SECONDS", 0.0)
            quick.setattr(asyncio, "to_thread", _at_once)
            asyncio.run(self._run(steps, until or (lambda: not self.waiting and not self._tasks)))

    @property
    def waiting(self) -> list[str]:
        return [uid for uid, one in self.pods.items() if not one.node]

    async def _run(self, steps: int, is_done: Callable[[], bool]) -> None:
        weights = [10 ** self.random.uniform(-1.3, 0.7) for _ in range(6)]
        actions = (self._show, self._round, self._end_one, self._bind, self._let_time_pass, self._change_a_node)
        for _ in range(steps or _AT_MOST_STEPS):
            if is_done():
                return
            self.random.choices(actions, weights)[0]()
            await asyncio.sleep(0)
        if not steps:
            raise AssertionError(f"still waiting: {self.waiting} {self.queue.waiting()}")

    def _change(self, now: PodInfo) -> None:
        self.pods[now.uid] = now
        self._watch.append((True, now))

    def _show(self) -> None:
        """The watch is heard: some events at once."""
        for _ in range(min(len(self._watch), self.random.randrange(1, 8))):
            is_there, now = self._watch.popleft()
            (self.scorer.tables.put if is_there else self.scorer.tables.delete)(Kind.PODS, now)

    def _round(self) -> None:
        self.queue.tick()
        if self.queue.lengths()["active"]:  # it would wait for one
            self.loop.round()

    def _end_one(self) -> None:
        """A kubelet is done with a pod."""
        going = [one for one in self.pods.values() if one.terminating]
        if going:
            gone = self.pods.pop(self.random.choice(going).uid)
            self._watch.append((False, gone))

    def _bind(self) -> None:
        if not self._bindings:
            return
        reserved, done = self._bindings.pop(self.random.randrange(len(self._bindings)))
        if self.random.random() < self.fails:
            done(reserved, BindingOutcome(Ending.FAILED, "refused"))
            return
        self._change(replace(self.pods[reserved.pod.uid], node=reserved.node))
        done(reserved, BindingOutcome(Ending.BOUND))

    def _change_a_node(self) -> None:
        """In nothing that matters, which the queue cannot know."""
        if self.restless:
            name = self.random.choice([one.name for one in self._nodes])
            node = next(one for one in self._nodes if one.name == name)
            self.scorer.tables.put(Kind.NODES, replace(node, labels={**node.labels, "seen": str(self.random.random())}))

    def _let_time_pass(self) -> None:
        self.now += self.random.uniform(0.1, 3.0)
        self.scorer.tables.tick()
        self.loop.tick()
        with self.scorer.tables.reading():
            self.gangs.tick()

    def _nomination_ended(self, pod: PodInfo, node: str) -> None:
        self.queue.happened(ClusterEvent(EventKind.POD_LEFT, pod=replace(pod, node=node)))

    def _group_changed(self, group: str) -> None:
        self.queue.happened(ClusterEvent(EventKind.GROUP_CHANGED, group=group))
        self.queue.wake_units([group])

    def _try_again(self, pod: PodInfo) -> None:
        with self.scorer.tables.reading():
            self.queue.happened(ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=pod))
