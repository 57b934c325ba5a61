// Command typecheck reports what does not compile on another platform:
//
//	go run ./internal/tools/typecheck PLATFORM/ARCHITECTURE PACKAGE ...
//
// It type-checks the packages, their tests and all dependencies. The compiler does the same but also
// generates machine code that nothing would run, which takes minutes per platform instead of seconds.
// typecheck misses what only the compiler's later passes and the assembler reject; for that, CI builds
// and runs one platform.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, ".", os.Args[1:], os.Stdout, os.Stderr))
}

// run checks the packages named by the arguments in the module around dir. It returns the exit code: 1
// if something does not compile, 2 if nothing could be checked.
func run(ctx context.Context, dir string, args []string, stdout, stderr io.Writer) int {
	if len(args) < 2 || strings.Count(args[0], "/") != 1 {
		fmt.Fprintln(stderr, "usage: typecheck PLATFORM/ARCHITECTURE PACKAGE ... (such as darwin/arm64 ./...)")
		return 2
	}
	platform, arch, _ := strings.Cut(args[0], "/")
	all, err := list(ctx, dir, platform, arch, args[1:])
	if err != nil {
		fmt.Fprintln(stderr, "typecheck:", err)
		return 2
	}
	faults := check(all, arch)
	for _, f := range faults {
		fmt.Fprintf(stdout, "%s: %s\n", args[0], f)
	}
	if len(faults) > 0 {
		return 1
	}
	return 0
}
