"""Dynamic Resource Allocation (resource.k8s.io/v1): claims of pods, devices of drivers, and who gets which."""
