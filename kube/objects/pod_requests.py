"""What a pod as a whole requests, and its QoS class, from what its containers do.

Source: Kubernetes v1.36 and v1.37, component-helpers/resource/helpers.go (PodRequests, PodLimits) with the options of
pkg/scheduler/framework/types.go (CalculateResource), defaults of pkg/apis/core/v1/defaults.go, QoS class of
pkg/apis/core/v1/helper/qos/qos.go. KEP-753 (sidecars), KEP-1287 (resize in place), KEP-2837 (pod-level resources),
KEP-5517 (CPU and memory behind ResourceClaims, as v1.37 counts it).
The version decides how requests count during a resize (KubernetesVersion.compares_whole_pods). Limits, which no
scheduler reads, follow v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from base.errors import InputError
from kube.objects.kubernetes_version import NEWEST, KubernetesVersion
from kube.objects.objects import ContainerRequests, QosClass

Quantities = Mapping[str, float]

UNREQUESTED: Final[Quantities] = {"cpu": 0.1, "memory": 200.0 * 1024 * 1024}
"""What a container without a request counts as in scores (pkg/scheduler/util/pod_resources.go)."""


@dataclass(frozen=True, slots=True)
class Resources:
    """`resources` of a container or pod, in base units."""

    requests: Quantities
    limits: Quantities

    def __post_init__(self) -> None:
        for name, value in (*self.requests.items(), *self.limits.items()):
            if value < 0:
                raise InputError(f"resource {name!r} is {value:g}: requests and limits must not be negative")


NO_RESOURCES = Resources({}, {})


@dataclass(frozen=True, slots=True)
class ContainerResources:
    """One container.

    spec       : what it asks for
    actual     : what the kubelet gave it (status.containerStatuses[].resources); None = not reported
    allocated  : what the kubelet set aside for it (.allocatedResources)
    is_sidecar : an init container that keeps running (restartPolicy: Always)
    """

    spec: Resources
    actual: Resources | None = None
    allocated: Quantities | None = None
    is_sidecar: bool = False


@dataclass(frozen=True, slots=True)
class PodTotals:
    """Effective requests and limits of a pod, in base units.

    nonzero_requests : CPU cores and memory bytes, containers without a request counted as UNREQUESTED
    qos              : by the spec; what the status says comes first
    containers       : None = there is one, and it requests all of that
    set_aside        : what its kubelet has set aside for it, whatever the spec asks for by now; None = `requests`
    """

    requests: Quantities
    nonzero_requests: tuple[float, float]
    limits: Quantities
    qos: QosClass
    containers: ContainerRequests | None = None
    set_aside: Quantities | None = None


def pod_totals(
    containers: Sequence[ContainerResources],
    init_containers: Sequence[ContainerResources] = (),
    *,
    overhead: Quantities | None = None,
    pod_level: ContainerResources | None = None,
    reported: ContainerResources | None = None,
    resize_infeasible: bool = False,
    claimed: Quantities | None = None,
    version: KubernetesVersion = NEWEST,
) -> PodTotals:
    """Requests and limits of the pod as the kube-scheduler of a version counts them.

        requests = max(sum of containers and sidecars,
                       over init containers i: sidecars before i + i) + claimed  [pod-level values win]  + overhead

    pod_level         : spec.resources of the pod with what the kubelet reports of it
    reported          : what the kubelet reports of a pod that has no spec.resources
    resize_infeasible : the kubelet refused the latest resize, so what is in place counts rather than what is asked for
    claimed           : what the devices of its ResourceClaims take of the node in addition
    """

    if not version.compares_whole_pods:
        # An init container cannot be resized: what its status says does not count.
        init_containers = [one if one.is_sidecar else ContainerResources(one.spec) for one in init_containers]
    overhead, claimed = overhead or {}, claimed or {}
    level: Quantities = {}
    level_limits: Quantities = {}
    reported = pod_level or reported
    if pod_level is not None:
        pod_level = replace(pod_level, spec=_with_api_defaults(pod_level.spec, containers, init_containers))
        level = _level(pod_level, resize_infeasible, version)
        in_force = _limited(pod_level, resize_infeasible) or pod_level.spec.limits
        level_limits = {name: in_force.get(name, 0.0) for name in _supported(pod_level.spec.limits)}

    def total(defaults: Quantities) -> dict[str, float]:
        """Of the whole pod. defaults: what a container counts as that does not request these resources."""
        if version.compares_whole_pods:
            sums = _greatest_total(containers, init_containers, reported, resize_infeasible, defaults, claimed)
        else:
            sums = _aggregate(lambda c: {**defaults, **resized(c, resize_infeasible)}, containers, init_containers)
            sums = _plus(sums, claimed)
        return _plus({**sums, **level}, overhead)

    requests = total({})
    # With pod-level requests, only what is requested at neither level has a default (getNonMissingContainerRequests).
    missing = {k: v for k, v in UNREQUESTED.items() if not level or k not in requests}
    nonzero = total(missing) if missing else requests

    limits = _aggregate(lambda c: _limited(c, resize_infeasible), containers, init_containers)
    limits = {**{name: round(value + claimed.get(name, 0.0), 9) for name, value in limits.items()}, **level_limits}
    # An unlimited pod stays unlimited: overhead raises only limits that are there.
    limits = {k: round(v + overhead.get(k, 0.0), 9) if v else v for k, v in limits.items()}
    set_aside = _plus(_aggregate(_in_place, containers, init_containers), claimed)
    if pod_level is not None:
        # Container values never come before those of the pod, reported or not.
        whole = _in_place(pod_level)
        set_aside |= {name: whole[name] for name in _supported(whole)}
    set_aside = {name: min(value, requests.get(name, 0.0)) for name, value in _plus(set_aside, overhead).items()}
    return PodTotals(
        requests=requests,
        nonzero_requests=(nonzero.get("cpu", 0.0), nonzero.get("memory", 0.0)),
        limits=limits,
        qos=qos_class([c.spec for c in (*containers, *init_containers)], pod_level.spec if pod_level else None),
        containers=_one_by_one(lambda c: resized(c, resize_infeasible), requests, containers, init_containers),
        set_aside=None if set_aside == requests else set_aside,
    )


def resized(container: ContainerResources, infeasible: bool) -> Quantities:
    """What a container requests while a resize may be under way: the largest of asked for, given and set aside."""
    spec = _defaulted(container.spec)
    if container.actual is None:
        return spec
    in_place = _greatest(container.actual.requests, container.allocated or {})
    return in_place if infeasible else _greatest(spec, in_place)


def _in_place(container: ContainerResources) -> Quantities:
    """What the kubelet gave a container and set aside for it; the spec says what the kubelet does not."""
    given = container.actual.requests if container.actual is not None else {}
    return {**_defaulted(container.spec), **_greatest(given, container.allocated or {})}


def qos_class(containers: Iterable[Resources], pod_level: Resources | None = None) -> QosClass:
    """Return the QoS class of a pod whose status does not say it. containers: regular and init containers.

    Guaranteed: every container limits CPU and memory, and requests what it limits. BestEffort: no container asks for
    either.
    """
    counted = [pod_level] if pod_level is not None else list(containers)
    requests: dict[str, float] = {}
    limits: dict[str, float] = {}
    all_limited = True
    for resources in counted:
        limited = _compute(resources.limits)
        requests = _plus(requests, _compute(_defaulted(resources)))
        limits = _plus(limits, limited)
        all_limited &= len(limited) == 2
    if not requests and not limits:
        return QosClass.BEST_EFFORT
    return QosClass.GUARANTEED if all_limited and requests == limits else QosClass.BURSTABLE


def _aggregate(
    of: Callable[[ContainerResources], Quantities],
    containers: Iterable[ContainerResources],
    init_containers: Iterable[ContainerResources],
) -> dict[str, float]:
    """AggregateContainerRequests: the most that runs at the same time."""
    total: dict[str, float] = {}
    for container in containers:
        total = _plus(total, of(container))
    sidecars: dict[str, float] = {}
    starting: dict[str, float] = {}
    for container in init_containers:
        running = _plus(sidecars, of(container))
        if container.is_sidecar:
            total = _plus(total, of(container))
            sidecars = running
        starting = _greatest(starting, running)
    return _greatest(total, starting)


def _one_by_one(
    of: Callable[[ContainerResources], Quantities],
    total: Quantities,
    containers: Sequence[ContainerResources],
    init_containers: Sequence[ContainerResources],
) -> ContainerRequests | None:
    if not init_containers and (not containers or (len(containers) == 1 and of(containers[0]) == total)):
        return None
    starting = tuple(of(one) for one in init_containers if not one.is_sidecar)
    sidecars = (one for one in init_containers if one.is_sidecar)
    return ContainerRequests(starting, tuple(of(one) for one in (*sidecars, *containers)))


def _with_api_defaults(
    level: Resources, containers: Sequence[ContainerResources], init_containers: Sequence[ContainerResources]
) -> Resources:
    """What the API server fills in at pod level once anything is said there (defaultPodRequests and its neighbour)."""
    requests, limits = dict(level.requests), dict(level.limits)
    if requests or limits:
        for name, limit in _aggregate(lambda c: c.spec.limits, containers, init_containers).items():
            if name.startswith("hugepages-") and name not in requests:
                limits.setdefault(name, limit)
    if limits:
        for name, request in _aggregate(lambda c: _defaulted(c.spec), containers, init_containers).items():
            if name in ("cpu", "memory"):
                requests.setdefault(name, request)
        for name in _supported(limits):
            requests.setdefault(name, limits[name])
    return Resources(requests, limits)


def _level(level: ContainerResources, infeasible: bool, version: KubernetesVersion) -> dict[str, float]:
    """Requests of the pod as a whole while a resize may be under way."""
    names = _supported(level.spec.requests)
    if not names:
        return {}
    if version.compares_whole_pods:
        if level.actual is None:
            return {name: level.spec.requests[name] for name in names}
        asked: Quantities = {} if infeasible else level.spec.requests
        greatest = _greatest(_greatest(asked, level.actual.requests), level.allocated or {})
        return {name: greatest[name] for name in _supported(greatest)}
    requests = resized(level, infeasible)
    return {name: requests.get(name, 0.0) for name in names}


def _greatest_total(
    containers: Sequence[ContainerResources],
    init_containers: Sequence[ContainerResources],
    pod: ContainerResources | None,
    infeasible: bool,
    defaults: Quantities,
    claimed: Quantities,
) -> dict[str, float]:
    """AggregateContainerRequests of v1.37: asked for, given, set aside, each summed up first.

    pod     : what the kubelet reports of the pod as a whole comes before what it reports of containers
    claimed : is in what the kubelet reports of the pod as a whole, and in what it has given
    """

    def sums(of: Callable[[ContainerResources], Quantities]) -> dict[str, float]:
        return _aggregate(lambda container: {**defaults, **of(container)}, containers, init_containers)

    def otherwise(container: ContainerResources) -> Quantities:
        """Of a container of which nothing is reported."""
        return {} if infeasible else _defaulted(container.spec)

    def set_aside(container: ContainerResources) -> Quantities:
        return container.allocated or otherwise(container)

    def given(container: ContainerResources) -> Quantities:
        return (container.actual.requests if container.actual is not None else None) or set_aside(container)

    if pod is not None and pod.allocated and pod.actual is not None and pod.actual.requests:
        in_place = _greatest(pod.actual.requests, pod.allocated)
    else:
        in_place = _greatest(sums(given), _plus(sums(set_aside), claimed))
    return in_place if infeasible else _greatest(_plus(sums(lambda one: _defaulted(one.spec)), claimed), in_place)


def _limited(container: ContainerResources, infeasible: bool) -> Quantities:
    """determineEffectiveLimits."""
    if container.actual is None:
        return container.spec.limits
    return container.actual.limits if infeasible else _greatest(container.spec.limits, container.actual.limits)


def _defaulted(resources: Resources) -> Quantities:
    """A limit without a request is the request, too; the API server fills it in, a file may not."""
    return {**resources.limits, **resources.requests}


def _supported(quantities: Quantities) -> list[str]:
    """Resources that may be given for a pod as a whole."""
    return [name for name in quantities if name in ("cpu", "memory") or name.startswith("hugepages-")]


def _compute(quantities: Quantities) -> dict[str, float]:
    return {name: value for name, value in quantities.items() if name in ("cpu", "memory") and value > 0}


def _plus(a: Quantities, b: Quantities) -> dict[str, float]:
    # A quantity has no more than nine decimals, so 0.1 + 0.2 is 0.3 here.
    return {**a, **{name: round(a.get(name, 0.0) + value, 9) for name, value in b.items()}}


def _greatest(a: Quantities, b: Quantities) -> dict[str, float]:
    return {**a, **{name: max(a.get(name, value), value) for name, value in b.items()}}
