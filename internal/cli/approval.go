package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// lineArguments is up to how many characters arguments stand in the line of their call.
const lineArguments = 80

// writeCalls prints the calls that an agent wants approved.
func writeCalls(w io.Writer, calls []agentsteps.Ask, indent string) {
	for _, c := range calls {
		text := string(jsonvalue.Canonical(c.Arguments))
		if len(text) > lineArguments {
			if long, err := json.MarshalIndent(c.Arguments, indent, "  "); err == nil {
				text = string(long)
			}
		}
		if len(text) > maxShown {
			text = problem.Clip(text, maxShown) + fmt.Sprintf("\n%s… %d bytes in all: agent transcript shows the rest", indent, len(text))
		}
		fmt.Fprintf(w, "%s%s  %s %s\n", indent, plainCell(c.Key), plainCell(c.Tool), plain(text))
		if c.MayHaveHappened {
			fmt.Fprintf(w, "%s  it may have happened already: the process died during the call\n", indent)
		}
	}
}

// decisionsText says how calls are decided.
const decisionsText = "approve, approve always, deny [REASON], edit NAME=VALUE … or JSON, respond RESULT, stop [REASON]"

// decisions are the answers to a question about calls, as a person types them, one line after the other until all are decided.
type decisions struct {
	calls   []agentsteps.Ask
	decided map[string]any
}

// take reads a line: a decision about all calls that have none yet, or about the one whose key stands before it. It returns the answer once
// all are decided.
func (d *decisions) take(line string) (map[string]any, error) {
	if strings.HasPrefix(strings.TrimSpace(line), "{") {
		return parsePayload(line, nil)
	}
	first, rest := word(line)
	var about []agentsteps.Ask
	if i := slices.IndexFunc(d.calls, func(c agentsteps.Ask) bool { return c.Key == first }); i >= 0 {
		about = d.calls[i : i+1]
		first, rest = word(rest)
	} else {
		for _, c := range d.calls {
			if _, has := d.decided[c.Key]; !has {
				about = append(about, c)
			}
		}
	}
	for _, c := range about {
		one, err := decision(first, rest, c, len(about) > 1)
		if err != nil {
			return nil, err
		}
		if d.decided == nil {
			d.decided = map[string]any{}
		}
		d.decided[c.Key] = one
	}
	if len(d.decided) < len(d.calls) {
		return nil, nil
	}
	if len(d.calls) == 1 {
		return d.decided[d.calls[0].Key].(map[string]any), nil
	}
	return map[string]any{"calls": maps.Clone(d.decided)}, nil
}

// left names the calls without a decision.
func (d *decisions) left() string {
	var keys []string
	for _, c := range d.calls {
		if _, has := d.decided[c.Key]; !has {
			keys = append(keys, c.Key)
		}
	}
	return problem.AndList(keys)
}

func word(line string) (first, rest string) {
	first, rest, _ = strings.Cut(strings.TrimSpace(line), " ")
	return first, strings.TrimSpace(rest)
}

// decision reads what a person has typed about a call. The digest binds it to the arguments that they have seen.
func decision(verb, rest string, c agentsteps.Ask, several bool) (map[string]any, error) {
	d := map[string]any{"decision": verb}
	if c.Digest != "" {
		d["digest"] = c.Digest
	}
	switch verb {
	case "approve":
		switch rest {
		case "":
		case "always":
			d["remember"] = true
		default:
			return nil, fmt.Errorf("write approve or approve always, without %q", rest)
		}
	case "deny", "stop":
		if rest != "" {
			d["reason"] = rest
		}
	case "edit":
		arguments, err := edited(rest, c.Arguments)
		if several || err != nil || rest == "" {
			return nil, firstError(err, fmt.Errorf("write the arguments behind the key and edit, as in %s edit %s", c.Key, jsonvalue.Canonical(c.Arguments)))
		}
		d["arguments"] = arguments
	case "respond":
		if several || rest == "" {
			return nil, fmt.Errorf("write the result behind the key and respond, as in %s respond \"done by hand\"", c.Key)
		}
		d["result"] = typed(rest, nil)
	default:
		return nil, fmt.Errorf("%q is no decision: write %s", verb, decisionsText)
	}
	return d, nil
}

// edited are arguments as a person has changed them: JSON in their place, or NAME=VALUE for some of them. What was a text stays one.
func edited(text string, arguments map[string]any) (map[string]any, error) {
	if strings.HasPrefix(text, "{") {
		return parsePayload(text, nil)
	}
	properties := map[string]any{}
	for name, v := range arguments {
		if _, isText := v.(string); isText {
			properties[name] = map[string]any{"type": "string"}
		}
	}
	changed, err := parsePayload(text, map[string]any{"properties": properties})
	if err != nil {
		return nil, err
	}
	for _, name := range jsonvalue.Keys(changed) {
		if _, has := arguments[name]; !has { // a misspelt name would leave the argument as it was, and the call would be made
			return nil, fmt.Errorf("the call has no argument %q; write all arguments as JSON to add it. %s", name, suggest.DidYouMean(name, jsonvalue.Keys(arguments)))
		}
	}
	out := maps.Clone(arguments)
	maps.Copy(out, changed)
	return out, nil
}

// takesWords reports whether the answer to a question is a line as it is typed: that of an agent that asks a person and wants no form.
func takesWords(p *view.Pending) bool {
	required := requiredNames(p.ResumeSchema)
	return agentsteps.AsksPerson(p.Show) && len(required) == 0 && propertySchema(p.ResumeSchema, "text")["type"] == "string"
}
