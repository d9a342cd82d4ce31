# Two commands on a fresh machine: `make demo` and `make test`. Each sets up .venv first, and only when something changed.

SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
BIN  := $(VENV)/bin
# The first interpreter that is new enough; `make PYTHON=/path/to/python3.12 setup` chooses another.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c "$(NEW_ENOUGH)" 2>/dev/null && { echo $$python; break; }; done)
SOURCES := $(wildcard forecast trainer kube serving scorer placement tenants extender scheduler advisor rebalancer autoscaling admission forecast_scheduler dashboards testing tests benchmarks)
# `make bench TRACES=DIR`: the public traces that docs/understand/benchmarks.md measures on; the sample alone without.
TRACES ?=
# `make demo DEMO="--serve-seconds 30"`: the scorer ends by itself, for scripts.
DEMO ?=
# `make cluster CLUSTER="--directory DIR"`: where it writes, and how many days of history it has.
CLUSTER ?=
# Tests wait for real servers most of their time: three at a time keep two cores busy. Those of one file stay together, and
# files begin in the order of tests/conftest.py: the longest first, so that none is left over at the end.
WORKERS ?= 3
PYTEST := $(BIN)/python -m tests.with_retry --durations=10 --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
# Files with tests that run by themselves; collecting all others for these would take longer than some of them.
ALONE := $(shell grep -rl --include='test_*.py' 'mark\.alone' tests)
# $KUBERNETES_VERSION chooses the programs of a run; `make test-long` compares the filters with those of the others, too.
OTHER_KUBERNETES = $(shell $(BIN)/python -c "from testing.servers.control_plane.binaries import *; \
	print(*(one for one in VERSIONS if one != kubernetes_version()))")
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
# One line per package that is fetched or installed, not the rest of what pip says; its errors go to standard error.
# sed and not grep, which fails if it finds nothing: everything may be installed already.
SAY := | sed -u -n -E '/^  (Downloading|Using cached) |^Installing collected|^Successfully/s/^(.{0,100}).*/\1/p'

.PHONY: help setup setup-bench demo cluster dashboards settings chart test test-together test-fast audit lint types test-long bench clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

setup: $(VENV)/.installed-test  ## virtual environment in .venv, with the command and what the tests need

setup-bench: $(VENV)/.installed-bench  ## what benchmarks.NAME needs besides: statsforecast, LightGBM

demo: $(VENV)/.installed  ## train on the sample, backtest, replay, then serve the scorer's page (Ctrl-C ends it)
	$(BIN)/forecast-scheduler demo $(DEMO)

cluster: $(VENV)/.installed-test  ## a local control plane with the sample's cluster and history (Ctrl-C ends it)
	@$(BIN)/python -m testing.local_cluster $(CLUSTER)

test: lint  ## ruff, mypy and all tests but the long ones (CI)
	@$(MAKE) --no-print-directory --jobs 2 types test-together
	$(BIN)/python -m tests.with_retry -m "not long and alone" $(ALONE)
	@$(BIN)/python -m tests.with_retry --flaky

test-together: $(VENV)/.installed-test
	$(PYTEST) -m "not long and not alone"

test-fast: lint  ## ruff and the tests without servers and fitted models: two minutes
	$(BIN)/python -m pytest --fast --hypothesis-profile=fast --quiet --numprocesses 2 -m "not long and not alone"

audit: .venv-audit/.installed  ## known vulnerabilities of every pinned dependency (asks PyPI about each)
	.venv-audit/bin/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip --progress-spinner off

# Tests start our commands again and again: where Python may not keep its bytecode, all of it is compiled each time.
test test-together test-fast test-long: export PYTHONDONTWRITEBYTECODE :=

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .

types: $(VENV)/.installed-test
	$(BIN)/mypy $(SOURCES)

test-long: $(VENV)/.installed-test  ## the long tests too: soak runs, thousands of random cases, both versions of Kubernetes
	$(PYTEST) --hypothesis-profile=long -m "not alone"
	for version in $(OTHER_KUBERNETES); do KUBERNETES_VERSION=$$version $(PYTEST) tests/differential || exit 1; done
	$(BIN)/python -m tests.with_retry -m alone $(ALONE)

dashboards: $(VENV)/.installed-test  ## write dashboards, rules and alerts anew from their code
	$(BIN)/python -m dashboards

settings: $(VENV)/.installed-test  ## write docs/use/settings.md anew from the settings classes
	$(BIN)/python -m forecast_scheduler.settings.page

chart: $(VENV)/.installed  ## write the Helm chart of deploy/ into dist/
	@$(BIN)/python -m deploy.chart

bench: $(VENV)/.installed-bench  ## the figures in docs/understand/benchmarks.md
	$(BIN)/python -m benchmarks.backtest $(if $(TRACES),--traces $(TRACES))
	$(BIN)/python -m benchmarks.bound_coverage $(if $(TRACES),--traces $(TRACES))
	$(BIN)/python -m benchmarks.decisions $(if $(TRACES),--traces $(TRACES))
	$(BIN)/python -m benchmarks.replay --ladder $(if $(TRACES),--traces $(TRACES) --scenarios)
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.prometheus
	$(BIN)/python -m benchmarks.poisoned_usage
	$(BIN)/python -m benchmarks.regression --services 1000 --nodes 1000
	$(BIN)/python -m benchmarks.regression --no-rivals
	$(BIN)/python -m benchmarks.scoring
	$(BIN)/python -m benchmarks.cluster_events
	$(BIN)/python -m benchmarks.scores_speed
	$(BIN)/python -m benchmarks.rebalance_plans
	$(BIN)/python -m benchmarks.rebalanced_nights
	$(BIN)/python -m benchmarks.trajectories $(if $(TRACES),--traces $(TRACES))
	$(BIN)/python -m benchmarks.capacity $(if $(TRACES),--traces $(TRACES))
	$(BIN)/python -m benchmarks.replicas $(if $(TRACES),--traces $(TRACES))
	$(BIN)/python -m benchmarks.requests --real $(if $(TRACES),--traces $(TRACES))
	$(BIN)/python -m benchmarks.qos_balance
	$(BIN)/python -m benchmarks.water_level
	$(BIN)/python -m benchmarks.burst
	$(BIN)/python -m benchmarks.scorer_service
	$(BIN)/python -m benchmarks.first_sync
	$(BIN)/python -m benchmarks.inter_pod_affinity
	$(BIN)/python -m benchmarks.placement_latency
	$(BIN)/python -m benchmarks.policy_choice
	$(BIN)/python -m benchmarks.webhook_latency
	$(BIN)/python -m benchmarks.real_rollout $(if $(TRACES),--traces $(TRACES))
	$(BIN)/python -m benchmarks.real_burst
	$(BIN)/python -m benchmarks.advisor_throughput
	$(BIN)/python -m benchmarks.advisor_throughput --nodes 1000 --latency
	$(BIN)/python -m benchmarks.extender_throughput
	$(BIN)/python -m benchmarks.schedule_in_memory
	$(BIN)/python -m benchmarks.schedule_throughput
	$(BIN)/python -m benchmarks.schedule_gangs
	$(BIN)/python -m benchmarks.schedule_preemption
	$(BIN)/python -m benchmarks.schedule_gang_preemption
	$(BIN)/python -m benchmarks.schedule_memory
	$(BIN)/python -m benchmarks.service_memory
	$(BIN)/python -m benchmarks.job_storm
	$(BIN)/python -m benchmarks.job_day
	$(BIN)/python -m benchmarks.lending $(if $(TRACES),--traces $(TRACES))
	$(BIN)/python -m benchmarks.gpu_tide
ifneq ($(TRACES),)
	$(BIN)/python -m benchmarks.peak_challengers --traces $(TRACES)
	$(BIN)/python -m benchmarks.gpu_packing --traces $(TRACES)
	$(BIN)/python -m benchmarks.gpu_throughput --traces $(TRACES)
endif

# Of its own: what looks for holes must not add any to what is shipped or tested.
.venv-audit/.installed:
	"$(PYTHON)" -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check "pip-audit>=2.10,<3"
	@touch $@

clean:  ## remove the environments and all caches
	rm -rf $(VENV) .venv-audit .mypy_cache .ruff_cache .pytest_cache .hypothesis

# One stamp file per set of extras. They are written last, so an interrupted install is done again.
$(VENV)/.python:
	@"$(PYTHON)" -c "$(NEW_ENOUGH)" 2>/dev/null || { \
		echo "forecast-scheduler needs Python 3.11 or newer, found: $$(python3 --version 2>&1)." \
		     "Install one, or name it: make PYTHON=/path/to/python3.11 setup" >&2; exit 2; }
	@echo "making the environment $(VENV) ..."
	@"$(PYTHON)" -m venv $(VENV)
	@touch $@

# The build backend comes from constraints.txt too, hence no isolated build.
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/.python
	@echo "installing the command and what it needs into $(VENV) ..."
	@set -o pipefail; $(PIP_INSTALL) hatchling $(SAY)
	@set -o pipefail; $(PIP_INSTALL) --no-build-isolation --editable . $(SAY)
	@touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(VENV)/.python
	@echo "installing the command, what it needs and what the tests need into $(VENV) ..."
	@set -o pipefail; $(PIP_INSTALL) hatchling $(SAY)
	@set -o pipefail; $(PIP_INSTALL) --no-build-isolation --editable ".[test]" $(SAY)
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: $(VENV)/.installed-test
	@echo "installing what the benchmarks need into $(VENV) ..."
	@set -o pipefail; $(PIP_INSTALL) --no-build-isolation --editable ".[test,bench]" $(SAY)
	@touch $@
