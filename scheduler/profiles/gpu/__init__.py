"""The GPU profile: whole and shared cards, claims, and the tide of inference and training."""
