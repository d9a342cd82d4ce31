"""The online profile: all of kube-scheduler's filters and scores, the predicted peak, policies, and pods of low
priority in the gap that the forecast leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from extender.filters.catalogue import standard_filters
from extender.filters.filter import Filter
from extender.filters.node_resources_fit import NodeResourcesFit
from extender.framework.binding.binding_plugins import BindingPlugins
from extender.framework.plugins import PostFilter, PreEnqueue
from extender.framework.profile import SchedulingProfile
from extender.policies.policy import Policies

__all__ = ["ONLINE", "online_filters", "online_profile"]

ONLINE: Final = "online"


def online_filters(fit: NodeResourcesFit, further: Sequence[Filter]) -> tuple[Filter, ...]:
    """For every pod, whatever its policy says.

    fit     : NodeResourcesFit, the very one that preemption reckons with
    further : of the framework: NominatedPods, PredictedGap
    """
    standard = (fit if one.name == fit.name else one for one in standard_filters())
    return (*standard, *further)


def online_profile(
    scheduler_name: str,
    policies: Policies,
    binding: BindingPlugins,
    *,
    fit: NodeResourcesFit,
    further_filters: Sequence[Filter] = (),
    pre_enqueue: Sequence[PreEnqueue] = (),
    post_filters: Sequence[PostFilter] = (),
    score_per_point: float = 0.2,
) -> SchedulingProfile:
    """fit, further_filters: see online_filters."""
    return SchedulingProfile(
        name=ONLINE,
        scheduler_name=scheduler_name,
        policies=policies,
        binding=binding,
        filters=online_filters(fit, further_filters),
        pre_enqueue=tuple(pre_enqueue),
        post_filters=tuple(post_filters),
        score_per_point=score_per_point,
    )
