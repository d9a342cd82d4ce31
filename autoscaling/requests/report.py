"""All recommendations of one look, with savings and risk, as the command prints and writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autoscaling.requests.options import RequestOptions
from autoscaling.requests.recommending import Recommendation, recommend
from autoscaling.requests.risk import Risk, risk_of
from autoscaling.requests.rounding import cpu_text, memory_text
from autoscaling.requests.savings import Savings, savings_of
from autoscaling.requests.use import ServiceUse
from forecast.resources import CPU, MEMORY
from scorer.replay.recording import Recording


@dataclass(frozen=True, slots=True)
class RequestReport:
    """risk: None = nothing was recorded after the model was fitted."""

    found: Sequence[Recommendation]
    savings: Savings
    risk: Risk | None

    def to_json(self) -> dict[str, Any]:
        """The figures as `requests --json` writes them; NaN = not known."""
        risk = self.risk
        return {
            "savings": self.savings.to_json(),
            "risk": None if risk is None else dict(zip(("cpu", "cpu_by_hour", "memory"), risk.of_all, strict=True)),
            "services": [
                _service(one)
                | ({} if risk is None else {"over_cpu": _known(risk.cpu[row]), "over_memory": _known(risk.memory[row])})
                for row, one in enumerate(self.found)
            ],
        }


def report_on(use: ServiceUse, options: RequestOptions, recording: Recording | None = None) -> RequestReport:
    """Recommend, sum up, and hold it against recorded days that the forecast did not know, if there are any."""
    found = recommend(use, options)
    return RequestReport(found, savings_of(use, found), None if recording is None else risk_of(recording, found))


def _service(one: Recommendation) -> dict[str, Any]:
    cores, count = one.request
    return {
        "service": str(one.service),
        "pods": one.replicas,
        "today": {"cpu": _cpu(one.today[CPU]), "memory": _memory(one.today[MEMORY])},
        "recommended": None if one.because else {"cpu": _cpu(cores), "memory": _memory(count)},
        "by_hour": {name: cpu_text(value) for name, value in one.cores.items()} if one.has_clock else None,
        "saved_cores": one.replicas * (one.today[CPU] - cores),
        "saved_bytes": one.replicas * (one.today[MEMORY] - count),
        "left_alone": one.because.value if one.because else None,
    }


def _cpu(cores: float) -> str | None:
    return cpu_text(cores) if cores > 0 else None


def _memory(count: float) -> str | None:
    return memory_text(count) if count > 0 else None


def _known(share: float) -> float | None:
    return None if math.isnan(share) else float(share)
