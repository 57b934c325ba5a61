package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/history"
	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// BenchmarkTenThousandRuns measures the table of docs/serve.md. Copies of a real result are 12 series, each with figures
// that vary by a few percent.
func BenchmarkTenThousandRuns(b *testing.B) {
	const runs, series = 10_000, 12
	text := must.Get(os.ReadFile("../view/testdata/valid.json"))(b)
	dir := b.TempDir()
	for i := range runs {
		r := must.Get(result.Unmarshal(text))(b)
		r.Run.Name, r.Run.ID = fmt.Sprint("night-", i%series), fmt.Sprint(i)
		r.Run.StartedAt = morning.Add(time.Duration(i) * time.Hour).Format(time.RFC3339Nano)
		for _, d := range []*result.Dist{r.Latency.Send.Response, r.Latency.E2E.Response} {
			for n := range d.Percentiles {
				p := &d.Percentiles[n]
				p.NS += p.NS * int64(i*7919%101) / 2000
			}
		}
		f := must.Get(result.Create(filepath.Join(dir, r.Run.Name, fmt.Sprintf("%04d", i/series))))(b)
		must.Do(b, errors.Join(f.WriteResult(r), f.Close()))
	}
	processor := func(b *testing.B, f func()) {
		var before, after syscall.Rusage
		used := func(of *syscall.Rusage) time.Duration {
			must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, of))
			return time.Duration(of.Utime.Nano() + of.Stime.Nano())
		}
		began := used(&before)
		f()
		b.ReportMetric((used(&after)-began).Seconds()*1000/float64(b.N), "processor-ms/op")
		b.ReportMetric(float64(after.Maxrss)/1024, "peak-MiB")
	}
	open := func(b *testing.B, file string) *index.Index {
		x := must.Get(index.Open(b.Context(), dir, file))(b)
		must.Get(x.Sync(b.Context(), nil))(b)
		return x
	}
	b.Run("first look", func(b *testing.B) {
		processor(b, func() {
			for b.Loop() {
				_ = open(b, filepath.Join(b.TempDir(), "i")).Close()
			}
		})
	})
	x := open(b, filepath.Join(b.TempDir(), "i"))
	defer x.Close()
	b.Run("look for new runs", func(b *testing.B) {
		processor(b, func() {
			for b.Loop() {
				must.Get(x.Sync(b.Context(), nil))(b)
			}
		})
	})
	memo := history.OpenMemo(filepath.Join(b.TempDir(), "changes"), "devel")
	for _, tt := range []struct {
		name, page string
		kept       *history.Memo
	}{
		{"list", "/", nil}, {"filtered list", "/?q=verdict:valid+p99%3C10ms&sort=p99", nil}, {"history", "/history", nil}, {"history, changes kept", "/history", memo},
	} {
		b.Run(tt.name, func(b *testing.B) {
			ask := func() {
				s := New(b.Context(), Options{Index: x, Weir: "devel", Log: slog.New(slog.DiscardHandler), Changes: tt.kept}) // it keeps pages
				s.look.ended = time.Now().Add(time.Hour)                                                                      // nothing is new
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+tt.page, http.NoBody))
				s.Wait()
				if w.Code != http.StatusOK {
					b.Fatal(w.Code, afterStyle(w.Body.String()))
				}
			}
			ask()
			processor(b, func() {
				for b.Loop() {
					ask()
				}
			})
		})
	}
}
