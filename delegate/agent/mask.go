package agent

import (
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// masked is an input without secrets: output of tools and models is recorded, and read by models.
func (w *attempt) masked(in agentloop.Input) agentloop.Input {
	mask := w.agents.config.Mask
	if mask == nil {
		return in
	}
	switch in := in.(type) {
	case agentloop.ToolsListed:
		in.Tools = slices.Clone(in.Tools)
		for i := range in.Tools {
			in.Tools[i].Description = mask(in.Tools[i].Description)
		}
		in.Failure = maskFailure(mask, in.Failure)
		return in
	case agentloop.ModelReplied:
		in.Reply.Model, in.Reply.Text, in.Reply.Reasoning = mask(in.Reply.Model), mask(in.Reply.Text), mask(in.Reply.Reasoning)
		in.Reply.Calls = slices.Clone(in.Reply.Calls)
		for i := range in.Reply.Calls {
			c := &in.Reply.Calls[i]
			c.ID, c.Name, c.Arguments = mask(c.ID), mask(c.Name), maskJSON(mask, c.Arguments)
		}
		return in
	case agentloop.ModelFailed:
		in.Message = mask(in.Message)
		return in
	case agentloop.ToolReturned:
		if in.Output != nil {
			if plain, err := jsonvalue.Normalize(in.Output); err == nil { // the machine says what is wrong with what is not JSON
				in.Output = maskValue(mask, plain)
			}
		}
		in.Failure = maskFailure(mask, in.Failure)
		return in
	case agentloop.Decided:
		in.Reason = mask(in.Reason)
		return in
	}
	return in
}

func maskFailure(mask func(string) string, f *agentloop.Failure) *agentloop.Failure {
	if f == nil {
		return nil
	}
	clean := *f
	clean.Message = mask(f.Message)
	return &clean
}

// maskJSON masks a text that may be JSON, which has many ways to spell a character.
func maskJSON(mask func(string) string, text string) string {
	clean := mask(text)
	if clean != text || !strings.Contains(text, `\`) {
		return clean
	}
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		return text
	}
	spelt := string(jsonvalue.Canonical(v))
	if clean := mask(spelt); clean != spelt {
		return clean
	}
	return text
}

// maskValue masks the strings and field names of plain JSON.
func maskValue(mask func(string) string, v any) any {
	switch v := v.(type) {
	case string:
		return mask(v)
	case []any:
		clean := make([]any, len(v))
		for i, e := range v {
			clean[i] = maskValue(mask, e)
		}
		return clean
	case map[string]any:
		clean := make(map[string]any, len(v))
		for _, name := range jsonvalue.Keys(v) {
			clean[mask(name)] = maskValue(mask, v[name])
		}
		return clean
	}
	return v
}
