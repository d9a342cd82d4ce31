"""The GPU profile: all of kube-scheduler's filters and scores, cards counted one by one, and idle cores of GPU nodes.

Preferences narrow the nodes in this order: machines that are not borrowed, card types that the pod prefers and that are
not scarce, near the rest of its gang, where the fewest cards become useless for others. Among those that are left
kube-scheduler's scores and the predicted peak decide.
"""

from __future__ import annotations

from typing import Final

GPU: Final = "gpu"
