package fragment

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/form"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
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
	q.Deadline = Deadline(p)
	asks := agentsteps.Approval(p.Show)
	if shown, isState := p.ShownValue(); shown != nil && asks == nil {
		laid := Lay(hide(shown), p.ShownNames)
		q.Show, q.ShowsState = &laid, isState
	}
	q.Form = FormFor(p.ResumeSchema, post, filled)
	q.Form.Submit = "Send the answer"
	if asks != nil {
		q.Form.Calls, q.Form.Fields, q.Form.Decision, q.Form.JSON = callsOf(p, asks, hide, filled), nil, nil, nil
	}
	return q
}

// Deadline returns when a wait ends at the latest, by itself or by a parallel block around it; zero without a deadline.
func Deadline(p *view.Pending) time.Time {
	d := cmp.Or(p.Deadline, p.Due)
	if b := p.BlockDeadline; !b.IsZero() && (d.IsZero() || b.Before(d)) {
		return b
	}
	return d
}

// FormFor returns the form for payloads of a schema. filled is nil before a form was sent.
func FormFor(schema map[string]any, post Post, filled *Filled) *Form {
	out := &Form{Post: post}
	if filled == nil {
		filled = &Filled{}
	}
	out.Key = filled.Mistakes[KeyField]
	flat, err := form.Of(schema)
	if err != nil {
		out.JSON = &JSONArea{Text: Whole(form.Example(schema)), Mistake: filled.Mistakes[JSONField]}
		if len(schema) > 0 {
			out.JSON.Schema = Whole(schema)
		}
		if typed, sent := filled.Values[JSONField]; sent {
			out.JSON.Text = strings.Join(typed, "")
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

const (
	// JSONField is the name of the text area with JSON.
	JSONField = "json"
	// KeyField is the name of the first button of a form, which is invisible: browsers press it for a key, in place of a button that answers.
	KeyField = "key"
)

// byKey returns why a form that a key has sent is refused; nil for all others.
func byKey(values map[string][]string) map[string]string {
	if _, pressed := values[KeyField]; !pressed {
		return nil
	}
	return map[string]string{KeyField: "Nothing was sent: no key sends this form. Press a button."}
}

// AnswerOf reads the answer to a question from its submitted form, and the mistakes by the name of the control. hide is that of AskOf.
func AnswerOf(p *view.Pending, hide func(any) any, values map[string][]string) (payload map[string]any, mistakes map[string]string) {
	if _, written := values[JSONField]; !written {
		if asks := agentsteps.Approval(p.Show); asks != nil {
			if refused := byKey(values); refused != nil {
				return nil, refused
			}
			return decisionsOf(asks, hide, values)
		}
	}
	return PayloadOf(p.ResumeSchema, values)
}

// PayloadOf reads a payload for a schema: from the JSON text area if the form has one, otherwise from the fields.
func PayloadOf(schema map[string]any, values map[string][]string) (payload map[string]any, mistakes map[string]string) {
	if refused := byKey(values); refused != nil {
		return nil, refused
	}
	if text, written := values[JSONField]; written {
		payload, err := ObjectOf(strings.Join(text, ""))
		if err != nil {
			return nil, map[string]string{JSONField: err.Error()}
		}
		return payload, nil
	}
	f, err := form.Of(schema)
	if err != nil {
		return nil, map[string]string{JSONField: "this form needs JSON"}
	}
	payload, wrong := f.Payload(values)
	mistakes = map[string]string{}
	for _, m := range wrong {
		mistakes[m.Field] = m.Text
	}
	return payload, mistakes
}

// MistakesOf returns the violations of a schema by the fields of the form. The error of the engine is about the payload as a whole.
func MistakesOf(schema, payload map[string]any, values map[string][]string) map[string]string {
	compiled, err := jsonschema.Compile(schema)
	if schema == nil || err != nil {
		return nil
	}
	f, noForm := form.Of(schema)
	_, written := values[JSONField]
	list := map[string]string{}
	for _, v := range compiled.Validate(payload) {
		if written || noForm != nil {
			list[JSONField] = strings.TrimSpace(list[JSONField] + "\n" + v.InstancePath + " " + v.Message)
			continue
		}
		at := v.InstancePath
		if name, ok := v.Params["missingProperty"].(string); ok {
			at += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		}
		if field := f.At(at); field != nil {
			list[field.ID] = v.Message
		}
	}
	return list
}

// ObjectOf reads a JSON object; blank text is {}.
func ObjectOf(text string) (map[string]any, error) {
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

// decisionsOf reads the decisions about an agent's calls. The button "all" decides about all of them, with reason; otherwise d0, d1, … are the
// decisions in the order of the calls, with t0, … as the reason or result (JSON or text) and a0, … as the arguments (JSON). The digest of a
// call binds its decision to the arguments that were shown. What was chosen or typed is never dropped for the button: both are refused then.
func decisionsOf(asks []agentsteps.Ask, hide func(any) any, values map[string][]string) (map[string]any, map[string]string) {
	get := func(name string) string { return strings.TrimSpace(strings.Join(values[name], "")) }
	decided, mistakes := map[string]any{}, map[string]string{}
	for i, c := range asks {
		n := strconv.Itoa(i)
		verb, text := get("d"+n), get("t"+n)
		if all := get("all"); all != "" {
			const send = "Press the button that sends decisions"
			switch chosen := slices.IndexFunc(decisions, func(d Choice) bool { return d.Value == verb }); {
			case chosen >= 0 && verb != all:
				mistakes["d"+n] = fmt.Sprintf("Nothing was recorded: “%s” is chosen here, and another button was pressed. %s, or choose another one here.", decisions[chosen].Text, send)
			case text != "":
				mistakes["t"+n] = "Nothing was recorded: the text below belongs to no decision. " + send + ", or delete it."
			}
			verb, text = all, get("reason")
		}
		if verb == "approve" && mistakes["d"+n] == "" && !sameArguments(get("a"+n), hide(c.Arguments)) {
			mistakes["a"+n] = "Nothing was recorded: the arguments below were changed. Choose to approve with other arguments, or restore them."
		}
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
			arguments, err := ObjectOf(get("a" + n))
			if err != nil {
				mistakes["a"+n] = "the arguments are " + err.Error()
			} else if get("a"+n) == "" {
				mistakes["a"+n] = "write the arguments as JSON"
			}
			d["arguments"] = arguments
		case "respond":
			if text == "" {
				mistakes["t"+n] = "write the result"
			}
			d["result"] = text
			if v, losses, err := jsonvalue.DecodeUnique([]byte(text)); err == nil && len(losses) == 0 {
				d["result"] = v
			}
		default:
			mistakes["d"+n] = "choose a decision"
		}
		decided[c.Key] = d
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return map[string]any{"calls": decided}, nil
}

// sameArguments reports whether the text of arguments is blank or has the shown ones.
func sameArguments(text string, shown any) bool {
	if text == "" {
		return true
	}
	if given, _ := shown.(map[string]any); len(given) == 0 {
		shown = map[string]any{}
	}
	typed, err := ObjectOf(text)
	return err == nil && bytes.Equal(jsonvalue.Canonical(typed), jsonvalue.Canonical(shown))
}
