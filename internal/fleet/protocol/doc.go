// Package protocol is what coordinators, agents and surveys of a fleet say to each other at
// a NATS server: the subjects, the messages with their bounds and checks, and the errors.
// Reports are compressed (Report).
//
//	agent ── weir.fleet.<session>.door.<id>.*   ──▶ coordinator   joining, a request each
//	agent ── weir.fleet.<session>.clock         ──▶ coordinator   four timestamps, ten times a second
//	agent ── weir.fleet.<session>.standing.<id> ──▶ coordinator   how it stands, ten times a second
//	agent ── weir.fleet.report.<session>.<run>.<id> ▶ JetStream ─▶ coordinator   once a second, kept
//	agent ◀── weir.order.agent.<id>.*           ──  coordinator   a run's job, a question, a system to be started on its host
//	agent ◀── weir.order.all.<session>          ──  coordinator   what was decided, ten times a second
//	agent ◀── weir.order.beacon                 ──  coordinator   which process coordinates, once a second
//	either ◀─ weir.fleet.ask.*                  ──  anybody       what a process says of itself
//
// An id is the public key of the agent's process (admission.Self). A job, and a wish for a
// system, are sealed for the process that gets them. Neither holds what a scenario
// refers to: the agent looks it up on its own host, within its reach.
//
// Standing and orders are states and not steps: each says all, and the latest counts.
// The next one makes good a lost one. Reports must not be lost: they go through a
// stream on disk.
package protocol
