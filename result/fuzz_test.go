package result

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
)

// seeds adds the file of that name from each stored folder, whole and cut in half.
func seeds(f *testing.F, name string) {
	f.Helper()
	files := must.Get(filepath.Glob(filepath.Join("testdata", "*", name)))(f)
	deeper := must.Get(filepath.Glob(filepath.Join("testdata", "*", "*", name)))(f)
	for _, file := range append(files, deeper...) {
		b := must.Get(os.ReadFile(file))(f)
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	if len(files) == 0 {
		f.Fatalf("no %s is stored", name)
	}
}

// reason fails for an error of a reader that callers cannot classify.
func reason(t *testing.T, err error) {
	t.Helper()
	if f := (*FileError)(nil); !errors.As(err, &f) {
		t.Fatalf("%v is no *FileError", err)
	}
	for _, why := range []error{ErrNotResult, ErrNewer, ErrTorn, ErrMalformed} {
		if errors.Is(err, why) {
			return
		}
	}
	t.Fatalf("%v says none of the reasons", err)
}

func FuzzUnmarshal(f *testing.F) {
	seeds(f, FileResult)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Unmarshal(b)
		if err != nil {
			reason(t, err)
			return
		}
		again := must.Get(Marshal(r))(t)
		if _, err := Unmarshal(again); err != nil {
			t.Fatalf("what was read and written: %v", err)
		}
	})
}

func FuzzUnmarshalEnvironment(f *testing.F) {
	seeds(f, FileEnvironment)
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := UnmarshalEnvironment(b); err != nil {
			reason(t, err)
		}
	})
}

func FuzzEvents(f *testing.F) {
	seeds(f, FileEvents)
	f.Add([]byte("{\"schema\": \"weir.events/v1\"}\n{\"t_ns\": 1, \"kind\": \"gc\", \"new\": [1]}\n{\"t_ns\""))
	f.Fuzz(func(t *testing.T, b []byte) { endsAtAnError(t, b, Events) })
}

func FuzzSamples(f *testing.F) {
	f.Add([]byte("{\"schema\": \"weir.host/v1\"}\n{\"from_ns\": 1, \"to_ns\": 2, \"host\": {\"user_s\": 0.5}, \"processes\": [{\"name\": \"weir\", \"processes\": 1}], \"new\": [1]}\n{\"from_ns\""))
	f.Fuzz(func(t *testing.T, b []byte) {
		endsAtAnError(t, b, Samples)
		var sum *host.Sample // any samples can be added
		for x, err := range Samples(bytes.NewReader(b)) {
			if err != nil {
				break
			}
			if sum != nil {
				x = sum.Then(x)
			}
			sum = &x
		}
	})
}

// endsAtAnError reads a log. An error ends it, and it has no more records than lines.
func endsAtAnError[T any](t *testing.T, b []byte, read func(io.Reader) iter.Seq2[T, error]) {
	n, failed := 0, false
	for _, err := range read(bytes.NewReader(b)) {
		if failed {
			t.Fatal("it continues after an error")
		}
		if err != nil {
			failed = true
			reason(t, err)
			continue
		}
		n++
	}
	if n > bytes.Count(b, []byte("\n")) {
		t.Fatalf("%d records of %d lines", n, bytes.Count(b, []byte("\n")))
	}
}

func FuzzReadHGRM(f *testing.F) {
	seeds(f, "send.hgrm")
	f.Add([]byte("       Value     Percentile TotalCount 1/(1-Percentile)\n\n1 1.0 2\n#[Mean = 1, StdDeviation = 0]\n#[Max = 1.0, Total count = 2]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := ReadHGRM(bytes.NewReader(b))
		if err != nil {
			reason(t, err)
			return
		}
		if n := len(table.Rows); n > 0 && table.Rows[n-1].Count != table.Total {
			t.Fatalf("%d rows that end at %d of %d", n, table.Rows[n-1].Count, table.Total)
		}
	})
}

func FuzzReadLog(f *testing.F) {
	seeds(f, FileIntervals)
	f.Add([]byte("Tag=a,1.5,1,1,HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsP"))
	f.Add([]byte("#[Schema: weir.intervals/v99999999999999999999]\n\"x\"\n\n,,,"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewLogReader(bytes.NewReader(b))
		for range bytes.Count(b, []byte("\n")) + 2 {
			l, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				reason(t, err)
				continue
			}
			if l.From < 0 || l.To < l.From || l.Max < 0 {
				t.Fatalf("times %d to %d, largest %d", l.From, l.To, l.Max)
			}
			again(t, l.Counts)
		}
	})
}

// FuzzDecode starts below the compression, which mutation rarely gets through.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 1, 4})
	f.Add(appendZigZag(appendZigZag(nil, -measure.LastBucket), 9))
	f.Add(appendZigZag(appendZigZag(nil, math.MinInt64), math.MaxInt64))
	f.Fuzz(func(t *testing.T, p []byte) {
		c, err := decodeCounts(p)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		again(t, c)
	})
}

// again encodes and decodes what was accepted.
func again(t *testing.T, c *measure.Counts) {
	t.Helper()
	text := must.Get(new(encoder).encode(c))(t)
	back := must.Get(decode(text))(t)
	if d := cmp.Diff(buckets(c), buckets(back)); d != "" {
		t.Fatal(d)
	}
}
