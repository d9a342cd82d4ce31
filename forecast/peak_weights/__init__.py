"""What one more pod adds to a node, learned from what nodes used and who sat on them (docs/understand/model.md)."""

from forecast.peak_weights.completion import complete_history, pods_felt_by_nodes
from forecast.peak_weights.weights import IDENTIFIED_ERROR, PeakWeights, fit_peak_weights

__all__ = ["IDENTIFIED_ERROR", "PeakWeights", "complete_history", "fit_peak_weights", "pods_felt_by_nodes"]
