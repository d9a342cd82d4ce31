"""The job profile: all of kube-scheduler's filters and scores and the predicted peak, as for online workloads. Beside
them virtual nodes up to their quotas, headroom kept for storms, and nodes avoided whose peak falls into the run.

Preferences narrow the nodes in this order: nodes that have not failed the Job before, where the pod belongs (serverless
or cluster), nodes that stay off their peak during its run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from extender.filters.filter import Filter
from extender.filters.node_resources_fit import NodeResourcesFit
from extender.framework.binding.binding_plugins import BindingPlugins
from extender.framework.plugins import NodePreference, PostFilter, PreEnqueue
from extender.framework.profile import SchedulingProfile
from extender.online.profile import online_filters
from extender.policies.policy import Policies

__all__ = ["JOB", "job_profile"]

JOB: Final = "job"


def job_profile(
    scheduler_name: str,
    policies: Policies,
    binding: BindingPlugins,
    *,
    fit: NodeResourcesFit,
    instead: Sequence[Filter] = (),
    further_filters: Sequence[Filter] = (),
    preferences: Sequence[NodePreference] = (),
    pre_enqueue: Sequence[PreEnqueue] = (),
    post_filters: Sequence[PostFilter] = (),
    score_per_point: float = 0.2,
) -> SchedulingProfile:
    """
    fit, further_filters : see online_filters
    instead              : filters that take the place of standard ones of the same name
    """
    replaced = {one.name: one for one in instead}
    return SchedulingProfile(
        name=JOB,
        scheduler_name=scheduler_name,
        policies=policies,
        binding=binding,
        filters=tuple(replaced.get(one.name, one) for one in online_filters(fit, further_filters)),
        preferences=tuple(preferences),
        pre_enqueue=tuple(pre_enqueue),
        post_filters=tuple(post_filters),
        score_per_point=score_per_point,
    )
