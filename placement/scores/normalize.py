"""Raw scores of one plugin -> 0..100. Source: framework/plugins/helper/normalize_score.go."""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import Ints

MAX_NODE_SCORE: Final = 100


def default_normalize(raw: Ints, *, reverse: bool) -> Ints:
    """The highest becomes 100, whole numbers cut off; reverse: the highest becomes 0, and 0 becomes 100.

        score = 100 * raw / max(raw)

    raw : (n_nodes,) >= 0; all 0 stays 0, or becomes 100 in reverse
    """
    highest = int(raw.max(initial=0))
    scaled = MAX_NODE_SCORE * raw // highest if highest else np.zeros_like(raw)
    return np.asarray(MAX_NODE_SCORE - scaled if reverse else scaled)
