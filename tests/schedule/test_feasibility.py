"""The online profile asks every filter that kube-scheduler asks, whatever a policy switches off; that each of these
passes the same nodes is what tests/differential compares with a real kube-scheduler."""

from __future__ import annotations

import pytest

from placement.filters.catalogue import STANDARD_FILTERS, standard_filters
from placement.filters.domain import Domain
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.policies.policy import OnePolicyForAll, Policy
from profiles.online.profile import ONLINE
from scheduler.assembly import standard_profile
from scheduler.binding.binding_plugins import BindingPlugins
from scorer.options import ScorerOptions
from scorer.scoring_policy import scoring_policy

SCORING = scoring_policy(ScorerOptions())


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(Policy(SCORING), id="no filters of its own"),
        pytest.param(Policy(SCORING, filters=(Domain("mine"),)), id="one of ours"),
        pytest.param(Policy(SCORING, filters=tuple(standard_filters())), id="all once more"),
    ],
)
def test_all_of_kube_schedulers_filters_run_once_each(policy: Policy) -> None:
    fit = NodeResourcesFit()
    profile = standard_profile(ONLINE, "ours", OnePolicyForAll(policy), BindingPlugins(bind=()), fit=fit)
    filters = profile.filters_for(policy)
    names = [one.name for one in filters]
    assert set(STANDARD_FILTERS) <= set(names) and len(names) == len(set(names))
    assert fit in filters  # not another one, with which preemption would not reckon
    expected = {type(one) for one in standard_filters()}
    assert {type(one) for one in filters if one.name in STANDARD_FILTERS} == expected
