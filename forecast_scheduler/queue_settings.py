"""Settings of queues, for pods of every profile (docs/queues.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from forecast.setting_group import SettingGroup

__all__ = ["QueueSettings"]


class QueueSettings(SettingGroup):
    """Pods that wait in one line."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """As the annotation forecast-scheduler.io/queue names it."""

    profiles: list[Literal["online", "gpu", "job"]] = Field(default_factory=list)
    """Those whose pods may be in it; empty: all, of the queue `default` job."""

    namespaces: list[str] = Field(default_factory=list)
    """Those whose pods may be in it; empty: all."""

    labels: dict[str, str] = Field(default_factory=dict)
    """That pods in it have; empty: any."""

    order: Literal["fifo", "priority", "deadline", "drf"] = "drf"
    """Who goes first: who came first, who is more important, who has to start first, or the owner with the least."""

    weight: float = Field(default=1, gt=0)
    """Turns of this queue beside those of the others."""

    owner_label: str = ""
    """Label of pods that says between whom drf shares; empty: namespaces."""

    owner_weights: dict[str, float] = Field(default_factory=dict)
    """What owners are entitled to beside each other; 1 where nothing is said."""

    most_per_turn: int = Field(default=0, ge=0)
    """Pods placed in one turn; 0: as many as go together."""
