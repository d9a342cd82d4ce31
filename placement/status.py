"""What a plugin says. "No" is a value, not an exception; codes are those of kube-scheduler's framework (Code in
staging/src/k8s.io/kube-scheduler/framework/interface.go)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Code(Enum):
    """What is to follow."""

    SUCCESS = "Success"
    UNSCHEDULABLE = "Unschedulable"  # not now; evicting other pods, or another event, may help
    UNRESOLVABLE = "UnschedulableAndUnresolvable"  # evicting other pods does not help
    WAIT = "Wait"  # PostFilter: not yet
    SKIP = "Skip"  # Bind: the plugin leaves this pod to the next one
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class Status:
    """plugin: who says it; reason: for people, as kube-scheduler words it; wait_seconds: with WAIT, the
    longest wait.
    """

    code: Code
    plugin: str = ""
    reason: str = ""
    wait_seconds: float = 0.0

    @property
    def is_success(self) -> bool:
        """Whether the pod may go on."""
        return self.code is Code.SUCCESS


SUCCESS: Final = Status(Code.SUCCESS)
