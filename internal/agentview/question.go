package agentview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The decisions of a person about calls that need approval.
var Decisions = []string{"approve", "deny", "edit", "respond", "stop"}

// Call is a call that a person is asked about.
type Call struct {
	Key, Tool string
	Arguments map[string]any
	// Digest binds an answer to these arguments.
	Digest string
	// MayHaveHappened says that the process died during the call.
	MayHaveHappened bool
}

// Approval returns the calls that a question asks to approve, from what it shows beside its prompt (graph.Pending.Show); nil if it asks
// for no approval.
func Approval(show any) []Call {
	b := body(object(show))
	if b.text("about") != "approval" {
		return nil
	}
	return Calls(b)
}

// AsksPerson reports whether a question is one that an agent asks by ask_person, with no more beside it than the call itself.
func AsksPerson(show any) bool {
	b := body(object(show))
	return b.text("about") == "person" && len(b.list("calls")) == 1
}

// Calls are those of a question.
func Calls(question map[string]any) []Call {
	var calls []Call
	for _, v := range body(question).list("calls") {
		c := body(object(v))
		calls = append(calls, Call{
			Key: c.text("key"), Tool: c.text("tool"), Arguments: c.object("arguments"), Digest: c.text("digest"), MayHaveHappened: c.flag("mayHaveHappened"),
		})
	}
	return calls
}

// AnswerText says how calls were decided, or what was answered. calls are those of the question, nil where it is not at hand.
func AnswerText(calls []Call, payload map[string]any, expired bool) string {
	each := object(payload["calls"])
	var parts []string
	decided := func(what string, d body) {
		text := decisionText(d)
		if what != "" {
			text = what + ": " + text
		}
		parts = append(parts, text)
	}
	isDecision := func(d map[string]any) bool { return slices.Contains(Decisions, body(d).text("decision")) }
	switch {
	case len(calls) > 0 && (isDecision(payload) || each != nil):
		for _, c := range calls {
			d := object(each[c.Key])
			if d == nil {
				d = payload
			}
			decided(c.Tool, d)
		}
	case each != nil:
		for _, key := range jsonvalue.Keys(each) {
			decided(key, object(each[key]))
		}
	case isDecision(payload):
		decided("", payload)
	default:
		if text, ok := payload["text"].(string); ok && len(payload) == 1 {
			parts = append(parts, text)
		} else {
			parts = append(parts, string(jsonvalue.Canonical(payload)))
		}
	}
	text := strings.Join(parts, ", ")
	if expired {
		return "nobody answered: " + text
	}
	return text
}

// decisionText is a decision in the past tense, with its reason.
func decisionText(d body) string {
	text := d.text("decision")
	switch text {
	case "approve":
		if text = "approved"; d.flag("remember") {
			text = "approved from now on"
		}
	case "deny":
		text = "denied"
	case "edit":
		text = "approved by edit"
	case "respond":
		text = "answered in its place"
	case "stop":
		text = "stopped"
	}
	if reason := strings.TrimSpace(d.text("reason")); reason != "" {
		text = fmt.Sprintf("%s (%s)", text, reason)
	}
	return text
}
