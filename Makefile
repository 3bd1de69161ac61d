GO            ?= go
GOLANGCI_LINT  = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME      ?= 10s
PYTHON        ?= python3.11
GOLDENS_VENV   = .venv-goldens
PEER_PYTHON   ?= python3

.DEFAULT_GOAL := help
.PHONY: help conformance test test-native bench bench-peer fuzz lint vet goldens goldens-venv test-goldens test-goldens-torch

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

conformance: ## the conformance suite on the embedded default, verbose; report/report.json
	$(GO) test -count=1 -v ./conformance -args -report $(CURDIR)/report

test: ## every test that needs only Go
	$(GO) test ./...

test-native: ## the tests of parts that need native libraries
	@echo "test-native: nothing native exists yet; every test runs under 'make test'"

bench: ## all benchmarks, ten runs each, readable by benchstat
	$(GO) test -run '^$$' -bench . -benchmem -count 10 ./...

bench-peer: ## CPU time per token at the 0.5B shape against transformers (PEER_PYTHON has torch; 5 GB of memory)
	PLUMBLINE_BENCH_LARGE=1 PLUMBLINE_BENCH_PEER=$(PEER_PYTHON) \
		$(GO) test -run '^$$' -bench HalfBillion -benchtime 3x -timeout 20m -v ./engine/reference

fuzz: ## every fuzz target for FUZZTIME (default 10s)
	@set -e; for dir in $$($(GO) list -f '{{.Dir}}' ./...); do \
		for target in $$(grep -hos '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c 6-); do \
			echo "fuzz $$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$dir; \
		done; \
	done

lint: ## golangci-lint, import arrows included
	$(GO) run $(GOLANGCI_LINT) run ./...

vet: ## go vet
	$(GO) vet ./...

goldens: $(GOLDENS_VENV)/installed ## record the goldens again and compare; ACCEPT=1 replaces, ARGS='--create NAME' adds
	$(GOLDENS_VENV)/bin/python -B tools/goldens/record.py $(if $(ACCEPT),--accept,$(if $(ARGS),$(ARGS),--check))
	cd golden && for m in *.manifest.json; do \
		$(if $(ACCEPT)$(ARGS),sha256sum $$m > $$m.sha256,sha256sum --check --quiet $$m.sha256); done

goldens-venv: $(GOLDENS_VENV)/installed ## install what the recorder of goldens needs

$(GOLDENS_VENV)/installed: tools/goldens/requirements.txt
	$(PYTHON) -m venv --clear $(GOLDENS_VENV)
	$(GOLDENS_VENV)/bin/python -m pip install --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r $<
	touch $@

test-goldens: ## the recorder's logic that needs no torch
	cd tools/goldens && $(PYTHON) -B -m unittest discover

test-goldens-torch: $(GOLDENS_VENV)/installed ## that the recorder's self-checks can fail
	$(GOLDENS_VENV)/bin/python -B tools/goldens/selfchecks_need_torch.py
