package graph_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// spoilt is a store that gives something else than was stored.
type spoilt struct {
	history.Store
	position   []byte
	definition []byte // stored under its own hash
	altered    []byte // stored under the hash of another
	missing    bool
	lost       string // a run of which nothing is stored
	timers     func([]history.Timer) []history.Timer
}

func (s *spoilt) Execution(ctx context.Context, id string) (history.Execution, error) {
	if id == s.lost {
		return history.Execution{}, history.NotFound(id)
	}
	return s.Store.Execution(ctx, id)
}

func (s *spoilt) Position(ctx context.Context, id string) (int64, []byte, error) {
	seq, data, err := s.Store.Position(ctx, id)
	if s.position != nil {
		data = s.position
	}
	return seq, data, err
}

func (s *spoilt) Definition(ctx context.Context, hash string) (history.StoredDefinition, error) {
	d, err := s.Store.Definition(ctx, hash)
	if s.definition != nil {
		d.Text, d.Hash = s.definition, fmt.Sprintf("%x", sha256.Sum256(s.definition))
	}
	if s.altered != nil {
		d.Text = s.altered
	}
	if s.missing {
		err = problem.New(problem.DefinitionNotFound, "gone")
	}
	return d, err
}

func (s *spoilt) DefinitionByName(ctx context.Context, name, version string) (history.StoredDefinition, error) {
	d, err := s.Store.DefinitionByName(ctx, name, version)
	if s.altered != nil {
		d.Text = s.altered
	}
	return d, err
}

func (s *spoilt) DueTimers(ctx context.Context, now time.Time, limit int) ([]history.Timer, error) {
	ts, err := s.Store.DueTimers(ctx, now, limit)
	if s.timers != nil {
		ts = s.timers(ts)
	}
	return ts, err
}

// TestInspectFindsWhatTheMachineTells spoils one thing at a time of a run that waits for a time.
func TestInspectFindsWhatTheMachineTells(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: &script{}})
	start(t, r, "r", workflow(t, "w", []string{startNode(), tool("a"), timerWait("w", "1h"), endNode()}, "s a", "a w", "w e"), nil)
	start(t, r, "done", linear(t, "lin", "a"), nil)
	other := workflow(t, "w", []string{startNode(), tool("b"), timerWait("w", "1h"), endNode()}, "s b", "b w", "w e")
	for name, c := range map[string]struct {
		spoilt spoilt
		want   []problem.Code
	}{
		"nothing":               {spoilt{}, nil},
		"no definition":         {spoilt{missing: true}, []problem.Code{problem.DefinitionNotFound}},
		"no definition at all":  {spoilt{definition: []byte("{")}, []problem.Code{problem.DefinitionHashMismatch}},
		"an altered definition": {spoilt{altered: other.Canonical()}, []problem.Code{problem.DefinitionHashMismatch}},
		"another definition":    {spoilt{definition: other.Canonical()}, []problem.Code{problem.Nondeterminism}},
		"a position":            {spoilt{position: []byte("?")}, []problem.Code{problem.PositionUnusable}},
		"no timer":              {spoilt{timers: func([]history.Timer) []history.Timer { return nil }}, []problem.Code{problem.TimersDiffer}},
		"a later timer": {spoilt{timers: func(ts []history.Timer) []history.Timer {
			ts[0].Due = ts[0].Due.Add(time.Second)
			return ts
		}}, []problem.Code{problem.TimersDiffer}},
		"two timers": {spoilt{timers: func(ts []history.Timer) []history.Timer {
			return append(ts, history.Timer{ExecutionID: "r", Key: "x"})
		}}, []problem.Code{problem.TimersDiffer}},
	} {
		c.spoilt.Store = store
		findings, err := graph.Inspect(t.Context(), &c.spoilt, "r")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []problem.Code
		for _, f := range findings {
			got = append(got, f.Code)
			if f.ExecutionID != "r" || f.Message == "" || f.Hint == "" {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%s: found %v, want %v", name, findings, c.want)
		}
		// Of a run that has ended only what its definition leads to is asked.
		foreign := c.spoilt.definition != nil && len(c.want) > 0 && c.want[0] == problem.Nondeterminism
		if ended, err := graph.Inspect(t.Context(), &c.spoilt, "done"); len(ended) > 0 != foreign || err != nil {
			t.Errorf("%s: of a run that has ended: %v, %v", name, ended, err)
		}
	}
	_, err := graph.Inspect(t.Context(), store, "nobody")
	wantCode(t, err, problem.ExecutionNotFound)
}

// TestInspectMissesSubworkflows: a subworkflow that ended well and of which nothing is left is missed, until its parent has
// ended.
func TestInspectMissesSubworkflows(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: &script{}})
	inspect := func(id string) []history.Finding {
		t.Helper()
		findings, err := graph.Inspect(t.Context(), &spoilt{Store: store, lost: id + ":sub:v"}, id)
		if err != nil {
			t.Fatal(err)
		}
		return findings
	}
	register(t, r, "short", linear(t, "short", "a"))
	start(t, r, "on", workflow(t, "parent-on", []string{startNode(), subworkflow("v", "short"), signalWait("w", "go"), endNode()}, "s v", "v w", "w e"), nil)
	if found := inspect("on"); len(found) != 1 || found[0].Code != problem.SubworkflowMissing || found[0].Seq == 0 {
		t.Errorf("ended: %+v", found)
	}
	forked, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "on", Seq: status(t, r, "on").Seq, NewExecutionID: "forked"})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := graph.Inspect(t.Context(), store, forked.ExecutionID); err != nil || len(found) != 0 {
		t.Errorf("a fork, which takes over what the subworkflow gave: %+v, %v", found, err)
	}
	if _, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "on", Name: "go"}); err != nil {
		t.Fatal(err)
	}
	if found := inspect("on"); len(found) != 0 {
		t.Errorf("of a run that has ended: %+v", found)
	}
}

// TestInspectTakesPollsAsTheyAre looks at a run whose remote task was looked at often, which no record tells.
func TestInspectTakesPollsAsTheyAre(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, store := &agent{}, historymem.New()
		atOnce(t, newRunner(t, store, graph.Options{Delegates: a}), "r", delegation(t))
		time.Sleep(time.Hour)
		synctest.Wait()
		if findings, err := graph.Inspect(t.Context(), store, "r"); err != nil || len(findings) > 0 {
			t.Errorf("%v, %v", findings, err)
		}
		none := &spoilt{Store: store, timers: func([]history.Timer) []history.Timer { return nil }}
		if findings, err := graph.Inspect(t.Context(), none, "r"); err != nil || len(findings) != 1 || findings[0].Code != problem.TimersDiffer {
			t.Errorf("without its timer: %v, %v", findings, err)
		}
	})
}

// TestAnAlteredDefinitionIsNotFollowed: a process that has to read the definition from the store follows none that is not what
// its hash names.
func TestAnAlteredDefinitionIsNotFollowed(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	doc := func(n int) *definition.Document {
		return workflow(t, "w", []string{startNode(), interrupt("i"), fmt.Sprintf(`{"id":"x","type":"set_state","config":{"assignments":{"x":{"literal":%d}}}}`, n), endNode()},
			"s i", "i x", "x e")
	}
	start(t, newRunner(t, store, graph.Options{}), "r", doc(1), nil)
	before, err := store.Read(t.Context(), "r", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	altered := &spoilt{Store: store, altered: doc(9).Canonical()}
	r := newRunner(t, altered, graph.Options{})
	for name, call := range map[string]func() error{
		"resume": func() error {
			_, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"ok": true}})
			return err
		},
		"start by name": func() error {
			_, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "other", DefinitionRef: "w"})
			return err
		},
		"fork": func() error {
			_, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: 1, NewExecutionID: "other"})
			return err
		},
		"export": func() error { return graph.Export(t.Context(), altered, "r", graph.ExportOptions{}, io.Discard) },
	} {
		err := call()
		wantCode(t, err, problem.HistoryCorrupt)
		if p, _ := problem.As(err); p == nil || p.Hint == "" || !strings.Contains(p.Message, "altered") || name == "resume" && p.At.ExecutionID != "r" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	after, err := store.Read(t.Context(), "r", 1, 0)
	if err != nil || len(after) != len(before) {
		t.Errorf("the run has %d records, and had %d: %v", len(after), len(before), err)
	}
	wantCode(t, func() error { _, err := store.Execution(t.Context(), "other"); return err }(), problem.ExecutionNotFound)
}

// TestInspectDoesNotMissASubworkflowThatIsLeftToOthers: a process that does not know a workflow leaves its subworkflow to
// others, which is as it should be. That another run has had a subworkflow of that name, whose definition is stored since,
// does not mean that this one has begun.
func TestInspectDoesNotMissASubworkflowThatIsLeftToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		knows := newRunner(t, store, graph.Options{Activities: &script{}})
		register(t, knows, "urn:child", workflow(t, "child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e"))
		d := workflow(t, "w", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e")
		if _, err := knows.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d}); err != nil {
			t.Fatal(err)
		}
		lacks := newRunner(t, store, graph.Options{Activities: &script{}})
		if _, err := lacks.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: 5, NewExecutionID: "f", Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if found, err := graph.Inspect(t.Context(), store, "f"); err != nil || len(found) > 0 {
			t.Errorf("%v, %v", found, err)
		}
	})
}

// TestInspectKnowsDeadlinesThatMoved has an attempt performed again, with its full time, after the process that began it died.
func TestInspectKnowsDeadlinesThatMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		d := workflow(t, "w", []string{startNode(), tool("a", `"timeout":"2m"`), endNode()}, "s a", "a e")
		bereft(t, store, d)
		time.Sleep(40 * time.Second)
		newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": after(time.Hour, nil)}}, Work: graph.WorkAll})
		time.Sleep(5 * time.Second)
		timers, err := store.DueTimers(t.Context(), time.Now().Add(time.Hour), 0)
		if err != nil || len(timers) != 1 || time.Until(timers[0].Due) < 85*time.Second {
			t.Fatalf("timers %v, %v: the deadline has not moved", timers, err)
		}
		if findings, err := graph.Inspect(t.Context(), store, "r"); err != nil || len(findings) > 0 {
			t.Errorf("found %v, %v", findings, err)
		}
	})
}
