"""The science of forecast-scheduler: what each service will use at every time of the week, and what nodes make of it.

Pure: arrays in, arrays out. The only module that touches a disk or an object store is `published_models`.
Nothing here knows Kubernetes clients, Prometheus or HTTP; `docs/understand/architecture.md` draws the direction of
imports.
"""
