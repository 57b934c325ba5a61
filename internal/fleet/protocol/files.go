package protocol

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Files are payloads and traces of a scenario, by their absolute paths on the coordinator's host. A job
// carries them. Files that options refer to are not included.
type Files map[string][]byte

// ReadFile is os.ReadFile.
func (s Files) ReadFile(p string) ([]byte, error) {
	if b, ok := s[p]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("%s did not come with the job: %w", p, fs.ErrNotExist)
}

// Stat is os.Stat.
func (s Files) Stat(p string) (fs.FileInfo, error) {
	if b, ok := s[p]; ok {
		return sent{path.Base(p), int64(len(b)), false}, nil
	}
	for name := range s {
		if strings.HasPrefix(name, strings.TrimSuffix(p, "/")+"/") {
			return sent{path.Base(p), 0, true}, nil
		}
	}
	return nil, fmt.Errorf("%s did not come with the job: %w", p, fs.ErrNotExist)
}

// ReadDir is os.ReadDir.
func (s Files) ReadDir(p string) ([]fs.DirEntry, error) {
	var all []fs.DirEntry
	for name, b := range s {
		if path.Dir(name) == path.Clean(p) {
			all = append(all, fs.FileInfoToDirEntry(sent{path.Base(name), int64(len(b)), false}))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s did not come with the job: %w", p, fs.ErrNotExist)
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// sent implements fs.FileInfo.
type sent struct {
	name string
	size int64
	dir  bool
}

func (s sent) Name() string { return s.name }

func (s sent) Size() int64 { return s.size }

func (s sent) Mode() fs.FileMode {
	if s.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

func (s sent) ModTime() time.Time { return time.Time{} }

func (s sent) IsDir() bool { return s.dir }

func (s sent) Sys() any { return nil }
