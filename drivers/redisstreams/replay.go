package redisstreams

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
)

// oldest is the position of a group that begins with the oldest entry.
const oldest = "0"

// start returns the ID that a group is made with: the entry after it is its first.
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
		// An ID begins with the server's clock in milliseconds: one is the grain.
		return before(uint64(max(0, p.Time.UnixMilli())), 0), nil
	}
	return "", fmt.Errorf("position %d: %w", p.At, driver.ErrUnsupported)
}

// parseID reads an entry's ID; where its second number is missing it is 0, as in
// the server's own ranges.
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

// before returns the ID that is one less.
func before(ms, seq uint64) string {
	switch {
	case seq > 0:
		seq--
	case ms > 0:
		ms, seq = ms-1, math.MaxUint64
	}
	return strconv.FormatUint(ms, 10) + "-" + strconv.FormatUint(seq, 10)
}
