"""Grafana dashboards made from code, with the builders of grafana-foundation-sdk.

selecting.py       variables of the dashboards, and the part of a query that they fill in
units.py           how figures of a resource are written
plots.py           panels: lines, bars, single values, tables, heat maps, each with description, unit and thresholds
layout.py          rows and panels -> a dashboard with stable ids, positions, links and annotations -> JSON
peaks.py           predicted against actual peaks: nodes, services, error and coverage, tonight's hottest nodes
scheduling.py      who schedules: throughput, latency, queue, decisions, degradation
rebalancing.py     a row of scheduling.py: moves that would help, that were made, and what they gained
gpu_and_jobs.py    GPUs, the tide, jobs on time, storms
model.py           versions, the gate, losses, drift, gaps in what is measured
"""

from dashboards.panels.dashboard_files import files

__all__ = ["files"]
