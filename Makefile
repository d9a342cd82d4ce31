# Two commands on a fresh machine: `make demo` and `make test`. Each sets up .venv first, and only when something changed.

SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
BIN  := $(VENV)/bin
# The first interpreter that is new enough; `make PYTHON=/path/to/python3.12 setup` chooses another.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c "$(NEW_ENOUGH)" 2>/dev/null && { echo $$python; break; }; done)
SOURCES := $(wildcard forecast trainer scorer extender forecast_scheduler tests benchmarks)
# `make bench TRACES=DIR`: the public traces that the figures of the README are measured on; the sample alone without.
TRACES ?=
# `make demo DEMO="--serve-seconds 30"`: the scorer ends by itself, for scripts.
DEMO ?=
# Tests wait for real servers most of their time: two at a time take half as long. Those of one file stay together.
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help setup setup-bench demo test lint types test-long bench clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

setup: $(VENV)/.installed-test  ## virtual environment in .venv, with the command and what the tests need

setup-bench: $(VENV)/.installed-bench

demo: $(VENV)/.installed  ## train on the sample, backtest, replay, then serve the scorer's page (Ctrl-C ends it)
	$(BIN)/forecast-scheduler demo $(DEMO)

test: lint types  ## ruff, mypy and all tests but the long ones (CI)
	$(PYTEST) -m "not long and not alone"
	$(BIN)/python -m pytest -m "not long and alone"

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .

types: $(VENV)/.installed-test
	$(BIN)/mypy $(SOURCES)

test-long: $(VENV)/.installed-test  ## the long tests too: soak runs, thousands of random cases
	$(PYTEST) --hypothesis-profile=long -m "not alone"
	$(BIN)/python -m pytest -m alone

bench: $(VENV)/.installed-bench  ## the figures in the README
	$(BIN)/python -m benchmarks.backtest $(if $(TRACES),--traces $(TRACES))
	$(BIN)/python -m benchmarks.replay --ladder $(if $(TRACES),--traces $(TRACES) --scenarios)
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.prometheus
	$(BIN)/python -m benchmarks.regression --services 1000 --nodes 1000
	$(BIN)/python -m benchmarks.regression --no-rivals
	$(BIN)/python -m benchmarks.scoring
	$(BIN)/python -m benchmarks.cluster_events
	$(BIN)/python -m benchmarks.scores_speed
	$(BIN)/python -m benchmarks.qos_balance
	$(BIN)/python -m benchmarks.water_level
	$(BIN)/python -m benchmarks.burst
	$(BIN)/python -m benchmarks.scorer_service
	$(BIN)/python -m benchmarks.first_sync
	$(BIN)/python -m benchmarks.inter_pod_affinity
	$(BIN)/python -m benchmarks.placement_latency
	$(BIN)/python -m benchmarks.policy_choice
	$(BIN)/python -m benchmarks.webhook_latency
	$(BIN)/python -m benchmarks.real_rollout
	$(BIN)/python -m benchmarks.real_burst
	$(BIN)/python -m benchmarks.extender_throughput
	$(BIN)/python -m benchmarks.schedule_in_memory
	$(BIN)/python -m benchmarks.schedule_throughput
	$(BIN)/python -m benchmarks.schedule_gangs
	$(BIN)/python -m benchmarks.schedule_preemption
	$(BIN)/python -m benchmarks.schedule_memory
	$(BIN)/python -m benchmarks.job_storm
	$(BIN)/python -m benchmarks.job_day
	$(BIN)/python -m benchmarks.gpu_tide
ifneq ($(TRACES),)
	$(BIN)/python -m benchmarks.gpu_packing --traces $(TRACES)
	$(BIN)/python -m benchmarks.gpu_throughput --traces $(TRACES)
endif

clean:  ## remove the environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

# One stamp file per set of extras. They are written last, so an interrupted install is done again.
$(VENV)/.python:
	@"$(PYTHON)" -c "$(NEW_ENOUGH)" 2>/dev/null || { \
		echo "forecast-scheduler needs Python 3.11 or newer, found: $$(python3 --version 2>&1)." \
		     "Install one, or name it: make PYTHON=/path/to/python3.11 setup" >&2; exit 2; }
	"$(PYTHON)" -m venv $(VENV)
	@touch $@

# The build backend comes from constraints.txt too, hence no isolated build.
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/.python
	$(PIP_INSTALL) hatchling
	$(PIP_INSTALL) --no-build-isolation --editable .
	@touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(VENV)/.python
	$(PIP_INSTALL) hatchling
	$(PIP_INSTALL) --no-build-isolation --editable ".[test]"
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: $(VENV)/.installed-test
	$(PIP_INSTALL) --no-build-isolation --editable ".[test,bench]"
	@touch $@
