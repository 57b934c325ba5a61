package fleet

import (
	"context"
	"time"

	"github.com/weirmq/weir/internal/fleet/protocol"
)

// streamPrefix and a session name the stream of its runs' reports.
const streamPrefix = "WEIR-"

// reportsKept is how long the stream of reports of a coordinator that is gone is
// kept, for another to take its run up again.
const reportsKept = 7 * 24 * time.Hour

// clear removes what coordinators of this folder left behind that were killed and not
// taken up again. No other process has the folder.
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
