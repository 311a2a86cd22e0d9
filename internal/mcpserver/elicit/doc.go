// Package elicit is what the MCP server needs so that hosts put the questions of runs to people: when a host is to ask (Mode), the form
// that it shows (Form) with its text (Message), the signed ticket that goes with a question where the protocol keeps no connection for
// it (Ticket), and a desk that remembers which questions are open and how they ended (Desk).
package elicit

// Mode says who answers interrupts.
type Mode string

const (
	// Auto has hosts ask the person where they can. A model may still pass on what a person has told it.
	Auto Mode = "auto"
	// Never leaves the asking to models.
	Never Mode = "never"
	// Required takes answers from hosts that ask the person, and none that a model passes on.
	Required Mode = "required"
)

// The revisions of the protocol that matter here.
const (
	// Since is the first one in which servers ask people.
	Since = "2025-06-18"
	// richerSince is the first one with choices of several, and with defaults for all fields.
	richerSince = "2025-11-25"
	// TicketsSince is the first one in which a question is an answer of a call, and the person's answer comes with a repeated call.
	TicketsSince = "2026-07-28"
)
