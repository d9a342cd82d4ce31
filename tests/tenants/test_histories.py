"""Random histories of arrivals, ends, node losses and restarts, against the plain model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest

from kube.objects.objects import NodeInfo, PodInfo
from placement.pod_groups.group_of_pod import GROUP_LABEL
from placement.pod_groups.pod_group import PodGroupInfo
from tenants.elastic_quota import ElasticQuota
from tests.tenants.plain_tenants import PlainTenants
from tests.tenants.tenant_world import TenantWorld, gang_of, nodes, quota, tenant_pod

_PER_TEST = 25


class History:
    """One random history; `play` checks the model after each pass of the loop, and what waits once it has settled."""

    def __init__(self, seed: int) -> None:
        self.random, self.seed = Random(seed), seed
        self.nodes: list[NodeInfo] = nodes(self.random.randint(1, 4), cpu=float(self.random.randint(1, 5)))
        self.quotas = self._some_quotas()
        self.groups: list[PodGroupInfo] = []
        self.n_pods = 0
        self.world = self._start([])

    def _some_quotas(self) -> list[ElasticQuota]:
        random = self.random
        left = sum(int(node.allocatable["cpu"]) for node in self.nodes)
        found: list[ElasticQuota] = []
        for name in "abcd"[: random.randint(2, 4)]:
            least = random.randint(0, left)
            left -= least
            most = random.choice([None, None, least + random.randint(0, 4)])
            found.append(quota(name, least, most, lends=True))
        if random.random() < 0.4:
            top = found[0]
            room = int(top.guaranteed["cpu"])
            for name in ("x", "y"):
                least = random.randint(0, room)
                room -= least
                found.append(quota(name, least, random.choice([None, least + 2]), parent=top.name))
        return found

    @property
    def leaves(self) -> list[str]:
        parents = {one.parent for one in self.quotas}
        return [one.name for one in self.quotas if one.name not in parents]

    def _start(self, pods: Sequence[PodInfo]) -> TenantWorld:
        return TenantWorld(self.nodes, self.quotas, pods, groups=self.groups)

    def model(self) -> PlainTenants:
        return PlainTenants.of(self.quotas, self.nodes, self.world.pods.values())

    def play(self, n_steps: int) -> None:
        for step in range(n_steps):
            kind = self.random.choices(("arrive", "gang", "end", "lose", "restart"), (5, 1, 3, 1, 1))[0]
            getattr(self, f"_{kind}")()
            where, gone = f"seed {self.seed}, step {step}, {kind}", list[str]()
            known = {pod.name: pod for pod in self.model().pods}
            for is_last in (False, True):
                before, n_gone = self.model(), len(self.world.evicted)
                self.world.run()
                evicted = self.world.evicted[n_gone:]
                gone += evicted
                self._check(before, self.model(), evicted, where)
                if not is_last:
                    self.world.try_again()
            self._check_waiting(self.model(), where)
            self._controllers(known, gone)

    # What happens

    def _new(self, tenant: str, gang: str = "") -> PodInfo:
        self.n_pods += 1
        priority = 0 if gang else self.random.choice((0, 0, 0, 5))
        created = self.world.now - 10_000 + self.n_pods
        return tenant_pod(f"p{self.n_pods}", tenant, priority=priority, created=created, gang=gang)

    def _arrive(self) -> None:
        tenant = self.random.choice(self.leaves)
        self.world.put(*(self._new(tenant) for _ in range(self.random.randint(1, 6))))

    def _gang(self) -> None:
        tenant, size = self.random.choice(self.leaves), self.random.randint(2, 4)
        group = gang_of(tenant, f"g{self.n_pods}", size)
        self.groups.append(group)
        pods = [
            *self.world.pods.values(),
            *(self._new(tenant, group.name.partition("/")[2] or group.name) for _ in range(size)),
        ]
        self.world = self._start(pods)

    def _end(self) -> None:
        seated = sorted(self.world.seats())
        self.world.end(*self.random.sample(seated, min(len(seated), self.random.randint(1, 4))))

    def _lose(self) -> None:
        if len(self.nodes) > 1:
            lost = self.nodes.pop(self.random.randrange(len(self.nodes)))
            self.world.lose_node(lost.name)

    def _restart(self) -> None:
        self.world = self._start(list(self.world.pods.values()))

    def _controllers(self, known: Mapping[str, PodInfo], evicted: Sequence[str]) -> None:
        """Some of the evicted pods are made anew, and wait when the next step begins."""
        if self.random.random() < 0.5:
            return
        for name in evicted:
            pod = known[name]
            self.n_pods += 1
            if GROUP_LABEL not in pod.labels:
                self.world.put(replace(pod, node="", name=f"p{self.n_pods}", uid=f"p{self.n_pods}", started=None))

    # What must hold

    def _check(self, before: PlainTenants, now: PlainTenants, evicted: Sequence[str], where: str) -> None:
        owner = {pod.name: pod for pod in before.pods}
        for tenant in now.quotas:
            assert self.world.used(tenant) == 1000 * now.used(tenant), f"{where}: {tenant} is counted wrongly"
            assert now.used(tenant) <= max(now.most(tenant), before.used(tenant)), f"{where}: {tenant} passed its max"
            if now.used(tenant) > before.used(tenant) and not now.children(tenant):
                top = now.path(tenant)[-1]
                is_owed = now.used(tenant) <= now.least(tenant) or now.used(top) <= now.least(top)
                at_top = now.children("")
                pool = sum(map(now.least, at_top))
                assert is_owed or sum(map(now.committed, at_top)) <= pool, f"{where}: {tenant} borrowed what is owed"
        placed = {pod.name: pod for pod in now.pods if pod.node and not owner[pod.name].node}
        n_lent = 0
        for name in evicted:
            victim = owner[name]
            by_priority = any(
                one.namespace == victim.namespace and one.priority > victim.priority for one in placed.values()
            )
            borrowed = any(before.borrowed(one) for one in before.path(victim.namespace))
            assert by_priority or borrowed, f"{where}: {name} of {victim.namespace} was evicted within its min"
            n_lent += not by_priority
        if not self.groups:
            assert n_lent <= len(placed), f"{where}: more pods went than came"

    def _check_waiting(self, now: PlainTenants, where: str) -> None:
        for tenant in self.leaves:
            waiting = [pod for pod in now.waiting(tenant) if now.is_single(pod)]
            if not waiting or any(now.used(one) + 1 > now.most(one) for one in now.path(tenant)):
                continue
            if now.is_admitted(tenant):
                assert not now.free(), f"{where}: {tenant} waits while a core is free"
                assert not now.can_be_taken_back_for(tenant), f"{where}: {tenant} waits while others borrow its min"


@pytest.mark.parametrize("first", range(0, 50, _PER_TEST))
def test_histories(first: int) -> None:
    for seed in range(first, first + _PER_TEST):
        History(seed).play(8)


@pytest.mark.long
@pytest.mark.parametrize("first", range(50, 2050, 250))
def test_two_thousand_histories(first: int) -> None:
    for seed in range(first, first + 250):
        History(seed).play(10)
