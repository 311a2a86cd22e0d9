package fragment

import "html/template"

// Card is a run as the card in the chat of an MCP host shows it: the questions, complete, then the graph.
type Card struct {
	ID, Title, Workflow string
	State               State
	Questions           []CardQuestion
	// Refused is why an answer was not recorded; nil without an answer.
	Refused *Failure
	// Error is the failure of a failed run or the reason of a cancelled one.
	Error string
	// Waits describe the waits of the run, other than questions.
	Waits []string
	// SVG is the engine's own picture, empty for a large definition. Outline has a line for each node.
	SVG     template.HTML
	Outline string
	// Progress is the line in place of the graph while a question is open: "4 of 7 nodes".
	Progress string
	// Visits are those of the run, without links, for a card that fills the window; nil otherwise.
	Visits *Visits
	// Result is the result of a completed run.
	Result *Value
}

func (*Card) template() string { return "card" }

// CardQuestion is an open question in a card. Key tells it from others: a card leaves the form of a question that stays alone.
type CardQuestion struct {
	Key string
	*Question
}
