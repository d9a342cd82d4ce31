# Two commands on a fresh machine: `make demo` and `make test`. Each sets up .venv first, and only when something changed.

SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
BIN  := $(VENV)/bin
# The first interpreter that is new enough; `make PYTHON=/path/to/python3.12 setup` chooses another.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c "$(NEW_ENOUGH)" 2>/dev/null && { echo $$python; break; }; done)
SOURCES := $(wildcard base forecast trainer kube cluster serving scorer placement tenants extender scheduler profiles advisor rebalancer autoscaling admission forecast_scheduler dashboards testing tests benchmarks)
# `make bench TRACES=DIR`: the public traces that docs/understand/results.md measures on; the sample alone without.
TRACES ?=
# `make demo DEMO="--serve-seconds 30"`: the scorer ends by itself, for scripts.
DEMO ?=
# `make cluster CLUSTER="--directory DIR --store thanos --second"`: where it writes, which metrics store, one or two clusters; `--help` has the rest.
CLUSTER ?=
# `make image release IMAGE=registry.example/forecast-scheduler`: its name, without a tag, which is the version.
IMAGE ?= forecast-scheduler
# `make image BUILD=--push`: options of the builder. `make release RELEASE="--url URL"`: where Krew fetches from.
BUILD ?=
RELEASE ?=
# Tests wait for real servers most of their time: three at a time keep two cores busy. Those of one file stay together, and
# files begin in the order of tests/durations.json: the longest first, so that none is left over at the end.
WORKERS ?= 3
# `make test RETRY=1`, as .ci/run does: what failed runs once more, alone, and the log names it.
RETRY ?=
PYTEST := $(BIN)/python -m $(if $(RETRY),tests.with_retry,pytest) --quiet --dist loadfile --no-loadscope-reorder
# `make test-long PART=differential`: one of the parts of tests/parts.py; all of them without.
PART ?= $(shell $(BIN)/python -m tests.parts)
# $KUBERNETES_VERSION chooses the programs of a run; the part `differential` compares with those of the others, too.
OTHER_KUBERNETES = $(shell $(BIN)/python -c "from testing.servers.control_plane.binaries import *; \
	print(*(one for one in VERSIONS if one != kubernetes_version()))")
# uv installs in 15 seconds what takes pip 100; pip takes over where uv cannot reach an index that only pip's settings name.
COMMA := ,
INSTALL = @set -o pipefail; $(BIN)/python -m uv pip install --compile-bytecode --python $(BIN)/python --constraint constraints.txt $(1) 2>&1 \
	| sed -u '/^ [-+~] /d' || $(BIN)/python -m pip install --quiet --constraint constraints.txt $(1)
LOWEST = $(BIN)/python -m uv pip install --quiet --python .venv-lowest/bin/python --constraint .venv-lowest/lowest.txt
# What the fast tests do not reach: scikit-learn, statsmodels and plotly at work, a server on a socket, joblib's backends.
FITS_AND_SERVERS := $(addprefix tests/,forecast/test_fit.py trainer/run_report/test_run_report.py scorer/replay/test_replay.py \
	serving/test_server.py forecast_scheduler/commands/train/test_joblib_backend.py)

.PHONY: help setup setup-bench demo cluster dashboards settings release image test test-default servers test-fast audit lint types \
	test-long test-lowest durations bench size clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

setup: $(VENV)/.installed-test  ## virtual environment in .venv, with the command and what the tests need

setup-bench: $(VENV)/.installed-bench  ## what benchmarks.NAME needs besides: statsforecast, LightGBM

demo: $(VENV)/.installed  ## train on the sample, backtest, replay, then serve the scorer's page (Ctrl-C ends it)
	$(BIN)/forecast-scheduler demo $(DEMO)

cluster: $(VENV)/.installed-test  ## a local control plane with the sample's cluster and history (Ctrl-C ends it)
	@$(BIN)/python -m testing.local_cluster $(CLUSTER)

test: lint servers  ## ruff, mypy and the default run of the tests: what CI runs
	@$(MAKE) --no-print-directory --jobs 2 types test-default

test-default: $(VENV)/.installed-test
	@$(BIN)/python -m compileall -q -j 2 -x '/test_[^/]*$$' $(SOURCES)  # once, rather than by each worker; so what pytest keeps
	@$(BIN)/python -m tests.rewritten
	$(PYTEST) --part default -m "not long" --numprocesses $(WORKERS)

test-fast: lint  ## ruff and the short tests without servers and fitted models
	$(PYTEST) --part fast -m "not long" --hypothesis-profile=fast --numprocesses 2

servers: $(VENV)/.installed-test  # says what it builds or unpacks, once per machine
	@$(BIN)/python -m testing.servers.prepare

audit: .venv-audit/.installed  ## known vulnerabilities of every pinned dependency (asks PyPI about each)
	.venv-audit/bin/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip --progress-spinner off

# Tests start our commands again and again: where Python may not keep its bytecode, all of it is compiled each time.
test test-default test-fast test-long durations: export PYTHONDONTWRITEBYTECODE :=

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .

types: $(VENV)/.installed-test
	$(BIN)/mypy $(SOURCES)

test-long: servers $(if $(filter file,$(origin PART)),test-lowest)  ## all tests, by named parts: make test-long PART=differential
	for part in $(PART); do \
		workers=$(WORKERS); if [ $$part = soak ]; then workers=0; fi; \
		$(PYTEST) --part $$part --hypothesis-profile=long --numprocesses $$workers || failed="$$failed $$part"; \
		if [ $$part = differential ]; then for version in $(OTHER_KUBERNETES); do \
			KUBERNETES_VERSION=$$version $(PYTEST) --part $$part --hypothesis-profile=long --numprocesses $$workers || failed="$$failed $$part-$$version"; \
		done; fi; \
	done; if [ "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi

# tests/test_constraints.py is about the versions of constraints.txt, and these are others.
test-lowest: .venv-lowest/.installed  ## fast tests, fits and a server with the lowest versions that pyproject.toml allows
	.venv-lowest/bin/python -m pytest --quiet --part fast -m "not long" --hypothesis-profile=fast --numprocesses 2 \
		--deselect tests/test_constraints.py
	.venv-lowest/bin/python -m pytest --quiet -m "not long" $(FITS_AND_SERVERS)

durations: servers  ## run the default tests and record how long each file took
	$(PYTEST) --part default -m "not long" --numprocesses $(WORKERS) --record-durations

dashboards: $(VENV)/.installed-test  ## write dashboards, rules and alerts anew from their code
	$(BIN)/python -m dashboards

settings: $(VENV)/.installed-test  ## write docs/use/settings.md anew from the settings classes
	$(BIN)/python -m forecast_scheduler.settings.page

release: $(VENV)/.installed  ## all that is published of a commit into dist/: wheel, chart, install.yaml, plugins, SBOM
	@$(BIN)/python -m deploy.release --image $(IMAGE) $(RELEASE)

image: $(VENV)/.installed  ## the container image, by docker, podman or buildah
	@$(BIN)/python -m deploy.release.image --image $(IMAGE) "--build=$(BUILD)"

bench: $(VENV)/.installed-bench  ## the figures in docs/understand/results.md
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
	$(BIN)/python -m benchmarks.alert_causes
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

size: $(VENV)/.installed-test  ## how large the tree is: lines, files, settings keys, words, public names
	@$(BIN)/python -m testing.size

# The lowest versions of what we name ourselves, the newest of what those and the tests need.
.venv-lowest/.installed: pyproject.toml | $(VENV)/.installed-test
	"$(PYTHON)" -m venv --clear --without-pip .venv-lowest
	$(BIN)/python -m uv pip compile --quiet --resolution lowest-direct $(addprefix --extra=,dask aws google azure s3 foundation) \
		--python .venv-lowest/bin/python --output-file .venv-lowest/lowest.txt pyproject.toml >/dev/null
	$(LOWEST) hatchling
	$(LOWEST) --no-build-isolation --editable ".[test]"
	@touch $@

clean:  ## remove the environments and all caches
	rm -rf $(VENV) .venv-audit .venv-lowest .mypy_cache .ruff_cache .pytest_cache .hypothesis

# One stamp file per set of extras. They are written last, so an interrupted install is done again.
$(VENV)/.python:
	@"$(PYTHON)" -c "$(NEW_ENOUGH)" 2>/dev/null || { \
		echo "forecast-scheduler needs Python 3.11 or newer, found: $$(python3 --version 2>&1)." \
		     "Install one, or name it: make PYTHON=/path/to/python3.11 setup" >&2; exit 2; }
	@echo "making the environment $(VENV) ..."
	@"$(PYTHON)" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@touch $@

# The build backend comes from constraints.txt too, hence no isolated build.
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/.python
	@echo "installing the command and what it needs into $(VENV) ..."
	$(call INSTALL,hatchling)
	$(call INSTALL,--no-build-isolation --editable .)
	@touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(VENV)/.python
	@echo "installing the command, what it needs and what the tests need into $(VENV) ..."
	$(call INSTALL,hatchling)
	$(call INSTALL,--no-build-isolation --editable ".[test]")
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: $(VENV)/.installed-test
	@echo "installing what the benchmarks need into $(VENV) ..."
	$(call INSTALL,--no-build-isolation --editable ".[test$(COMMA)bench]")
	@touch $@
