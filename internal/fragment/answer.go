package fragment

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/form"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Filled is a form that was sent and refused.
type Filled struct {
	Values map[string][]string
	// Mistakes are the reasons, by the name of the control.
	Mistakes map[string]string
}

// AskOf returns the open question of a pending interrupt with its form. hide takes the secrets out of values. filled is nil before a form
// was sent.
func AskOf(p *view.Pending, hide func(any) any, post Post, filled *Filled) *Question {
	q := &Question{Run: p.ExecutionID, Prompt: cmp.Or(p.Prompt, p.PromptRef), Node: p.NodeID, Asked: p.RequestedAt}
	q.Deadline = cmp.Or(p.Deadline, p.Due)
	if b := p.BlockDeadline; !b.IsZero() && (q.Deadline.IsZero() || b.Before(q.Deadline)) {
		q.Deadline = b
	}
	asks := agentsteps.Approval(p.Show)
	if shown, isState := p.ShownValue(); shown != nil && asks == nil {
		laid := Lay(hide(shown), p.ShownNames)
		q.Show, q.ShowsState = &laid, isState
	}
	q.Form = payloadForm(post, p.ResumeSchema, filled)
	q.Form.Submit = "Send the answer"
	if asks != nil {
		q.Form.Calls, q.Form.Fields, q.Form.Decision, q.Form.JSON = callsOf(p, asks, hide, filled), nil, nil, nil
	}
	return q
}

// payloadForm returns the form for payloads of a schema.
func payloadForm(post Post, schema map[string]any, filled *Filled) *Form {
	out := &Form{Post: post}
	if filled == nil {
		filled = &Filled{}
	}
	flat, err := form.Of(schema)
	if err != nil {
		out.JSON = &JSONArea{Text: Whole(form.Example(schema)), Mistake: filled.Mistakes["json"]}
		if len(schema) > 0 {
			out.JSON.Schema = Whole(schema)
		}
		if typed := filled.Values["json"]; len(typed) > 0 {
			out.JSON.Text = typed[0]
		}
		return out
	}
	list := flat.Fields
	if d := flat.Decision(); d != nil {
		out.Decision, list = d, nil
		for _, f := range flat.Fields {
			if f.ID != d.ID {
				list = append(list, f)
			}
		}
	}
	out.Fields = Fields(list, filled.Values, filled.Mistakes)
	return out
}

func callsOf(p *view.Pending, asks []agentsteps.Ask, hide func(any) any, filled *Filled) []Call {
	tools := map[string]agentsteps.Tool{}
	if b, ok := agentsteps.Body(p.FirstStep, nil).(*agentsteps.Begun); ok {
		for _, t := range b.Tools {
			tools[t.Name] = t
		}
	}
	list := make([]Call, len(asks))
	for i, ask := range asks {
		arguments, _ := hide(ask.Arguments).(map[string]any)
		c := Call{Index: i, Tool: ask.Tool, Arguments: Lay(arguments, nil), JSON: Whole(arguments), MayHaveHappened: ask.MayHaveHappened}
		if t, ok := tools[ask.Tool]; ok {
			if c.Allowed = "may change things"; t.ReadOnly {
				c.Allowed = "only reads"
			}
			if t.Source != "" {
				c.Allowed += ", from " + t.Source
			}
		}
		if filled != nil {
			get := func(name string) string { return strings.Join(filled.Values[fmt.Sprintf("%s%d", name, i)], "") }
			c.Decision, c.Text, c.JSON = get("d"), get("t"), cmp.Or(get("a"), c.JSON)
			for _, name := range []string{"d", "t", "a"} {
				c.Mistake = cmp.Or(c.Mistake, filled.Mistakes[fmt.Sprintf("%s%d", name, i)])
			}
		}
		list[i] = c
	}
	return list
}

// PayloadOf reads the answer to a question from its submitted form, and the mistakes by the name of the control.
func PayloadOf(p *view.Pending, values map[string][]string) (payload map[string]any, mistakes map[string]string) {
	if asks := agentsteps.Approval(p.Show); asks != nil {
		return decisionsOf(asks, values)
	}
	f, err := form.Of(p.ResumeSchema)
	if err != nil {
		payload, err := objectOf(strings.Join(values["json"], ""))
		if err != nil {
			return nil, map[string]string{"json": err.Error()}
		}
		return payload, nil
	}
	payload, wrong := f.Payload(values)
	mistakes = map[string]string{}
	for _, m := range wrong {
		mistakes[m.Field] = m.Text
	}
	return payload, mistakes
}

// objectOf reads a JSON object; blank text is {}.
func objectOf(text string) (map[string]any, error) {
	if strings.TrimSpace(text) == "" {
		return map[string]any{}, nil
	}
	v, losses, err := jsonvalue.DecodeUnique([]byte(text))
	if err == nil && len(losses) > 0 {
		err = losses[0]
	}
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New(`must be a JSON object, as in {"name": 1}`)
	}
	return object, nil
}

// decisionsOf reads the decisions about an agent's calls: the button "all", or d0, d1, … for each, with t0, … as the reason or the result
// and a0, … as other arguments. The digest of a call binds its decision to the arguments that were shown.
func decisionsOf(asks []agentsteps.Ask, values map[string][]string) (map[string]any, map[string]string) {
	get := func(name string) string { return strings.TrimSpace(strings.Join(values[name], "")) }
	decided, mistakes := map[string]any{}, map[string]string{}
	for i, c := range asks {
		n := strconv.Itoa(i)
		verb, text := cmp.Or(get("all"), get("d"+n)), get("t"+n)
		d := map[string]any{"decision": verb}
		if c.Digest != "" {
			d["digest"] = c.Digest
		}
		switch verb {
		case "approve":
		case "deny", "stop":
			if text != "" {
				d["reason"] = text
			}
		case "edit":
			arguments, err := objectOf(get("a" + n))
			if err != nil {
				mistakes["a"+n] = err.Error()
			}
			d["arguments"] = arguments
		case "respond":
			if text == "" {
				mistakes["t"+n] = "Write the result."
			}
			d["result"] = text
			if v, losses, err := jsonvalue.DecodeUnique([]byte(text)); err == nil && len(losses) == 0 {
				d["result"] = v
			}
		default:
			mistakes["d"+n] = "Choose a decision."
		}
		decided[c.Key] = d
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return map[string]any{"calls": decided}, nil
}
