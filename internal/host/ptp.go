package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PTP asks the host's ptp4l how far its clock may be off. It runs linuxptp's `pmc`, which changes nothing, and
// blocks until ptp4l has answered, for at most two seconds. Before linuxptp 4, ptp4l answers only root.
//
// The error wraps exec.ErrNotFound if pmc is missing, and ErrUnsynchronised if ptp4l follows no clock, or steers
// another clock than the wall clock.
func PTP(ctx context.Context) (PTPStatus, error) {
	pmc, err := exec.LookPath("pmc")
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} { // not in every user's PATH
		if err != nil {
			pmc, err = exec.LookPath(filepath.Join(dir, "pmc"))
		}
	}
	if err != nil {
		return PTPStatus{}, fmt.Errorf("asking ptp4l: %w", exec.ErrNotFound)
	}
	dir, err := os.MkdirTemp("", "weir-ptp-") // for pmc's own socket, whose default place is root's
	if err != nil {
		return PTPStatus{}, fmt.Errorf("asking ptp4l: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	args := []string{"-u", "-b", "0", "-i", filepath.Join(dir, "pmc")}
	if _, err := os.Stat(ptpForAll); err == nil {
		args = append(args, "-s", ptpForAll)
	}
	out, err := daemonSays(ctx, pmc, append(args, ptpQueries...)...)
	if err != nil {
		return PTPStatus{}, fmt.Errorf("asking ptp4l: %w", err)
	}
	return ParsePTP(out)
}

// ptpForAll is the socket at which ptp4l answers all users, since linuxptp 4.
const ptpForAll = "/var/run/ptp4lro"

var ptpQueries = []string{"GET PORT_PROPERTIES_NP", "GET CURRENT_DATA_SET", "GET PARENT_DATA_SET", "GET TIME_STATUS_NP"}

// A PTPStatus is ptp4l's view of the host's wall clock, which it stamps messages with.
type PTPStatus struct {
	// Parent is the identity of the clock it follows: a grandmaster, or a boundary clock on the way there. If
	// nobody else is the master, it is the host's own.
	Parent string
	// Master is true if the host's own clock is the grandmaster.
	Master bool
	// Steers is true if ptp4l corrects the wall clock; otherwise it has just begun, or only measures.
	Steers bool
	// Offset is how far the clock was ahead of the parent at the last message, and Delay the mean path delay.
	Offset, Delay time.Duration
}

// Bound returns how far the host's wall clock may be from its parent's: the offset, and the mean path delay,
// by which the offset is wrong if one direction takes all of the time.
func (s PTPStatus) Bound() time.Duration { return s.Offset.Abs() + s.Delay }

// ErrSilent is returned when a time daemon does not answer.
var ErrSilent = errors.New("the time daemon does not answer")

// ParsePTP parses the answers of `pmc` to ptpQueries, as printed by linuxptp 3.1. The error names the invalid
// field.
func ParsePTP(output string) (PTPStatus, error) {
	answers := map[string]map[string]string{} // by name; of ports, the one that follows a clock or is a master
	var own, state string
	var last map[string]string
	for line := range strings.Lines(output) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 6 && f[3] == "RESPONSE" && f[4] == "MANAGEMENT":
			last = map[string]string{}
			own, _, _ = cutPort(f[0])
			if answers[f[5]] == nil || !active(answers[f[5]]["portState"]) {
				answers[f[5]] = last
			}
		case len(f) == 2 && last != nil:
			last[f[0]] = f[1]
		}
	}
	if len(answers) == 0 {
		return PTPStatus{}, ErrSilent
	}
	port, ok := answers["PORT_PROPERTIES_NP"]
	if state = port["portState"]; !ok || state == "" {
		return PTPStatus{}, errors.New("ptp4l does not say which clock it steers (linuxptp 3 or later does)")
	}
	if stamps := port["timestamping"]; stamps != "SOFTWARE" {
		return PTPStatus{}, fmt.Errorf("ptp4l steers the network card's clock (%.20s time stamps), not the wall clock: %w", strings.ToLower(stamps), ErrUnsynchronised)
	}
	parent, _, ok := cutPort(answers["PARENT_DATA_SET"]["parentPortIdentity"])
	if !ok {
		return PTPStatus{}, fmt.Errorf("reading ptp4l's status: parentPortIdentity %.40q", answers["PARENT_DATA_SET"]["parentPortIdentity"])
	}
	s := PTPStatus{Parent: parent, Steers: state == "SLAVE"}
	if !following(state) {
		if s.Master = active(state) && parent == own; s.Master {
			return s, nil
		}
		return PTPStatus{}, fmt.Errorf("ptp4l follows no clock (its port is %.20s): %w", state, ErrUnsynchronised)
	}
	if answers["TIME_STATUS_NP"]["gmPresent"] != "true" {
		return PTPStatus{}, fmt.Errorf("ptp4l hears no master: %w", ErrUnsynchronised)
	}
	for _, d := range []struct {
		into  *time.Duration
		name  string
		least float64
	}{{&s.Offset, "offsetFromMaster", -mostOff * 1e9}, {&s.Delay, "meanPathDelay", 0}} {
		text := answers["CURRENT_DATA_SET"][d.name]
		ns, err := strconv.ParseFloat(text, 64)
		if err != nil || !(ns >= d.least && ns <= mostOff*1e9) { // NaN fails every comparison
			return PTPStatus{}, fmt.Errorf("reading ptp4l's status: %s %.40q", d.name, text)
		}
		*d.into = time.Duration(math.Round(ns))
	}
	if s.Delay == 0 {
		return PTPStatus{}, fmt.Errorf("ptp4l has not measured the way to its master yet: %w", ErrUnsynchronised)
	}
	return s, nil
}

func following(state string) bool { return slices.Contains([]string{"SLAVE", "UNCALIBRATED"}, state) }

func active(state string) bool {
	return following(state) || slices.Contains([]string{"MASTER", "GRAND_MASTER"}, state)
}

// cutPort cuts the number of a port from the identity of its clock, such as fead72.fffe.60ea41-1.
func cutPort(port string) (clock, number string, ok bool) {
	clock, number, ok = strings.Cut(port, "-")
	return clock, number, ok && clock != "" && len(clock) <= 20
}
