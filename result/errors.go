package result

import (
	"errors"
	"strconv"
	"strings"
)

// Why a result folder or one of its files cannot be read. Every error of a reader wraps one of
// them, except those of the operating system; it also wraps fs.ErrNotExist if something is missing.
var (
	// ErrNotResult: not a result folder, or a file of another kind.
	ErrNotResult = errors.New("no result of weir")
	// ErrNewer: the file's schema belongs to a newer weir than this one.
	ErrNewer = errors.New("written by a newer weir")
	// ErrTorn: the file is truncated; its writer was killed, its disk was full, or it was copied in
	// part.
	ErrTorn = errors.New("cut short")
	// ErrMalformed: the file is of the right kind but its contents are invalid.
	ErrMalformed = errors.New("malformed")
)

// A FileError is an error in a file of a result folder, with its place.
type FileError struct {
	Path   string // as it was opened; "" for text that was not a file
	Line   int    // from 1; 0 for the file as a whole
	Column int    // in bytes from 1; 0 for the line as a whole
	Err    error  // wraps one of the errors above
}

// Error returns "path:line:column: what is wrong", without a path "line 3, column 5: what is
// wrong".
func (e *FileError) Error() string {
	var b strings.Builder
	b.WriteString(e.Path)
	for i, n := range []int{e.Line, e.Column} {
		switch {
		case n == 0:
		case e.Path != "":
			b.WriteString(":" + strconv.Itoa(n))
		case i == 0:
			b.WriteString("line " + strconv.Itoa(n))
		default:
			b.WriteString(", column " + strconv.Itoa(n))
		}
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the error without its place.
func (e *FileError) Unwrap() error { return e.Err }

// in adds the file's path to a reader's error.
func in(path string, err error) error {
	if f := (*FileError)(nil); errors.As(err, &f) && f.Path == "" {
		named := *f
		named.Path = path
		return &named
	}
	return err
}
