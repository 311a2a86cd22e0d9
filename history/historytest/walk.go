package historytest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Walk makes a run with a state that changes at random: small and large values, growing lists, objects with many fields. States share
// unchanged values, like those of a machine.
type Walk struct {
	trace *Trace
	rand  *rand.Rand
	state map[string]any
	prior history.Prior
	// texts are the expected payloads of all records.
	texts []string
}

// NewWalk begins a walk.
func NewWalk(t testing.TB, executionID string, seed uint64) *Walk {
	return &Walk{trace: NewTrace(t, executionID), rand: rand.New(rand.NewPCG(seed, 7)), state: map[string]any{}}
}

// Append appends a batch with a few steps of the walk. Some batches have no Prior.
func (w *Walk) Append(s history.Store) {
	w.trace.t.Helper()
	x := w.trace
	b := history.Batch{ExecutionID: x.Execution.ID, ExpectedSeq: x.Execution.Seq}
	if w.rand.IntN(8) > 0 {
		b.Prior = w.prior
	}
	add := func(kind history.Kind, name history.Name, p history.Payload) {
		p.NodeID = "n"
		r := history.Record{Kind: kind, Name: name, Payload: p, CreatedAt: x.Now}
		b.Records = append(b.Records, r)
		x.Execution.Apply(r)
		w.texts = append(w.texts, string(r.AppendPayload(nil, b.ExecutionID)))
	}
	for range 1 + w.rand.IntN(3) {
		delta, grows := map[string]any{}, true
		switch w.rand.IntN(6) {
		case 0:
		case 1, 2:
			delta, grows = w.given(), false
		default:
			delta = w.delta()
		}
		if w.rand.IntN(3) == 0 {
			add(history.Event, history.ActivityRequested, history.Payload{NodeType: "tool_call", Attempt: 1, Request: w.given()})
		}
		add(history.Event, history.ActivityCompleted, history.Payload{Result: history.Some(delta)})
		add(history.Command, history.CompleteNode, history.Payload{Output: delta})
		next := maps.Clone(w.state)
		for name, v := range delta {
			old, isList := next[name].([]any)
			if v, appends := v.([]any); appends && grows && isList && w.rand.IntN(10) > 0 {
				next[name] = append(slices.Clone(old), v...)
			} else {
				next[name] = v
			}
		}
		if w.rand.IntN(20) == 0 {
			for name := range next {
				delete(next, name)
				break
			}
		}
		if len(delta) > 0 {
			w.state = next
		}
		add(history.Event, history.StateUpdated, history.Payload{State: w.state})
		w.prior = history.Prior{Seq: x.Execution.Seq, State: w.state}
		if w.rand.IntN(2) == 0 {
			add(history.Event, history.CheckpointWritten, history.Payload{Policy: "after_each_node", StateRef: w.state})
		}
	}
	b.Execution = x.Execution
	must(x.t, s.Append(x.t.Context(), b))
}

// given makes the output of a node that has read the state: some fields of the state, changed or not, as the same values or as copies
// like those from a host, and new fields.
func (w *Walk) given() map[string]any {
	r := w.rand
	out := w.delta()
	for _, name := range slices.Sorted(maps.Keys(w.state)) {
		if r.IntN(3) > 0 {
			continue
		}
		v := w.state[name]
		if r.IntN(2) == 0 {
			v = got[any](w.trace.t)(jsonvalue.Decode(jsonvalue.Append(nil, v)))
		}
		switch value := v.(type) {
		case []any:
			switch r.IntN(4) {
			case 0:
				v = append(slices.Clone(value), "one more")
			case 1:
				v = value[:len(value)/2]
			case 2:
				value = slices.Clone(value)
				for i := range value {
					if r.IntN(len(value)) == 0 {
						value[i] = map[string]any{"$in": []any{strings.Repeat("place ", 100)}}
					}
				}
				v = value
			}
		case map[string]any:
			if r.IntN(3) > 0 {
				value = maps.Clone(value)
				value["$more"] = strings.Repeat("m", r.IntN(600))
				delete(value, "m1")
				v = value
			}
		}
		out[name] = v
	}
	return out
}

// delta makes a possible output of a node.
func (w *Walk) delta() map[string]any {
	r := w.rand
	text := func(n int) string { return strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(n)) }
	name := fmt.Sprintf("k%d", r.IntN(8))
	switch r.IntN(9) {
	case 0:
		return map[string]any{name: text(3000)}
	case 1: // many small fields at once
		m := map[string]any{}
		for i := range r.IntN(200) {
			m[fmt.Sprintf("m%d", i)] = text(10)
		}
		return map[string]any{name: m}
	case 2:
		m := map[string]any{}
		for range 30 {
			m[fmt.Sprintf("wide%d", r.IntN(1000))] = float64(r.IntN(100))
		}
		return m
	case 3: // names used by the store itself
		return map[string]any{"$" + name: text(400), "$blob": map[string]any{"$delta": text(5), "$$": nil, "": true}, name: map[string]any{"$blob": "abc"}}
	case 4, 5:
		return map[string]any{"list": []any{map[string]any{"id": float64(r.IntN(1e6)), "text": text(50)}}}
	case 6:
		return map[string]any{name: []any{text(900), []any{text(900), nil}, map[string]any{"deep": text(900)}}, "list": []any{}}
	default:
		return map[string]any{name: float64(r.IntN(100))}
	}
}

// Check reads the run in several ways and compares it with the appended records.
func (w *Walk) Check(s history.Store) {
	x := w.trace
	x.t.Helper()
	compare := func(first int64, records []history.Record) {
		x.t.Helper()
		for i := range records {
			seq := first + int64(i)
			written := string(records[i].AppendPayload(nil, x.Execution.ID))
			if want := w.texts[seq-1]; records[i].Seq != seq || written != want || string(records[i].Text(x.Execution.ID)) != want {
				x.t.Fatalf("record %d came back as %d\n%s\nwant\n%s", seq, records[i].Seq, written, want)
			}
		}
	}
	all := read(x.t, s, x.Execution.ID)
	if len(all) != len(w.texts) {
		x.t.Fatalf("%d records came back, %d were written", len(all), len(w.texts))
	}
	compare(1, all)
	for range 5 {
		first := 1 + w.rand.Int64N(int64(len(w.texts)))
		limit := 1 + w.rand.IntN(6)
		compare(first, got[[]history.Record](x.t)(s.Read(x.t.Context(), x.Execution.ID, first, limit)))
	}
	if e := got[history.Execution](x.t)(s.Execution(x.t.Context(), x.Execution.ID)); string(e.AppendText(nil)) != string(x.Execution.AppendText(nil)) {
		x.t.Errorf("the projection is\n%s\nwant\n%s", e.AppendText(nil), x.Execution.AppendText(nil))
	}
}

// Restart drops all cached knowledge of the run, and reads its newest state like a process that claims it.
func (w *Walk) Restart(s history.Store) {
	x := w.trace
	x.t.Helper()
	w.prior = history.Prior{}
	if at := x.Execution.StateSeq; at > 0 {
		records := got[[]history.Record](x.t)(s.Read(x.t.Context(), x.Execution.ID, at, 1))
		w.state = records[0].Payload.State
		w.prior = history.Prior{Seq: at, State: w.state}
	}
}

// bytesAreCounted: the store reports the size of a run's payloads, after each append and on request.
func bytesAreCounted(t *testing.T, s history.Store) {
	x := NewTrace(t, "x")
	var before, after int64
	for i, n := range []int{10, 1000, 0, 50_000} {
		b := x.Batch(fmt.Sprintf(`E StateUpdated n {"state":{"s":%q}}`, strings.Repeat(string(rune('a'+i)), n)))
		b.Execution.Bytes, b.Bytes = before, &after
		// Only payloads count.
		b.Position, b.SetTimers, b.Timers = make([]byte, 1000), true, []history.Timer{{Key: strings.Repeat("k", 1000), Due: Begin}}
		b.Definition = &history.StoredDefinition{Hash: "h", Text: make([]byte, 1000)}
		must(t, s.Append(t.Context(), b))
		if grown := after - before; grown < int64(n) || grown > int64(n)+500 {
			t.Errorf("a payload of %d bytes counts as %d", n, grown)
		}
		if e := got[history.Execution](t)(s.Execution(t.Context(), "x")); e.Bytes != after {
			t.Errorf("the run has %d bytes, after the append it had %d", e.Bytes, after)
		}
		before, after = after, -1
		wantCode(t, s.Append(t.Context(), b), problem.HistoryConflict)
		if after != -1 {
			t.Errorf("a refused batch sets the bytes to %d", after)
		}
	}
	moved := history.Batch{ExecutionID: "x", ExpectedSeq: x.Execution.Seq, Execution: x.Execution, SetTimers: true, Bytes: &after}
	moved.Execution.Bytes = before
	if must(t, s.Append(t.Context(), moved)); after != before {
		t.Errorf("a batch without records makes %d bytes of %d", after, before)
	}
}

// changingStates: states of any size are returned as written, however the store encodes them.
func changingStates(t *testing.T, s history.Store) {
	for seed := range uint64(3) {
		w := NewWalk(t, fmt.Sprintf("walk-%d", seed), seed)
		for range 5 {
			w.Append(s)
			w.Append(s)
			w.Check(s)
			w.Restart(s)
		}
	}
}
