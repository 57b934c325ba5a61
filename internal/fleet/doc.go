// Package fleet does one run on many machines: a coordinator, and agents that
// carry a part each.
//
// What a coordinator decides, and how the parts are added up, is in package conduct. It
// does not depend on how the agents are reached. Here they meet at a NATS server (Open,
// Agent.Run):
//
//	agent ── weir.fleet.<session>.door.<id>.*   ──▶ coordinator   joining, a request each
//	agent ── weir.fleet.<session>.clock         ──▶ coordinator   four timestamps, ten times a second
//	agent ── weir.fleet.<session>.standing.<id> ──▶ coordinator   how it stands, ten times a second
//	agent ── weir.fleet.report.<session>.<run>.<id> ▶ JetStream ─▶ coordinator   once a second, kept
//	agent ◀── weir.order.agent.<id>.*           ──  coordinator   a run's job, a question, a system to be started on its host
//	agent ◀── weir.order.all.<session>          ──  coordinator   what was decided, ten times a second
//	agent ◀── weir.order.beacon                 ──  coordinator   which process coordinates, once a second
//
// An id is the public key of the agent's process (join.Self). A job, and a wish for a
// system, are sealed for the process that gets them. Neither holds what a scenario
// refers to: the agent looks it up on its own host, within its Reach.
//
// Standing and orders are states and not steps: each says all, and the latest counts.
// The next one makes good a lost one. Reports must not be lost: they go through a
// stream on disk. A coordinator reads it from its beginning, so that a restarted one
// has lost nothing.
//
// Every wait has a bound. A silent agent delays the others for a bounded time. When
// the coordinator is silent, agents end their part by themselves.
package fleet
