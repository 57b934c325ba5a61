package network

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
)

// BandwidthForm is a regular expression for the input of ParseBandwidth.
const BandwidthForm = quantity.NumberForm + ` ?[GgMmKk]?([Bb][Ii][Tt]|[Bb][Pp][Ss])(/[Ss])?`

// ErrNoUnit is returned for a bandwidth that is a bare number.
var ErrNoUnit = errors.New("has no unit")

// ParseBandwidth parses bits per second: "100Mbit", "1.5 Mbit/s", "512kbps".
func ParseBandwidth(text string) (int64, error) {
	n, rest, err := quantity.Decimal(strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("%q is not a bandwidth", text)
	}
	bits, _ := n.Float64()
	switch strings.TrimSuffix(strings.ToLower(strings.TrimSpace(rest)), "/s") {
	case "bit", "bps":
	case "mbit", "mbps":
		bits *= 1e6
	case "gbit", "gbps":
		bits *= 1e9
	case "":
		return 0, fmt.Errorf("%s %w", text, ErrNoUnit)
	default:
		return 0, fmt.Errorf("%q is not a bandwidth", text)
	}
	if bits < LeastBits || bits > MostBits {
		return 0, fmt.Errorf("%s is out of range", text)
	}
	return int64(bits), nil
}

// units returns a bandwidth in the largest unit that fits.
func units(bits int64) (value float64, unit string) {
	switch v := float64(bits); {
	case v >= 1e9:
		return v / 1e9, "Gbit"
	case v >= 1e6:
		return v / 1e6, "Mbit"
	case v >= 1e3:
		return v / 1e3, "kbit"
	default:
		return v, "bit"
	}
}

// FormatBandwidth formats bits per second in a form that ParseBandwidth accepts.
func FormatBandwidth(bits int64) string {
	v, unit := units(bits)
	return strconv.FormatFloat(v, 'f', -1, 64) + unit
}

// perSecond formats a bandwidth for messages, rounded.
func perSecond(bits int64) string {
	v, unit := units(bits)
	return strconv.FormatFloat(v, 'g', 4, 64) + " " + unit + "/s"
}
