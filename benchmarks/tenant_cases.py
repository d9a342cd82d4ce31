"""ElasticQuotas case by case: our own loop and CapacityScheduling of scheduler-plugins, the same objects for both.

    python -m benchmarks.tenant_cases [--cases WORD ...] [--json FILE]

Each case runs on a real API server, for both in turn: quotas, pods, and once nothing happens any more, further pods.
Nodes have 4 cores each, pods ask for one core unless the case says otherwise. Pods that have to go are gone at once.
Our grace period is 1 s, so that a case ends soon.

Shown is what each tenant has at the end, and how many pods were evicted. `as wanted` is what the case asks of both;
where the two differ, docs/use/tenants.md says why ours does what it does. Ends with status 1 where ours is not as
wanted.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.harness import command_line, finish
from benchmarks.scheduler_plugins.binary import capacity_scheduling, scheduler_plugins
from testing.clusters.elastic_quotas import create_quota, delete_quotas, elastic_quota, install_elastic_quotas
from testing.clusters.own_nodes import DOMAIN, OURS, end_terminating, settings_of_schedule
from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.pool import control_plane

_TENANTS: Final = ("a", "b", "free")
_THEIRS: Final = "default-scheduler"
_QUIET_SECONDS: Final = 8.0
_LONGEST_SECONDS: Final = 90.0


@dataclass(frozen=True, slots=True)
class Pods:
    """So many of a tenant. Of priority 0, a class has to exist otherwise."""

    tenant: str
    n: int
    cpu: str = "1"
    memory: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """
    first, then : pods that come, the latter when nothing happens any more
    wanted      : pods of each tenant that have a node at the end, and evicted ones under ""
    budget_of   : tenant whose pods a PodDisruptionBudget keeps
    """

    name: str
    quotas: Sequence[Manifest]
    first: Sequence[Pods]
    then: Sequence[Pods] = ()
    wanted: Mapping[str, int] = field(default_factory=dict)
    n_nodes: int = 2
    budget_of: str = ""


_HALVES: Final = (elastic_quota("a", {"cpu": "4"}), elastic_quota("b", {"cpu": "4"}))
CASES: Final = (
    Case("idle min is lent, up to all min", _HALVES, [Pods("b", 10)], wanted={"b": 8}, n_nodes=3),
    Case("the owner gets its min back", _HALVES, [Pods("b", 8)], [Pods("a", 4)], {"a": 4, "b": 4, "": 4}),
    Case(
        "whatever the priority of who borrows",
        _HALVES,
        [Pods("b", 8, priority=100)],
        [Pods("a", 4)],
        {"a": 4, "b": 4, "": 4},
    ),
    Case("and no more than its min", _HALVES, [Pods("b", 8)], [Pods("a", 7)], {"a": 4, "b": 4, "": 4}),
    Case(
        "a tenant within its min stays",
        _HALVES,
        [Pods("a", 4), Pods("b", 4)],
        [Pods("b", 4, priority=100)],
        {"a": 4, "b": 4, "": 4},
    ),
    Case(
        "priority within a tenant at its max",
        [elastic_quota("a", {"cpu": "4"}, {"cpu": "4"})],
        [Pods("a", 4)],
        [Pods("a", 1, priority=100)],
        {"a": 4, "": 1},
    ),
    Case("no more victims than needed", _HALVES, [Pods("b", 8)], [Pods("a", 1, cpu="2")], {"a": 1, "b": 6, "": 2}),
    Case("a budget keeps who borrows", _HALVES, [Pods("b", 8)], [Pods("a", 4)], {"b": 8}, budget_of="b"),
    Case(
        "a resource that no quota names",
        _HALVES,
        [Pods("b", 6, memory="64Mi")],
        wanted={"b": 6},
    ),
    Case(
        "a max that names CPU alone",
        [
            elastic_quota("a", {"cpu": "4", "memory": "4Gi"}),
            elastic_quota("b", {"cpu": "4", "memory": "4Gi"}, {"cpu": "6"}),
        ],
        [Pods("b", 8, memory="64Mi")],
        wanted={"b": 6},
    ),
    Case(
        "pods without a quota, of less priority",
        _HALVES,
        [Pods("free", 8)],
        [Pods("a", 4, priority=100)],
        {"a": 4, "free": 4, "": 4},
    ),
    Case(
        "room for all: no pod is evicted",
        _HALVES,
        [Pods("b", 8)],
        [Pods("a", 4)],
        {"a": 4, "b": 8},
        n_nodes=3,
    ),
    Case(
        "a tree: b lends to its sibling first",
        [
            elastic_quota("free", {"cpu": "8"}),
            elastic_quota("a", {"cpu": "4"}, parent="free"),
            elastic_quota("b", {"cpu": "2"}, parent="free"),
        ],
        [Pods("a", 8)],
        [Pods("b", 2)],
        {"a": 6, "b": 2, "": 2},
    ),
)


@contextmanager
def scheduler(plane: ControlPlane, name: str, directory: Path) -> Iterator[None]:
    """Ours or theirs, until the end."""
    if name == _THEIRS:
        backoff = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
        profiles = [capacity_scheduling()]
        with KubeScheduler(plane, profiles=profiles, settings=backoff, program=scheduler_plugins()):
            yield
        return
    settings = settings_of_schedule(tenants={"grace": "1s"}, preemption={"protect_started": "0s"})
    kubeconfig = plane.write_kubeconfig("admin", plane.token)
    with ScorerProcess(directory, "--kubeconfig", kubeconfig, settings=settings, command="schedule"):
        yield


def run(plane: ControlPlane, case: Case, name: str, directory: Path) -> dict[str, int]:
    """Return pods with a node by tenant, and evicted ones under ""; afterwards the cluster is empty."""
    with ExitStack() as stack:
        writer, api = stack.enter_context(ClusterWriter(plane)), stack.enter_context(Api(plane))
        labels = {DOMAIN: OURS} if name == OURS else {}
        writer.create_many(node(f"node-{at}", cpu="4", reserved_cpu="0m", labels=labels) for at in range(case.n_nodes))
        for quota in case.quotas:
            create_quota(api, quota)
        if case.budget_of:
            writer.create(_budget(case.budget_of))
        stack.enter_context(scheduler(plane, name, directory))
        n_made = 0
        for number, pods in enumerate((case.first, case.then)):
            made = [one for of in pods for one in _manifests(of, name, f"{number}-{of.tenant}")]
            writer.create_many(made)
            n_made += len(made)
            found = _at_rest(writer)
        found[""] = n_made - len(writer.list_all("pods"))
    with ClusterWriter(plane) as writer, Api(plane) as api:
        for plural in ("pods", "nodes", "poddisruptionbudgets"):
            writer.delete_many(writer.list_all(plural))
        end_terminating(writer)
        delete_quotas(api, *_TENANTS)
    return {tenant: n for tenant, n in found.items() if n}


def _manifests(of: Pods, scheduler_name: str, name: str) -> Iterator[Manifest]:
    requests = {"cpu": of.cpu} | ({"memory": of.memory} if of.memory else {})
    for at in range(of.n):
        made = pod(
            f"{name}-{at}",
            namespace=of.tenant,
            requests=requests,
            labels={"tenant": of.tenant},
            scheduler_name=scheduler_name,
        )
        if of.priority:
            made["spec"] |= {"priorityClassName": f"priority-{of.priority}"}
        yield made


def _at_rest(writer: ClusterWriter) -> dict[str, int]:
    """Pods with a node by tenant, once nothing has happened for a while; pods that are to go are gone."""
    began = changed = time.monotonic()
    seen: Any = None
    while time.monotonic() - changed < _QUIET_SECONDS and time.monotonic() - began < _LONGEST_SECONDS:
        end_terminating(writer)
        now = sorted((one["metadata"]["name"], one["spec"].get("nodeName", "")) for one in writer.list_all("pods"))
        if now != seen:
            seen, changed = now, time.monotonic()
        time.sleep(0.2)
    return dict(Counter(one["metadata"]["namespace"] for one in writer.list_all("pods") if one["spec"].get("nodeName")))


def _budget(tenant: str) -> Manifest:
    """None of its pods may go; with the status that its controller would give it."""
    counts = {"disruptionsAllowed": 0, "currentHealthy": 8, "desiredHealthy": 8, "expectedPods": 8}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": tenant},
        "spec": {"minAvailable": 8, "selector": {"matchLabels": {"tenant": tenant}}},
        "status": {"observedGeneration": 1} | counts,
    }


def main() -> None:
    """Run the cases and print what each scheduler made of them."""
    parser = command_line(__doc__)
    parser.add_argument("--cases", nargs="+", help="only those whose names have one of these words in them")
    parser.add_argument("--json", type=Path, help="write the outcomes here")
    options = parser.parse_args()
    cases = [one for one in CASES if not options.cases or any(word in one.name for word in options.cases)]
    outcomes: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as directory, control_plane() as plane:
        with Api(plane) as api, ClusterWriter(plane) as writer:
            install_elastic_quotas(api)
            for name in ("forecast-scheduler", *_TENANTS):
                writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            writer.create(kind | {"metadata": {"name": "priority-100"}, "value": 100})
        print(f"{'case':42} {'as wanted':26} {'ours':26} CapacityScheduling")
        for number, case in enumerate(cases):
            place = Path(directory) / f"{number}"
            found = {name: run(plane, case, name, place / name) for name in (OURS, _THEIRS)}
            outcomes.append({"case": case.name, "wanted": dict(case.wanted), **found})
            print(
                f"{case.name:42} {_words(case.wanted):26} {_words(found[OURS]):26} {_words(found[_THEIRS])}",
                flush=True,
            )
    if options.json is not None:
        options.json.write_text(json.dumps(outcomes, indent=1) + "\n")
    as_wanted = {name: sum(one[name] == one["wanted"] for one in outcomes) for name in (OURS, _THEIRS)}
    print(f"as wanted: ours {as_wanted[OURS]}, CapacityScheduling {as_wanted[_THEIRS]} of {len(outcomes)}")
    finish(as_wanted[OURS] == len(outcomes))


def _words(found: Mapping[str, int]) -> str:
    tenants = ", ".join(f"{tenant} {n}" for tenant, n in sorted(found.items()) if tenant)
    return f"{tenants}; {found['']} evicted" if "" in found else tenants


if __name__ == "__main__":
    main()
