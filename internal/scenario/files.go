package scenario

import "fmt"

// maxRead limits the total that one file's scenarios read from other files.
const maxRead = 768 << 20

// A memory caches files by path, so that a thousand runs of a file that name one trace or folder hold
// it once.
type memory struct {
	files    map[string]answer[[]byte]
	traces   map[string]answer[[]int64]
	contents map[string]answer[[][]byte]
	total    int // total bytes
}

type answer[T any] struct {
	value T
	err   error
}

// recall returns known's value for path, or reads and stores it.
func recall[T any](known map[string]answer[T], path string, read func(string) (T, error)) (T, error) {
	a, ok := known[path]
	if !ok {
		a.value, a.err = read(path)
		known[path] = a
	}
	return a.value, a.err
}

// remembering returns inputs that read each file once, and no more in total than a process should
// hold.
func (in Inputs) remembering() Inputs {
	m := &memory{files: map[string]answer[[]byte]{}, traces: map[string]answer[[]int64]{}, contents: map[string]answer[[][]byte]{}}
	read := in.ReadFile
	in.memory = m
	in.ReadFile = func(path string) ([]byte, error) {
		return recall(m.files, path, func(path string) ([]byte, error) {
			b, err := read(path)
			if m.total += len(b); err == nil && m.total > maxRead {
				return nil, fmt.Errorf("the files of all scenarios are larger than %d MiB together", maxRead>>20)
			}
			return b, err
		})
	}
	return in
}
