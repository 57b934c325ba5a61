package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// correlate widens the intervals of the percentiles by what the seconds of the
// run tell, which are read back from intervals.hlog: they are there whole, and a
// long run need not keep them in memory. Where they cannot be read (a full disk,
// which is reported where it was met) the intervals stay those of independent
// samples, and say so by having no design effect.
func (m *measurement) correlate(raw *engine.Raw, l *result.Latency) error {
	kinds := map[measure.Kind]*result.Dist{
		measure.SendResponse: l.Send.Response, measure.SendService: l.Send.Service, measure.SendLateness: l.Send.Lateness,
		measure.SendHeldUp: l.Send.HeldUp, measure.SendBlocked: l.Send.Blocked, measure.SendFailed: l.Send.Failed,
		measure.SendOnTime: l.Send.OnTime, measure.E2EOnTime: l.E2E.OnTime, measure.RTTOnTime: l.RTT.OnTime,
		measure.E2EResponse: l.E2E.Response, measure.E2EService: l.E2E.Service,
		measure.RTTResponse: l.RTT.Response, measure.RTTService: l.RTT.Service, measure.Settle: l.Settle,
	}
	watched := map[string]*judge.Correlation{}
	for k, d := range kinds {
		if d != nil {
			watched[result.Tag(k, measure.Measure)] = judge.Correlate(d)
		}
	}
	f, err := os.Open(filepath.Join(m.folder.Dir(), result.FileIntervals))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for log := result.NewLogReader(f); ; {
		line, err := log.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if c := watched[line.Tag]; c != nil {
			c.Add(line.Counts)
		}
	}
	for k, d := range kinds {
		if c := watched[result.Tag(k, measure.Measure)]; c != nil {
			c.Widen(d, &raw.Snapshot.Kinds[k][measure.Measure], &raw.Censored[k][measure.Measure])
		}
	}
	return nil
}
