"""Volumes of pods that have been given a node: claims that waited for it get theirs before the pod is bound."""
