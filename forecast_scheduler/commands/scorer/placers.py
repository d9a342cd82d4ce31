"""What places which pod, put together from settings, so that every command knows which nodes a pod could use.

A process of one component sees the pods of all: the scorer has to know that our loops keep to their domain, and a loop
that kube-scheduler keeps to its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from cluster.tracking import TrackedCluster
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import policy_defaults, schedule_policy_defaults
from placement.machine_groups.machine_group import MachineGroup
from placement.machine_groups.membership import Membership
from placement.policies.compiling import PolicyDefaults, settings_policy
from placement.policies.policy import OnePolicyForAll, Policies
from placement.policies.provider import PolicyProvider
from placement.policies.under_defaults import UnderDefaults
from placement.usable_nodes import PlacingScheduler, UsableNodesByFilters
from placement.virtual_node_table import Claims, VirtualNodes
from profiles.gpu.profile import GPU
from profiles.job.profile import JOB
from profiles.lasting_filters import lasting_filters
from profiles.online.profile import ONLINE

_KUBE_SCHEDULER: Final = "kube-scheduler"


def usable_nodes(cluster: TrackedCluster, settings: Settings, provider: PolicyProvider | None) -> UsableNodesByFilters:
    """Return the tables of nodes that pods could use, over a cluster that was not read yet.

    provider : of the policy document; None = there is none
    Raises InputError if the settings name what does not exist.
    """
    virtual = VirtualNodes(cluster.state, Claims(settings.schedule.job.serverless))
    return UsableNodesByFilters(cluster, list(_placers(settings, provider, virtual)), virtual)


def _placers(settings: Settings, provider: PolicyProvider | None, virtual: VirtualNodes) -> Iterator[PlacingScheduler]:
    """kube-scheduler with our extender, and each profile of our loops, whether it runs in this process or elsewhere."""

    def policies(defaults: PolicyDefaults) -> Policies:
        # The forecast may be in another process; which nodes a pod could use does not depend on it.
        defaults = replace(defaults, filters=replace(defaults.filters, predicts=True))
        return OnePolicyForAll(settings_policy(defaults)) if provider is None else UnderDefaults(provider, defaults)

    ours = settings.schedule
    of_loops = policies(schedule_policy_defaults(settings))
    yield PlacingScheduler(_KUBE_SCHEDULER, "", policies(policy_defaults(settings)))
    # A name that two profiles have is that of the one that runs here.
    names = {GPU: ours.gpu.scheduler_name, JOB: ours.job.scheduler_name, ONLINE: ours.scheduler_name}
    placed = {name: profile for profile, name in {**names, **ours.scheduler_names}.items()}
    # Machine groups hold whatever filters a policy names. So do types of cards, by the rule of the policy.
    groups = MachineGroup(Membership(settings.node_rules.machine_groups))
    for name, profile in placed.items():
        own = lasting_filters(profile, ours, settings.node_rules.devices, virtual)
        yield PlacingScheduler(profile, name, of_loops, (groups, *own))
