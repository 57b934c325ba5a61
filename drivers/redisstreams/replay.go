package redisstreams

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
)

// oldest is the start position of a group that begins with the oldest entry.
const oldest = "0"

// start returns the ID to create a group with: its first entry is the one after that ID.
func start(p driver.Position) (string, error) {
	switch p.At {
	case driver.AtDefault, driver.AtEarliest:
		return oldest, nil
	case driver.AtLatest:
		return "$", nil
	case driver.AtOffset:
		ms, seq, err := parseID(p.Offset)
		if err != nil {
			return "", err
		}
		return before(ms, seq), nil
	case driver.AtTime:
		// An ID begins with the server's clock in milliseconds, which is the resolution.
		return before(uint64(max(0, p.Time.UnixMilli())), 0), nil
	}
	return "", fmt.Errorf("position %d: %w", p.At, driver.ErrUnsupported)
}

// parseID parses an entry ID; a missing second number is 0, as in the server's own ranges.
func parseID(id string) (ms, seq uint64, err error) {
	first, second, whole := strings.Cut(id, "-")
	if ms, err = strconv.ParseUint(first, 10, 64); err == nil && whole {
		seq, err = strconv.ParseUint(second, 10, 64)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("offset %q is not an entry's ID (such as 1526919030474-0): %w", id, driver.ErrUnsupported)
	}
	return ms, seq, nil
}

// before returns the preceding ID.
func before(ms, seq uint64) string {
	switch {
	case seq > 0:
		seq--
	case ms > 0:
		ms, seq = ms-1, math.MaxUint64
	}
	return strconv.FormatUint(ms, 10) + "-" + strconv.FormatUint(seq, 10)
}
