package agent

import (
	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
)

// end is how an agent has ended, as the engine takes it.
func (w *attempt) end(b agentloop.Batch) (activities.End, error) {
	d := b.Done
	end := activities.End{Steps: steps(b.Steps)}
	if d.Failure == nil {
		end.Result = &activities.Result{Output: d.Output, Usage: usage(d), Partial: d.Partial}
		return end, nil
	}
	failed := &activities.Failure{Code: string(d.Failure.Code), Message: d.Failure.Message, Usage: usage(d)}
	if d.Failure.Final {
		failed.Retryable = activities.RetryPointless
	}
	if d.Failure.Class != "" {
		failed.Data = map[string]any{chat.DataClass: string(d.Failure.Class)}
		if d.Failure.Status != 0 {
			failed.Data[chat.DataStatus] = d.Failure.Status
		}
	}
	return end, failed
}

// usage is the usage of an agent.
func usage(d *agentloop.Done) map[string]any {
	u := d.Totals.Map()
	u["cost_usd"] = float64(d.Totals.CostMicros) / 1e6
	u["stop_reason"] = d.Stop
	models := []any{}
	for _, m := range d.Models {
		models = append(models, m)
	}
	u["models"] = models
	if d.Partial {
		u["partial"], u["partial_reason"] = true, string(d.PartialReason)
	}
	if d.LastText != "" {
		u["last_text"] = d.LastText
	}
	return u
}

func steps(in []agentloop.Step) []activities.Step {
	out := make([]activities.Step, len(in))
	for i, s := range in {
		out[i] = activities.Step{Key: s.Key, Kind: s.Kind, Body: s.Body, Totals: s.Totals}
	}
	return out
}

func question(q *agentloop.Question) *activities.Question {
	return &activities.Question{Key: q.Key, Prompt: q.Prompt, Body: q.Body, Schema: q.Schema, Otherwise: q.Otherwise, Expires: q.Expires}
}
