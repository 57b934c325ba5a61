package scenario

import "fmt"

// maxRead bounds what the scenarios of one file read from other files together.
const maxRead = 768 << 20

// remembering returns inputs that read each file once, however many runs of a
// scenario's file name it, and no more in all than a process should hold.
func (in Inputs) remembering() Inputs {
	type answer struct {
		b   []byte
		err error
	}
	known := map[string]answer{}
	read, total := in.ReadFile, 0
	in.ReadFile = func(path string) ([]byte, error) {
		a, ok := known[path]
		if ok {
			return a.b, a.err
		}
		a.b, a.err = read(path)
		if total += len(a.b); total > maxRead {
			a = answer{nil, fmt.Errorf("the files of all scenarios are larger than %d MiB together", maxRead>>20)}
		}
		known[path] = a
		return a.b, a.err
	}
	return in
}
