package agentfile

import (
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
)

// results reads how much of a result the model sees.
func results(o *jsonobject.Object) (s agentloop.Results) {
	if o == nil {
		return s
	}
	s.MaxChars = whole(o.Get("maxChars"), 2<<20)
	if n, ok := o.Get("offloadBytes").Whole(0, 2<<20); ok {
		s.OffloadBytes = int(n)
	}
	if n, ok := o.Get("maxBytes").Whole(1<<20, agentloop.DefaultMaxBytes); ok {
		s.MaxBytes = int(n)
	}
	s.PreviewChars = whole(o.Get("previewChars"), 100_000)
	o.Close()
	return s
}

// compaction reads how long conversations are made shorter, and the name of the model that sums up.
func (r *reader) compaction(o *jsonobject.Object, b agentloop.Budgets) (c agentloop.Compaction, model string) {
	if o == nil {
		return c, ""
	}
	c.Threshold, _ = o.Get("threshold").Number(0.1, 1)
	c.KeepTurns = whole(o.Get("keepTurns"), maxCount)
	c.SummaryMaxTokens = whole(o.Get("summaryMaxTokens"), maxTokens)
	if v := o.Get("model"); v.Present() {
		model = v.NonBlank()
		m, known := r.models[model]
		switch {
		case model == "":
		case !known && r.models != nil:
			v.Fail("profile", "there is no model %q", model).Hint = meant(model, slices.Sorted(maps.Keys(r.models)))
		case known && b.CostMicros > 0 && m.Price == nil:
			v.Fail("profile", "model %q has no price", model).Hint = "Give it priceUsdPerMTok, or leave costUsd out."
		}
	}
	o.Close()
	return c, model
}
