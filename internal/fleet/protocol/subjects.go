package protocol

import (
	"strings"

	"github.com/weirmq/weir/internal/fleet/hub"
)

// What anybody at the server may ask, beside the coordinator: it stands below what
// agents may publish, so that a survey needs no more than they have.
const (
	AskPrefix     = hub.Subjects + "ask."
	AboutSubject  = AskPrefix + "about"       // of all agents
	RosterSubject = AskPrefix + "coordinator" // of all coordinators
)

// AskSubject is where one process of an agent is asked.
func AskSubject(instance, what string) string { return AskPrefix + instance + "." + what }

// Subjects. A session is one coordinator's life; agents may publish below
// weir.fleet only (package hub), so that only a coordinator gives orders.
const (
	BeaconSubject = hub.Orders + "beacon"
	OrdersPrefix  = hub.Orders + "all."   // and a session
	agentPrefix   = hub.Orders + "agent." // and an agent's instance, and job, may, holds, leaders, system or faults
	fleetPrefix   = hub.Subjects
)

// DoorSubject is where an agent's process asks to join a session.
func DoorSubject(session, instance, what string) string {
	return fleetPrefix + session + ".door." + instance + "." + what
}

// OrderSubject is where one process of an agent is given an order: a job, a question, or
// a wish for a system.
func OrderSubject(instance, what string) string { return agentPrefix + instance + "." + what }

// ClockSubject is where the coordinator of a session is asked for its clock.
func ClockSubject(session string) string { return fleetPrefix + session + ".clock" }

// LeadersSubject is where an agent's process asks which servers lead parts of the destinations;
// "*" stands for every process.
func LeadersSubject(session, instance string) string {
	return fleetPrefix + session + ".leaders." + instance
}

// BooksSubject is where the agents of a run hear of each other's deliveries.
func BooksSubject(session, run string) string { return OrdersPrefix + session + ".books." + run }

// StandingSubject is where an agent's process tells how it stands.
func StandingSubject(session, instance string) string {
	return fleetPrefix + session + ".standing." + instance
}

// ReportSubject is where an agent's process reports what it measured in a run; "*" stands
// for every run or every process.
func ReportSubject(session, run, instance string) string {
	return hub.Reports + session + "." + run + "." + instance
}

// Answerable reports whether an answer may go to a subject: a request may name any.
func Answerable(subject string) bool { return strings.HasPrefix(subject, "_INBOX.") }
