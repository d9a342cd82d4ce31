"""Days of services from before they were here: under an older name, or in another cluster.

They are kept apart from what was measured here. Only a fit looks at them: losses of a backtest and curves of a replay
are of days on which a service really ran here. `moved_services` says how a fit takes them; trainer.history reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import date

import numpy as np

from base.arrays import Floats, Floats32, Ints


@dataclass(frozen=True, slots=True)
class EarlierDays:
    """What moved services did on consecutive local days; NaN from the first half hour that they were measured here.

    service        : (n_moved,) index into the services of the history, each once
    usage_per_pod  : (n_moved, n_resources, n_days, 48) mean of one pod, base units
    replicas       : (n_moved, n_days, 48) pods present
    pod_variance   : (n_moved, n_resources, n_days, 48) variance between pods
    daily_requests : (n_moved, 2, n_days) mean request of one pod, CPU cores and memory bytes
    """

    days: tuple[date, ...]
    service: Ints
    usage_per_pod: Floats32
    replicas: Floats32
    pod_variance: Floats32
    daily_requests: Floats

    def between(self, first: date, end: date) -> EarlierDays | None:
        """The days from `first` up to, not including, `end`; None if there are none."""
        kept = [index for index, day in enumerate(self.days) if first <= day < end]
        if not kept:
            return None
        span = slice(kept[0], kept[-1] + 1)
        return EarlierDays(
            days=self.days[span],
            service=self.service,
            usage_per_pod=self.usage_per_pod[:, :, span],
            replicas=self.replicas[:, span],
            pod_variance=self.pod_variance[:, :, span],
            daily_requests=self.daily_requests[:, :, span],
        )

    def arrays(self) -> Iterator[np.ndarray]:
        """All tables, in a fixed order."""
        for field in fields(self):
            if isinstance(value := getattr(self, field.name), np.ndarray):
                yield value
