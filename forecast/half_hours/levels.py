"""How high whole days were, and how the last evening ended."""

from __future__ import annotations

from forecast.half_hours.feature import Feature

_EVENING = 4
"""Half hours: the last two hours before midnight."""

FEATURES = (
    Feature("level_yesterday", lambda m: m.all_day(m.yesterday.mean(axis=1))),
    Feature("peak_yesterday", lambda m: m.all_day(m.yesterday.max(axis=1))),
    Feature("evening", lambda m: m.all_day(m.yesterday[:, -_EVENING:].mean(axis=1))),
    Feature("last_half_hour", lambda m: m.all_day(m.yesterday[:, -1])),
    Feature("level_a_week_ago", lambda m: m.all_day(m.days_back(7).mean(axis=1))),
    Feature("level_7_days", lambda m: m.all_day(m.week.mean(axis=(1, 2)))),
    Feature("level_28_days", lambda m: m.all_day(m.known.mean(axis=(1, 2)))),
    Feature("peak_7_days", lambda m: m.all_day(m.week.max(axis=2).mean(axis=1))),
    Feature("level", lambda m: m.all_day(m.known.mean(axis=(1, 2))), is_level=False),
    Feature("move_yesterday", lambda m: m.all_day((m.yesterday - m.usual).mean(axis=1)), is_level=False),
    Feature("move_evening", lambda m: m.all_day((m.yesterday - m.usual)[:, -_EVENING:].mean(axis=1)), is_level=False),
)
