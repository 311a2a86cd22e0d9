package fragment

import (
	"time"

	"github.com/workflows-engine/workflows-engine/internal/form"
)

// Question is the page of a question: what is asked, everything it is about, and the form. After the answer, it has the answer.
type Question struct {
	Prompt string
	// Run is the run that asks; Node the node.
	Run, Title, RunPath, Node, Workflow string
	// VisitPath is the page of the node's visit, "" without one. Turns is what the agent that asks has done in it, nil for another node.
	VisitPath string
	Turns     *Attempt
	// Asked and Deadline are zero if not known.
	Asked, Deadline time.Time
	// Show is the value that the question is about, complete. ShowsState is set if it is the state, for want of another.
	Show       *Laid
	ShowsState bool
	// Calls are those of an agent that wait for approval, for a page without Form.
	Calls []Call
	// Form is nil in a page that only reads, and after the answer.
	Form *Form
	// Input and State are folded below the form.
	Input, State *Value
	Answer       *Answer
	// Refused is why the answer was not recorded; nil without an answer.
	Refused *Failure
	// Notices name the missing executors of this process.
	Notices []Notice
}

func (*Question) template() string { return "question" }

// Answer is the answer to a question.
type Answer struct {
	// By is who answered, "" if it is not recorded.
	By string
	At time.Time
	// Value is the answer, nil if the question ended without one. Words describe the decision about an agent's calls, or why it ended.
	Value *Laid
	Words string
}

// Call is a call of a tool that an agent wants approved.
type Call struct {
	Index int
	Tool  string
	// Allowed describes what the tool may do, "" if it is not recorded.
	Allowed string
	// Arguments are laid out; JSON is their text, to edit.
	Arguments Laid
	JSON      string
	// MayHaveHappened is set if the process died during the call.
	MayHaveHappened bool
	// Decision and Text, the reason or the result, are the input of a rejected form. Mistake is why it was rejected.
	Decision, Text, Mistake string
}

// Form is a form for a payload.
type Form struct {
	Post
	// Fields are those of a flat schema. Decision is the boolean that is the only required one: it becomes two buttons, and is not in Fields.
	Fields   []Field
	Decision *form.Field
	// JSON is the text area for a schema that has no form.
	JSON *JSONArea
	// Calls are those of an agent, to decide about.
	Calls []Call
	// Key is why a form that a key has sent was refused.
	Key string
	// Submit is the text of the button.
	Submit string
	// Before are fields of the call beside the payload, such as the id of a new run.
	Before []Field
}

// JSONArea is a text area for a payload.
type JSONArea struct {
	// Text is the typed text, or an example.
	Text string
	// Schema is the schema of the payload, "" without a schema.
	Schema  string
	Mistake string
}

// Field is a field of a form, with the typed text.
type Field struct {
	form.Field
	// Texts are the values: the typed ones, or the default.
	Texts   []string
	Mistake string
	Inner   []Field
}

// Fields returns the fields of a form. values has the typed text, nil before; mistakes has the reasons of a rejection, both by field ID.
func Fields(list []form.Field, values map[string][]string, mistakes map[string]string) []Field {
	out := make([]Field, len(list))
	for i, f := range list {
		out[i] = Field{Field: f, Mistake: mistakes[f.ID], Inner: Fields(f.Fields, values, mistakes)}
		if values != nil {
			out[i].Texts = values[f.ID]
		} else if d, ok := f.Default.([]any); ok && f.Kind == form.Choices {
			for _, v := range d {
				for _, o := range f.Options {
					if o.Value == v {
						out[i].Texts = append(out[i].Texts, o.Label)
					}
				}
			}
		} else if text := f.Value(); text != "" {
			out[i].Texts = []string{text}
		}
	}
	return out
}

// Text returns the only value.
func (f Field) Text() string {
	if len(f.Texts) == 0 {
		return ""
	}
	return f.Texts[0]
}

// Has reports whether an option is chosen.
func (f Field) Has(label string) bool {
	for _, t := range f.Texts {
		if t == label {
			return true
		}
	}
	return false
}

// Step returns the step of a number.
func (f Field) Step() string {
	if f.Kind == form.Integer {
		return "1"
	}
	return "any"
}
