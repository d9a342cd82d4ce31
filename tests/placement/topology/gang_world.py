"""GPU nodes in racks and zones, gangs, and the real cycle over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kube.decoding.decoding import Kind
from kube.objects.objects import NodeInfo, PodInfo
from placement.devices.device_table import DeviceTable
from placement.devices.gpu_devices import GpuDevices
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView, Filter
from placement.index.index import INDEXED_KINDS, PlacementIndex
from placement.node_rule_settings import TopologyOptions
from placement.node_rules import topology_plugins
from placement.pod_groups.pod_group import GroupTopology, PodGroupInfo
from placement.policies.policy import OnePolicyForAll, Policy
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.cycle.cycle import SchedulingCycle
from scheduler.cycle.decisions import Decisions
from scheduler.cycle.placing import UnitPlacer
from scheduler.gangs.directory import GangDirectory
from scheduler.profile import SchedulingProfile
from scheduler.queue.queued_pods import Popped, QueuedPodInfo
from scorer.scorer import Scorer
from scorer.scoring_policy import scoring_policy
from tests.placement.devices.device_world import GPU, MILLI, card_node
from tests.scheduler.gangs.made_up import NOW, TRAIN, group, member

HOST, RACK, ZONE = "kubernetes.io/hostname", "example.com/rack", "topology.kubernetes.io/zone"


def gpu_node(name: str, n: int = 8, *, rack: str = "", zone: str = "", cpu: float = 64.0) -> NodeInfo:
    """n: whole cards."""
    labels = {HOST: name} | ({RACK: rack} if rack else {}) | ({ZONE: zone} if zone else {})
    made = card_node(name, n)
    amounts = {**made.allocatable, "cpu": cpu}
    return replace(made, labels=labels, capacity=amounts, allocatable=amounts)


def worker(
    name: str, n: int = 0, *, cpu: float = 1.0, milli: int = 0, role: str = "", node: str = "", of: str = "train"
) -> PodInfo:
    """A member; n: whole cards."""
    requests = {"cpu": cpu, "memory": 2.0**30} | ({GPU: float(n)} if n else {})
    annotations = {MILLI: str(milli)} if milli else {}
    return member(name, role, of=of, node=node, requests=requests, annotations=annotations)


def gang(members: int, *preferred: str, required: str = "", roles: dict[str, int] | None = None) -> PodGroupInfo:
    """The PodGroup of `worker`."""
    return group(members, roles, topology=GroupTopology(tuple(preferred), required))


class GangWorld:
    """One profile with kube-scheduler's filters, devices and topology."""

    def __init__(self, nodes: Iterable[NodeInfo], pods: Iterable[PodInfo] = (), *, is_on: bool = True) -> None:
        """is_on: whether topology is heeded."""
        self.scorer = Scorer(clock=lambda: NOW)
        self._pods: dict[str, PodInfo] = {}
        with self.scorer.tables.reading() as cluster:
            self.cluster = cluster
            self.gangs = GangDirectory(cluster.state, is_assumed=cluster.assumed.__contains__, clock=lambda: NOW)
            self.devices = DeviceTable(cluster.state, is_assumed=cluster.assumed.__contains__, clock=lambda: NOW)
            plugins = topology_plugins(
                cluster.state,
                self.devices,
                self.gangs,
                lambda pod: self.profile.filters_for(self.policy),
                TopologyOptions(gangs=is_on),
                clock=lambda: NOW,
            )
            assert plugins.zones is not None
            self.zones, self.topology = plugins.zones, plugins.gangs
            self.view = ClusterView(cluster, PlacementIndex(cluster.state), (self.zones, self.devices))
            self.scorer.tables.attach(INDEXED_KINDS, self.view.index)
            for table in (self.gangs, self.zones, self.devices):
                self.scorer.tables.attach((), table)
        self.scorer.tables.replace(Kind.NODES, list(nodes))
        self.policy = Policy(scoring_policy(self.scorer.options))
        filters: tuple[Filter, ...] = (*standard_filters(), GpuDevices(self.devices), *plugins.filters)
        self.profile = SchedulingProfile(
            "gpu",
            "forecast-scheduler",
            OnePolicyForAll(self.policy),
            BindingPlugins(bind=(), reserve=()),
            filters=filters,
            preferences=plugins.preferences,
        )
        self.cycle = SchedulingCycle(self.view, cluster, {"forecast-scheduler": self.profile}, self.gangs)
        self.put(*pods)

    def put(self, *pods: PodInfo) -> None:
        """The watch says so."""
        for pod in pods:
            self._pods[pod.uid] = pod
            self.scorer.tables.put(Kind.PODS, pod)

    def run(self, wanted: PodGroupInfo, pods: Sequence[PodInfo] = (), *, one_by_one: bool = False) -> Decisions:
        """Try a gang. pods: new ones of it; those that wait are popped."""
        self.put(*pods)
        self.gangs.replace_groups([wanted])
        waiting = [pod for pod in self._pods.values() if not pod.node and pod.uid not in self.cluster.assumed]
        popped = Popped(TRAIN, True, tuple(QueuedPodInfo(pod, TRAIN, NOW) for pod in waiting))
        with self.scorer.tables.reading():
            level, _ = self.scorer.tables.level()
            return self.cycle.run(popped, UnitPlacer(self.view, self.cluster, level, NOW + 60, one_by_one=one_by_one))

    def place(self, wanted: PodGroupInfo, pods: Sequence[PodInfo] = (), *, one_by_one: bool = False) -> dict[str, str]:
        """Node by UID of those that got one."""
        decisions = self.run(wanted, pods, one_by_one=one_by_one)
        return {queued.pod.uid: node for queued, node in decisions.placed}
