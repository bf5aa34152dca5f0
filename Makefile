# Targets for people. `make demo` and `make test` set up everything they need on
# a machine with Go, git and Python 3.

GO        ?= go
BIN       := bin
TOOLS     := .tools

TEMPORAL_CLI   := github.com/temporalio/cli/cmd/temporal@v1.5.1
GOLANGCI_LINT  := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.5.0
WORKFLOWCHECK  := go.temporal.io/sdk/contrib/tools/workflowcheck@v0.6.0
GOVULNCHECK    := golang.org/x/vuln/cmd/govulncheck@v1.9.0
HELM           := helm.sh/helm/v3/cmd/helm@v3.16.4
GOTESTSUM      := gotest.tools/gotestsum@v1.13.0
BENCHSTAT      := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

# What a package's tests need of the built programs they find here.
export CLUSTERRUN_DEVSERVER := $(abspath $(BIN)/clusterrun-devserver)
export CLUSTERRUN_TEMPORAL  := $(abspath $(TOOLS)/temporal)
export CLUSTERRUN_BIN       := $(abspath $(BIN)/clusterrun)

# Whole runs, with servers that are killed, take longer than Go's ten minutes on a
# busy machine. They wait most of the time, so more of them run than there are processors.
# The linters vet. With -short, tests leave out cases that others resemble and that take minutes.
WAITS     := -vet=off -timeout 60m -parallel 4
TESTFLAGS ?= -short $(WAITS)
# The package that takes longest comes first.
PACKAGES  ?= ./tests/e2e ./...

VERSION = $(shell sed -n 's/^const Version = "\(.*\)"/\1/p' workflows/spec/version.go)

# The programs need no libc, so they run on every Linux.
STATIC := CGO_ENABLED=0

# Tests and linters are compiled like the programs: otherwise everything that imports package
# net would be compiled twice.
export CGO_ENABLED := 0
export GOFLAGS     := $(GOFLAGS) -trimpath

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

.PHONY: build
build: $(BIN)/clusterrun $(BIN)/clusterrun-devserver ## build clusterrun with its supervisor, and its embedded server, into bin/

# Go knows best what is out of date.
.PHONY: $(BIN)/clusterrun
$(BIN)/clusterrun:
	@mkdir -p $(BIN)
	@[ -e $@ ] || echo 'building clusterrun: about a minute the first time'
	$(STATIC) $(GO) build -buildvcs=auto -ldflags '-s -w' -o $(BIN)/ ./starter/clusterrun ./starter/clusterrun-supervisor

.PHONY: $(BIN)/clusterrun-devserver
$(BIN)/clusterrun-devserver:
	@mkdir -p $(BIN)
	@[ -e $@ ] || echo 'building the embedded Temporal server, 1,200 packages: about four minutes on two processors the first time'
	cd deployments/devserver && $(STATIC) $(GO) build -ldflags '-s -w' -o $(abspath $@) ./clusterrun-devserver

.PHONY: wheel
wheel: ## build a Python wheel with the programs and the package into dist/
	deployments/release/build wheel

.PHONY: release
release: ## build tarballs and wheels for amd64 and arm64, with checksums, into dist/
	deployments/release/build release

.PHONY: image
image: build ## build a container image with the programs; takes Docker
	docker build -f deployments/Dockerfile -t clusterrun:$(VERSION) $(BIN)

.PHONY: demo
demo: build ## train a model on six processes: a chief, three workers, two parameter servers
	$(BIN)/clusterrun run starter/examples/logistic/run.yaml

.PHONY: test
test: build $(TOOLS)/gotestsum ## run all tests, those of the embedded server included, and of the temporal CLI after make tools; logs are in .tools/tests
	GO=$(GO) GOTESTSUM=$(abspath $(TOOLS)/gotestsum) LOGS=$(abspath $(TOOLS))/tests TESTFLAGS='$(TESTFLAGS)' .ci/tests $(PACKAGES)

.PHONY: check
check: ## compile and vet, and test what has changed, but for whole runs: before each commit
	$(GO) build ./...
	$(GO) vet ./...
	$(GO) test -vet=off -short $$($(GO) list ./... | grep -Ev '/tests/(browser|drill|e2e|extra|record)$$')

.PHONY: test-long
test-long: ## the same with all cases, which takes twice as long
	$(MAKE) test TESTFLAGS='$(WAITS)'

.PHONY: test-race
test-race: ## the same with the race detector
	$(MAKE) test CGO_ENABLED=1 TESTFLAGS='-race $(TESTFLAGS)'

.PHONY: lint
lint: $(TOOLS)/golangci-lint $(TOOLS)/workflowcheck $(TOOLS)/govulncheck ## static checks, with determinism of the workflow code, prose, and what we depend on
	$(GO) test -vet=off -run 'Words|Subjects' ./tests
	$(TOOLS)/golangci-lint run --allow-parallel-runners ./...
	$(TOOLS)/workflowcheck -config .workflowcheck.yml ./workflows/...
	.ci/dependencies $(TOOLS)/govulncheck
	$(call python_check,mypy,)
	$(call python_check,ruff,check)

# The Python package is checked by what is installed.
python_check = @if command -v $(1) >/dev/null; then cd activities/tasks/python && $(1) $(2); else echo '$(1) is not installed: it does not check the Python package'; fi

# FAULTS, SEED and OUTAGE may be given: the server may be away for OUTAGE seconds. Without a seed
# each drill is another.
.PHONY: drill
drill: build ## break a cluster on purpose and check what is promised: make drill FAULTS=1000 SEED=7
	FAULTS=$(or $(FAULTS),30) OUTAGE=$(OUTAGE) SEED=$(or $(SEED),$(shell date +%s)) $(GO) test -count 1 -v -timeout 24h -run TestDrill ./tests/drill

# Six times the most important figures, so that benchstat can tell a change from noise.
BENCH ?= Figures
COUNT ?= 6
FILE  ?= $(TOOLS)/bench-$(shell git describe --always --dirty 2>/dev/null).txt

.PHONY: bench
bench: build ## measure in ten minutes, each figure with its floor or peer of the same run, into FILE; BENCH=. COUNT=1 measures everything
	@mkdir -p $(dir $(FILE))
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime 1x -count $(COUNT) -timeout 90m ./tests/bench | tee $(FILE)
	@echo 'written to $(FILE); make bench-compare OLD=… NEW=… compares two of them'

.PHONY: bench-compare
bench-compare: $(TOOLS)/benchstat ## say what differs between the figures in OLD and NEW
	$(TOOLS)/benchstat $(OLD) $(NEW)

.PHONY: compare
compare: build ## do the same work with the other launchers that are installed, for the table of `clusterrun help compare`
	$(GO) test -run '^$$' -bench '^BenchmarkPeers$$' -benchtime 1x -timeout 90m ./tests/bench

# DEBIAN is a release whose PyTorch is meant; without it it is the one that is installed.
in_debian = $(if $(DEBIAN),$(abspath .ci/in-debian) $(DEBIAN) $(abspath $(TOOLS)/debian-$(DEBIAN)))

.PHONY: pytorch
pytorch: build ## run PyTorch's own tests of its launcher, with clusterrun in the place of torchrun; DEBIAN=trixie takes PyTorch 2.6, and root
	tests=$$($(in_debian) .ci/pytorch-tests $(TOOLS)/pytorch) && CLUSTERRUN_PYTORCH_TESTS=$$tests $(GO) test $(if $(DEBIAN),-exec '$(in_debian)') -count 1 -v -run '^TestPyTorch$$' ./tests/extra

.PHONY: postgresql
postgresql: build $(TOOLS)/temporal $(TOOLS)/temporal-server $(TOOLS)/temporal-sql-tool ## run the test of Temporal's own server with PostgreSQL; CLUSTERRUN_BENCH_SERVER=postgresql make bench BENCH=Many measures it
	$(GO) test -count 1 -v -run '^TestPostgreSQL$$' ./tests/extra

.PHONY: typescript
typescript: build ## run the example in TypeScript with Temporal's SDK from npm
	mkdir -p $(TOOLS)/typescript && cp starter/examples/typescript/package.json $(TOOLS)/typescript && npm install --no-audit --no-fund --prefix $(TOOLS)/typescript
	CLUSTERRUN_NODE_MODULES=$(abspath $(TOOLS))/typescript/node_modules $(GO) test -count 1 -v -run '^TestExampleTypeScript$$' ./tests/extra

.PHONY: systemd
systemd: build ## use host workers and a controller as services of a virtual machine with systemd; takes root and Debian
	root=$$(.ci/systemd-image $(TOOLS)/systemd) && CLUSTERRUN_SYSTEMD_ROOT=$$root $(GO) test -count 1 -v -run '^TestUnderSystemd$$' ./tests/extra

.PHONY: arm64
arm64: build ## execute runs on an emulated machine for arm64; takes root and Debian
	root=$$(.ci/arm64-image $(TOOLS)/arm64) && CLUSTERRUN_ARM64_ROOT=$$root $(GO) test -count 1 -v -run '^TestOnARM64$$' ./tests/extra

.PHONY: record
record: build $(TOOLS)/temporal ## record histories of the workflows for a version that is to be released
	$(GO) run -trimpath ./tests/record workflows/testdata/replay/v$(VERSION)

.PHONY: tools
tools: $(TOOLS)/temporal $(TOOLS)/gotestsum $(TOOLS)/golangci-lint $(TOOLS)/workflowcheck $(TOOLS)/govulncheck ## build the temporal CLI, gotestsum and the linters into .tools/

$(TOOLS)/temporal:
	@echo 'building the temporal CLI: about four minutes the first time'
	GOBIN=$(abspath $(TOOLS)) $(GO) install -trimpath $(TEMPORAL_CLI)

# In the version of the embedded server, with most of its packages as they are compiled for that.
$(TOOLS)/temporal-server $(TOOLS)/temporal-sql-tool: deployments/devserver/go.mod
	@mkdir -p $(TOOLS)
	cp $< $(TOOLS)/temporal.mod && cp $(<:mod=sum) $(TOOLS)/temporal.sum
	cd $(<D) && $(GO) build -modfile $(abspath $(TOOLS))/temporal.mod -mod=mod -ldflags '-s -w' -o $(abspath $@) go.temporal.io/server/cmd/$(if $(findstring sql,$@),tools/sql,server)

$(TOOLS)/golangci-lint:
	GOBIN=$(abspath $(TOOLS)) $(GO) install $(GOLANGCI_LINT)

$(TOOLS)/workflowcheck:
	GOBIN=$(abspath $(TOOLS)) $(GO) install $(WORKFLOWCHECK)

$(TOOLS)/govulncheck:
	GOBIN=$(abspath $(TOOLS)) $(GO) install $(GOVULNCHECK)

$(TOOLS)/benchstat:
	GOBIN=$(abspath $(TOOLS)) $(GO) install $(BENCHSTAT)

$(TOOLS)/gotestsum:
	GOBIN=$(abspath $(TOOLS)) $(GO) install -trimpath $(GOTESTSUM)

# For the tests of the chart, which are skipped without it.
$(TOOLS)/helm:
	GOBIN=$(abspath $(TOOLS)) $(GO) install -trimpath $(HELM)

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN) $(TOOLS) dist
