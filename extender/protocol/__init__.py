"""kube-scheduler's extender protocol, v1: JSON in, values out, and back."""
