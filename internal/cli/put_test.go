package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

func TestPutSendsTheFolderOnce(t *testing.T) {
	var bodies [][]byte
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPut || r.ContentLength != int64(len(b)) {
			t.Errorf("%s of %d bytes, of which it says %d: %v", r.Method, len(b), r.ContentLength, err)
		}
		bodies = append(bodies, b)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Code>AccessDenied</Code>")
	}))
	defer s.Close()
	secret := s.URL + "/bucket/x.tar.gz?X-Amz-Signature=secret"
	args := []string{"run", "--driver", "chan", "--warmup", "0s", "--measure", "300ms", "--quiet", "--put", secret, "--out"}
	w := World{Dir: t.TempDir()}
	for _, x := range []struct {
		several []string
		want    string
	}{{nil, result.FileResult}, {[]string{"--repeat", "2"}, "series.json"}} {
		bodies = nil
		do(t, w, slices.Concat(args, []string{"two" + x.want}, x.several)...)
		if len(bodies) != 1 {
			t.Fatalf("%d requests", len(bodies))
		}
		zipped := must.Get(gzip.NewReader(bytes.NewReader(bodies[0])))(t)
		var names []string
		files := tar.NewReader(zipped)
		for h, err := files.Next(); err != io.EOF; h, err = files.Next() {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, h.Name)
		}
		if !slices.Contains(names, x.want) || !slices.Contains(names, "report.html") {
			t.Errorf("the folder has %s", names)
		}
	}
	status = http.StatusForbidden
	for _, want := range []string{"answers 403 Forbidden: <Code>AccessDenied</Code>", "connection refused"} {
		code, _, stderr := do(t, w, append(args, "r"+want[:3])...)
		if said := stderr.String(); code != int(Failed) || !strings.Contains(said, want) || strings.Contains(said, "secret") {
			t.Errorf("%d: %s", code, said)
		}
		s.Close()
	}
}
