# Each target is one command; nothing hides here.
.PHONY: build test race check bench

build: ## the program, in the working folder
	go build -trimpath -o weir ./cmd/weir

test: ## everything, as a newcomer runs it
	go test ./...

race: ## the same under the race detector, without the long ones
	go test -race -short ./...

check: ## linters, at the version that tools/go.mod pins
	go tool -modfile=tools/go.mod golangci-lint run

bench: ## cost, allocations and lateness of the hot path
	go test -run '^$$' -bench . -benchmem ./schedule ./internal/stamp ./internal/ledger ./internal/pace ./measure ./engine

