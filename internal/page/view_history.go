package page

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// pageOfRecords is the number of records on a page.
const pageOfRecords = 200

// historyView shows the records of a run, or with ?at= its state at a record.
func (s *Server) historyView(r *http.Request) (page view, err error) {
	id, q := runID(r), r.URL.Query()
	if at, ok := number(q.Get("at")); ok {
		return s.stateView(r, id, at)
	}
	from, _ := number(q.Get("from"))
	from = max(from, 1)
	records, err := s.o.Engine.History(r.Context(), graph.HistoryRequest{ExecutionID: id, FromSeq: from, Limit: pageOfRecords + 1})
	if err != nil {
		return page, s.unknown(r.Context(), id, err)
	}
	m := &fragment.History{ID: id, From: from}
	if from > 1 {
		m.Earlier = fragment.HistoryPath(id, max(from-pageOfRecords, 1))
	}
	if len(records) > pageOfRecords {
		records = records[:pageOfRecords]
		m.Later = fragment.HistoryPath(id, records[pageOfRecords-1].Seq+1)
	}
	for i := range records {
		rec := &records[i]
		payload, err := recordPayload(id, rec)
		if err != nil {
			return page, err
		}
		row := fragment.Record{
			Seq: rec.Seq, Kind: string(rec.Kind), Name: string(rec.Name), At: rec.CreatedAt, Node: rec.Payload.NodeID,
			Payload: fragment.NewValue(payload, fragment.RecordPath(id, rec.Seq, "payload")), Raw: fragment.RecordPath(id, rec.Seq, "record"),
			Summary: fragment.OneLine(summary(&rec.Payload), maxRowText),
		}
		if v := rec.Payload.Visit; row.Node != "" && rec.Kind == history.Event {
			row.NodePath = fragment.VisitPath(id, row.Node, max(v, 1))
		}
		if rec.Name == history.StateUpdated {
			row.StatePath = fragment.StatePath(id, rec.Seq)
		}
		m.Records = append(m.Records, row)
	}
	page = view{Title: "History of " + id, Follow: []string{id}}
	page.Body, err = s.body(m)
	return page, err
}

// summary describes a record in a few words.
func summary(p *history.Payload) string {
	switch {
	case p.Error != "":
		return p.Code + " " + p.Error
	case p.Message != "":
		return p.Code + " " + p.Message
	case p.Prompt != "":
		return p.Prompt
	case p.SignalName != "":
		return p.SignalName
	case p.ChildExecutionID != "":
		return p.ChildExecutionID
	case p.Attempt > 1:
		return fmt.Sprintf("attempt %d", p.Attempt)
	}
	if key, kind, _, ok := p.Step(); ok {
		return kind + " " + key
	}
	return ""
}

// stateView shows the state of a run after a record, and how it differs from the state before.
func (s *Server) stateView(r *http.Request, id string, at int64) (page view, err error) {
	m := &fragment.StateAt{ID: id, Seq: at, History: fragment.HistoryPath(id, max(at-pageOfRecords/2, 1))}
	var before, state map[string]any
	last := int64(0)
	err = s.eachRecord(r.Context(), id, 1, func(rec *history.Record) bool {
		if last = rec.Seq; rec.Seq > at {
			return false
		}
		if rec.Name == history.StateUpdated {
			before, state = state, rec.Payload.State
			m.Earlier, m.Set = m.Set, rec.Seq
		}
		return true
	})
	if err != nil {
		return page, err
	}
	if at < 1 || last < at {
		return page, problem.New(problem.ValidationError, "run %q has no record %d", id, at).WithHint("Its last record is %d.", last)
	}
	if state != nil {
		m.State, m.Changes = s.value(state, fragment.RecordPath(id, m.Set, "state")), s.changes(before, state)
	}
	if m.Earlier > 0 {
		m.EarlierPath = fragment.StatePath(id, m.Earlier)
	}
	page = view{Title: fmt.Sprintf("State of %s at record %d", id, at), Follow: []string{id}}
	page.Body, err = s.body(m)
	return page, err
}

// maxChanges is the largest number of changes of a state that a page shows.
const maxChanges = 100

// changes returns the differences between two states.
func (s *Server) changes(before, after map[string]any) *fragment.Changes {
	hidden := func(m map[string]any) map[string]any {
		shown, _ := s.o.Redaction.Value(m).(map[string]any)
		return shown
	}
	list := runjson.Changes(hidden(before), hidden(after))
	out := &fragment.Changes{Rest: max(len(list)-maxChanges, 0)}
	for _, c := range list[:min(len(list), maxChanges)] {
		one := fragment.Change{Pointer: c.Pointer, Gone: c.Gone}
		if !c.Gone {
			one.Value = fragment.NewValue(c.Value, "")
		}
		out.List = append(out.List, one)
	}
	return out
}

// recordPayload returns the payload of a record as it is stored.
func recordPayload(id string, rec *history.Record) (map[string]any, error) {
	v, err := jsonvalue.Decode(rec.Text(id))
	if err != nil {
		return nil, err
	}
	object, _ := v.(map[string]any)
	return object, nil
}

// recordValue shows a whole value of a record as text: the record, its payload, or a field of it.
func (s *Server) recordValue(r *http.Request, id string, seq int64, name string) (any, error) {
	records, err := s.o.Engine.History(r.Context(), graph.HistoryRequest{ExecutionID: id, FromSeq: seq, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(records) == 0 || records[0].Seq != seq {
		return nil, problem.New(problem.ValidationError, "run %q has no record %d", id, seq)
	}
	payload, err := recordPayload(id, &records[0])
	switch {
	case err != nil:
		return nil, err
	case name == "payload":
		return payload, nil
	case name == "record":
		form := runjson.Record(&records[0])
		form.Put("payload", payload)
		return jsonvalue.Decode(form.Append(nil))
	}
	return payload[name], nil
}

// number reads a positive number of an address; ok is false for anything else.
func number(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0
}
