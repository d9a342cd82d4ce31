"""A HorizontalPodAutoscaler as the API server has it, what of it is ours, and the patches that change it. No I/O.

    forecast-scheduler.io/scale-ahead: "true"                 label: its owner asks for it; also on the namespace
    forecast-scheduler.io/original-min-replicas: "2"          what minReplicas was, and will be again
    forecast-scheduler.io/raised-min-replicas: "6"            what we made it: another value is another's
    forecast-scheduler.io/min-replicas-left-until: TIME       others changed what we wrote; left alone until then

Value and record change in one patch, on the version that was read: a killed writer leaves both or neither.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from autoscaling.replicas.loads_ahead import METRIC
from base.errors import InputError
from forecast.service_key import ServiceKey
from kube.objects.objects import ANNOTATION_PREFIX
from kube.objects.quantity import parse_quantity

ASKS_LABEL: Final = f"{ANNOTATION_PREFIX}scale-ahead"
ORIGINAL: Final = f"{ANNOTATION_PREFIX}original-min-replicas"
RAISED: Final = f"{ANNOTATION_PREFIX}raised-min-replicas"
LEFT_UNTIL: Final = f"{ANNOTATION_PREFIX}min-replicas-left-until"
MANAGER: Final = "forecast-scheduler-autoscaler"
"""Field manager of our writes, as `kubectl get --show-managed-fields` shows it."""

TOLERANCE: Final = 0.1
"""Of kube-controller-manager (--horizontal-pod-autoscaler-tolerance), unless scaleUp.tolerance of the object says."""

_LIST: Final = "/apis/autoscaling/v2/horizontalpodautoscalers"
_PAGE: Final = 500
_DEFAULT_POLICIES: Final = (("Percent", 100, 15), ("Pods", 4, 15))
"""Of kube-controller-manager where the object has none, pkg/apis/autoscaling/v2/defaults.go; the larger counts."""


class _OwnerReference(msgspec.Struct):
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class _Manager(msgspec.Struct, rename="camel"):
    manager: str = ""
    subresource: str = ""
    fields: dict[str, Any] | None = msgspec.field(default=None, name="fieldsV1")


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_OwnerReference] | None = None
    managed_fields: list[_Manager] | None = None
    deletion_timestamp: str = ""


class _MetricTarget(msgspec.Struct, rename="camel"):
    average_value: str | int | float | None = None
    average_utilization: int | None = None


class _Resource(msgspec.Struct):
    name: str
    target: _MetricTarget


class _Named(msgspec.Struct):
    name: str = ""


class _External(msgspec.Struct):
    metric: _Named


class _Metric(msgspec.Struct):
    type: str
    resource: _Resource | None = None
    external: _External | None = None


class _Policy(msgspec.Struct, rename="camel"):
    type: str
    value: int
    period_seconds: int


class _Rules(msgspec.Struct, rename="camel"):
    select_policy: str | None = None
    policies: list[_Policy] | None = None
    tolerance: str | int | float | None = None


class _Behavior(msgspec.Struct, rename="camel"):
    scale_up: _Rules | None = None


class _Reference(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    scale_target_ref: _Reference
    max_replicas: int
    min_replicas: int | None = None
    metrics: list[_Metric] | None = None
    behavior: _Behavior | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""


class _Status(msgspec.Struct, rename="camel"):
    current_replicas: int = 0
    conditions: list[_Condition] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)


class _ListMeta(msgspec.Struct):
    next: str | None = msgspec.field(default=None, name="continue")


class _Page(msgspec.Struct):
    items: list[msgspec.Raw] | None = None
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


@dataclass(frozen=True, slots=True)
class Record:
    """What we wrote: the minimum before, and the one since."""

    original: int
    raised: int


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """Load of one pod that the autoscaler aims at: value in base units, or a share of the pod's request."""

    resource: str
    value: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class HorizontalAutoscaler:
    """What of it matters here.

    asks      : its owner wants it to scale ahead
    minimum   : minReplicas, 1 where none is set
    current   : replicas of its target, ready or not; 0 = none, or not looked at yet
    targets   : of its CPU and memory metrics
    tolerance : share by which a load may exceed its target without a change
    record    : None = we have changed nothing
    left_until : unix seconds until which it is left alone; 0 = it is not
    setter    : field manager of minReplicas other than ours; '' = none
    set_by_us : whether minReplicas is as we set it, by its field managers
    limit, period : replicas to which its scaleUp policies let it grow at once, and seconds until they do so again
    kept      : why its minimum is never raised; '' = it may be
    is_active : whether it has metrics to scale by
    """

    namespace: str
    name: str
    uid: str
    version: str
    service: ServiceKey
    asks: bool
    minimum: int
    maximum: int
    current: int
    targets: tuple[MetricTarget, ...]
    tolerance: float
    record: Record | None
    left_until: float
    setter: str
    set_by_us: bool
    limit: int
    period: float
    kept: str
    is_active: bool

    @property
    def original(self) -> int:
        """What minReplicas is without us."""
        return self.minimum if self.record is None else self.record.original

    @property
    def is_changed(self) -> bool:
        """Whether others changed what we wrote."""
        return self.record is not None and self.minimum != self.record.raised


def list_path(token: str = "") -> str:
    """The path of a page of all autoscalers. token: of the page, '' = the first"""
    return f"{_LIST}?{urlencode({'limit': str(_PAGE)} | ({'continue': token} if token else {}))}"


def object_path(namespace: str, name: str) -> str:
    """The path of one."""
    place = f"/apis/autoscaling/v2/namespaces/{quote(namespace, safe='')}/horizontalpodautoscalers"
    return f"{place}/{quote(name, safe='')}"


def reference(of: HorizontalAutoscaler) -> dict[str, str]:
    """What an event about it regards."""
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    return {**kind, "namespace": of.namespace, "name": of.name, "uid": of.uid}


class AutoscalerPage(NamedTuple):
    """found: the autoscalers that can be read; unreadable: how many cannot; token: of the next page, '' = the last"""

    found: list[HorizontalAutoscaler]
    unreadable: int
    token: str


def read_page(body: bytes, asking: frozenset[str]) -> AutoscalerPage:
    """Read a page of the list. asking: namespaces that ask"""
    page = msgspec.json.decode(body, type=_Page)
    all_of_it = [read(bytes(raw), asking) for raw in page.items or ()]
    found = [one for one in all_of_it if one is not None]
    return AutoscalerPage(found, len(all_of_it) - len(found), page.metadata.next or "")


def read(body: bytes, asking: frozenset[str]) -> HorizontalAutoscaler | None:
    """One of them; None = it cannot be read."""
    try:
        made = msgspec.json.decode(body, type=_Object)
        return _made(made, asking)
    except (msgspec.DecodeError, InputError):
        return None


def raise_body(of: HorizontalAutoscaler, minimum: int) -> bytes:
    """A merge patch that sets another minimum, and records ours and the original."""
    record = {ORIGINAL: str(of.original), RAISED: str(minimum), LEFT_UNTIL: None}
    return _patch(of, record, minimum)


def restore_body(of: HorizontalAutoscaler) -> bytes:
    """A merge patch that takes away all that is ours: a minimum that others set meanwhile stays."""
    minimum = of.original if of.record is not None and not of.is_changed else None
    return _patch(of, {ORIGINAL: None, RAISED: None, LEFT_UNTIL: None}, minimum)


def leave_body(of: HorizontalAutoscaler, until: float) -> bytes:
    """A merge patch that leaves it alone until then: its minimum is another's, and stays."""
    text = datetime.fromtimestamp(int(until), UTC).isoformat().replace("+00:00", "Z")
    return _patch(of, {ORIGINAL: None, RAISED: None, LEFT_UNTIL: text}, None)


def _patch(of: HorizontalAutoscaler, annotations: Mapping[str, str | None], minimum: int | None) -> bytes:
    metadata = {"uid": of.uid, "resourceVersion": of.version, "annotations": annotations}
    return msgspec.json.encode({"metadata": metadata} | ({} if minimum is None else {"spec": {"minReplicas": minimum}}))


def _made(one: _Object, asking: frozenset[str]) -> HorizontalAutoscaler:
    meta, spec = one.metadata, one.spec
    labels, annotations = meta.labels or {}, meta.annotations or {}
    minimum = 1 if spec.min_replicas is None else spec.min_replicas
    record = _record(annotations)
    rules = (spec.behavior and spec.behavior.scale_up) or _Rules()
    limit, period = _growth(rules, one.status.current_replicas)
    setters = [one.manager for one in meta.managed_fields or () if _sets_minimum(one)]
    targets = tuple(found for metric in spec.metrics or () if (found := _target(metric)) is not None)
    return HorizontalAutoscaler(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        service=ServiceKey(meta.namespace, spec.scale_target_ref.kind, spec.scale_target_ref.name),
        # Its own label wins over that of its namespace.
        asks=labels[ASKS_LABEL] == "true" if ASKS_LABEL in labels else meta.namespace in asking,
        minimum=minimum,
        maximum=spec.max_replicas,
        current=one.status.current_replicas,
        targets=targets,
        tolerance=TOLERANCE if rules.tolerance is None else parse_quantity(rules.tolerance),
        record=record,
        left_until=_moment(annotations.get(LEFT_UNTIL)),
        setter=next((name for name in reversed(setters) if name != MANAGER), ""),
        set_by_us=MANAGER in setters,
        limit=limit,
        period=period,
        kept=_why_kept(one, rules, targets),
        is_active=any(
            state.type == "ScalingActive" and state.status == "True" for state in one.status.conditions or ()
        ),
    )


def _why_kept(one: _Object, rules: _Rules, targets: tuple[MetricTarget, ...]) -> str:
    """Few different texts: each is a value of a metric's label."""
    if one.metadata.deletion_timestamp:
        return "it is being deleted"
    if any(owner.controller for owner in one.metadata.owner_references or ()):
        # KEDA's ScaledObject, or another operator, would write its own minimum again.
        return "its owner decides: with KEDA use its Prometheus scaler"
    if any(metric.external is not None and metric.external.metric.name == METRIC for metric in one.spec.metrics or ()):
        return "it reads the load ahead itself"
    if not targets:
        return "it has no CPU or memory target"
    if rules.select_policy == "Disabled":
        return "its scaleUp policy is Disabled"
    if one.status.current_replicas == 0:
        # With a minimum above 0 the controller takes it as switched off, and load would not wake it.
        return "its target has no replicas"
    return ""


def _target(metric: _Metric) -> MetricTarget | None:
    of = metric.resource
    if metric.type != "Resource" or of is None or of.name not in ("cpu", "memory"):
        return None
    if of.target.average_value is not None:
        value = parse_quantity(of.target.average_value)
        return MetricTarget(of.name, value, None) if value > 0 else None
    share = of.target.average_utilization
    return MetricTarget(of.name, None, share / 100) if share else None


def _growth(rules: _Rules, current: int) -> tuple[int, float]:
    """Replicas that the scaleUp policies allow from `current` on, and their longest period in seconds.

    calculateScaleUpLimitWithScalingRules in pkg/controller/podautoscaler/horizontal.go of Kubernetes 1.37. The
    controller grows to minReplicas whatever they say, so we keep to them.
    """
    own = tuple((one.type, one.value, one.period_seconds) for one in rules.policies or ())
    policies = own or _DEFAULT_POLICIES
    allowed = [
        current + value if kind == "Pods" else math.ceil(round(current * (1 + value / 100), 6))
        for kind, value, _ in policies
    ]
    limit = min(allowed) if rules.select_policy == "Min" else max(allowed)
    return limit, float(max(seconds for *_, seconds in policies))


def _record(annotations: Mapping[str, str]) -> Record | None:
    """None = there is none, or none that we could have written."""
    original, raised = annotations.get(ORIGINAL, ""), annotations.get(RAISED, "")
    if not all(text.isascii() and text.isdigit() and len(text) < 10 for text in (original, raised)):
        return None
    return Record(int(original), int(raised)) if int(original) < int(raised) else None


def _moment(text: str | None) -> float:
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return 0.0
    return moment.timestamp() if moment is not None and moment.tzinfo is not None else 0.0


def _sets_minimum(manager: _Manager) -> bool:
    return not manager.subresource and "f:minReplicas" in ((manager.fields or {}).get("f:spec") or {})
