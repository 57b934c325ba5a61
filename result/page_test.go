package result

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
)

func TestThePageOfLogMatchesExample(t *testing.T) {
	b := must.Get(os.ReadFile(filepath.Join("..", "docs", "formats", "hlog.md")))(t)
	page := string(b)
	block := func(kind string) string {
		_, s, ok := strings.Cut(page, "```"+kind+"\n")
		if !ok {
			t.Fatalf("the page has no block of %s", kind)
		}
		s, _, _ = strings.Cut(s, "```")
		return s
	}
	line := must.Get(NewLogReader(strings.NewReader(block("hlog"))).Next())(t)
	want := map[int64]uint64{5: 3, 1500: 1, 4096: 200}
	golden.Equal(t, want, buckets(line.Counts), "")
	if line.Tag != "send.response.measure" || line.Max != 4097 || line.From != 2e9 || line.To != 3e9+17 {
		t.Errorf("read %+v", line)
	}
	if got := min(line.Counts.At(measure.Rank(50, line.Counts.Total())), line.Max); got != 4097 {
		t.Errorf("median %d", got)
	}
	c := new(measure.Counts)
	c.Add(5, 3)
	c.Add(1500, 1)
	c.Add(4097, 200)
	e := new(encoder)
	must.Get(e.encode(c))(t)
	plain := must.Get(hex.DecodeString(strings.Join(strings.Fields(block("hex")), "")))(t)
	if !bytes.Equal(plain, e.plain) {
		t.Errorf("the page unpacks to\n% x, the writer packs\n% x", plain, e.plain)
	}
	// The counts column of the table, from left to right.
	var counts []byte
	index := 0
	for _, m := range regexp.MustCompile("(?m)^\\| `([0-9a-f ]+)` \\| (-?\\d+) \\| index (\\d+)").FindAllStringSubmatch(page, -1) {
		part := must.Get(hex.DecodeString(strings.ReplaceAll(m[1], " ", "")))(t)
		n, _ := strconv.Atoi(m[2])
		at, _ := strconv.Atoi(m[3])
		if v, used := zigZag(part); v != int64(n) || used != len(part) || at != index {
			t.Errorf("row %q: it is %d, of %d bytes, at index %d", m[0], v, used, index)
		}
		index += max(1, -n)
		counts = append(counts, part...)
	}
	if !bytes.Equal(counts, plain[headerBytes:]) {
		t.Errorf("the table has % x, the counts are % x", counts, plain[headerBytes:])
	}
	if !strings.Contains(page, "33,420") || measure.LastBucket != 33_420 {
		t.Errorf("the page does not say the last bucket %d", measure.LastBucket)
	}
}

func TestThePageOfTableMatchesFormat(t *testing.T) {
	b := must.Get(os.ReadFile(filepath.Join("..", "docs", "formats", "hgrm.md")))(t)
	_, text, _ := strings.Cut(string(b), "```\n")
	text, _, _ = strings.Cut(text, "```")
	table := must.Get(ReadHGRM(strings.NewReader(strings.Replace(text, "...\n", "", 1))))(t)
	if table.Title != "send.response" || table.Total != 86 || len(table.Rows) != 5 {
		t.Errorf("read %+v", table)
	}
	c := new(measure.Counts)
	c.Add(10_000, 5)
	c.Add(13_333, 6)
	c.Add(9_876_543, 1193)
	var ours bytes.Buffer
	must.Do(t, WriteHGRM(&ours, "send.response", c, 0))
	figures := regexp.MustCompile(`[0-9.]+`)
	form := func(s string, n int) []string {
		lines := strings.Split(figures.ReplaceAllString(s, "0"), "\n")
		for i := range lines {
			lines[i] = strings.Join(strings.Fields(lines[i]), " ")
		}
		return lines[:n]
	}
	if d := cmp.Diff(form(text, 6), form(ours.String(), 6)); d != "" {
		t.Errorf("the page (-) and a table (+) begin otherwise:\n%s", d)
	}
}
