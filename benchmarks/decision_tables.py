"""Seeds and cells of `decision_lines` put together: mean lines, violations at equal utilisation, intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from base.arrays import Floats, Ints
from benchmarks.decision_lines import Cell
from benchmarks.decision_packing import at_utilisation

_DRAWS = 1_000


@dataclass(frozen=True, slots=True)
class Merged:
    """One resource of one trace over all seeds.

    points : line -> (n_seeds, n_settings, 3) utilisation over the true future's, violation rate, severity
    """

    trace: str
    resource: str
    n_pods: float
    best: float
    points: dict[str, Floats]

    @property
    def name(self) -> str:
        return f"{self.trace} {self.resource}"

    def line(self, name: str, seeds: Ints | None = None) -> Floats:
        """Means over the seeds, setting by setting: (n_settings, 3)."""
        points = self.points[name]
        return np.asarray((points if seeds is None else points[seeds]).mean(axis=0))

    def at(self, name: str, share: float, seeds: Ints | None = None, *, figure: int = 1) -> float:
        """Violation rate (figure 1) or severity (2) at this share of the true future's utilisation."""
        return at_utilisation(self.line(name, seeds), share, figure)

    def interval(self, name: str, share: float) -> tuple[float, float]:
        """95 % interval of the violation rate from drawing seeds anew."""
        rng = np.random.default_rng(0)
        n_seeds = len(self.points[name])
        drawn = [self.at(name, share, rng.integers(0, n_seeds, n_seeds)) for _ in range(_DRAWS // 5)]
        low, high = np.nanquantile(drawn, [0.025, 0.975])
        return float(low), float(high)


def merge(cells: Sequence[Cell]) -> Merged:
    """Put the seeds of one cell together."""
    points = {
        name: np.array(
            [
                [(one.utilisation / cell.best, one.violation_rate, one.severity) for one in cell.lines[name]]
                for cell in cells
            ]
        )
        for name in cells[0].lines
    }
    return Merged(
        cells[0].trace,
        cells[0].resource,
        fmean(cell.n_pods for cell in cells),
        fmean(cell.best for cell in cells),
        points,
    )


def reached_by(cells: Sequence[Merged], share: float, *lines: str) -> list[Merged]:
    """The cells in which all of some lines reach this share of the true future's utilisation."""
    return [cell for cell in cells if all(np.isfinite(cell.at(line, share)) for line in lines)]


def mean_violations(cells: Sequence[Merged], line: str, share: float, *, figure: int = 1) -> float:
    """Mean violation rate (figure 1) or severity (2) over cells, all of which the line reaches."""
    return fmean(cell.at(line, share, figure=figure) for cell in cells)


def difference(cells: Sequence[Merged], line: str, other: str, share: float) -> tuple[float, float, float]:
    """Mean violation rate of a line minus another's, with its 95 % interval from drawing cells anew.

    Both lines reach the share in all of the cells.
    """
    gaps = np.array([cell.at(line, share) - cell.at(other, share) for cell in cells])
    draws = np.random.default_rng(0).integers(0, len(gaps), (_DRAWS, len(gaps)))
    low, high = np.quantile(gaps[draws].mean(axis=1), [0.025, 0.975])
    return float(gaps.mean()), float(low), float(high)
