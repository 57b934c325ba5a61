package buildinfo

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// Identity returns Version, and where that does not name the source also the platform and the hash of
// the ID that Go gives each build, or else of the program's file, as Stripped reads it:
// "devel@linux/amd64:0123456789ab", of weir-all "devel/weir-all@linux/amd64:0123456789ab". See Same.
func Identity() (string, error) { return identity() }

// Build returns Identity, or Version where the program's file cannot be read.
func Build() string {
	if id, err := identity(); err == nil {
		return id
	}
	return Version()
}

var identity = sync.OnceValues(func() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if ok && exact(info) {
		return version(info), nil
	}
	f, err := Program()
	if err != nil {
		return "", fmt.Errorf("reading weir's own file, to tell its build from others: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	sum, err := fingerprint(f)
	if err != nil {
		return "", fmt.Errorf("reading weir's own file, to tell its build from others: %w", err)
	}
	return fmt.Sprintf("%s%s@%s/%s:%x", Version(), variant(info), runtime.GOOS, runtime.GOARCH, sum[:6]), nil
})

// fingerprint returns a hash of what differs between two builds of a program.
func fingerprint(f *os.File) ([]byte, error) {
	id, err := buildID(f)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	if len(id) > 0 {
		sum.Write(id)
		return sum.Sum(nil), nil
	}
	loaded, err := Stripped(f)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(sum, loaded)
	return sum.Sum(nil), err
}

// buildID returns the ID of a build: hashes of what it was linked from and of what came of it. It is
// empty where the builder chose another, or none. It is at the file's beginning, so that nobody has
// to read 100 MB.
func buildID(f io.ReaderAt) ([]byte, error) {
	head := make([]byte, 32<<10)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	// Before it stands the head of a note of ELF, or Go's own mark in files of other formats.
	form := regexp.MustCompile(`(?:\x04\x00\x00\x00Go\x00\x00| Go build ID: ")((?:[\w-]{20}/){3}[\w-]{20})[\x00"]`)
	if m := form.FindSubmatch(head[:n]); m != nil {
		return m[1], nil
	}
	return nil, nil
}

// variant is "/weir-all" of that command; "" of weir, and of what is no command of weir's.
func variant(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	if name, ok := strings.CutPrefix(info.Path, weir+"/cmd/"); ok && name != "weir" {
		return "/" + name
	}
	return ""
}

// Program opens the file that this process runs, on Linux also where another has replaced it.
func Program() (*os.File, error) {
	f, err := os.Open("/proc/self/exe")
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// exact reports whether the version names the source: a release, or a revision that was not
// modified.
func exact(info *debug.BuildInfo) bool {
	v := version(info)
	if v == "devel" || strings.HasSuffix(v, "+dirty") {
		return false
	}
	_, modified := revision(info)
	return !modified
}

// Same reports whether builds with these identities may be of one source. Where versions do not
// name it, builds for one platform must be one file. Of builds for two platforms nothing more
// can be compared.
func Same(a, b string) bool {
	if a == b {
		return true
	}
	version, file, unnamed := strings.Cut(a, "@")
	otherVersion, otherFile, otherUnnamed := strings.Cut(b, "@")
	platform, _, _ := strings.Cut(file, ":")
	otherPlatform, _, _ := strings.Cut(otherFile, ":")
	return unnamed && otherUnnamed && version == otherVersion && platform != otherPlatform
}
