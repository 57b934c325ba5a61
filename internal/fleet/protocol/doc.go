// Package protocol defines what coordinators, agents and surveys of a fleet exchange over a NATS server: the
// subjects, the messages with their limits and checks, and the errors. Reports are compressed (Report).
//
//	agent ── weir.fleet.<session>.door.<id>.*   ──▶ coordinator   joining, a request each
//	agent ── weir.fleet.<session>.clock         ──▶ coordinator   four timestamps, ten times a second
//	agent ── weir.fleet.<session>.standing.<id> ──▶ coordinator   its standing, ten times a second
//	agent ── weir.fleet.report.<session>.<run>.<id> ▶ JetStream ─▶ coordinator   once a second, kept
//	agent ◀── weir.order.agent.<id>.*           ──  coordinator   a run's job, a query, a system to start on its host
//	agent ◀── weir.order.all.<session>          ──  coordinator   the decisions, ten times a second
//	agent ◀── weir.order.beacon                 ──  coordinator   which process coordinates, once a second
//	either ◀─ weir.fleet.ask.*                  ──  anybody       self-descriptions
//
// An id is the public key of the agent's process (admission.Self). A job, and a wish for a system, are
// sealed for the receiving process. They contain references in place of the values that a scenario refers
// to: the agent resolves these on its own host, within its reach.
//
// Standing and orders are states, not steps: each is complete, the latest counts, and the next one makes up
// for a lost one. Reports must not be lost: they go through a stream on disk.
package protocol
