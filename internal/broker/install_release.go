//go:build unix

package broker

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// release makes apt read the lists of another Debian release into the install's folder, from the
// host's mirror, and returns the arguments with which apt uses its packages. The host's own lists stay
// as they are.
func (j *job) release(ctx context.Context, get, name string) ([]string, error) {
	mirror, err := j.host.mirror(ctx, get)
	if err != nil {
		return nil, staleLists(err)
	}
	dir := filepath.Join(j.work(), name)
	sources, status := filepath.Join(dir, "sources.list"), filepath.Join(dir, "status")
	for _, d := range []string{"lists/partial", "cache"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	line := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, mirror, name)
	for file, text := range map[string]string{sources: line, status: ""} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	from := []string{
		"-o", "Dir::Etc::sourcelist=" + sources, "-o", "Dir::Etc::sourceparts=-", "-o", "Dir::Etc::preferencesparts=-",
		"-o", "Dir::State::lists=" + filepath.Join(dir, "lists"), "-o", "Dir::State::status=" + status,
		"-o", "Dir::Cache=" + filepath.Join(dir, "cache"), "-o", "Acquire::Languages=none",
	}
	_, err = j.host.run(ctx, call{dir: j.work(), args: append([]string{
		get, "update", "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=",
	}, from...)})
	return from, err
}

// variableMirror is the environment variable that names a mirror of Debian for hosts whose apt uses none.
const variableMirror = "WEIR_DEBIAN_MIRROR"

// mirror returns the first mirror of Debian that apt uses, or the one that variableMirror names. apt checks signatures.
func (h *host) mirror(ctx context.Context, get string) (string, error) {
	out, err := h.run(ctx, call{args: []string{
		get, "indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages",
	}})
	for line := range strings.Lines(string(out)) {
		if m, ok := strings.CutPrefix(line, "Debian Debian "); ok {
			return strings.TrimSpace(m), err
		}
	}
	if mirror := h.env(variableMirror); mirror != "" || err != nil {
		return mirror, err
	}
	return "", fmt.Errorf("this host's apt-get has no mirror of Debian (%s=URL names one; --via docker needs none)", variableMirror)
}

// keyring is where the package debian-archive-keyring has the keys of Debian's releases.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// real is the suffix of a program that a wrapper script replaces.
const real = ".real"

// wrap replaces each program with a script that runs it with the unpacked loader and libraries, since
// the host's may be older. A program that is a shell script needs no wrapper: there, each variable
// with a path below /usr is changed to a path below the install's folder.
func (j *job) wrap(programs map[string]string) error {
	loaders, err := filepath.Glob(filepath.Join(j.out(), "usr/lib/*-linux-*/ld-linux-*.so.*"))
	if err != nil || len(loaders) != 1 {
		return fmt.Errorf("%d loaders in what was unpacked (exactly one)", len(loaders))
	}
	loader := strings.TrimPrefix(loaders[0], j.out())
	for _, pattern := range programs {
		found, err := filepath.Glob(filepath.Join(j.out(), pattern))
		if err != nil {
			return err
		}
		for _, f := range found {
			b, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			inside := strings.TrimPrefix(f, j.out())
			if bytes.HasPrefix(b, []byte("#!/bin/sh\n")) {
				b = bytes.ReplaceAll(b, []byte("=/usr/"), []byte("=${0%"+inside+"}/usr/"))
				if err := os.WriteFile(f, b, 0o755); err != nil {
					return err
				}
				continue
			}
			if !bytes.HasPrefix(b, []byte("\x7fELF")) {
				continue
			}
			script := fmt.Sprintf(`#!/bin/sh
d=${0%%%s}
exec "$d%s" --argv0 "$0" --library-path "$d%s:$d/usr/lib" "$0%s" "$@"
`, inside, loader, filepath.Dir(loader), real)
			if err := os.Rename(f, f+real); err != nil {
				return err
			}
			if err := os.WriteFile(f, []byte(script), 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}
