"""The filters of each profile as far as they hold whatever sits where: they need no tables of the profile.

Every process knows by them which nodes pods could use, also one that runs no profile.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kube.objects.objects import PodInfo
from placement.card_types.listed_cards import ListedCards
from placement.filters.filter import ClusterView, Filter, PlainFilter, Rejection
from placement.node_rule_settings import CardOptions, DeviceOptions, Protection
from placement.virtual_node_table import VirtualNodes
from profiles.gpu.gpu_settings import PlainPods
from profiles.gpu.idle_cpu.offline_pods import OfflinePods, offline_pods
from profiles.gpu.profile import GPU
from profiles.job.job_settings import JobOptions
from profiles.job.profile import JOB
from profiles.job.serverless.serverless import ByTerms
from profiles.job.serverless.taint_toleration import ProviderToleration
from profiles.schedule_settings import ScheduleSettings


def lasting_filters(
    profile: str, settings: ScheduleSettings, devices: DeviceOptions, virtual: VirtualNodes
) -> tuple[Filter, ...]:
    """Return what a profile has in addition to what all profiles share.

    devices : how nodes and pods speak of cards
    virtual : follows the cluster
    """
    if profile == GPU:
        return _of_gpus(settings, devices)
    return _of_jobs(settings.job, virtual) if profile == JOB else ()


def _of_jobs(options: JobOptions, virtual: VirtualNodes) -> tuple[Filter, ...]:
    serverless = options.serverless
    return (ProviderToleration(serverless), ByTerms(lambda: virtual.rows, serverless.first))


def _of_gpus(settings: ScheduleSettings, devices: DeviceOptions) -> tuple[Filter, ...]:
    cards = ListedCards(CardOptions(without_cards=Protection.HARD), devices)
    offline = offline_pods(settings.gpu, settings.colocation, devices)
    return (_PlainPodsApart(offline, settings.gpu.idle_cpu.plain_pods, cards),)


class _PlainPodsApart(PlainFilter):
    """The part of filter IdleCpu that holds however many cores are idle: nodes with cards are not for plain pods."""

    name = "IdleCpu"

    def __init__(self, offline: OfflinePods, plain: PlainPods, cards: ListedCards) -> None:
        self._offline, self._plain, self._cards = offline, plain, cards

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        return self._cards.filter(pod, view) if self._offline.is_kept_apart(pod, self._plain) else ()

    def lasting(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        return self.filter(pod, view)

    def lasting_key(self, pod: PodInfo) -> Hashable:
        return self._offline.is_kept_apart(pod, self._plain), self._cards.lasting_key(pod)
