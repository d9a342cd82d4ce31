"""Records CPU and memory of a cluster that has no metrics store: reads its kubelets through the API server, and grows
our own history (`trainer/sampling/`).
"""
