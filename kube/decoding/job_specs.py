"""What the spec of a Job says: of each of its pods, and how many of them may fail before it fails as a whole.

A pod that was deleted before it succeeded counts as failed: at once, or with a podFailurePolicy or
podReplacementPolicy Failed once its phase says so. The Job fails when more than backoffLimit have
(pkg/controller/job/job_controller.go: isPodFailed, syncJob). Only a podFailurePolicy keeps a deleted pod from being
counted: https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from msgspec import Raw

from kube.decoding import wire
from kube.decoding.constraint_decoding import host_ports, pod_volumes, uses_host
from kube.decoding.shared_json import own_annotations, string_map, totals
from kube.decoding.wire_base import NOTHING, Int32, Text, Wire

_DEFAULT_LIMIT: Final = 6
_DISRUPTION: Final = "DisruptionTarget"


class OnDisruption(Enum):
    """What becomes of a pod that fails with the condition DisruptionTarget."""

    COUNTS = "Count"
    IGNORED = "Ignore"
    FATAL = "FailJob"  # or FailIndex, which fails the Job in the end


@dataclass(frozen=True, slots=True)
class Failing:
    """
    limit               : failures with which it still goes on: of an Indexed Job with a limit per index that limit, as
                          the index that failed is unknown here
    replaces_only_ended : a pod that is going is neither counted nor replaced before it has ended
    """

    limit: int = _DEFAULT_LIMIT
    on_disruption: OnDisruption = OnDisruption.COUNTS
    replaces_only_ended: bool = False


DEFAULT_FAILING: Final = Failing()


class ConditionPatternJson(Wire):
    """onPodConditions[] of a rule."""

    type: Text
    status: Text | None = None


class FailureRuleJson(Wire):
    """spec.podFailurePolicy.rules[]."""

    action: Text = ""
    on_pod_conditions: list[ConditionPatternJson] | None = None


class PodFailurePolicyJson(Wire):
    """spec.podFailurePolicy of a Job."""

    rules: list[FailureRuleJson] | None = None


def failing_of(
    backoff_limit: Int32 | None,
    backoff_limit_per_index: Int32 | None,
    policy: PodFailurePolicyJson | None,
    replacement: Text | None,
) -> Failing:
    """As a Job's spec says it."""
    limits = [one for one in (backoff_limit, backoff_limit_per_index) if one is not None]
    return Failing(
        limit=min(limits, default=_DEFAULT_LIMIT),
        on_disruption=OnDisruption.COUNTS if policy is None else _on_disruption(policy),
        replaces_only_ended=policy is not None or replacement == "Failed",
    )


def _on_disruption(policy: PodFailurePolicyJson) -> OnDisruption:
    """The first rule that matches decides. Exit codes match none: what never ran has none."""
    for rule in policy.rules or ():
        if any(one.type == _DISRUPTION and one.status in (None, "True") for one in rule.on_pod_conditions or ()):
            match rule.action:
                case "Ignore":
                    return OnDisruption.IGNORED
                case "Count":
                    return OnDisruption.COUNTS
                case _:
                    return OnDisruption.FATAL
    return OnDisruption.COUNTS


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """What matters of spec.template.

    requests       : of one pod, by Kubernetes resource name
    priority       : None = it has none yet: the API server writes the number into pods, not into templates
    priority_class : '' = the cluster's default
    annotations    : ours only
    stays          : it uses its node, or volumes or ports that virtual nodes do not have
    """

    requests: Mapping[str, float] = field(default_factory=dict)
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    priority_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    stays: bool = False


NO_TEMPLATE: Final = PodTemplate()


class TemplateOwner:
    """What Jobs and CronJobs have in common: a template, and how many pods are made of it."""

    __slots__ = ()

    template: PodTemplate
    parallelism: int
    completions: int | None

    @property
    def pods_at_once(self) -> int:
        """Pods of one run side by side."""
        return pods_at_once(self.parallelism, self.completions)

    def rounds(self, succeeded: int = 0) -> int:
        """Return how many rounds of `parallelism` pods run one after the other until it is complete; at least 1, of a
        work queue 1.
        """
        if self.completions is None or not self.pods_at_once:
            return 1
        return max(1, math.ceil((self.completions - succeeded) / self.pods_at_once))

    @property
    def scheduler_name(self) -> str:
        return self.template.scheduler_name

    @property
    def requests(self) -> Mapping[str, float]:
        """Of one of its pods."""
        return self.template.requests

    @property
    def annotations(self) -> Mapping[str, str]:
        """Ours, of its pods."""
        return self.template.annotations


class TemplateMetadata(Wire):
    """metadata of a template: it has no name."""

    labels: Raw = NOTHING
    annotations: Raw = NOTHING


class TemplatePodSpec(wire.PodSpec):
    """spec of a pod, with the class its priority comes from."""

    priority_class_name: Text | None = None


class TemplateJson(Wire):
    """spec.template of a Job."""

    metadata: TemplateMetadata | None = None
    spec: TemplatePodSpec | None = None


class JobSpecJson(Wire):
    """spec of a Job, or of the jobTemplate of a CronJob."""

    parallelism: Int32 | None = None
    completions: Int32 | None = None
    completion_mode: Text | None = None
    suspend: bool | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    pod_failure_policy: PodFailurePolicyJson | None = None
    pod_replacement_policy: Text | None = None
    template: TemplateJson | None = None


def pod_template(template: TemplateJson | None) -> PodTemplate:
    """What it says. Raises InputError for a quantity that cannot be read."""
    if template is None:
        return NO_TEMPLATE
    metadata, spec = template.metadata or TemplateMetadata(), template.spec or TemplatePodSpec()
    return PodTemplate(
        requests=totals(spec, _NO_STATUS).requests,
        scheduler_name=sys.intern(spec.scheduler_name or "default-scheduler"),
        priority=spec.priority,
        priority_class=sys.intern(spec.priority_class_name or ""),
        labels=string_map(metadata.labels),
        annotations=own_annotations(metadata.annotations),
        stays=uses_host(spec) or bool(pod_volumes(spec, "") or host_ports(spec)),
    )


def pods_at_once(parallelism: int, completions: int | None) -> int:
    """How many pods of a Job run side by side when there is room.

    completions : None = a work queue, whose pods agree among themselves when they are done
    """
    return max(0, parallelism if completions is None else min(parallelism, completions))


_NO_STATUS: Final = wire.PodStatus()
