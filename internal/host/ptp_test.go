package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
)

// What pmc 3.1.1 prints of a ptp4l that measures against a master, and of that master.
const (
	ptpMeasures = `sending: GET PORT_PROPERTIES_NP
sending: GET CURRENT_DATA_SET
sending: GET PARENT_DATA_SET
sending: GET TIME_STATUS_NP
	fead72.fffe.60ea41-1 seq 0 RESPONSE MANAGEMENT PORT_PROPERTIES_NP 
		portIdentity            fead72.fffe.60ea41-1
		portState               UNCALIBRATED
		timestamping            SOFTWARE
		interface               vs
	fead72.fffe.60ea41-0 seq 1 RESPONSE MANAGEMENT CURRENT_DATA_SET 
		stepsRemoved     1
		offsetFromMaster -127.0
		meanPathDelay    2100.0
	fead72.fffe.60ea41-0 seq 2 RESPONSE MANAGEMENT PARENT_DATA_SET 
		parentPortIdentity                    bed347.fffe.bcf2d6-1
		parentStats                           0
		grandmasterPriority1                  100
		gm.ClockClass                         6
		grandmasterIdentity                   bed347.fffe.bcf2d6
	fead72.fffe.60ea41-0 seq 3 RESPONSE MANAGEMENT TIME_STATUS_NP 
		master_offset              -127
		ingress_time               1795945707147987019
		gmPresent                  true
		gmIdentity                 bed347.fffe.bcf2d6
`
	ptpMaster = `sending: GET PORT_PROPERTIES_NP
	bed347.fffe.bcf2d6-1 seq 0 RESPONSE MANAGEMENT PORT_PROPERTIES_NP 
		portIdentity            bed347.fffe.bcf2d6-1
		portState               MASTER
		timestamping            SOFTWARE
		interface               vm
	bed347.fffe.bcf2d6-0 seq 1 RESPONSE MANAGEMENT CURRENT_DATA_SET 
		stepsRemoved     0
		offsetFromMaster 0.0
		meanPathDelay    0.0
	bed347.fffe.bcf2d6-0 seq 2 RESPONSE MANAGEMENT PARENT_DATA_SET 
		parentPortIdentity                    bed347.fffe.bcf2d6-0
		grandmasterIdentity                   bed347.fffe.bcf2d6
	bed347.fffe.bcf2d6-0 seq 3 RESPONSE MANAGEMENT TIME_STATUS_NP 
		master_offset              0
		gmPresent                  false
		gmIdentity                 bed347.fffe.bcf2d6
`
	// A boundary clock's further port.
	ptpPort = "\tfead72.fffe.60ea41-2 seq 0 RESPONSE MANAGEMENT PORT_PROPERTIES_NP \n\t\tportState FAULTY\n\t\ttimestamping SOFTWARE\n"
)

func TestParsePTP(t *testing.T) {
	slave := strings.Replace(ptpMeasures, "UNCALIBRATED", "SLAVE", 1)
	measures := PTPStatus{Parent: "bed347.fffe.bcf2d6", Offset: -127, Delay: 2100}
	steers := measures
	steers.Steers = true
	for name, tt := range map[string]struct {
		output string
		want   PTPStatus
	}{
		"it measures":              {ptpMeasures, measures},
		"it steers":                {slave, steers},
		"a port that is down":      {slave + ptpPort, steers},
		"a port that is down, too": {ptpPort + slave, steers},
		"the master":               {ptpMaster, PTPStatus{Parent: "bed347.fffe.bcf2d6", Master: true}},
	} {
		if got, err := ParsePTP(tt.output); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tt.want)
		}
	}
	if b := measures.Bound(); b != 2227 {
		t.Errorf("bound %d; want the offset and the delay", b)
	}
}

func TestParsePTPExplainsMissingStatus(t *testing.T) {
	with := func(old, replacement string) string { return strings.Replace(ptpMeasures, old, replacement, 1) }
	for name, tt := range map[string]struct {
		output string
		is     error
		want   string
	}{
		"no answer":        {"sending: GET PORT_PROPERTIES_NP\n", ErrSilent, ""},
		"nothing":          {"", ErrSilent, ""},
		"listening":        {with("UNCALIBRATED", "LISTENING"), ErrUnsynchronised, "its port is LISTENING"},
		"another's master": {with("UNCALIBRATED", "MASTER"), ErrUnsynchronised, "its port is MASTER"},
		"hardware":         {with("SOFTWARE", "HARDWARE"), ErrUnsynchronised, "network card's clock (hardware time stamps)"},
		"no grandmaster":   {with("gmPresent                  true", "gmPresent false"), ErrUnsynchronised, "hears no master"},
		"no delay yet":     {with("2100.0", "0.0"), ErrUnsynchronised, "has not measured the way"},
		"an old ptp4l":     {with("PORT_PROPERTIES_NP \n", "OTHER\n"), nil, "linuxptp 3 or later"},
		"no parent":        {with("bed347.fffe.bcf2d6-1", "bed347"), nil, `parentPortIdentity "bed347"`},
		"no number":        {with("-127.0", "NaN"), nil, `offsetFromMaster "NaN"`},
		"a negative delay": {with("2100.0", "-1"), nil, `meanPathDelay "-1"`},
		"a long delay":     {with("2100.0", "1e300"), nil, `meanPathDelay "1e300"`},
	} {
		got, err := ParsePTP(tt.output)
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) || got != (PTPStatus{}) {
			t.Errorf("%s: %+v, %v; want %v %s", name, got, err, tt.is, tt.want)
		}
	}
}

func FuzzParsePTP(f *testing.F) {
	for _, s := range []string{ptpMeasures, ptpMaster, ptpPort, ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, output string) {
		got, err := ParsePTP(output)
		if err != nil && got != (PTPStatus{}) {
			t.Errorf("%+v beside an error", got)
		}
		if err == nil && (got.Bound() < 0 || got.Parent == "") {
			t.Errorf("%+v: a bound below zero, or no parent", got)
		}
	})
}

// Of several daemons the one speaks that knows the wall clock, and chrony before ptp4l.
func TestDaemonsThatSpeakForTheWallClock(t *testing.T) {
	const chronyFollows, chronyLost = "echo '" + tracking + "'", "echo '" + noneTracking + "'"
	ptp := func(output string) string { return "cat <<'EOF'\n" + output + "EOF" }
	slave := strings.Replace(ptpMeasures, "UNCALIBRATED", "SLAVE", 1)
	for _, tt := range []struct {
		name, chronyc, pmc string
		want, time         string
	}{
		{"neither", "echo 506 Cannot talk to daemon; exit 1", "exit 0", "neither chrony nor ptp4l runs here", "ok"},
		{"chrony", chronyFollows, "exit 0", "chrony sets it by 127.0.0.1, ±", "ok"},
		{"ptp4l, which measures", chronyLost, ptp(ptpMeasures), "ptp4l measures it against bed347.fffe.bcf2d6, ±", "ok"},
		{"ptp4l", chronyLost, ptp(slave), "ptp4l sets it by bed347.fffe.bcf2d6, ±", "ok"},
		{"the master", chronyLost, ptp(ptpMaster), "ptp4l takes it as the master's, bed347.fffe.bcf2d6, ±", "ok"},
		{"both, one measures", chronyFollows, ptp(ptpMeasures), "chrony sets it by 127.0.0.1, ±", "ok"},
		{"both", chronyFollows, ptp(slave), "chrony sets it by 127.0.0.1, ±", "warn"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chronyc(t, tt.chronyc)
			dir, _, _ := strings.Cut(os.Getenv("PATH"), ":")
			must.Do(t, os.WriteFile(filepath.Join(dir, "pmc"), []byte("#!/bin/sh\n"+tt.pmc+"\n"), 0o755))
			all := AskDaemons(t.Context(), pace.NewClock())
			if got := all[0].String(); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s; want %s", got, tt.want)
			}
			o := observed{sync: &syncState{synchronised: true}, daemons: all}
			f := checkTime(&o)
			for _, d := range all {
				if string(f.Health) != tt.time || d.Name != "" && !strings.Contains(f.Found, "; "+d.String()) {
					t.Errorf("doctor: %+v; want %s, with %s", f, tt.time, d)
				}
			}
			if ms := time.Duration(all[0].BoundNS); all[0].Known() && ms > 50*time.Millisecond {
				t.Errorf("bound %v", ms)
			}
		})
	}
}
