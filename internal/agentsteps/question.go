package agentsteps

import "github.com/workflows-engine/workflows-engine/internal/jsonvalue"

// Decisions are those of a person about calls that need approval.
var Decisions = []string{"approve", "deny", "edit", "respond", "stop"}

// Decision is the decision of a person about a call: one of Decisions, with the fields of that one.
type Decision struct {
	Decision, Reason string
	// Remember approves all later calls of the tool.
	Remember bool
	// Arguments are those of edit, nil without.
	Arguments map[string]any
	// Result is that of respond, HasResult is set if there is one.
	Result    any
	HasResult bool
	// Digest binds the decision to arguments, if HasDigest is set; "" if it is not a string.
	Digest    string
	HasDigest bool
}

// DecisionOf returns an answer's decision about the call with a key: its own, else the one for all calls; nil without either.
func DecisionOf(answer map[string]any, key string) *Decision {
	d := body(answer).object("calls").object(key)
	if d == nil {
		if d = answer; d.text("decision") == "" {
			return nil
		}
	}
	return &Decision{
		Decision: d.text("decision"), Reason: d.text("reason"), Remember: d.flag("remember"), Arguments: d.object("arguments"),
		Result: d["result"], HasResult: d.has("result"), Digest: d.text("digest"), HasDigest: d.has("digest"),
	}
}

// DecidedCalls returns the keys of the calls that an answer decides about one by one, sorted.
func DecidedCalls(answer map[string]any) []string {
	return jsonvalue.Keys(body(answer).object("calls"))
}

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
