package protocol

import (
	"strings"

	"github.com/weirmq/weir/internal/fleet/hub"
)

// Queries that anyone at the server may make, like the coordinator: they are below what agents may publish,
// so that a survey needs no more rights than an agent.
const (
	AskPrefix     = hub.Subjects + "ask."
	AboutSubject  = AskPrefix + "about"       // of all agents
	RosterSubject = AskPrefix + "coordinator" // of all coordinators
)

// AskSubject is where a process of an agent answers queries.
func AskSubject(instance, what string) string { return AskPrefix + instance + "." + what }

// Subjects. A session is one coordinator's lifetime; agents may publish only below weir.fleet (package
// hub), so that only a coordinator gives orders.
const (
	BeaconSubject = hub.Orders + "beacon"
	OrdersPrefix  = hub.Orders + "all."   // and a session
	agentPrefix   = hub.Orders + "agent." // followed by an agent's instance, and job, may, holds, leaders, system or faults
	fleetPrefix   = hub.Subjects
)

// DoorSubject is where an agent's process asks to join a session.
func DoorSubject(session, instance, what string) string {
	return fleetPrefix + session + ".door." + instance + "." + what
}

// OrderSubject is where a process of an agent gets orders: a job, a query, or a wish for a system.
func OrderSubject(instance, what string) string { return agentPrefix + instance + "." + what }

// ClockSubject is where a session's coordinator answers clock queries.
func ClockSubject(session string) string { return fleetPrefix + session + ".clock" }

// LeadersSubject is where an agent's process asks which servers lead parts of the destinations; "*" stands
// for every process.
func LeadersSubject(session, instance string) string {
	return fleetPrefix + session + ".leaders." + instance
}

// DeliveriesSubject is where the agents of a run learn of each other's deliveries.
func DeliveriesSubject(session, run string) string { return OrdersPrefix + session + ".books." + run }

// StandingSubject is where an agent's process publishes its standing.
func StandingSubject(session, instance string) string {
	return fleetPrefix + session + ".standing." + instance
}

// ReportSubject is where an agent's process publishes its measurements of a run; "*" stands for every run
// or every process.
func ReportSubject(session, run, instance string) string {
	return hub.Reports + session + "." + run + "." + instance
}

// Answerable reports whether an answer may go to a subject, since a request can name any.
func Answerable(subject string) bool { return strings.HasPrefix(subject, "_INBOX.") }
