"""What `status` says: the verdict with the one thing to do, as lines, as a table, and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from forecast_scheduler.commands.status.advice import followed
from forecast_scheduler.commands.status.facts import Facts
from forecast_scheduler.commands.status.faults import (
    Fault,
    faults,
    finished_job,
    gaps,
    longest_held,
    used_model,
)
from forecast_scheduler.commands.status.parts import JudgedPart, PartState, image_tag, judged_parts
from forecast_scheduler.reports.table_format import Column, age, printable, table_of

_COLUMNS = (
    Column("part", lambda part: part.name),
    Column("state", lambda part: part.state),
    Column("ready", lambda part: part.ready or None),
    Column("version", lambda part: part.image or None),
    Column("leader", lambda part: part.leader or None),
    Column("why", lambda part: part.why),
)


@dataclass(frozen=True, slots=True)
class Installation:
    """faults: what is degraded, the most urgent first; none = healthy, as far as all of it could be read."""

    facts: Facts
    parts: Sequence[JudgedPart]
    faults: Sequence[Fault]

    @property
    def is_installed(self) -> bool:
        """Return whether any part is, or may be where it could not be read."""
        absent = all(part.state is PartState.ABSENT for part in self.parts)
        return not absent or self.facts.nightly is not None

    @property
    def is_healthy(self) -> bool | None:
        """Return whether all is well; None = nothing is known to be degraded, and not everything could be read."""
        if self.faults:
            return False
        return None if self.facts.missing else True

    def table(self) -> Table:
        """Return the parts that are installed."""
        shown = [part for part in self.parts if part.state is not PartState.ABSENT]
        return table_of(f"Parts in the namespace {self.facts.namespace}", _COLUMNS, shown, wrap_first=False)

    def lines(self) -> list[str]:
        """Return one line for each subject, then what is degraded, and last what to do first."""
        absent = [part.name for part in self.parts if part.state is PartState.ABSENT]
        lines = [f"not installed: {', '.join(absent)}"] if absent else []
        lines += [f"{name}: {text}" for name, text in _subjects(self.facts)]
        lines += [f"not known: {one.what}: {one.why}" for one in self.facts.missing]
        if not self.faults:
            return [*map(printable, lines), "healthy, as far as known" if self.facts.missing else "healthy"]
        lines += [f"degraded: {one.what}" for one in self.faults]
        return [*map(printable, lines), f"do first: {printable(self.faults[0].command)}"]

    def figures(self) -> dict[str, Any]:
        """Return all of it for JSON. Ages are in seconds."""
        facts, advice, model, last = self.facts, followed(self.facts.samples), used_model(self.facts), None
        if (job := finished_job(facts)) is not None:
            last = {
                "job": job.name,
                "succeeded": job.succeeded,
                "age_seconds": facts.now - job.ended,
                "last_line": job.last_line or job.why,
            }
        return {
            "healthy": self.is_healthy,
            "do_first": self.faults[0].command if self.faults else None,
            "degraded": [asdict(one) for one in self.faults],
            "parts": [asdict(part) for part in self.parts],
            "model": None if model is None else asdict(model),
            "levels": {part: answer.level for part, answer in facts.answers.items()},
            "nightly_run": None
            if facts.nightly is None
            else {
                "schedule": facts.nightly.schedule,
                "suspended": facts.nightly.suspended,
                "version": image_tag(facts.nightly.image),
                "last": last,
            },
            "store": None if facts.store is None else asdict(facts.store) | {"gaps": gaps(facts)},
            "advice": None if advice is None else asdict(advice) | {"rate": advice.rate},
            "held": None
            if facts.held is None
            else {"pods": [pod.name for pod in facts.held], "longest_seconds": longest_held(facts)},
            "alerts": None if facts.alerts is None else [asdict(alert) for alert in facts.alerts],
            "not_known": [one._asdict() for one in facts.missing],
        }


def verdict_of(facts: Facts) -> Installation:
    """Return the parts with their states, and what is degraded."""
    parts = judged_parts(facts)
    return Installation(facts, parts, faults(facts, parts))


def _subjects(facts: Facts) -> Iterator[tuple[str, str]]:
    if (model := used_model(facts)) is not None:
        yield "model", f"{model.version}, {_model_age(model.age)}"
    for part, answer in facts.answers.items():
        if answer.level:
            yield f"{part} at level {answer.level}", "; ".join(answer.reasons)
    if facts.nightly is not None:
        yield "nightly run", _night(facts)
    if facts.store is not None:
        yield "Prometheus", _store(facts)
    elif "Prometheus" not in (one.what for one in facts.missing):
        yield "Prometheus", "not looked at: the settings name none (prometheus.url), and none is found"
    if (advice := followed(facts.samples)) is not None:
        yield "advice followed", _advice(advice.rate, advice.as_advised + advice.elsewhere, advice.canaries)
    if facts.held is not None:
        longest = f", the first for {age(longest_held(facts))}: {facts.held[0].name}" if facts.held else ""
        yield "held pods", f"{len(facts.held)}{longest}"
    if facts.alerts is not None:
        yield "alerts", "; ".join(f"{one.name} ({one.severity})" for one in facts.alerts) or "none fires"


def _model_age(seconds: float) -> str:
    return f"due {age(seconds)} ago" if seconds >= 0 else f"due in {age(-seconds)}"


def _night(facts: Facts) -> str:
    nightly, job = facts.nightly, finished_job(facts)
    assert nightly is not None
    when = "suspended" if nightly.suspended else f"at {nightly.schedule}"
    if job is None:
        return f"{when}, none has ended"
    became = "succeeded" if job.succeeded else "failed"
    return f"{when}, {job.name} {became} {age(facts.now - job.ended)} ago: {job.last_line or job.why or 'no log'}"


def _store(facts: Facts) -> str:
    assert facts.store is not None
    if not facts.store.answers:
        return f"{facts.store.address} does not answer"
    shares = {name: share for name, share in gaps(facts).items() if share}
    named = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    return f"{facts.store.address} answers" + (f"; yesterday not measured: {named}" if named else "")


def _advice(rate: float | None, bound: int, canaries: dict[str, int]) -> str:
    said = "no advised pod was bound yet" if rate is None else f"{rate:.0%} of {bound} pods"
    counted = ", ".join(f"{number} {outcome}" for outcome, number in canaries.items() if number)
    return f"{said}; canaries: {counted}" if counted else said
