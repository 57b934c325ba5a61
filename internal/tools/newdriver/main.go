// Command newdriver creates the folder of a new driver and lists it in drivers/standard:
//
//	go run ./internal/tools/newdriver NAME [--title "Title"]
//
// The result compiles, follows the house rules and fails its conformance tests, which say check by
// check what to write: nothing in it pretends to work. docs/writing-a-driver.md describes the next steps.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// failed is the exit code for any failure; nothing is written then.
const failed = 2

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run executes the command and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	name, title, dir, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "newdriver:", err)
		return failed
	}
	p, err := newPlan(name, title)
	if err == nil {
		err = p.make(dir)
	}
	if err != nil {
		fmt.Fprintln(stderr, "newdriver:", err)
		return failed
	}
	fmt.Fprintf(stdout, `drivers/%[1]s is there, and drivers/standard lists it. Next:
  go get MODULE@VERSION     adds the client library
  go test ./drivers/%[1]s   says check by check what to write
  make generate             writes docs/drivers/%[2]s.md
docs/writing-a-driver.md goes through it.
`, p.Package, p.Name)
	return 0
}

// parse parses the command line, on which the name may precede the flags.
func parse(args []string, stderr io.Writer) (name, title, dir string, err error) {
	flags := flag.NewFlagSet("newdriver", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	usage := "usage: newdriver NAME [--title TITLE] [-C FOLDER]"
	flags.StringVar(&title, "title", "", "")
	flags.StringVar(&dir, "C", ".", "")
	var names []string
	for rest := args; ; rest = flags.Args()[1:] {
		if err := flags.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				fmt.Fprintln(stderr, usage)
				return "", "", "", err
			}
			return "", "", "", fmt.Errorf("%w (%s)", err, usage)
		}
		if flags.NArg() == 0 {
			break
		}
		names = append(names, flags.Arg(0))
	}
	if len(names) != 1 {
		return "", "", "", fmt.Errorf("one driver is made at a time, not %d (%s)", len(names), usage)
	}
	return names[0], title, dir, nil
}
