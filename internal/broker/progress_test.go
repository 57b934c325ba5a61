//go:build unix

package broker

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestInstallReportsProgress: every 10 s, and nothing for a short install.
func TestInstallReportsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, shown := make(chan struct{}), make(chan struct{})
		var lines []string
		m := new(meter)
		go func() { defer close(shown); m.run(ended, func(line string) { lines = append(lines, line) }) }()
		time.Sleep(15 * time.Second)
		m.begin(0, nil)
		time.Sleep(10 * time.Second)
		var done atomic.Int64
		m.begin(40<<20, done.Load)
		time.Sleep(9 * time.Second)
		done.Store(10 << 20)
		time.Sleep(7 * time.Second)
		m.end()
		time.Sleep(4 * time.Second)
		close(ended)
		<-shown
		want := []string{
			`^installing for 10 s(; the host received \d+\.\d MiB meanwhile)?$`,
			`^installing for 20 s(; the host received \d+\.\d MiB meanwhile)?; size not told$`,
			`^installing for 30 s; 0\.0 of 40\.0 MiB, time left not known yet$`,
			`^installing for 40 s; 10\.0 of 40\.0 MiB, about 45 s left$`,
		}
		if len(lines) != len(want) {
			t.Fatalf("%q; want %d lines in 45 s", lines, len(want))
		}
		for i, w := range want {
			if !regexp.MustCompile(w).MatchString(lines[i]) {
				t.Errorf("%q; want %s", lines[i], w)
			}
		}
	})
}

// TestNetworkCounterEstimatesDownload covers downloads that no file shows.
func TestNetworkCounterEstimatesDownload(t *testing.T) {
	began := time.Now()
	m := &meter{began: began, first: 1 << 20, known: true, now: &download{began: began, from: 2 << 20, total: 8 << 20}}
	for name, tt := range map[string]struct {
		received uint64
		known    bool
		want     string
	}{
		"a part":          {4 << 20, true, "installing for 10 s; 2.0 of 8.0 MiB, about 30 s left"},
		"more than all":   {40 << 20, true, "installing for 10 s; 8.0 of 8.0 MiB, about 1 s left"},
		"it is not known": {0, false, "installing for 10 s; size not told"},
	} {
		if got := m.line(began.Add(10*time.Second), tt.received, tt.known); got != tt.want {
			t.Errorf("%s: %q; want %q", name, got, tt.want)
		}
	}
}

// TestPackageManagersReportSize uses output of apt 2.6, pip 23.2 and Maven 3.8.
func TestPackageManagersReportSize(t *testing.T) {
	uris := "Reading package lists...\n'http://packages.example/pool/main/r/redis/redis-server_7.0.15-1_amd64.deb' redis-server_5%3a7.0.15-1_amd64.deb 1048576 SHA256:00\n" +
		"'http://packages.example/pool/main/j/jemalloc/libjemalloc2_5.3.0-1_amd64.deb' libjemalloc2_5.3.0-1_amd64.deb 524288 SHA256:00\n"
	h := fakeHost([]string{"apt-get", "dpkg-deb"}, func(c call) ([]byte, error) {
		if slices.Contains(c.args, "--print-uris") {
			return []byte(uris), nil
		}
		return nil, nil
	})
	_, notes, _ := installed(t, h, recipeFrom(t, "apt: {packages: [redis-server], programs: {thing: usr/bin/thing}}"))
	if want := "downloading the packages redis-server and their missing dependencies, 1.5 MiB"; !slices.Contains(notes, want) {
		t.Errorf("%q; want %q", notes, want)
	}

	for name, tt := range map[string]struct {
		run   func(ctx context.Context, j *job) error
		has   string
		print string
		want  string
	}{
		"pip": {
			func(ctx context.Context, j *job) error { return j.pypi(ctx, &PyPISource{Package: "p", Version: "1"}) }, "python3",
			"Collecting p==1\n  Downloading p-1-py3-none-manylinux_2_17_x86_64.whl (4.2 MB)\n", "of 4.0 MiB, ",
		},
		"mvn": {
			func(ctx context.Context, j *job) error {
				return j.maven(ctx, &MavenSource{Archives: []string{"g:dist:3:tar.gz:bin"}})
			}, "mvn",
			"Progress (1): 4.1 kB\rProgress (1): 12/120 MB\rProgress (1): 21/105 MB\r", "20.0 of 100.1 MiB, ",
		},
		"mvn, of a part of itself": {
			func(ctx context.Context, j *job) error {
				return j.maven(ctx, &MavenSource{Archives: []string{"g:dist:3:tar.gz:bin"}})
			}, "mvn",
			"Progress (1): 2.0/4.1 kB\r", "size not told",
		},
		"go": {
			func(ctx context.Context, j *job) error {
				return j.golang(ctx, &GoSource{Module: "m", Version: "v1.0.0"})
			}, "go", "", "size not told",
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := &job{recipe: &Recipe{Name: "r"}, stage: t.TempDir(), note: func(string, ...any) {}}
			j.far.began, j.far.known = time.Now(), true
			said := ""
			j.host = fakeHost([]string{tt.has}, func(c call) ([]byte, error) {
				if c.heard != nil {
					c.heard(tt.print)
				}
				said = j.far.line(time.Now().Add(time.Second), 1<<40, true)
				return nil, fmt.Errorf("enough")
			})
			if err := tt.run(t.Context(), j); err == nil || !strings.Contains(said, tt.want) {
				t.Errorf("%q, %v; want %q", said, err, tt.want)
			}
		})
	}
}

func TestDownloadSizeSumsItsFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.deb"), "four", 0o644)
	write(t, filepath.Join(dir, "partial", "b.deb"), "three", 0o644)
	if n := filled(dir)(); n != 9 {
		t.Errorf("%d bytes; want 9", n)
	}
	if n := filled(filepath.Join(dir, "none"))(); n != 0 {
		t.Errorf("%d bytes of a folder that is not there", n)
	}
}
