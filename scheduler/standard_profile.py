"""A profile with all of kube-scheduler's filters and scores and the predicted peak: what the profiles of online, job
and GPU pods have in common, and what each brings of its own."""

from __future__ import annotations

from collections.abc import Sequence

from placement.filters.catalogue import standard_filters
from placement.filters.filter import Filter
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.plugins import NodePreference, PostFilter, PreEnqueue, PreScore, Score
from placement.policies.policy import Policies
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.profile import SchedulingProfile


def standard_profile(
    name: str,
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
    scores: Sequence[tuple[Score, int]] = (),
    score_per_point: float = 0.2,
) -> SchedulingProfile:
    """
    fit             : NodeResourcesFit, the very one that preemption reckons with
    instead         : filters that take the place of standard ones of the same name
    further_filters : for every pod, whatever its policy says: NominatedPods, PredictedGap
    preferences     : in the order in which they narrow the nodes
    scores          : with their weights; those that are PreScore plugins, too, are asked before
    """
    replaced = {one.name: one for one in (fit, *instead)}
    standard = (replaced.get(one.name, one) for one in standard_filters())
    return SchedulingProfile(
        name=name,
        scheduler_name=scheduler_name,
        policies=policies,
        binding=binding,
        filters=(*standard, *further_filters),
        preferences=tuple(preferences),
        pre_enqueue=tuple(pre_enqueue),
        post_filters=tuple(post_filters),
        pre_scores=tuple(one for one, _ in scores if isinstance(one, PreScore)),
        scores=tuple(scores),
        score_per_point=score_per_point,
    )
