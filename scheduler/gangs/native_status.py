"""What the status of a native PodGroup should say: its one condition, as kube-scheduler 1.37 writes it. No I/O.

    PodGroupInitiallyScheduled = True   Scheduled       what it needs has a node; never taken back
                               = False  Unschedulable   it was tried, and did not fit
                               = False  SchedulerError  the group is unusable

Nothing is written before the first attempt, and nothing about a group none of whose pods names us as its scheduler.
https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/scheduler/schedule_one_podgroup.go (updatePodGroupCondition)
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kube.decoding.stored_templates import Condition
from placement.pod_groups.group_apis import NATIVE
from placement.pod_groups.pod_group import PodGroupStatus
from scheduler.gangs.gang_gate import Reason
from scheduler.gangs.group_status import Wanted, moment

_SAID: Final = {
    Reason.SCHEDULED: ("True", "Scheduled"),
    Reason.UNSCHEDULABLE: ("False", "Unschedulable"),
    Reason.TIMEOUT: ("False", "Unschedulable"),
    Reason.INVALID_SPEC: ("False", "SchedulerError"),
}


def change_of_native(wanted: Wanted, current: PodGroupStatus, now: float) -> dict[str, Any] | None:
    """What to merge into the status (RFC 7396); None = nothing. now: unix seconds."""
    said = _SAID.get(wanted.reason)
    before = next((one for one in current.conditions if one.type == NATIVE.condition), None)
    if said is None or wanted.is_empty or (before is not None and before.status == "True"):
        return None
    status, reason = said
    since = moment(now)
    if before is not None:
        if (before.observed_generation or 0) > wanted.generation:
            return None  # another replica knows a later version
        if before.status == status:
            since = before.last_transition_time
    condition = Condition(NATIVE.condition, status, reason, wanted.message, since, wanted.generation)
    if condition == before:
        return None
    others = [one for one in current.conditions if one.type != NATIVE.condition]
    return {"conditions": msgspec.to_builtins([*others, condition])}
