# Recipes for working on workflows-engine. `make` prints this list.
SHELL := bash
GO ?= go
TOOL = $(GO) tool -modfile=tools.mod
BIN ?= bin

.PHONY: help build check test race soak fuzz bench docs golden sbom release release-check clients hosts vuln temporal temporal-server tidy

help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 15

build: ## build both static binaries into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o $(BIN)/ ./cmd/...

check: ## formatting, vet, staticcheck, module sums
	@out="$$(gofmt -s -l $$(git ls-files --cached --others --exclude-standard '*.go'))"; if [ -n "$$out" ]; then echo "gofmt -s would change:"; echo "$$out"; exit 1; fi
	$(GO) mod verify
	$(GO) vet ./...
	$(TOOL) staticcheck ./...

test: ## the tests of the README, linked without debugging information, which is faster
	$(GO) test -ldflags=-w ./...

# Packages that start no goroutine. The race detector runs only those of their tests that share a value between goroutines (SHARED).
COMPUTE = activities/chat delegate/agent/skills graph/definition graph/expr graph/internal/admit graph/lint graph/machine graph/problem graph/view delegate/agentloop internal/agentfile internal/agentsteps \
	internal/archtest internal/authoring internal/backtrack internal/buildstamp internal/document internal/format internal/jsondelta internal/jsonobject \
	internal/jsonschema internal/jsonvalue internal/manifest internal/mcpserver/frame internal/outline internal/picture internal/release internal/runjson internal/timeline \
	internal/shellword internal/signing internal/suggest internal/supply internal/workflowtest schemas
SHARED = TestSharedState|TestConcurrentEvaluations|TestW47_ADocumentIsCompiledOnce|TestPatternsEnd
RACE = CGO_ENABLED=1 $(GO) test -timeout 30m -race -gcflags=modernc.org/sqlite/lib=-race=false -ldflags=-w -vet=off

race: ## the tests under the race detector, but for SQLite itself and for packages that only compute (docs/testing.md)
	$(RACE) $$($(GO) list ./... | grep -vE "/($$(echo $(COMPUTE) | tr ' ' '|'))$$")
	$(RACE) -run '^($(SHARED))$$' ./graph/definition ./graph/expr ./internal/jsonschema

# The packages with long forms.
SOAKED = $$(grep -rlE --include='*_test.go' --exclude-dir=testdata 'soak\.(Size|Setting|On)\(' . | xargs -n 1 dirname | sort -u)

soak: ## the tests of the packages with long forms, in these forms; SOAK selects tests, SOAK_KILLS, SOAK_RUNS, SOAK_SECONDS, SOAK_SCHEDULES and SOAK_SEED set sizes
	@set -o pipefail; SOAK=1 $(if $(SOAK_KILLS),SOAK_KILLS=$(SOAK_KILLS)) $(if $(SOAK_RUNS),SOAK_RUNS=$(SOAK_RUNS)) $(if $(SOAK_SECONDS),SOAK_SECONDS=$(SOAK_SECONDS)) \
	$(if $(SOAK_SCHEDULES),SOAK_SCHEDULES=$(SOAK_SCHEDULES)) $(if $(SOAK_SEED),SOAK_SEED=$(SOAK_SEED)) \
	$(GO) test -count 1 -timeout 0 -v -p 1 -run '$(or $(SOAK),.)' $(SOAKED) | grep -vE '^=== |--- PASS: .*\(0\.'

fuzz: ## each fuzz target for FUZZTIME (default 20s)
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
		echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(or $(FUZZTIME),20s) $$p || exit 1; done; done

bench: ## the benchmarks; BENCH selects, COUNT repeats (compare two runs with `go tool -modfile=tools.mod benchstat`)
	$(GO) test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem -count $(or $(COUNT),1) ./...

docs: ## rewrite the generated pages of docs/reference
	$(GO) test $$(grep -rlE --include='*_test.go' '^func TestReferencePages?\(' . | xargs -n 1 dirname | sort -u) -run '^TestReferencePages?$$' -update

golden: ## rewrite expected outputs; read the diff before you commit it
	$(GO) test ./schemas -update
	$(GO) test ./graph/definition ./graph/lint ./graph/machine ./delegate/agentloop ./internal/format ./internal/timeline ./internal/picture ./internal/runjson \
		./internal/mcphost ./internal/mcpserver ./internal/cli ./conformance -update

sbom: build ## a bill of materials (CycloneDX) beside each binary in bin/
	@for b in workflows-engine workflows-engine-mcp; do $(GO) run ./internal/supply sbom $(BIN)/$$b >$(BIN)/$$b.cdx.json || exit 1; done

release: ## everything that is installed, into dist/ (docs/releasing.md); VERSION=1.2.3 names it, PLATFORMS=linux/amd64,… makes fewer
	$(if $(VERSION),VERSION=$(VERSION)) $(GO) run ./internal/release -out $(or $(DIST),dist) -platforms '$(PLATFORMS)'

release-check: ## make the release twice, here and in a clone elsewhere: the same bytes? then install it; PLATFORMS as above, COLD=1 with a build cache of its own
	@out="$$(mktemp -d)"; trap 'chmod -R u+w "$$out"; rm -rf "$$out"' EXIT; set -e; \
	if [ -n "$$(git status --porcelain)" ]; then echo "release-check needs a checkout without changes: commit them first"; exit 1; fi; \
	$(MAKE) --no-print-directory release DIST="$$out/here"; \
	git clone -q . "$$out/elsewhere"; \
	$(if $(COLD),export GOCACHE="$$out/cache";) $(if $(VERSION),,export VERSION="$$(sed -n 's/^  "version": "\(.*\)",$$/\1/p' "$$out/here/server.json")";) \
	$(MAKE) --no-print-directory -C "$$out/elsewhere" release DIST="$$out/there"; \
	diff -r "$$out/here" "$$out/there"; echo "two builds are the same, byte for byte"; \
	SOAK=1 $(GO) test ./internal/release

clients: ## drive the server, from packed npm files, with clients of others (docs/tested-hosts.md); needs Node.js 22.19, npm and the network
	@out="$$(mktemp -d)"; trap 'chmod -R u+w "$$out"; rm -rf "$$out"' EXIT; set -e; \
	$(MAKE) --no-print-directory release DIST="$$out/dist" PLATFORMS="$$($(GO) env GOOS)/$$($(GO) env GOARCH)" >/dev/null; \
	mkdir "$$out/installed"; (cd "$$out/installed" && npm install --offline --no-audit --no-fund --ignore-scripts ../dist/npm/*.tgz >/dev/null); \
	cp -r internal/clientcheck "$$out/clients"; (cd "$$out/clients" && npm install --engine-strict --no-audit --no-fund --ignore-scripts >/dev/null); \
	node "$$out/clients/check.mjs" "$$out/installed/node_modules/.bin/workflows-engine-mcp" examples/lighthouse/lighthouse.workflow.json

hosts: ## check MCP hosts from npm with a scripted model (docs/tested-hosts.md): Linux with unshare and ip, npm, tmux, the network for 1 GB of packages; HOSTS=directory keeps them
	@for tool in unshare ip npm tmux; do command -v $$tool >/dev/null || { echo "make hosts needs $$tool"; exit 1; }; done; \
	unshare -rn ip link set lo up || { echo "make hosts needs network namespaces of users (unshare -rn)"; exit 1; }; \
	out="$$(mktemp -d)"; trap 'rm -rf "$$out"' EXIT; set -e; dir="$(or $(abspath $(HOSTS)),$$out/hosts)"; mkdir -p "$$dir"; \
	cp internal/hostcheck/package.json "$$dir"; (cd "$$dir" && npm install --engine-strict --no-audit --no-fund --ignore-scripts >/dev/null); \
	$(MAKE) --no-print-directory build BIN="$$out/bin"; $(GO) test -c -o "$$out/hostcheck" ./internal/hostcheck; cd internal/hostcheck; \
	unshare -rn sh -c 'ip link set lo up && exec "$$@"' sh "$$out/hostcheck" -packages "$$dir" -programs "$$out/bin" $(if $(UPDATE),-update)

vuln: ## known vulnerabilities in what the engine calls; says so and ends well where their database cannot be reached (VULNDB names another)
	@if [ -z "$(VULNDB)" ] && ! timeout 5 bash -c 'exec 3<>/dev/tcp/vuln.go.dev/443' 2>/dev/null; then \
		echo "SKIPPED: govulncheck was not run, because its database (vuln.go.dev) cannot be reached from here"; \
	else $(TOOL) govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...; fi

temporal: ## vet and test the module graph/temporal, without a server
	cd graph/temporal && $(GO) vet ./... && $(GO) test ./...

temporal-server: ## build a Temporal server for tests (the first time 5 minutes and 1.7 GB of modules) and run the tests of graph/temporal with it, about 20 minutes with figures; UPDATE=1 records event histories again
	cd graph/temporal/internal/devserver && $(GO) build -p 1 -o "$(abspath $(BIN))/temporal-devserver" .
	cd graph/temporal && export WORKFLOW_ENGINE_TEST_TEMPORAL="$(abspath $(BIN))/temporal-devserver" && \
		$(GO) test -count 1 ./cmd/... && $(GO) test -count 1 -timeout 60m -v . $(if $(UPDATE),-update)

tidy: ## tidy the module files
	$(GO) mod tidy
	$(GO) mod tidy -modfile=tools.mod
	cd internal/a2atest && $(GO) mod tidy -e
	cd internal/pagetest && $(GO) mod tidy -e
	cd graph/temporal && $(GO) mod tidy
	cd graph/temporal/internal/devserver && $(GO) mod tidy
