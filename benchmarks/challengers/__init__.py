"""Forecasters that were tried in place of `forecast/peaks.py`; benchmarks/peak_challengers.py runs them."""
