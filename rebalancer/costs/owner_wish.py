"""What owners ask of the rebalancer, and what they ask of other tools that evict.

Ours, on the pod, else on its namespace:

    forecast-scheduler.io/rebalance: never | rather-not | allowed
    forecast-scheduler.io/rebalance-hours: "01:00-05:00; sat,sun 00:00-24:00"     moves start in these hours only
    forecast-scheduler.io/move-by-surge: "true"      a single replica moves by a second one that comes first

Of others, on the pod. What a pod says to us comes before what it says to them, and that before its namespace:

    descheduler.alpha.kubernetes.io/prefer-no-eviction    rather not, whatever its value (HaveNoEvictionAnnotation in
        pkg/descheduler/evictions/utils/utils.go; "Preferred", the default policy)
    descheduler.alpha.kubernetes.io/evict                 lifts protections, whatever its value (HaveEvictAnnotation in
        pkg/framework/plugins/defaultevictor/defaultevictor.go); only "false" lifts none here, as its author means it
    descheduler.alpha.kubernetes.io/eviction-in-progress  never: someone else is moving it (pkg/descheduler/evictions/)
    cluster-autoscaler.kubernetes.io/safe-to-evict        "false": never; "true" lifts protections (FAQ.md, "What types
        of pods can prevent CA from removing a node?")
    cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes    local volumes that may be lost, by name
    karpenter.sh/do-not-disrupt       "true": never; a duration: not so long after its start (IsDoNotDisruptActive in
        pkg/utils/pod/scheduling.go, designs/do-not-disrupt-grace-period.md)
    karpenter.sh/do-not-evict         "true": never (its name until v0.31)

Protections that can be lifted are those against losing a local disk and those of system pods and of pods that share
their node's network. They are lifted for pods that some controller creates again only: we move, others remove.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from base.errors import InputError
from base.local_hours import LocalHours, parse_hours
from base.setting_group import duration_seconds
from kube.objects.eviction_annotations import (
    AUTOSCALER_SAFE_TO_EVICT,
    DESCHEDULER_EVICT,
    DESCHEDULER_EVICTION_IN_PROGRESS,
    DESCHEDULER_PREFER_NO_EVICTION,
    KARPENTER_DO_NOT_DISRUPT,
    KARPENTER_DO_NOT_EVICT,
)
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo

REBALANCE: Final = ANNOTATION_PREFIX + "rebalance"
REBALANCE_HOURS: Final = ANNOTATION_PREFIX + "rebalance-hours"
MOVE_BY_SURGE: Final = ANNOTATION_PREFIX + "move-by-surge"

_LONGEST_SHOWN: Final = 60


class Wish(IntEnum):
    """From the freest to the strictest."""

    ALLOWED = 0
    RATHER_NOT = 1
    NEVER = 2


@dataclass(frozen=True, slots=True)
class OwnerWish:
    """What is asked for a pod.

    because  : which annotation says so; "" = none says anything
    hours    : only in these; None = at any time
    by_surge : a single replica may move by a surge
    freed_by : protections that can be lifted are lifted by this annotation; "" = they are not
    """

    wish: Wish
    because: str
    hours: LocalHours | None = None
    by_surge: bool = False
    freed_by: str = ""


_NOTHING: Final = OwnerWish(Wish.ALLOWED, "")


def owner_wish(pod: PodInfo, namespace: Mapping[str, str], now: float) -> OwnerWish:
    """Return what the annotations of a pod and its namespace ask for. What cannot be read means never.

    now : unix seconds at which the move is to start, for protections that expire
    """
    said = pod.annotations
    if not said and not namespace:
        return _NOTHING
    try:
        hours = _hours(said) or _hours(namespace)
        wish, because = (
            _in_progress(said)
            or _our_wish(said, "")
            or _others_wish(pod, now)
            or _our_wish(namespace, " of its namespace")
            or (Wish.ALLOWED, "")
        )
    except InputError as error:
        return OwnerWish(Wish.NEVER, str(error))
    by_surge = said.get(MOVE_BY_SURGE, namespace.get(MOVE_BY_SURGE, "")).strip().lower() == "true"
    return OwnerWish(wish, because, hours, by_surge, _freed_by(said))


_WORDS: Final = {"never": Wish.NEVER, "rather-not": Wish.RATHER_NOT, "allowed": Wish.ALLOWED}


def _our_wish(annotations: Mapping[str, str], where: str) -> tuple[Wish, str] | None:
    word = annotations.get(REBALANCE)
    if word is None:
        return None
    wish = _WORDS.get(word.strip().lower())
    if wish is None:
        raise InputError(
            f"annotation {REBALANCE}{where} is {word[:_LONGEST_SHOWN]!r}: write never, rather-not or allowed"
        )
    return wish, f"annotation {REBALANCE}{where}: {word.strip().lower()}"


def _in_progress(said: Mapping[str, str]) -> tuple[Wish, str] | None:
    if DESCHEDULER_EVICTION_IN_PROGRESS not in said:
        return None
    return Wish.NEVER, f"annotation {DESCHEDULER_EVICTION_IN_PROGRESS}: another tool is moving it"


def _others_wish(pod: PodInfo, now: float) -> tuple[Wish, str] | None:
    """The strictest of what the pod asks of other tools; None = nothing."""
    said = pod.annotations
    if said.get(AUTOSCALER_SAFE_TO_EVICT) == "false":
        return Wish.NEVER, f"annotation {AUTOSCALER_SAFE_TO_EVICT}: false"
    if said.get(KARPENTER_DO_NOT_EVICT) == "true":
        return Wish.NEVER, f"annotation {KARPENTER_DO_NOT_EVICT}: true"
    return _karpenter(pod, now) or (
        (Wish.RATHER_NOT, f"annotation {DESCHEDULER_PREFER_NO_EVICTION}")
        if DESCHEDULER_PREFER_NO_EVICTION in said
        else None
    )


def _karpenter(pod: PodInfo, now: float) -> tuple[Wish, str] | None:
    """A duration counts from the pod's start. Karpenter ignores what it cannot read; we rather do not move the pod."""
    value = pod.annotations.get(KARPENTER_DO_NOT_DISRUPT)
    if value is None or value in ("", "false"):
        return None
    because = f"annotation {KARPENTER_DO_NOT_DISRUPT}: {value[:_LONGEST_SHOWN]}"
    if value == "true":
        return Wish.NEVER, because
    # Of durations without a unit Go knows none.
    seconds = None if value[-1].isdigit() else duration_seconds(value)
    if seconds is None:
        return Wish.RATHER_NOT, f"{because}, which is neither true nor a duration such as 4h"
    begin = pod.created if pod.started is None else pod.started
    return (Wish.NEVER, because) if now < begin + seconds else None


def _hours(annotations: Mapping[str, str]) -> LocalHours | None:
    text = annotations.get(REBALANCE_HOURS)
    if text is None:
        return None
    try:
        return parse_hours(text)
    except InputError as error:
        raise InputError(f"annotation {REBALANCE_HOURS}: {error}") from error


def _freed_by(said: Mapping[str, str]) -> str:
    """The annotation that lifts protections. The same word on a namespace lifts none: it is about too many pods."""
    if said.get(REBALANCE, "").strip().lower() == "allowed":
        return REBALANCE
    if said.get(DESCHEDULER_EVICT, "false") != "false":
        return DESCHEDULER_EVICT
    if said.get(AUTOSCALER_SAFE_TO_EVICT) == "true":
        return AUTOSCALER_SAFE_TO_EVICT
    return ""
