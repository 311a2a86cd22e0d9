// Package elicit lets hosts ask people the questions of runs: when a host asks (Mode), the form that it shows (Form)
// with its text (Message), the signed ticket of a question in protocol revisions without a connection (Ticket), and the
// list of open and ended questions (Desk).
package elicit

// Mode selects who answers interrupts.
type Mode string

const (
	// Auto lets hosts ask the person if they can. A model may still pass on a person's words.
	Auto Mode = "auto"
	// Never has models ask the person.
	Never Mode = "never"
	// Required accepts answers only from hosts that ask the person, not from a model.
	Required Mode = "required"
)

// The protocol revisions that differ in questions to people.
const (
	// Since is the first revision whose servers can ask people.
	Since = "2025-06-18"
	// richerSince is the first revision with multiple choice, and with defaults for all fields.
	richerSince = "2025-11-25"
	// TicketsSince is the first revision in which a question is the answer of a call, and the person's input comes with
	// the repeated call.
	TicketsSince = "2026-07-28"
)
