"""Scores, one per file: pure functions from arrays over nodes to arrays over nodes.

A `*_score` is 0..100 and higher is better; a `*_growth` is a cost and lower is better.
"""

from __future__ import annotations

__all__ = ["MAX_NODE_SCORE"]

MAX_NODE_SCORE = 100
