package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/outline"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

const (
	// usualRows is the default number of records a page, maxRows the largest.
	usualRows, maxRows = 25, 200
	// rowPayload is the least room, in bytes, for a payload in a row.
	rowPayload = outline.MinBytes
)

func historyTool() *tool {
	return &tool{
		name:        "workflow_history",
		title:       "Read what happened in a run",
		description: "The records of a run in short rows, the newest page first; seq for one record whole.",
		annotations: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
		arguments: []property{
			calls.ExecutionIDArgument,
			optional("seq", describe("integer", "This record alone.", "minimum", 1.0)),
			optional("from_seq", describe("integer", "First record of the page.", "minimum", 1.0)),
			optional("limit", describe("integer", "Records a page (default 25).", "minimum", 1.0, "maximum", float64(maxRows))),
			answerBytesArgument,
		},
		answer: []property{
			calls.ExecutionIDProperty,
			required("records", describe("array", "seq, kind, name, created_at, payload.")),
			required("total", describe("integer", "Records of the run.")),
			optional("earlier", obj("from_seq and limit of the previous page.")),
			optional("later", obj("from_seq of the next page.")),
		},
		invalid: problem.ValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			id := a.Require("execution_id").NonEmpty()
			seq, _ := a.Get("seq").Whole(1, math.MaxInt32)
			from, _ := a.Get("from_seq").Whole(1, math.MaxInt32)
			limit, set := a.Get("limit").Whole(1, maxRows)
			if !set {
				limit = usualRows
			}
			if err := a.Problem(); err != nil {
				return nil, err
			}
			run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: id})
			if err != nil {
				return nil, err
			}
			switch {
			case seq > 0:
				from, limit = seq, 1
			case from == 0:
				from = max(1, run.Seq-limit+1)
			}
			states := &statesBefore{}
			if seq == 0 {
				if states, err = s.statesBefore(ctx, id, from); err != nil {
					return nil, err
				}
			}
			return s.page(ctx, run, from, limit, a.answerBytes(), states)
		},
	}
}

// page shows as many records as fit into a number of bytes, each with its share of payload, and of a state only the
// changes.
func (s *server) page(ctx context.Context, run *view.Run, first, limit int64, bytes int, states *statesBefore) (*answer, error) {
	content := members{{"execution_id", run.ExecutionID}, {"records", jsonvalue.Raw{}}, {"total", float64(run.Seq)}}
	if bytes == FullAnswers {
		bytes = math.MaxInt
	}
	room := bytes - len(content.Append(nil)) - reserved
	var rows []members
	var lines []string
	var before *history.Record
	cut := int64(0) // a record shown in the text only in part
	for r, err := range s.records(ctx, run.ExecutionID, first, limit) {
		if err != nil {
			return nil, err
		}
		row := runjson.Record(r)
		if room -= len(row.Append(nil)) + len(`,"payload":,`); len(rows) > 0 && room < rowPayload {
			break
		}
		payload, err := jsonvalue.Decode(r.Raw)
		if err != nil {
			payload = map[string]any{}
		}
		in := s.runDocument(run.ExecutionID, fmt.Sprintf("%s/%d", histories, r.Seq))
		share := rowPayload
		if limit == 1 || first == run.Seq {
			share = room
		}
		text := states.show(in, r, payload, min(share, room))
		row.Put("payload", text)
		room -= len(text)
		rows = append(rows, row)
		line, whole := lineOf(r, before, text)
		if before = r; !whole {
			cut = r.Seq
		}
		lines = append(lines, line)
	}
	if len(rows) == 0 {
		return nil, problem.New(problem.ValidationError, "run %q has no record %d", run.ExecutionID, first).WithHint("Its records are 1 to %d.", run.Seq)
	}
	content[1].Value = rows
	last := first + int64(len(rows)) - 1
	var more []string
	if first > 1 {
		n := min(limit, first-1)
		earlier := members{{"from_seq", float64(first - n)}, {"limit", float64(n)}}
		content.Put("earlier", earlier)
		more = append(more, fmt.Sprintf("Earlier ones: workflow_history with %s.", earlier.Append(nil)))
	}
	if last < run.Seq {
		later := members{{"from_seq", float64(last + 1)}}
		content.Put("later", later)
		more = append(more, fmt.Sprintf("Later ones: workflow_history with %s.", later.Append(nil)))
	}
	headline := fmt.Sprintf("Records %d to %d of %d of execution %s.", first, last, run.Seq, shownID(run.ExecutionID))
	if first == last {
		headline = fmt.Sprintf("Record %d of %d of execution %s.", first, run.Seq, shownID(run.ExecutionID))
	}
	switch {
	case len(rows) == 1:
		lines[0] = string(rows[0].Append(nil))
	case cut > 0:
		more = append(more, fmt.Sprintf(`One of them whole: workflow_history with {"seq":%d}.`, cut))
	}
	return &answer{headline: headline, lines: append(lines, more...), content: content}, nil
}

// records reads up to limit records of a run. Each may have megabytes, so few are in memory at once, and reading stops
// with the caller's page.
func (s *server) records(ctx context.Context, id string, first, limit int64) iter.Seq2[*history.Record, error] {
	return func(yield func(*history.Record, error) bool) {
		for next, end := first, first+limit; next < end; {
			records, err := s.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: next, Limit: int(min(end-next, historyPage))})
			if err != nil {
				yield(nil, err)
				return
			}
			if len(records) == 0 {
				return
			}
			for i := range records {
				if !yield(&records[i], nil) {
					return
				}
			}
			next = records[len(records)-1].Seq + 1
		}
	}
}

// maxLinePayload is how many bytes of a payload a line of the text has.
const maxLinePayload = 160

// maxStepName is how many bytes of the kind and of the key of a step a line has.
const maxStepName = 60

// agentLine describes a journal entry of an agent: number, key, model or tool, time, tokens and result. The payload has
// all of it.
func agentLine(l *timeline.Words, n int) string {
	text := fmt.Sprintf(" step %d %s %s", n, problem.Clip(l.Key, maxStepName), problem.Clip(l.By, maxStepName))
	if l.Took > 0 {
		text += " " + timeline.Elapsed(l.Took)
	}
	if l.Counted {
		text += fmt.Sprintf(" %d+%d tokens", l.In, l.Out)
	}
	return text + " " + problem.Clip(strings.Join(strings.Fields(l.Text), " "), maxLinePayload)
}

// lineOf returns a record as text: time, name, node, and the beginning of the payload. The date is shown when it
// changes. A journal entry begins with its number, kind and key.
func lineOf(r, before *history.Record, shown jsonvalue.Raw) (line string, whole bool) {
	at := r.CreatedAt.UTC().Format(time.TimeOnly)
	if date := r.CreatedAt.UTC().Format(time.DateOnly); before == nil || date != before.CreatedAt.UTC().Format(time.DateOnly) {
		at = date + " " + at
	}
	line = fmt.Sprintf("%d %s %s", r.Seq, at, r.Name)
	if r.Payload.NodeID != "" {
		line += fmt.Sprintf(" %q", r.Payload.NodeID)
	}
	if key, kind, n, ok := r.Payload.Step(); ok {
		if l, isAgent := timeline.WordsOf(r); isAgent {
			return line + agentLine(&l, n), false
		}
		line += fmt.Sprintf(" step %d %q %q", n, problem.Clip(kind, maxStepName), problem.Clip(key, maxStepName))
	}
	v, _ := jsonvalue.Decode(shown)
	payload, _ := v.(map[string]any)
	if _, left := payload["$ref"]; left {
		return fmt.Sprintf("%s (%d bytes)", line, len(r.Raw)), false
	}
	delete(payload, "executionId")
	delete(payload, "nodeId")
	if len(payload) == 0 {
		return line, true
	}
	text := string(jsonvalue.Canonical(payload))
	return line + " " + problem.Clip(text, maxLinePayload), len(text) <= maxLinePayload
}

// statesBefore finds the state before each record of a page, so that the page shows changes instead of whole states.
// Without it a record shows its whole state.
type statesBefore struct {
	state map[string]any
	seq   int64 // of the record with the state
}

// maxBefore limits the records searched for the state before a page.
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

// withChanges replaces a state in a payload by its changes: the new values by pointer, and the pointers of removed
// ones. Changes that do not fit are counted; the record itself has them.
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

// smallestFirst returns the indexes of changes by the size of their new values, so that large ones share the rest of
// the room.
func smallestFirst(changes []runjson.Change) []int {
	sizes, order := make([]int, len(changes)), make([]int, len(changes))
	for i, c := range changes {
		sizes[i], order[i] = jsonvalue.Size(c.Value, 0), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[a], sizes[b]) })
	return order
}
