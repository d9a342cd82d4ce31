"""After any sequence of changes the directory says what counting all pods anew says, and whoever listens knows."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kube.objects.objects import PodInfo, PodPhase
from placement.pod_groups.group_of_pod import GROUP_LABEL, ROLE
from placement.pod_groups.minima import Minima
from placement.pod_groups.pod_group import PodGroupInfo
from scheduler.loop_settings import GangOptions
from testing.constants import with_constants
from tests.scheduler.gangs.made_up import Scene, group, member

NAMES = ("g", "h")
UIDS = ("p0", "p1", "p2", "p3", "p4")
PROBLEM = "a mistake"
PAUSE = 30.0

pods = st.builds(
    member,
    st.sampled_from(UIDS),
    st.sampled_from(["", "a", "b"]),
    of=st.sampled_from(["", *NAMES]),
    node=st.sampled_from(["", "", "n1", "n2"]),
    owner=st.sampled_from(["", "job"]),
    phase=st.sampled_from([PodPhase.PENDING, PodPhase.PENDING, PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED]),
    terminating=st.sampled_from([False, False, False, True]),
    gates=st.sampled_from([(), (), ("gate",)]),
    scheduler_name=st.sampled_from(["forecast-scheduler", "forecast-scheduler", "another"]),
)
groups = st.builds(
    group,
    st.integers(1, 3),
    st.dictionaries(st.sampled_from(["a", "b"]), st.integers(1, 2)),
    name=st.sampled_from(NAMES),
    uid=st.sampled_from(["u1", "u2"]),
    problem=st.sampled_from(["", "", "", PROBLEM]),
    timeout_seconds=st.sampled_from([None, 0.0]),
)
names = st.sampled_from(NAMES)


class Model:
    """What there is, counted the slow way."""

    def __init__(self, scene: Scene, infos: dict[str, PodGroupInfo]) -> None:
        self._state, self._infos = scene.cluster.state, infos

    def members(self, name: str) -> list[PodInfo]:
        return [pod for pod in self._state.pods.values() if pod.labels.get(GROUP_LABEL) == name]

    def seated(self, name: str) -> list[PodInfo]:
        return [pod for pod in self.members(name) if pod.node and not self._ended(pod) and not pod.terminating]

    def waiting(self, name: str) -> list[PodInfo]:
        return [
            pod
            for pod in self.members(name)
            if not (pod.node or self._ended(pod) or pod.terminating or pod.gates)
            and pod.scheduler_name == "forecast-scheduler"
        ]

    def done(self, name: str) -> list[PodInfo]:
        living = {
            pod.owner_uid
            for pod in self.members(name)
            if not self._ended(pod) and not pod.terminating and pod.owner_uid
        }
        return [pod for pod in self.members(name) if pod.phase is PodPhase.SUCCEEDED and pod.owner_uid in living]

    def falls_short(self, name: str, pods: list[PodInfo]) -> bool:
        minima: Minima = self._infos[name].minima
        roles = Counter(pod.labels.get(ROLE, "") for pod in pods)
        return len(pods) < minima.members or any(roles[role] < n for role, n in minima.by_role.items())

    def gate_is_open(self, name: str) -> bool:
        """But for pauses."""
        info = self._infos.get(name)
        if info is None or info.problem:
            return False
        return not self.falls_short(name, self.seated(name) + self.done(name) + self.waiting(name))

    @staticmethod
    def _ended(pod: PodInfo) -> bool:
        return pod.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)


class Directory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scene = Scene(options=with_constants(GangOptions(), timeout=60, pause=PAUSE))
        self.directory = self.scene.directory
        self.infos: dict[str, PodGroupInfo] = {}
        self.model = Model(self.scene, self.infos)
        self.known: dict[str, str] = {}  # what the gate said when it was last asked after a listener was told
        self.directory.listeners.append(self.ask)

    def ask(self, key: str) -> None:
        self.known[key] = self.directory.gate(member("x", of=key.partition("/")[2])).reason

    @rule(pod=pods)
    def put_pod(self, pod: PodInfo) -> None:
        self.scene.put(pod)

    @rule(uid=st.sampled_from(UIDS))
    def delete_pod(self, uid: str) -> None:
        self.scene.cluster.delete_pod(uid)

    @rule(those=st.lists(pods, max_size=4, unique_by=lambda pod: pod.uid))
    def replace_pods(self, those: list[PodInfo]) -> None:
        self.scene.cluster.replace_pods(those)

    @rule(uids=st.lists(st.sampled_from(UIDS), unique=True), node=st.sampled_from(["n1", "n3"]))
    def assume(self, uids: list[str], node: str) -> None:
        self.scene.assume(
            *(self.scene.cluster.state.pods[u] for u in uids if u in self.scene.cluster.state.pods), node=node
        )

    @rule(uid=st.sampled_from(UIDS))
    def forget(self, uid: str) -> None:
        self.scene.cluster.forget(uid)

    @rule(one=groups)
    def put_group(self, one: PodGroupInfo) -> None:
        self.infos[one.name] = one
        self.directory.put_group(one)

    @rule(name=names)
    def delete_group(self, name: str) -> None:
        self.infos.pop(name, None)
        self.directory.delete_group(group(name=name))

    @rule(those=st.lists(groups, unique_by=lambda one: one.name))
    def replace_groups(self, those: list[PodGroupInfo]) -> None:
        self.infos.clear()
        self.infos.update({one.name: one for one in those})
        self.directory.replace_groups(those)

    @rule()
    def rebuild(self) -> None:
        self.directory.rebuild()

    @rule(name=names)
    def attempt_failed(self, name: str) -> None:
        if self.model.gate_is_open(name):
            self.directory.attempt_failed(f"ml/{name}", "no room")

    @rule(seconds=st.sampled_from([1.0, PAUSE, 70.0, -50.0]))
    def time_passes(self, seconds: float) -> None:
        self.scene.now += seconds
        self.directory.tick()

    @rule()
    def tick(self) -> None:
        self.directory.tick()
        for name in NAMES:
            if self.model.members(name) or name in self.infos:
                assert self.known[f"ml/{name}"] == self.gate(name)

    def gate(self, name: str) -> str:
        return self.directory.gate(member("x", of=name)).reason

    @invariant()
    def gates_are_as_counted(self) -> None:
        for name in NAMES:
            says = self.gate(name)
            if "others go first" in says:
                assert self.model.gate_is_open(name) and self.model.falls_short(
                    name, self.model.seated(name) + self.model.done(name)
                )
            else:
                assert (not says) == self.model.gate_is_open(name), says
            if name not in self.infos:
                assert says == f"PodGroup ml/{name} does not exist"
            elif self.infos[name].problem:
                assert PROBLEM in says
            elif says and "others go first" not in says:
                assert says.startswith("waits for members: ")

    @invariant()
    def whoever_listens_knows_whether_a_gate_is_open(self) -> None:
        for name in NAMES:
            if self.model.members(name) or name in self.infos:
                assert (not self.known[f"ml/{name}"]) == (not self.gate(name))

    @invariant()
    def seats_and_minima_are_as_counted(self) -> None:
        for name in NAMES:
            key = f"ml/{name}"
            seated, done, waiting = self.model.seated(name), self.model.done(name), self.model.waiting(name)
            assert sorted(pod.uid for pod in self.directory.sitting(key)) == sorted(pod.uid for pod in seated)
            assert all(pod is self.scene.cluster.state.pods[pod.uid] for pod in self.directory.sitting(key))
            info = self.infos.get(name)
            if info is None or info.problem:
                assert self.directory.shortfall(key, waiting) and not self.directory.breaks_without(key, UIDS)
                continue
            for placed in ([], waiting, waiting[:1], seated[:1] + waiting[1:]):
                new = [pod for pod in placed if pod not in seated]
                expected = self.model.falls_short(name, seated + done + new)
                assert bool(self.directory.shortfall(key, placed)) == expected
            for gone in (seated[:1], seated[1:]):
                rest = [pod for pod in seated if pod not in gone]
                expected = bool(gone) and self.model.falls_short(name, rest + done)
                assert self.directory.breaks_without(key, [pod.uid for pod in gone]) == expected

    @invariant()
    def reports_are_as_counted(self) -> None:
        for name in NAMES:
            report = self.directory.report(f"ml/{name}")
            assert (report is None) == (name not in self.infos)
            if report is not None:
                phases = Counter(pod.phase for pod in self.model.members(name))
                assert report.total == phases.total() and report.scheduled == len(self.model.seated(name))
                assert (report.succeeded, report.failed) == (phases[PodPhase.SUCCEEDED], phases[PodPhase.FAILED])

    @invariant()
    def nothing_is_kept_of_what_is_gone(self) -> None:
        named: set[Any] = {name for name in NAMES if self.model.members(name)}
        assert len(self.directory) == len(named | self.infos.keys())
        assert len(self.directory._roster.member_of) == sum(len(self.model.members(name)) for name in NAMES)


Directory.TestCase.settings = settings(stateful_step_count=40)
TestDirectory = Directory.TestCase
