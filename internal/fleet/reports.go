package fleet

import (
	"context"
	"time"

	"github.com/weirmq/weir/internal/fleet/protocol"
)

// streamPrefix followed by a session names the stream of its runs' reports.
const streamPrefix = "WEIR-"

// reportsKept is how long the reports of a dead coordinator are kept for a resume.
const reportsKept = 7 * 24 * time.Hour

// clear removes what killed and never resumed coordinators left in this folder. No other process uses it.
func (f *Fleet) clear(ctx context.Context, now time.Time) {
	clearing, cancel := context.WithTimeout(ctx, protocol.AskLimit)
	defer cancel()
	all := f.js.ListStreams(clearing)
	for s := range all.Info() {
		last := s.State.LastTime
		if last.Before(s.Created) {
			last = s.Created
		}
		if s.Config.Name == streamPrefix+f.session || now.Sub(last) < reportsKept {
			continue
		}
		if err := f.js.DeleteStream(clearing, s.Config.Name); err != nil {
			f.o.Log.Warn("an old stream of reports could not be removed", "stream", s.Config.Name, "why", err)
		}
	}
	if err := all.Err(); err != nil {
		f.o.Log.Warn("old streams of reports could not be listed", "why", err)
	}
}
