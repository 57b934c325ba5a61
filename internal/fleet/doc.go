// Package fleet coordinates runs on many machines: it opens a server that agents join, gives
// each its part of a run, and makes one result of what they report.
//
// What is decided, and how workers are added up, is in package coordinator, which does not
// depend on how agents are reached. Here they meet at a NATS server. Package protocol holds
// what both sides say there, package agent the other side, and package survey looks at all
// that are there.
//
// A coordinator reads the stream of reports from its beginning. So one that takes a run
// up again has lost nothing (Resume).
//
// Every wait has a bound. A silent agent delays the others for a bounded time.
package fleet
