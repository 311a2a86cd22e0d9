package work

import (
	"maps"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/guard"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Requests configures the recording of requests.
type Requests struct {
	// Omit records no requests.
	Omit bool
	// MaxRunBytes is the size limit of a run in the store; 0 means no limit. A run at half of it records no more requests, so that these
	// optional records do not end it.
	MaxRunBytes int64
	// Hide returns a value without secrets.
	Hide func(any) any
}

// Describe adds the sent data to the requests in a batch before the commit. bytes is the size of the run in the store. For a host's
// request the machine has added the data.
func (p *Performer) Describe(executionID string, bytes int64, b *machine.Batch) {
	effects := b.Effects
	for i := range b.Records {
		r := &b.Records[i]
		if r.Name != history.ActivityRequested {
			continue
		}
		if p.Requests.Omit || p.Requests.MaxRunBytes > 0 && bytes > p.Requests.MaxRunBytes/2 {
			r.Payload.Request = nil
			continue
		}
		if r.Payload.Mode == string(machine.HostMediated) { // the machine has added the host's data
			r.Payload.Request = p.recorded(r.Payload.Request)
			bytes += int64(jsonvalue.Size(r.Payload.Request, 0))
			continue
		}
		for k, e := range effects { // they are in the order of their requests
			if !requests(r, e) {
				continue
			}
			effects = effects[k+1:]
			if said := p.request(executionID, e); said != nil {
				r.Payload.Request = ofItem(r.Payload.Request, said)
				bytes += int64(jsonvalue.Size(said, 0)) // the items of a map are requested in one batch
			}
			break
		}
	}
}

// requests reports whether a record is the request of an effect.
func requests(r *history.Record, e machine.Effect) bool {
	switch e.(type) {
	case *machine.ActivityEffect, *machine.DelegateEffect:
	default:
		return false
	}
	p, base := &r.Payload, e.Base()
	return p.NodeID == base.NodeID && max(p.Visit, 1) == base.Visit && max(p.Attempt, 1) == base.Attempt && p.ExternalTask == "" && p.AgentStep == nil
}

// request returns the data that the executor sends for an effect, without secrets; nil if unknown. Data longer than an output may be is
// replaced by its size.
func (p *Performer) request(executionID string, e machine.Effect) map[string]any {
	can, _ := p.capabilities(effectNode(e))
	if can.Describe == nil {
		return nil
	}
	var req activities.Request
	switch e := e.(type) {
	case *machine.ActivityEffect:
		req = p.activityRequest(executionID, e)
	case *machine.DelegateEffect:
		req = p.delegateRequest(executionID, e)
	}
	var said map[string]any
	failed := guard.Call(p.Log, "the description of an executor", func() { said = can.Describe(req) })
	if failed != nil || len(said) == 0 {
		return nil
	}
	plain, err := jsonvalue.Normalize(said)
	if err != nil {
		p.Log.Warn("request not recorded: it is not JSON", logRun, executionID, logKey, e.Key(), logError, err)
		return nil
	}
	object, _ := plain.(map[string]any)
	return p.recorded(object)
}

// recorded returns a request in its recorded form: without secrets, and replaced by its size if too large.
func (p *Performer) recorded(said map[string]any) map[string]any {
	if len(said) == 0 {
		return nil
	}
	if n := jsonvalue.Size(said, 0); n > p.MaxBytes {
		return ofItem(said, map[string]any{"left_out_bytes": float64(n)})
	}
	shown, _ := p.Requests.Hide(said).(map[string]any)
	return shown
}

// ofItem copies the map item of another request to a request.
func ofItem(other, said map[string]any) map[string]any {
	if item, ok := other["item"]; ok {
		said = maps.Clone(said)
		said["item"] = item
	}
	return said
}
