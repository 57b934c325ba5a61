// Package fleet coordinates runs on several machines: it opens a server that agents join, assigns each its
// part of a run, and merges their reports into one result.
//
// Decisions and the merging of workers are in package coordinator, which does not depend on the transport.
// Here the transport is a NATS server. Package protocol defines the messages, package agent is the other
// side, and package survey inspects the agents present.
//
// A coordinator reads the stream of reports from its beginning, so one that resumes a run has lost nothing
// (Resume).
//
// Every wait has a limit. A silent agent delays the others for a bounded time.
package fleet
