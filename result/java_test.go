package result

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/measure"
)

// hdrVersion is the release of HdrHistogram that must be able to read our logs.
const hdrVersion = "2.2.2"

// hdrJar returns the jar of HdrHistogram's Java library, downloaded once into the user's cache. It
// skips the test without Java or the jar.
func hdrJar(t *testing.T) string {
	t.Helper()
	needs.Time(t)
	needs.NoRace(t)
	missing := func(format string, args ...any) { needs.Host(t, "java", fmt.Sprintf(format, args...)) }
	for _, tool := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing("HdrHistogram's own reader needs java, javac and mvn: %v", err)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		missing("no cache for HdrHistogram's jar: %v", err)
	}
	dir := filepath.Join(cache, "weir-test")
	jar := filepath.Join(dir, "HdrHistogram-"+hdrVersion+".jar")
	if _, err := os.Stat(jar); err == nil {
		return jar
	}
	cmd := exec.CommandContext(t.Context(), "mvn", "-q", "-B", "dependency:copy",
		"-Dartifact=org.hdrhistogram:HdrHistogram:"+hdrVersion, "-DoutputDirectory="+dir)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		missing("Maven did not get HdrHistogram's jar: %v\n%s", err, out)
	}
	return jar
}

// Writes a log, reads it with HdrHistogram's Java library, and compares times, counts, bucket
// values and percentile tables; then reads the log that Java wrote of the same data.
func TestHdrHistogramsJavaReaderAgrees(t *testing.T) {
	jar := hdrJar(t)
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(7, 7))
	var log, want bytes.Buffer
	epoch := time.UnixMilli(1_700_000_000_123)
	w := must.Get(NewLogWriter(&log, epoch, "test"))(t)
	sums := map[string]*measure.Counts{}
	for i := range int64(30) {
		c := randomCounts(rnd, 60)
		switch i {
		case 0: // empty
			c = new(measure.Counts)
		case 1: // both ends
			c.Add(0, 1)
			c.Add(measure.Highest, 3)
			c.Add(measure.Highest+1, 5)
		case 2: // one value
			c = new(measure.Counts)
			c.Add(123_456_789, 1)
		}
		// What a log can preserve: extremes are those of the buckets.
		c = measure.FromBuckets(c.Buckets())
		tag := Tag(measure.Kind(i%3), measure.Measure)
		must.Do(t, w.Write(tag, i*1e9, (i+1)*1e9, c))
		if sums[tag] == nil {
			sums[tag] = new(measure.Counts)
		}
		sums[tag].Merge(c)
		fmt.Fprintf(&want, "line %s %d %d %d", tag, epoch.UnixMilli()+i*1000, epoch.UnixMilli()+(i+1)*1000, c.Total())
		for v, n := range c.Buckets() {
			fmt.Fprintf(&want, " %d:%d", v, n)
		}
		want.WriteByte('\n')
		if c.Total() == 0 {
			want.WriteString("end\n")
			continue
		}
		var table bytes.Buffer
		must.Do(t, WriteHGRM(&table, "x", c, 0))
		want.WriteString(withoutStatistics(table.String()) + "end\n")
	}
	path, back := filepath.Join(dir, "ours.hlog"), filepath.Join(dir, "theirs.hlog")
	must.Do(t, os.WriteFile(path, log.Bytes(), 0o644))
	cmd := exec.CommandContext(t.Context(), "java", "-cp", jar, filepath.Join("testdata", "ReadLog.java"), path, back)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("java: %v\n%s", err, stderr(err))
	}
	var got strings.Builder
	for block := range strings.SplitAfterSeq(string(out), "end\n") {
		head, table, _ := strings.Cut(block, "\n")
		if head == "" {
			continue
		}
		got.WriteString(head + "\n")
		if f := strings.Fields(head); len(f) == 5 { // no bucket: Java prints an empty table
			got.WriteString("end\n")
			continue
		}
		got.WriteString(withoutStatistics(table))
	}
	if d := cmp.Diff(want.String(), got.String()); d != "" {
		t.Fatalf("ours (-) and Java's (+) differ:\n%s", d)
	}
	file := must.Get(os.Open(back))(t)
	defer file.Close()
	read := must.Get(Totals(file))(t)
	for tag, c := range sums {
		if d := cmp.Diff(buckets(c), buckets(read[tag])); d != "" {
			t.Fatalf("%s as Java writes it:\n%s", tag, d)
		}
	}
}

func stderr(err error) []byte {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.Stderr
	}
	return nil
}

// withoutStatistics strips the comments from a percentile table, since the mean is computed
// slightly differently (the middle of a bucket, within the extremes), and the last digit of the two
// columns whose ties Java rounds up.
func withoutStatistics(table string) string {
	var b strings.Builder
	for line := range strings.SplitAfterSeq(table, "\n") {
		switch f := strings.Fields(line); {
		case strings.HasPrefix(line, "#["):
		case len(f) >= 3 && f[0] != "Value":
			for i := 1; i < len(f); i += 2 {
				f[i] = f[i][:len(f[i])-1]
			}
			fmt.Fprintln(&b, strings.Join(f, " "))
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}
