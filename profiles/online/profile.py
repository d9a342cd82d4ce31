"""The online profile: all of kube-scheduler's filters and scores, the predicted peak, policies, and pods of low
priority in the gap that the forecast leaves."""

from __future__ import annotations

from typing import Final

ONLINE: Final = "online"
