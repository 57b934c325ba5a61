package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/weirmq/weir/internal/fleet/hosts"
)

// fromStdin as --join: the URL is the first line of standard input.
const fromStdin = "-"

const (
	// mostURL limits that line, in bytes.
	mostURL = 4096
	// lastLimit is how long an agent without its input may take to send final results.
	lastLimit = 15 * time.Second
)

// joinLine reads the URL by which an agent joins.
func joinLine(in *bufio.Reader) (string, error) {
	var b strings.Builder
	for b.Len() < mostURL {
		c, err := in.ReadByte()
		switch {
		case err == nil && c == '\n':
			return strings.TrimSpace(b.String()), nil
		case errors.Is(err, io.EOF):
			return "", errors.New("--join: standard input has no line (the URL that weir fleet token prints)")
		case err != nil:
			return "", errors.New("--join: reading standard input: " + err.Error())
		}
		b.WriteByte(c)
	}
	return "", errors.New("--join: the first line of standard input is too long")
}

// lifeline returns signals, and SIGHUP when in ends or is silent for hosts.LostLimit; a second one after lastLimit.
// Its goroutines end with the process.
func lifeline(in io.ByteReader, signals <-chan os.Signal) <-chan os.Signal {
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		for {
			if _, err := in.ReadByte(); err != nil {
				return
			}
			beats <- struct{}{}
		}
	}()
	out := make(chan os.Signal, 2)
	go func() {
		late := time.NewTimer(hosts.LostLimit)
		alive := (<-chan struct{})(beats)
		for sent := 0; sent < 2; {
			select {
			case s, ok := <-signals:
				if !ok {
					close(out)
					return
				}
				sent++
				out <- s
				continue
			case _, ok := <-alive:
				if ok {
					late.Reset(hosts.LostLimit)
					continue
				}
				alive = nil
			case <-late.C:
			}
			sent++
			out <- syscall.SIGHUP
			late.Reset(lastLimit)
		}
		for range beats { // so that the sender does not block
		}
	}()
	return out
}
