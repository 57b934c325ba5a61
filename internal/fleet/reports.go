package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Bounds of the stream of reports, in bytes: a server sets the most aside.
const (
	mostReports  = 16 << 30
	leastReports = 64 << 20
	reportsKept  = 7 * 24 * time.Hour
)

// stream makes the stream of reports, as large as the server has space for.
func (f *Fleet) stream(ctx context.Context) error {
	making, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	for most := int64(mostReports); ; most /= 4 {
		_, err := f.js.CreateOrUpdateStream(making, jetstream.StreamConfig{
			Name: streamPrefix + f.session, Subjects: []string{reportSubject(f.session, "*", "*")}, Storage: jetstream.FileStorage,
			Duplicates: 10 * time.Minute, MaxBytes: most, Discard: jetstream.DiscardNew, MaxAge: reportsKept,
			Description: "reports of a weir fleet",
		})
		var refused *jetstream.APIError
		switch {
		case err == nil:
			if most < mostReports {
				f.o.Log.Info("the reports have less space than usual", "bytes", most)
			}
			return nil
		case !errors.As(err, &refused) || !slices.Contains([]jetstream.ErrorCode{noSpace, noAccountSpace, noResources}, refused.ErrorCode):
			return fmt.Errorf("making the stream of reports: %w", err)
		case most/4 < leastReports:
			return fmt.Errorf("making the stream of reports: the server has no %d MiB on its disk for it: %w", most>>20, err)
		}
	}
}

// What a server answers that cannot set so much aside.
const (
	noSpace        jetstream.ErrorCode = 10047
	noAccountSpace jetstream.ErrorCode = 10002
	noResources    jetstream.ErrorCode = 10023
)

// clear removes what coordinators of this folder left behind that were killed and
// not taken up again. Nobody else has the folder.
func (f *Fleet) clear(ctx context.Context, now time.Time) {
	clearing, cancel := context.WithTimeout(ctx, askLimit)
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
			f.o.Log.Warn("an old stream of reports is left behind", "stream", s.Config.Name, "why", err)
		}
	}
	if err := all.Err(); err != nil {
		f.o.Log.Warn("old streams of reports were not looked for", "why", err)
	}
}
