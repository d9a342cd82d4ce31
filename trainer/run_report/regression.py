"""How well the nodes distinguish services, resource by resource: the condition of the regression of peak weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from forecast.model import PeakModel
from forecast.resources import RESOURCES
from trainer.run_report.learned import identified_load_share

_POOR: Final = 0.5
"""Share of the load with identified weights below which the regression of a resource is called poor."""


@dataclass(frozen=True, slots=True)
class RegressionCondition:
    """The regression of one resource.

    services       : that take part, with pods on measured nodes
    effective_rank : how many of them the nodes distinguish (`PeakWeights.determined`, summed), at most `services`
    identified     : services whose weight is known to 20 %
    load_share     : share of the expected load that is theirs; None = no load
    from_nodes     : services without any measured pod, which are known by their nodes alone
    """

    resource: str
    services: int
    effective_rank: float
    identified: int
    load_share: float | None
    from_nodes: int

    @property
    def is_poor(self) -> bool:
        """Return whether services that are known by their nodes alone cannot be separated."""
        return self.from_nodes > 0 and (self.load_share or 0.0) < _POOR

    @property
    def advice(self) -> str:
        """One line that says what was found and what helps."""
        share = "" if self.load_share is None else f" ({self.load_share:.0%} of the load)"
        return (
            f"{self.resource} is measured per node, and the nodes tell about {self.effective_rank:.0f} of "
            f"{self.services} services apart; weights of {self.identified}{share} are identified, the others are taken "
            f"from requests: measure {self.resource} per pod, or wait for releases that move pods "
            "(docs/understand/model.md)"
        )

    def to_json(self) -> dict[str, Any]:
        """The figures by name."""
        return asdict(self) | {"poor": self.is_poor}


def regression_conditions(model: PeakModel) -> Mapping[str, RegressionCondition]:
    """Return the condition by resource, without resources of which no node was measured."""
    shares = identified_load_share(model)
    facts = model.info.get("peak_weights", {})
    found = {}
    for resource in RESOURCES:
        of_resource = facts.get(resource.name, {})
        if of_resource.get("services"):
            found[resource.name] = RegressionCondition(
                resource=resource.name,
                services=int(of_resource["services"]),
                effective_rank=float(of_resource["effective_rank"]),
                identified=int(of_resource["identified"]),
                load_share=shares.get(resource.name),
                from_nodes=int(of_resource["from_nodes"]),
            )
    return found
