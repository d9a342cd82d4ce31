"""How many pods of a Job may fail before it fails as a whole, and what it makes of pods that are taken from it.

A pod that was deleted before it succeeded counts as failed: at once, or with a podFailurePolicy or podReplacementPolicy
Failed once its phase says so. The Job fails when more than backoffLimit have (pkg/controller/job/job_controller.go:
isPodFailed, syncJob). Only a podFailurePolicy keeps a deleted pod from being counted:
https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from kube.decoding.wire_base import Int32, Text, Wire

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
