"""Names for the array types used throughout, so that signatures stay short.

Axis words, outermost first: n_services, n_pods, n_nodes, n_resources, n_days, n_steps (48 half hours), n_quantiles.
Models and histories are held in float32 (half the memory; usage is never known to seven digits);
sums, fits and comparisons are done in float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
AnyFloats = NDArray[np.floating]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
