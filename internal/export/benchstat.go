package export

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// benchstat writes a line for each run in Go's benchmark format (golang.org/design/14313-benchmark-format).
// Repeats of a scenario share a name, so that benchstat takes them as samples of one benchmark. Invalid
// runs and lower bounds, which benchstat does not know, are replaced by a comment.
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
		line := fmt.Sprintf("Benchmark%s %d", benchName(name), max(1, x.Messages.Sent, x.Messages.Delivered))
		for _, f := range shown(x) {
			unit := ""
			switch f.Unit {
			case unitNS:
				unit = strings.ReplaceAll(f.Name, ".", "-") + "-ns"
			case unitPerS:
				unit = f.Of + "-messages/s"
			case unitBytesS:
				unit = f.Of + "-B/s"
			default:
				continue
			}
			if v, exact := f.Value.Exact(); exact {
				line += " " + number(v) + " " + unit
			} else {
				fmt.Fprintf(&b, "# left out, only a lower bound is known: %s %s (%s)\n", unit, f.Value.Text(number), oneLine(r.Dir))
			}
		}
		b.WriteString(line + "\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_./=,-]+`)

// benchName makes a valid benchmark name: capitalized, without spaces.
func benchName(s string) string {
	return "Run/name=" + notInName.ReplaceAllString(s, "_")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
