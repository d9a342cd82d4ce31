"""What places which pod, put together from settings, so that every command knows which nodes a pod could use.

A process of one component sees the pods of all: the scorer has to know that our loops keep to their domain, and a loop
that kube-scheduler keeps to its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import policy_defaults, schedule_policy_defaults
from kube.objects.objects import PodInfo
from placement.card_types.listed_cards import ListedCards
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.machine_groups.machine_group import MachineGroup
from placement.machine_groups.membership import Membership
from placement.node_rule_settings import CardOptions, Protection
from placement.policies.compiling import PolicyDefaults, settings_policy
from placement.policies.policy import OnePolicyForAll, Policies
from placement.policies.provider import PolicyProvider
from placement.policies.under_defaults import UnderDefaults
from placement.usable_nodes import PlacingScheduler, UsableNodesByFilters
from placement.virtual_node_table import Claims, VirtualNodes
from profiles.gpu.gpu_settings import PlainPods
from profiles.gpu.idle_cpu.offline_pods import OfflinePods, offline_pods
from profiles.gpu.profile import GPU
from profiles.job.job_annotations import may_leave, terms_of
from profiles.job.profile import JOB
from profiles.job.serverless.serverless import ByTerms
from profiles.job.serverless.taint_toleration import ProviderToleration
from profiles.online.profile import ONLINE
from scorer.scorer import Scorer

_KUBE_SCHEDULER: Final = "kube-scheduler"


def attach_usable_nodes(scorer: Scorer, settings: Settings, provider: PolicyProvider | None) -> None:
    """Attach the tables of nodes that pods could use to a scorer that has not read its cluster yet.

    provider : of the policy document; None = there is none
    Raises InputError if the settings name what does not exist.
    """
    serverless = settings.schedule.job.serverless
    with scorer.tables.reading() as cluster:
        virtual = VirtualNodes(cluster.state, Claims(serverless))
        usable = UsableNodesByFilters(cluster, list(_placers(settings, provider, virtual)), virtual)
        for follower in (virtual, usable):
            scorer.tables.attach((), follower)
        cluster.usable_nodes = usable


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
    for name, profile in placed.items():
        if profile == GPU:
            placer = _gpu_placer(settings, name, of_loops)
        elif profile == JOB:
            placer = _job_placer(settings, name, of_loops, virtual)
        else:
            placer = PlacingScheduler(profile, name, of_loops)
        # Machine groups hold whatever filters a policy names. So do types of cards, by the rule of the policy.
        groups = MachineGroup(Membership(schedule_policy_defaults(settings).filters.groups))
        yield replace(placer, further=(groups, *placer.further))


def _job_placer(settings: Settings, name: str, policies: Policies, virtual: VirtualNodes) -> PlacingScheduler:
    options = settings.schedule.job.serverless
    return PlacingScheduler(
        JOB,
        name,
        policies,
        instead=(ProviderToleration(options),),
        further=(ByTerms(lambda: virtual.rows, options.first),),
        tells_apart=lambda pod: (terms_of(pod).place, may_leave(pod, terms_of(pod))),
    )


def _gpu_placer(settings: Settings, name: str, policies: Policies) -> PlacingScheduler:
    ours = settings.schedule.gpu
    devices = settings.node_rules.devices
    offline = offline_pods(ours, devices)
    plain = ours.idle_cpu.plain_pods
    cards = ListedCards(CardOptions(without_cards=Protection.HARD), devices)
    return PlacingScheduler(
        GPU,
        name,
        policies,
        further=(_PlainPodsApart(offline, plain, cards),),
        tells_apart=lambda pod: offline.is_kept_apart(pod, plain),
    )


class _PlainPodsApart(PlainFilter):
    """The part of filter IdleCpu that holds however many cores are idle: nodes with cards are not for plain pods."""

    name = "IdleCpu"

    def __init__(self, offline: OfflinePods, plain: PlainPods, cards: ListedCards) -> None:
        self._offline, self._plain, self._cards = offline, plain, cards

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        return self._cards.filter(pod, view) if self._offline.is_kept_apart(pod, self._plain) else ()
