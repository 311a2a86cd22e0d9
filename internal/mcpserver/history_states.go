package mcpserver

import (
	"cmp"
	"context"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/outline"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// statesBefore knows the state before each record of a page, so that the page says what a record changes in place of repeating all of
// the state. Without a state the record shows its own whole.
type statesBefore struct {
	state map[string]any
	seq   int64 // of the record with the state
}

// maxBefore is how many records are looked through for the state before a page.
const maxBefore = 64

// statesBefore finds the newest state before a record.
func (s *server) statesBefore(ctx context.Context, id string, seq int64) (*statesBefore, error) {
	b := &statesBefore{}
	first := max(seq-maxBefore, 1)
	for last := seq - 1; b.seq == 0 && last >= first; last -= historyPage {
		from := max(last-historyPage+1, first)
		records, err := s.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: from, Limit: int(last - from + 1)})
		if err != nil {
			return nil, err
		}
		for i := range records {
			b.apply(&records[i])
		}
	}
	return b, nil
}

func (b *statesBefore) apply(r *history.Record) {
	if r.Name == history.StateUpdated {
		b.state, b.seq = r.Payload.State, r.Seq
	}
}

// show shows the payload of the next record in a number of bytes.
func (b *statesBefore) show(in outline.Document, r *history.Record, payload any, limit int) jsonvalue.Raw {
	object, _ := payload.(map[string]any)
	before := *b
	b.apply(r)
	state, isState := object["state"].(map[string]any)
	switch ref, _ := object["stateRef"].(map[string]any); {
	case before.seq == 0 || object == nil:
	case r.Name == history.StateUpdated && isState:
		delete(object, "state")
		return withChanges(in, object, runjson.Changes(before.state, state), limit)
	case r.Name == history.CheckpointWritten && jsonvalue.Equal(ref["state"], before.state):
		object["stateRef"] = map[string]any{"state_of_record": float64(before.seq)}
	}
	text, _ := in.Show(payload, limit, "")
	return text
}

// withChanges shows the payload of a state with what it changes: the values that are new, by their pointers in the state, and the
// pointers of those that are gone. What does not fit is counted; the record alone has it.
func withChanges(in outline.Document, payload map[string]any, changes []runjson.Change, limit int) jsonvalue.Raw {
	limit -= jsonvalue.Size(payload, 0) + len(`,"state":{"changed":{},"gone":[],"more":10000}`)
	texts := make([]jsonvalue.Raw, len(changes))
	for left, i := range smallestFirst(changes) {
		c := &changes[i]
		room := limit/(len(changes)-left) - jsonvalue.StringSize(c.Pointer) - len(`:,`)
		text, _ := in.Show(c.Value, room, "/state"+c.Pointer)
		if len(text) <= room {
			texts[i] = text
			limit -= jsonvalue.StringSize(c.Pointer) + len(text) + len(`:,`)
		}
	}
	changed, gone, more := members{}, []any{}, 0
	for i, c := range changes {
		switch {
		case texts[i] == nil:
			more++
		case c.Gone:
			gone = append(gone, c.Pointer)
		default:
			changed.Put(c.Pointer, texts[i])
		}
	}
	state := members{{"changed", changed}}
	if len(gone) > 0 {
		state.Put("gone", gone)
	}
	if more > 0 {
		state.Put("more", float64(more))
	}
	shown := members{}
	for _, name := range jsonvalue.Keys(payload) {
		shown.Put(name, payload[name])
	}
	shown.Put("state", state)
	return shown.Append(nil)
}

// smallestFirst returns the indexes of changes by the size of what is there now, so that the large ones share what the others leave.
func smallestFirst(changes []runjson.Change) []int {
	sizes, order := make([]int, len(changes)), make([]int, len(changes))
	for i, c := range changes {
		sizes[i], order[i] = jsonvalue.Size(c.Value, 0), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[a], sizes[b]) })
	return order
}
