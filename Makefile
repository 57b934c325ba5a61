# Nothing hides here: a target is what one would type.
.PHONY: build test race systems tested check generate bench

# Packages whose tests install and start servers that weir does not embed, one
# system after the other: see systems.
SERVERS = /drivers/(kafka|nsq|postgres|redispubsub|redisstreams)$$|/drivers/internal/(served|redis[a-z]*)$$

build: ## the program, in the working folder
	go build -trimpath -o weir ./cmd/weir

test: ## all that needs no server beyond the embedded one (FLAGS=-v shows each test)
	go test -timeout 30m $(FLAGS) $$(go list ./... | grep -vE '$(SERVERS)')

race: ## the same under the race detector, without the long ones
	go test -race -short -timeout 30m $$(go list ./... | grep -vE '$(SERVERS)')

systems: ## the drivers of systems that weir installs, against the real servers
	go test -p 1 -tags systems -timeout 30m ./internal/broker $$(go list ./... | grep -E '$(SERVERS)')

tested: ## every driver's conformance against the real systems, and what passed recorded in drivers/all/tested.yaml
	WEIR_TESTED=$(CURDIR)/drivers/all/tested.yaml go test -p 1 -count=1 -timeout 60m -run '^TestConformance' $$(go list ./drivers/... | grep -v /internal/)
	$(MAKE) generate

check: ## linters (at the version that tools/go.mod pins), house rules and links, generated files up to date
	GOLANGCI_LINT_CACHE=$(CURDIR)/.lintcache go tool -modfile=tools/go.mod golangci-lint run
	go test ./internal/policy
	go test ./internal/scenario ./internal/cli ./result -run 'UpToDate|ThePage|TheSchema'

generate: ## what is generated: the scenario's schema and table of keys, the drivers' pages
	go test ./internal/scenario ./internal/cli -run 'UpToDate|ThePageListsEveryKey' -update

bench: ## cost, allocations and lateness of the hot path
	go test -run '^$$' -bench . -benchmem ./schedule ./internal/stamp ./internal/ledger ./internal/pace ./measure ./engine

