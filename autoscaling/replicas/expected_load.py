"""The load that is expected N minutes ahead, from what is used now and how the forecast says that this will grow.

    expected = used * clip(highest forecast in the lead / forecast at the measurement, 1, ceiling)

Only the shape of the forecast counts, so its level cannot be wrong. What is used now is a floor: a forecast never takes
a replica that the present load needs. The ceiling limits what a wrong shape can add.
"""

from __future__ import annotations

import numpy as np

from base.arrays import Floats


def expected_load(used: Floats, then: Floats, ahead: Floats, *, ceiling: float) -> Floats:
    """Return the load to have replicas for, in the unit of `used`; arrays of one shape.

    used  : what is measured, >= 0; NaN = not measured: nothing is said, and the autoscaler falls back on its own metric
    then  : forecast for the middle of the time that was measured
    ahead : highest forecast between now and the end of the lead
    """
    if ceiling < 1:
        raise ValueError(f"ceiling is {ceiling}: it must be at least 1, what is used now")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a tiny `then` grows past any float
        growth = ahead / then
    growth = np.where(np.isfinite(growth), growth, np.where(ahead > 0, ceiling, 1.0))
    return np.asarray(used * np.clip(growth, 1.0, ceiling))
