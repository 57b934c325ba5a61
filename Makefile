# Nothing hides here: a target is what one would type.
.PHONY: help build packages long concurrent test test-all test-long race systems systems-tests systems-ran tested lint chart apiserver vet cross libzmq check generate bench accuracy size lines
SHELL = bash -o pipefail

# Packages whose tests import one of drivers/…; with the tag systems there are more. What imports drivers/internal/served
# installs and starts servers that weir does not embed.
testing_with = go list $(2) -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk '$$0 ~ "/drivers/$(1)[] ]" {print $$1}'

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

build: ## build weir into the working folder
	go build -trimpath -o weir ./cmd/weir

# The packages that take longest begin: others run beside them.
unserved = go list ./internal/cli ./internal/broker ./internal/fleet ./internal/selftest ./internal/series ./engine ./... | grep -vxF "$$($(call testing_with,internal/served))"

packages: ## list the packages that need no installed server
	@$(unserved)

# RUN='TestA|TestB' picks tests, PACKAGES=./drivers/nsq packages. Each line that go test prints goes to the file LOG as well.
gotest = go test -ldflags=-w -timeout 30m $(if $(RUN),-run '^($(RUN))$$')
log = 2>&1 | tee -a $(or $(LOG),/dev/null)

# The linters have go vet's checks. Some packages wait more than they work, so two more run than there are cores.
beside = -vet=off -p $$(($$(getconf _NPROCESSORS_ONLN) + 2))

test: ## run the tests that take little time on any host
	$(gotest) -short $(beside) $(or $(PACKAGES),$$($(unserved))) $(log)

test-all: test test-long ## run all tests that need no installed server

long = go run ./internal/tools/longtests $(or $(PACKAGES),$$($(unserved)))

long: ## print go test's arguments for what make test leaves out or does less often
	@$(long)

test-long: ## run what make test leaves out: tests that take real time, a browser, hosts of their own, or long simulations
	$(gotest) $(beside) $(if $(RUN),$(or $(PACKAGES),$$($(unserved))),$$($(long))) $(log)

# Nothing can race in a package that starts no goroutine, holds no lock, and has no test that does. A package whose tests
# link every driver has too much that is none of weir's.
at_once = \<go (func|[[:alnum:]_.]+)\(|\.Go\(|AfterFunc|Parallel\(|"sync"|"sync/atomic"|"database/sql"|(http|sync|driver|mesh)test
concurrent = go list -f '{{.ImportPath}} {{.Dir}}' ./internal/fleet/... ./internal/cli ./... | grep -v '/internal/policy ' | \
	while read -r package dir; do ! grep -qE '$(at_once)' "$$dir"/*.go || echo "$$package"; done | grep -vxF "$$($(call testing_with,(internal/served|all|standard)))"

concurrent: ## list the packages that make race tests
	@$(concurrent)

race: ## run the tests of concurrent code under the race detector
	$(gotest) -race -vet=off $(or $(PACKAGES),$$($(concurrent))) $(log)

# What ran, a line for each system; see drivers/internal/served.
export WEIR_SYSTEMS_LOG ?= $(CURDIR)/.systems.log

systems: ## install the real servers and run the drivers' tests against them
	rm -f $(WEIR_SYSTEMS_LOG)
	$(MAKE) systems-tests
	$(MAKE) systems-ran

# Three at once: they wait for servers more than they work. Those that take longest begin. Of packages that make test runs,
# too, only the tests that the tag adds; at last and alone the one that fills a disk.
served = $(gotest) -p 3 -count=1 -tags systems
added = git grep -lE '^//go:build (.* )?systems' -- '*_test.go' ':!drivers/all'
systems-tests: ## the tests of make systems alone (PACKAGES=./drivers/nsq picks)
	failed=0; $(served) $(or $(PACKAGES),./drivers/pulsar ./drivers/rabbitmq ./drivers/kafka ./drivers/rocketmq ./drivers/kmq ./drivers/exec \
		./drivers/redisstreams $$($(call testing_with,internal/served))) $(log) || failed=1; \
	$(if $(PACKAGES)$(RUN),,$(served) -skip '^TestNothingOfAFaultIsLeft$$' -run "^($$($(added) | xargs grep -hoE '^func Test[A-Za-z]+' | cut -c6- | paste -sd'|'))$$" \
		$$($(unserved) | grep -E "/($$($(added) | xargs dirname | paste -sd'|'))$$") $(log) || failed=1; \
		$(served) -run '^TestNothingOfAFaultIsLeft$$' ./internal/cli $(log) || failed=1;) exit $$failed

systems-ran: ## check that make systems-tests ran every system that this host can run
	go test -count=1 -v -tags systems -run '^TestEverySystemRan$$' ./drivers/all

tested: ## run the conformance suites, and record what passed in drivers/standard/tested.yaml (PACKAGES=./drivers/nsq picks)
	WEIR_TESTED=$(CURDIR)/drivers/standard/tested.yaml go test -p 1 -count=1 -tags systems -timeout 60m -run '^TestConformance' $(or $(PACKAGES),$$(go list ./drivers/... | grep -v /internal/))
	$(MAKE) generate

# deploy/helm/testdata has values, and what they render to; UPDATE=1 writes the latter.
helm = go tool -modfile=tools/helm/go.mod helm
chart: ## check the Helm chart, and what it renders
	$(helm) lint --strict --quiet --kube-version 1.34.0 deploy/helm/weir
	@for values in deploy/helm/testdata/*.values.yaml; do rendered=$${values%.values.yaml}.yaml; \
		$(helm) template w deploy/helm/weir --namespace bench --kube-version 1.34.0 --values $$values >$(or $(TMPDIR),/tmp)/weir-chart.yaml || exit 1; \
		if [ -n "$(UPDATE)" ]; then cp $(or $(TMPDIR),/tmp)/weir-chart.yaml $$rendered; fi; \
		diff -u $$rendered $(or $(TMPDIR),/tmp)/weir-chart.yaml || exit 1; done

apiserver: ## test the chart against a real API server of Kubernetes, which deploy/helm/apiserver.sh builds
	go test -count=1 -v ./deploy/helm

lint: ## run the linters that tools/go.mod pins
	GOLANGCI_LINT_CACHE=$(CURDIR)/.lintcache go tool -modfile=tools/go.mod golangci-lint run

vet: ## run go vet on the tests that the tag systems adds; make lint checks all else as go vet does
	go vet -tags systems $$(git grep -lE '^//go:build (.* )?systems' -- '*_test.go' | xargs dirname | sort -u | sed 's|^|./|')

# Whether other platforms compile is a question of types. vet reads there what no build of this platform has.
cross: ## check that weir compiles on other platforms
	GOARCH=386 CGO_ENABLED=0 go test ./schedule
	go run ./internal/tools/typecheck linux/arm64 ./...
	go run ./internal/tools/typecheck darwin/arm64 ./...
	go run ./internal/tools/typecheck darwin/amd64 ./...
	GOOS=darwin GOARCH=arm64 go vet $$(git ls-files '*other.go' '*_darwin.go' | xargs -n1 dirname | sort -u | sed 's|^|./|')

libzmq: ## test the driver zeromq with the C library of ZeroMQ's makers
	go vet -tags libzmq ./drivers/zeromq
	go test -count=1 -tags libzmq ./drivers/zeromq

check: lint ## run linters, house rules, and checks of links and generated files
	go test ./internal/policy
	go test ./internal/scenario ./internal/series/suite ./internal/finding ./internal/cli ./result -run 'UpToDate|ThePage|TheSchema'

generate: ## write the generated files again: schemas, tables, driver pages
	go test ./internal/scenario ./internal/series/suite ./internal/finding ./internal/cli -run 'UpToDate|ThePageListsEveryKey' -update

bench: ## measure cost, allocations and lateness of the hot path
	go test -run '^$$' -bench . -benchmem ./schedule ./internal/stamp ./internal/ledger ./internal/pace ./measure ./engine

# Stripped, as a release is. internal/policy bounds the packages.
accuracy: ## measure docs/accuracy.md again, for a quarter of an hour in which the host does nothing else
	go build -trimpath -buildvcs=true -o weir ./cmd/weir
	./weir calibrate --runs 50 --json >docs/results/accuracy.json || [ $$? = 5 ]
	go test ./internal/view -run TestThePageOnAccuracyIsUpToDate -update

size: ## print what weir and weir-all compile, and the size of their binaries; weir may have 80 MB
	@for p in weir weir-all; do \
		go build -trimpath -ldflags='-s -w' -o .size ./cmd/$$p && bytes=$$(wc -c <.size) && rm .size || exit; \
		echo "$$p: $$(go list -deps ./cmd/$$p | wc -l) packages, $$((bytes / 1000000)) MB"; \
		[ $$p = weir-all ] || [ $$bytes -le 80000000 ] || { echo "more than 80 MB: see docs/writing-a-driver.md"; exit 1; }; \
	done

lines: ## count the lines of Go
	@echo "$$(git ls-files '*.go' | grep -v '_test\.go$$' | xargs cat | wc -l) lines of code, $$(git ls-files '*_test.go' | xargs cat | wc -l) of tests"
