"""The GPU profile: whole and shared cards, their types and groups, gangs close together, and the tide of inference and
training."""
