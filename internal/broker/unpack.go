package broker

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Limits on an unpacked archive.
const (
	maxUnpacked = 4 << 30
	maxEntries  = 200_000
)

// unpack unpacks a tar.gz, zip, jar or wheel into a folder. It writes nothing outside of the folder.
func unpack(ctx context.Context, file, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	u := &unpacking{ctx: ctx, root: root, left: maxUnpacked, entries: maxEntries}
	switch {
	case strings.HasSuffix(file, ".tar.gz"), strings.HasSuffix(file, ".tgz"):
		err = u.tar(file)
	case strings.HasSuffix(file, ".zip"), strings.HasSuffix(file, ".jar"), strings.HasSuffix(file, ".whl"):
		err = u.zip(file)
	default:
		err = errors.New("has a format that weir cannot unpack (tar.gz, zip, jar, whl)")
	}
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", filepath.Base(file), err)
	}
	return nil
}

type unpacking struct {
	ctx     context.Context
	root    *os.Root
	left    int64
	entries int
}

// enter counts an entry and rejects a path that leaves the folder.
func (u *unpacking) enter(name string) error {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	if u.entries--; u.entries < 0 {
		return fmt.Errorf("holds more than %d files", maxEntries)
	}
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%q points outside the folder", name)
	}
	return nil
}

func (u *unpacking) folder(name string) error {
	if name == "." || name == "" {
		return nil
	}
	return u.root.MkdirAll(name, 0o755)
}

// file writes one file, of whose mode only the executable bit is kept.
func (u *unpacking) file(name string, mode fs.FileMode, r io.Reader) error {
	if err := u.folder(filepath.Dir(name)); err != nil {
		return err
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644|mode.Perm()&0o111)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(r, u.left+1))
	if u.left -= n; u.left < 0 && err == nil {
		err = fmt.Errorf("holds more than %d GiB", maxUnpacked>>30)
	}
	return errors.Join(err, f.Close())
}

func (u *unpacking) tar(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Clean(h.Name)
		if err := u.enter(name); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = u.folder(name)
		case tar.TypeReg:
			err = u.file(name, fs.FileMode(h.Mode), r)
		case tar.TypeSymlink:
			if !filepath.IsLocal(filepath.Join(filepath.Dir(name), h.Linkname)) || filepath.IsAbs(h.Linkname) {
				return fmt.Errorf("the link %q points outside the folder", name)
			}
			if err = u.folder(filepath.Dir(name)); err == nil {
				err = u.root.Symlink(h.Linkname, name)
			}
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacking) zip(file string) error {
	r, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	for _, e := range r.File {
		name := filepath.Clean(filepath.FromSlash(e.Name))
		if err := u.enter(name); err != nil {
			return err
		}
		if e.FileInfo().IsDir() {
			if err := u.folder(name); err != nil {
				return err
			}
			continue
		}
		if !e.Mode().IsRegular() {
			continue
		}
		src, err := e.Open()
		if err != nil {
			return err
		}
		err = u.file(name, e.Mode(), src)
		if err := errors.Join(err, src.Close()); err != nil {
			return err
		}
	}
	return nil
}
