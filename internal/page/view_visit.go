package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// maxEntries is the largest number of journal entries that an attempt shows.
const maxEntries = 300

// visitView shows a visit of a node.
func (s *Server) visitView(r *http.Request) (page view, err error) {
	ctx, id, node := r.Context(), runID(r), r.PathValue("node")
	n, ok := number(r.PathValue("n"))
	v, damage, err := s.status(ctx, id)
	if err != nil {
		return page, err
	}
	f, done, err := s.fold(ctx, id, v.DefinitionHash)
	defer done()
	if err != nil && damage == nil {
		return page, err
	}
	at := slices.IndexFunc(f.run.Visits, func(v *timeline.Visit) bool { return v.Node == node && int64(v.Number) == n })
	if !ok || at < 0 {
		return page, problem.New(problem.ExecutionNotFound, "run %q has no visit %s of node %q", id, r.PathValue("n"), node).
			WithHint("The page of the run lists its visits.")
	}
	now, visit := v.Now, f.run.Visits[at]
	seqs := f.seqs[visit]
	m := &fragment.VisitPage{
		Run: id, RunTitle: v.Title, Node: node, Number: visit.Number, State: fragment.VisitState(visit), Began: visit.Began, Ended: visit.Ended,
		Took: fragment.VisitTook(visit, now), Details: fragment.VisitDetails(visit), History: fragment.HistoryPath(id, visit.Seq),
	}
	if visit.State == timeline.Failed {
		m.Error = visit.Text
	}
	if index, of := visit.Item(); of != 0 {
		m.Details = append(m.Details, fmt.Sprintf("item %d", index+1))
	}
	if d := visit.Definition; d != nil {
		m.Kind = string(d.Type)
		if len(d.Config) > 0 {
			m.Config = s.value(d.Config, "")
		}
	}
	before, after := s.record(ctx, id, seqs.before), s.record(ctx, id, seqs.after)
	if b := before; b != nil {
		m.Input, m.InputPath = s.value(b.Payload.State, fragment.RecordPath(id, b.Seq, "state")), fragment.StatePath(id, b.Seq)
	}
	for _, a := range visit.Attempts {
		m.Attempts = append(m.Attempts, s.attempt(ctx, id, visit, a))
	}
	for i := range v.Pending {
		if p := &v.Pending[i]; p.Kind == machine.WaitInterrupt && p.ExecutionID == id && p.NodeID == node && int64(max(p.Visit, 1)) == n {
			m.Questions = append(m.Questions, fragment.Link{Text: cmp.Or(fragment.OneLine(p.Prompt, 200), "the question"), Path: fragment.QuestionPath(id, questionKey(p))})
		}
	}
	for _, w := range visit.Waits {
		m.Waits = append(m.Waits, waited(w))
	}
	if o := s.record(ctx, id, seqs.output); o != nil && len(o.Payload.Output) > 0 {
		m.Output = s.value(o.Payload.Output, fragment.RecordPath(id, o.Seq, "output"))
	}
	if after != nil {
		var was map[string]any
		if before != nil {
			was = before.Payload.State
		}
		m.Changes, m.AfterPath = s.changes(was, after.Payload.State), fragment.StatePath(id, after.Seq)
	}
	for _, other := range f.run.Visits {
		if other.Node == node && !other.IsItem() == !visit.IsItem() {
			switch other.Number {
			case visit.Number - 1:
				m.Earlier = fragment.VisitPath(id, node, other.Number)
			case visit.Number + 1:
				m.Later = fragment.VisitPath(id, node, other.Number)
			}
		}
	}
	page = view{Title: fmt.Sprintf("%s, visit %d", node, visit.Number), Follow: []string{id}}
	page.Body, err = s.body(m)
	return page, err
}

// attempt describes an attempt, with its request and its outcome.
func (s *Server) attempt(ctx context.Context, id string, v *timeline.Visit, a *timeline.Attempt) fragment.Attempt {
	out := fragment.Attempt{Number: a.Number, Began: a.Requested, Ended: a.Ended, State: attemptState(v, a)}
	if d, ok := a.Took(); ok {
		out.Took = timeline.Elapsed(d)
	}
	if a.Host {
		out.Facts = append(out.Facts, "performed by a host")
	}
	if a.AgentID != "" {
		out.Facts = append(out.Facts, "agent "+a.AgentID)
	}
	used := a.Used()
	if model := used.Model(); model != "" {
		out.Facts = append(out.Facts, model)
	}
	if in, outTokens, ok := used.Tokens(); ok {
		out.Facts = append(out.Facts, fmt.Sprintf("%d+%d tokens", in, outTokens))
	}
	if micros := used.CostMicros(); micros > 0 {
		out.Facts = append(out.Facts, timeline.USD(micros))
	}
	if reason := used.StopReason(); reason != "" {
		out.Facts = append(out.Facts, "stopped: "+reason)
	}
	if a.Error != "" || a.Code != "" {
		out.Error = strings.TrimSpace(a.Code + " " + a.Error)
	}
	if rec := s.record(ctx, id, a.RequestedSeq); rec != nil && rec.Name == history.ActivityRequested && rec.Payload.AgentStep == nil {
		switch p := &rec.Payload; {
		case p.Request != nil:
			out.Request = s.value(p.Request, fragment.RecordPath(id, rec.Seq, "request"))
		case p.DelegateInput != nil:
			out.Request = s.value(p.DelegateInput, fragment.RecordPath(id, rec.Seq, "delegateInput"))
		}
	}
	entries := a.Journal.Entries
	if out.Before = len(entries) - maxEntries; out.Before > 0 {
		entries = entries[out.Before:]
	} else {
		out.Before = 0
	}
	for _, e := range entries {
		out.Entries = append(out.Entries, entry(id, e))
	}
	if a.EndedSeq == 0 || a.Outcome == timeline.Superseded {
		return out
	}
	if rec := s.record(ctx, id, a.EndedSeq); rec != nil && rec.Payload.Result.Set {
		out.Outcome = s.value(rec.Payload.Result.Value, fragment.RecordPath(id, rec.Seq, "result"))
	}
	return out
}

func attemptState(v *timeline.Visit, a *timeline.Attempt) fragment.State {
	switch a.Outcome {
	case timeline.Completed:
		return fragment.State{Class: "done", Sign: "✓", Word: "completed"}
	case timeline.Failure:
		return fragment.State{Class: "failed", Sign: "✗", Word: "failed"}
	case timeline.Retried:
		return fragment.State{Class: "failed", Sign: "↻", Word: "failed, retried"}
	case timeline.SentBack:
		return fragment.State{Class: "caught", Sign: "↻", Word: "sent back for a repair"}
	case timeline.Superseded:
		return fragment.State{Class: "stopped", Sign: "–", Word: "stopped"}
	}
	return fragment.VisitState(v) // the last attempt of an open visit, which may ask or rest
}

// entry describes a journal entry.
func entry(id string, e *timeline.Entry) fragment.Entry {
	out := fragment.Entry{Key: e.Key, Kind: e.Kind, Text: e.Text, At: e.At, Raw: fragment.RecordPath(id, e.Seq, "record"), Answer: e.Answer}
	if w := e.Words; w != nil {
		out.By, out.Failed, out.Depth = w.By, w.Failed, w.Depth
		if w.Took > 0 {
			out.Facts = append(out.Facts, timeline.Elapsed(w.Took))
		}
		if w.Counted {
			out.Facts = append(out.Facts, fmt.Sprintf("%d+%d tokens", w.In, w.Out))
		}
	}
	if e.CostMicros > 0 {
		out.Facts = append(out.Facts, timeline.USD(e.CostMicros))
	}
	return out
}

// waited describes a wait of a visit.
func waited(w *timeline.Wait) fragment.Waited {
	out := fragment.Waited{Began: w.Began, Ended: w.Ended, Due: w.Due, Answer: w.Answer}
	if w.By != nil {
		out.By = w.By.String()
	}
	out.Text = map[timeline.State]string{
		timeline.Queued: "queued", timeline.Retrying: "back-off before the next attempt", timeline.Sleeping: "timer", timeline.Resting: "rest",
		timeline.Asking: "question", timeline.Listening: "signal",
	}[w.Kind]
	return out
}
