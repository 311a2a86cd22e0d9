package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/fleet"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

const (
	// shortList is the number of runs in each list of the start page.
	shortList = 20
	// mostCounted is the largest number that is counted exactly.
	mostCounted = 1000
	// recentFailures is how long a failed run is on the start page.
	recentFailures = 24 * time.Hour
)

// homeView shows the runs that wait for an answer, the failed and the orphaned ones.
func (s *Server) homeView(r *http.Request) (page view, err error) {
	ctx := r.Context()
	m := &fragment.Home{}
	asking := history.ListQuery{Phase: history.PhaseInterrupted, Oldest: true, Limit: shortList}
	failed := history.ListQuery{
		Phase: history.PhaseFailed, Roots: true, Unhandled: true, UpdatedAfter: time.Now().Add(-recentFailures).UTC().Truncate(time.Minute), Limit: shortList,
	}
	if m.Asking, err = s.short(ctx, asking, "/runs?phase=interrupted"); err != nil {
		return page, err
	}
	if m.Failed, err = s.short(ctx, failed, "/runs?phase=failed"); err != nil {
		return page, err
	}
	if m.Orphans, err = s.orphans(ctx); err != nil {
		return page, err
	}
	f, _, err := s.fleet(ctx)
	if err != nil {
		return page, err
	}
	for _, l := range f.Unserved() {
		text := l.UnservedText()
		m.Unserved = append(m.Unserved, strings.ToUpper(text[:1])+text[1:]+".")
	}
	m.Open = s.count(ctx, history.ListQuery{Phases: history.OpenPhases()})
	page.Title = "Start"
	page.Body, err = s.body(m)
	return page, err
}

// short returns the beginning of a list, with the number of its runs.
func (s *Server) short(ctx context.Context, q history.ListQuery, all string) (list fragment.ShortList, err error) {
	found, err := s.o.Engine.List(ctx, q)
	if errors.Is(err, problem.Unsupported) { // an engine whose lists have another order and fewer filters
		q = history.ListQuery{Phase: q.Phase, Roots: q.Roots, Limit: q.Limit}
		found, err = s.o.Engine.List(ctx, q)
	}
	if err != nil {
		return list, err
	}
	for i := range found.Executions {
		x := &found.Executions[i]
		out := row(x)
		if q.Phase == history.PhaseInterrupted {
			out.Path = questionOf(x)
		}
		list.Rows = append(list.Rows, out)
	}
	if list.Count = fmt.Sprint(len(list.Rows)); found.NextCursor != "" {
		list.Count, list.All = s.count(ctx, q), all
	}
	return list, nil
}

// questionOf returns the address of the only question of a run; "" if the run's page has to show which.
func questionOf(x *history.Execution) (path string) {
	for i := range x.Waits {
		w := &x.Waits[i]
		switch {
		case w.Kind != history.WaitInterrupt:
		case path != "" || w.NodeType != "" && w.NodeType != "interrupt":
			return ""
		default:
			path = fragment.QuestionPath(x.ID, fmt.Sprintf("%s#%d", w.NodeID, max(w.Visit, 1)))
		}
	}
	return path
}

// count returns how many runs a query selects: "1,000+" for more than are counted, "" if the engine does not count.
func (s *Server) count(ctx context.Context, q history.ListQuery) string {
	counter, err := graph.Need[graph.Counter](s.o.Engine, "Count")
	if err != nil {
		return ""
	}
	n, err := counter.Count(ctx, q, mostCounted)
	switch {
	case err != nil:
		return ""
	case n >= mostCounted:
		return "1,000+"
	}
	return fmt.Sprint(n)
}

// orphans returns the orphaned runs.
func (s *Server) orphans(ctx context.Context) (list fragment.ShortList, err error) {
	recoverer, err := graph.Need[graph.Recoverer](s.o.Engine, "Recover")
	if err != nil {
		return list, nil
	}
	found, err := recoverer.Recover(ctx, graph.RecoverRequest{DryRun: true, OmitElsewhere: true, Limit: shortList})
	if err != nil {
		return list, err
	}
	add := func(id, why string) {
		if len(list.Rows) == shortList {
			return
		}
		out := fragment.Row{ID: id, State: fragment.PhaseState(history.PhaseRunning), WaitsFor: why}
		if peeker, err := graph.Need[graph.Peeker](s.o.Engine, "Peek"); err == nil {
			if x, err := peeker.Peek(ctx, id); err == nil {
				out = row(&x)
				out.WaitsFor = why
			}
		}
		list.Rows = append(list.Rows, out)
	}
	list.Claimable = len(found.ExecutionIDs) > 0
	for _, id := range found.ExecutionIDs {
		add(id, "a worker to claim it")
	}
	for _, l := range found.Left {
		why := ""
		switch {
		case l.Lack != nil:
			why = "a process with " + l.Lack.Missing
			list.Lacking = true
		case l.Err != nil:
			why = fragment.OneLine(l.Err.Error(), maxRowText)
		}
		add(l.ExecutionID, why)
	}
	list.Count = fmt.Sprint(len(found.ExecutionIDs) + len(found.Left))
	return list, nil
}

// unknownRun is the error for an id without a run, with ids that are like it.
type unknownRun struct {
	error
	near []string
}

func (u unknownRun) Unwrap() error { return u.error }

// unknown adds the nearest ids among the newest runs to the error of an unknown run.
func (s *Server) unknown(ctx context.Context, id string, err error) error {
	if p, ok := problem.As(err); !ok || p.Code != problem.ExecutionNotFound {
		return err
	}
	found, listErr := s.o.Engine.List(ctx, history.ListQuery{Limit: pageOfRuns})
	if listErr != nil {
		return err
	}
	names := make([]string, len(found.Executions))
	for i := range names {
		names[i] = found.Executions[i].ID
	}
	out := unknownRun{error: err}
	for range 3 {
		near := suggest.Nearest(id, names)
		if near == "" {
			break
		}
		out.near = append(out.near, near)
		rest := names[:0:0]
		for _, n := range names {
			if n != near {
				rest = append(rest, n)
			}
		}
		names = rest
	}
	return out
}

// systemView shows the process, the parts of its store that need attention, and its webhook deliveries.
func (s *Server) systemView(r *http.Request) (page view, err error) {
	ctx := r.Context()
	m := &fragment.System{Version: s.o.Version, ReadOnly: s.readOnly(r)}
	for _, o := range s.o.Settings {
		m.Settings = append(m.Settings, fragment.Pair{Name: o.Name, Value: o.Value})
	}
	if f, known, err := s.fleet(ctx); err != nil {
		return page, err
	} else if known {
		m.Fleet = fleetOf(f)
	}
	if m.Orphans, err = s.orphans(ctx); err != nil {
		return page, err
	}
	if deliverer, needErr := graph.Need[graph.Deliverer](s.o.Engine, "Deliveries"); needErr == nil {
		found, err := deliverer.Deliveries(ctx, history.DeliveryQuery{Limit: pageOfRuns, Cursor: r.URL.Query().Get("cursor")})
		if err != nil {
			return page, err
		}
		for i := range found.Deliveries {
			m.Deliveries = append(m.Deliveries, s.delivery(&found.Deliveries[i]))
		}
		if found.NextCursor != "" {
			m.Older = fragment.PagePath("/system", found.NextCursor)
		}
	}
	if !s.readOnly(r) {
		m.Redeliver = &fragment.Post{Action: "/system/redeliver", Token: s.systemToken(r)}
	}
	if sent := submittedOf(r); sent != nil {
		m.Refused = refused(s, sent)
	}
	page.Title = "System"
	page.Body, err = s.body(m)
	return page, err
}

// fleet reads the processes and lanes of the database; known is false if the engine does not list them.
func (s *Server) fleet(ctx context.Context) (f fleet.Fleet, known bool, err error) {
	reader, err := graph.Need[fleet.Reader](s.o.Engine, "Processes")
	if err != nil {
		return f, false, nil
	}
	f, err = fleet.Read(ctx, reader)
	return f, true, err
}

// maxPerforms is the number of executors shown for a process.
const maxPerforms = 12

func fleetOf(f fleet.Fleet) *fragment.Fleet {
	m := &fragment.Fleet{}
	for i := range f.Processes {
		p := &f.Processes[i]
		m.Processes = append(m.Processes, fragment.Process{
			Name: fleet.Name(p), Role: p.Work, Version: p.Version, Load: fleet.Load(p), Queues: fleet.Queues(p), Performs: fleet.Performs(p, maxPerforms),
			Waiting: p.Waiting, Runs: p.Runs, Started: p.Started,
		})
	}
	for _, l := range f.Lanes {
		out := fragment.Lane{Name: fleet.LaneName(l.Lane), Runs: l.Count(), Workers: l.Workers, Since: l.Since}
		if l.Workers == 0 {
			out.Advice = "Start one with " + fleet.Needed(l.Lane) + "."
		}
		m.Lanes = append(m.Lanes, out)
	}
	return m
}

func (s *Server) delivery(d *history.Delivery) fragment.Delivery {
	out := fragment.Delivery{
		ID: d.ID, Run: d.ExecutionID, RunPath: fragment.RunPath(d.ExecutionID), Event: string(d.Event), Target: d.Target, State: string(d.State),
		Attempts: d.Attempts, Created: d.CreatedAt, Again: d.State != history.DeliveryPending,
	}
	if d.State == history.DeliveryPending {
		out.Due = d.Due
	}
	if n := len(d.Tries); n > 0 {
		last := d.Tries[n-1]
		if last.Status > 0 {
			out.Result = fmt.Sprintf("status %d ", last.Status)
		}
		out.Result += fragment.OneLine(last.Error, maxRowText)
	}
	return out
}
