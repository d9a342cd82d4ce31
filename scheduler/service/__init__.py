"""The scheduling process over HTTP: probes, metrics, who waits for what, and the scorer's forecasts."""
