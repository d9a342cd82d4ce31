"""What does not reproduce the last days is not published: kept from the model in use, else left out, and said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from base.errors import InputError
from forecast.capacity_gaps import resources_measured
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import resource_index
from trainer.gate.gate_verdict import GateReport, GateResult, GateVerdict
from trainer.gate.merge import keep_resource, without_resource
from trainer.gate.reproduction import TOLERATED, YOUNG_DAYS, Reproduction, reproductions


@dataclass(frozen=True, slots=True)
class Withheld:
    """What may be published.

    found : how tonight's arrays reproduce each resource, before any was withheld
    young : the history is so short that much is let pass
    """

    model: PeakModel
    report: GateReport
    found: Mapping[str, Reproduction]
    young: bool = False

    @property
    def failed(self) -> tuple[Reproduction, ...]:
        """Those that do not reproduce, published or not; of a young history more of them than are withheld."""
        strict = (replace(one, tolerated=TOLERATED) if self.young else one for one in self.found.values())
        return tuple(one for one in strict if one.fails)


def withhold(
    history: History, model: PeakModel, previous: PeakModel | None, report: GateReport, *, force: bool = False
) -> Withheld:
    """Take out of a model what does not reproduce the last days of its history.

    model    : as the gate let it, fitted on `history`
    previous : the model in use; its part stays where that reproduces
    force    : publish all the same
    Raises InputError if nothing is left to publish.
    """
    found = reproductions(history, model)
    failed = [name for name, one in found.items() if one.fails]
    young = history.n_days < YOUNG_DAYS
    if not failed:
        return Withheld(_with_facts(model, report, found), report, found, young)
    results, kept = dict(report.results), model
    if force:
        for name in failed:
            reason = (
                f"published because it was forced, although it does not reproduce the last days: {found[name].reason()}"
            )
            results[name] = replace(results[name], verdict=GateVerdict.FORCED, reason=reason)
    else:
        for name in failed:
            if previous is not None and _has(previous, name, model) and not _is_kept(results[name]):
                kept = keep_resource(kept, previous, name)
        again = reproductions(history, kept) if kept is not model else found
        for name in failed:
            if again[name].fails:
                kept = without_resource(kept, name)
            results[name] = _withheld(results[name], found[name], _nights(previous, name), left_out=again[name].fails)
    if not resources_measured(kept).any():
        raise InputError(
            "nothing is published, and a model in use stays: "
            + "; ".join(f"{name}: {found[name].reason()}" for name in failed)
            + ". Look at what `forecast-scheduler doctor` finds in the history; --force publishes the model as it is"
        )
    judged = replace(report, results=results)
    return Withheld(_with_facts(kept, judged, found), judged, found, young)


def _has(previous: PeakModel, resource: str, model: PeakModel) -> bool:
    """Whether the model in use has a part of its own that can be kept."""
    return previous.calendar == model.calendar and bool(resources_measured(previous)[resource_index(resource)])


def _nights(previous: PeakModel | None, resource: str) -> int:
    """Nights in a row that the resource of the model in use has been held back."""
    before = GateReport.from_info(previous.info.get("gate")).results.get(resource) if previous is not None else None
    return before.held_back_nights if before is not None else 0


def _is_kept(result: GateResult) -> bool:
    """Whether the part of the model in use was kept by the gate already."""
    return result.verdict is GateVerdict.HELD_BACK


def _withheld(result: GateResult, found: Reproduction, nights: int, *, left_out: bool) -> GateResult:
    """The verdict that replaces that of the gate. nights: held back before; what is wrong stays wrong, without end."""
    why = f"it does not reproduce the last days: {found.reason()}"
    if left_out:
        return GateResult(result.resource, GateVerdict.LEFT_OUT, f"left out, nothing is forecast of it: {why}")
    reason = f"held back, the model in use stays: {why}"
    return replace(result, verdict=GateVerdict.HELD_BACK, reason=reason, widening=1.0, held_back_nights=nights + 1)


def _with_facts(model: PeakModel, report: GateReport, found: Mapping[str, Reproduction]) -> PeakModel:
    reproduction = {name: one.to_json() for name, one in found.items()}
    return replace(model, info={**model.info, "gate": report.to_json()["resources"], "reproduction": reproduction})
