package buildinfo

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// Identity returns Version, and where that does not name the source also the platform and the
// hash of the program's file, as Stripped reads it: "devel@linux/amd64:0123456789ab", of weir-all
// "devel/weir-all@linux/amd64:0123456789ab". See Same.
func Identity() (string, error) { return identity() }

// Build returns Identity, or Version where the program's file cannot be read.
func Build() string {
	if id, err := identity(); err == nil {
		return id
	}
	return Version()
}

// identity reads the file once: it is large.
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
	loaded, err := Stripped(f)
	if err != nil {
		return "", fmt.Errorf("reading weir's own file, to tell its build from others: %w", err)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, loaded); err != nil {
		return "", fmt.Errorf("reading weir's own file, to tell its build from others: %w", err)
	}
	return fmt.Sprintf("%s%s@%s/%s:%x", Version(), variant(info), runtime.GOOS, runtime.GOARCH, sum.Sum(nil)[:6]), nil
})

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
