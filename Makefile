# Nothing hides here: a target is what one would type.
.PHONY: help build packages concurrent test race systems systems-tests systems-ran tested lint check generate bench
SHELL = bash -o pipefail

# Packages whose tests install and start servers that weir does not embed: those
# that import drivers/internal/served, and it. With the tag systems there are more.
served = go list $(1) -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk '/\/drivers\/internal\/served[] ]/ {print $$1}'

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

build: ## build weir into the working folder
	go build -trimpath -o weir ./cmd/weir

# The package that takes longest begins: others run beside it.
unserved = go list ./internal/cli ./... | grep -vxF "$$($(call served))"

packages: ## list the packages that need no installed server
	@$(unserved)

# Every line that a test prints goes to the file LOG, where one is named.
heard = 2>&1 | tee -a $(or $(LOG),/dev/null) | .ci/said

# The linters have go vet's checks. Some packages wait more than they work, so one more runs than there are cores.
test: ## run their tests, and say what this host could not try (RUN='TestA|TestB' picks)
	go test -v -vet=off -ldflags=-w -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) -timeout 30m $(if $(RUN),-run '^($(RUN))$$') $(or $(PACKAGES),$$($(unserved))) $(heard)

# Nothing can race in a package that begins nothing beside itself, holds no lock, and has no test that does. The house
# rules are read one after the other, too.
at_once = \<go (func|[[:alnum:]_.]+)\(|\.Go\(|AfterFunc|Parallel\(|"sync"|"sync/atomic"|"database/sql"|(http|sync|driver|mesh)test
concurrent = served=$$($(call served)); go list -f '{{.ImportPath}} {{.Dir}}' ./internal/fleet/... ./internal/cli ./... | grep -v '/internal/policy ' | \
	while read -r package dir; do ! grep -qE '$(at_once)' "$$dir"/*.go || echo "$$package"; done | grep -vxF "$$served"

concurrent: ## list the packages that make race tests
	@$(concurrent)

race: ## run the tests of concurrent code under the race detector, without the long ones
	go test -v -race -ldflags=-w -short -timeout 30m $(if $(RUN),-run '^($(RUN))$$') $(or $(PACKAGES),$$($(concurrent))) $(heard)

# What ran, a line for each system; see drivers/internal/served.
export WEIR_SYSTEMS_LOG ?= $(CURDIR)/.systems.log

systems: ## install the real servers and run the drivers' tests against them
	rm -f $(WEIR_SYSTEMS_LOG)
	$(MAKE) systems-tests
	$(MAKE) systems-ran

# Two at once: they wait for servers more than they work. Those that take longest begin.
systems-tests: ## the tests of make systems alone (PACKAGES=./drivers/nsq picks)
	$(if $(PACKAGES),,go test -count=1 -tags systems -timeout 30m -run '^TestNothingOfAFaultIsLeft$$' ./internal/cli)
	go test -v -p 2 -count=1 -ldflags=-w -tags systems -skip '^TestEverySystemRan$$' -timeout 30m $(if $(RUN),-run '^($(RUN))$$') $(or $(PACKAGES),./drivers/rabbitmq ./drivers/kafka ./drivers/kmq ./drivers/redisstreams ./internal/broker $$($(call served,-tags systems))) $(heard)

systems-ran: ## check that make systems-tests ran every system that this host can run
	go test -count=1 -v -tags systems -run '^TestEverySystemRan$$' ./drivers/all

tested: ## run every driver's conformance suite, and record what passed in drivers/standard/tested.yaml
	WEIR_TESTED=$(CURDIR)/drivers/standard/tested.yaml go test -p 1 -count=1 -tags systems -timeout 60m -run '^TestConformance' $$(go list ./drivers/... | grep -v /internal/)
	$(MAKE) generate

lint: ## run the linters that tools/go.mod pins
	GOLANGCI_LINT_CACHE=$(CURDIR)/.lintcache go tool -modfile=tools/go.mod golangci-lint run

check: lint ## run linters, house rules, and checks of links and generated files
	go test ./internal/policy
	go test ./internal/scenario ./internal/suite ./internal/cli ./result -run 'UpToDate|ThePage|TheSchema'

generate: ## write the generated files again: schemas, tables, driver pages
	go test ./internal/scenario ./internal/suite ./internal/cli -run 'UpToDate|ThePageListsEveryKey' -update

bench: ## measure cost, allocations and lateness of the hot path
	go test -run '^$$' -bench . -benchmem ./schedule ./internal/stamp ./internal/ledger ./internal/pace ./measure ./engine

