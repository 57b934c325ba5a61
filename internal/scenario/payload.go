package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/schedule"
)

// Limits of message contents, which stay in memory during the run.
const (
	maxContent  = maxSize - stamp.Size // bytes of one file
	maxContents = 256 << 20            // bytes of all files in a folder
	maxFiles    = 10_000               // in a folder
)

// payload is the content of messages.
var payload = func() kind[Message] {
	set := func(k engine.PayloadKind) func(*Message) { return func(m *Message) { m.Payload.Kind = k } }
	saved := placed(number(0, 1), func(m *Message) *float64 { return &m.Payload.Saved })
	file, dir := contents(false), contents(true)
	which := func(m *Message) string {
		switch {
		case m.SourceDir:
			return "dir"
		case m.Source != "":
			return "file"
		case m.Payload.Kind == engine.Compressible:
			return "compressible"
		case m.Payload.Kind == engine.Zeros:
			return "zeros"
		}
		return "random"
	}
	return choice("random, zeros, {compressible: 0.5}, {file: FILE}, {dir: FOLDER}", which,
		branch[Message]{name: "random"},
		branch[Message]{name: "zeros", set: set(engine.Zeros)},
		branch[Message]{"compressible", set(engine.Compressible), &saved},
		branch[Message]{"file", set(engine.Contents), &file},
		branch[Message]{"dir", set(engine.Contents), &dir},
	)
}()

// contents is a file for every message, or a folder of such files.
func contents(dir bool) kind[Message] {
	kind, allowed, read := "file", "the path of a file", Inputs.content
	if dir {
		kind, allowed, read = "dir", "the path of a folder", Inputs.contents
	}
	k := placed(written(allowed), func(m *Message) *string { return &m.Source })
	inner := k.read
	k.read = func(d *decoder, n *tree.Node, path string, m *Message) bool {
		if !inner(d, n, path, m) {
			return false
		}
		m.Source, m.SourceDir = d.in.path(m.Source, n.At), dir
		contents, err := recall(d.in.memory.contents, kind+" "+m.Source, func(string) ([][]byte, error) { return read(d.in, m.Source) })
		if err != nil {
			d.fault(n.At, path, "%v", err)
			return false
		}
		m.Payload.Contents = contents
		if !d.has("message.size") {
			m.Sizes, m.Fitted = fit(contents), true
		}
		return true
	}
	return k
}

// fit returns the sizes of messages that carry each content whole, weighted by the number of contents
// of that size, ascending.
func fit(contents [][]byte) []schedule.WeightedSize {
	count := map[int]int{}
	for _, c := range contents {
		count[stamp.Size+len(c)]++
	}
	sizes := make([]schedule.WeightedSize, 0, len(count))
	for size, n := range count {
		sizes = append(sizes, schedule.WeightedSize{Bytes: size, Weight: n})
	}
	slices.SortFunc(sizes, func(a, b schedule.WeightedSize) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return sizes
}

// content reads the file for every message.
func (in Inputs) content(path string) ([][]byte, error) {
	allowed := "a regular file of 1B to " + driver.FormatSize(maxContent) + ", or {dir: FOLDER}"
	st, err := in.Stat(path)
	if err != nil {
		return nil, unreadable(path, err, allowed)
	}
	if err := usable(path, st, allowed); err != nil {
		return nil, err
	}
	b, err := in.body(path, allowed)
	return [][]byte{b}, err
}

// body reads one file of contents.
func (in Inputs) body(path, allowed string) ([]byte, error) {
	b, err := in.ReadFile(path)
	switch {
	case err != nil:
		return nil, unreadable(path, err, allowed)
	case len(b) == 0 || len(b) > maxContent:
		return nil, fmt.Errorf("%s changed while it was read (%s)", filepath.Base(path), allowed)
	}
	return b, nil
}

// contents reads the files of a folder, sorted by name, without subfolders.
func (in Inputs) contents(path string) ([][]byte, error) {
	allowed := fmt.Sprintf("a folder of 1 to %d regular files, each of 1B to %s, together up to %s",
		maxFiles, driver.FormatSize(maxContent), driver.FormatSize(maxContents))
	st, err := in.Stat(path)
	switch {
	case err != nil:
		return nil, unreadable(path, err, allowed)
	case !st.IsDir():
		return nil, fmt.Errorf("%s is not a folder (%s, or {file: FILE})", filepath.Base(path), allowed)
	}
	entries, err := in.ReadDir(path)
	if err != nil {
		return nil, unreadable(path, err, allowed)
	}
	var files []string
	total := int64(0)
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		file := filepath.Join(path, e.Name())
		st, err := e.Info()
		if err == nil {
			err = usable(file, st, allowed)
		}
		if err != nil {
			return nil, err
		}
		if total += st.Size(); total > maxContents || len(files) == maxFiles {
			return nil, fmt.Errorf("%s holds too much (%s)", filepath.Base(path), allowed)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no file (%s)", filepath.Base(path), allowed)
	}
	slices.Sort(files)
	contents := make([][]byte, len(files))
	for i, file := range files {
		if contents[i], err = in.body(file, allowed); err != nil {
			return nil, err
		}
	}
	return contents, nil
}

// usable rejects what is not a file for message contents.
func usable(path string, st fs.FileInfo, allowed string) error {
	switch name := filepath.Base(path); {
	case st.IsDir():
		return fmt.Errorf("%s is a folder (%s)", name, allowed)
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file (%s)", name, allowed)
	case st.Size() == 0:
		return fmt.Errorf("%s is empty (%s)", name, allowed)
	case st.Size() > maxContent:
		return fmt.Errorf("%s is longer than a message may be (%s)", name, allowed)
	}
	return nil
}

func unreadable(path string, err error, allowed string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist (%s)", filepath.Base(path), allowed)
	}
	return fmt.Errorf("cannot be read: %w (%s)", err, allowed)
}
