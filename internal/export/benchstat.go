package export

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// benchstat writes a line for each run in the benchmark format of Go
// (golang.org/design/14313-benchmark-format). Repeats of one scenario have one name, so
// that benchstat takes them as samples of one benchmark. Invalid runs are left out, with a
// line that says so: benchstat knows no verdict.
func benchstat(w io.Writer, runs []Run) error {
	var b bytes.Buffer
	last := ""
	for _, r := range runs {
		x := r.Result
		if x.Verdict.Status == "invalid" {
			fmt.Fprintf(&b, "# left out, its verdict is INVALID: %s\n", oneLine(r.Dir))
			continue
		}
		head := fmt.Sprintf("driver: %s\nserver: %s %s\nguarantee: %s\n", oneLine(x.System.Driver), oneLine(x.System.Server.Name), oneLine(x.System.Server.Version), x.System.Guarantee)
		if head != last {
			b.WriteString(head)
			last = head
		}
		name := x.Run.Series
		if name == "" {
			name = r.name()
		}
		fmt.Fprintf(&b, "Benchmark%s %d", benchName(name), max(1, x.Messages.Sent, x.Messages.Delivered))
		for _, f := range shown(x) {
			switch f.Unit {
			case unitNS:
				fmt.Fprintf(&b, " %s %s-ns", number(f.Value), strings.ReplaceAll(f.Name, ".", "-"))
			case unitPerS:
				fmt.Fprintf(&b, " %s %s-messages/s", number(f.Value), f.Of)
			case unitBytesS:
				fmt.Fprintf(&b, " %s %s-B/s", number(f.Value), f.Of)
			}
		}
		b.WriteString("\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_./=,-]+`)

// benchName is a name of a benchmark: it begins with a capital and has no spaces.
func benchName(s string) string {
	return "Run/name=" + notInName.ReplaceAllString(s, "_")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
