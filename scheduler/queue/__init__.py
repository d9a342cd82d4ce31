"""The three-part queue of pods that wait for a node: active, backoff, unschedulable, and the gated ones."""
