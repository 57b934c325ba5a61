package broker

import (
	"io"
	"os"
	"strings"
)

// logEnd returns the last lines of a log.
func logEnd(file string) string {
	b, _ := logTail(file, saidBytes) // what there is
	return lastLines(b)
}

// LogEnd returns the last lines of a log.
func LogEnd(file string, n int) ([]string, error) {
	b, err := logTail(file, maxLogEnd)
	if err != nil {
		return nil, err
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return all[max(0, len(all)-n):], nil
}

// maxLogEnd limits how much of a log is read.
const maxLogEnd = 4 << 20

// logTail returns the last bytes of a log.
func logTail(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err == nil && st.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, most))
}
