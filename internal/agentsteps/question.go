package agentsteps

// Decisions are those of a person about calls that need approval.
var Decisions = []string{"approve", "deny", "edit", "respond", "stop"}

// Ask is a call that a person is asked about.
type Ask struct {
	Key, Tool string
	Arguments map[string]any
	// Digest binds an answer to these arguments.
	Digest string
	// MayHaveHappened is set if the process died during the call.
	MayHaveHappened bool
}

// Approval returns the calls that a question asks to approve, nil for another question. show is the value beside the prompt (view.Pending.Show).
func Approval(show any) []Ask {
	b := body(object(show))
	if b.text("about") != "approval" {
		return nil
	}
	return asksOf(b)
}

// AsksPerson reports whether an agent asks a question by ask_person, with only the call beside the prompt.
func AsksPerson(show any) bool {
	b := body(object(show))
	return b.text("about") == "person" && len(b.list("calls")) == 1
}

// asksOf returns the calls of a question.
func asksOf(question body) []Ask {
	var asks []Ask
	for _, v := range question.list("calls") {
		c := body(object(v))
		asks = append(asks, Ask{
			Key: c.text("key"), Tool: c.text("tool"), Arguments: c.object("arguments"), Digest: c.text("digest"), MayHaveHappened: c.flag("mayHaveHappened"),
		})
	}
	return asks
}
