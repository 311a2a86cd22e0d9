package transfer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Fork describes a new run that begins with the past of another run; see graph.ForkRequest.
type Fork struct {
	// From is the run to fork, To the new run. Seq is the last record to copy. With BeforeNode, the past ends before the newest visit
	// of that node instead, and Correction is a merge patch of the state there.
	From, To   string
	Seq        int64
	BeforeNode string
	Correction map[string]any
	// Retry, instead of Seq and BeforeNode, begins the new run where the other run failed.
	Retry *Retry
	// Again allows a retry in addition to existing ones.
	Again bool
	// Parent and Depth are set if the new run is a subworkflow; "" and 0 if no run waits for it.
	Parent string
	Depth  int
	// Definition is the definition of the new run; nil means the definition of From.
	Definition *definition.Document
	// RequireCapable rejects a run whose requirements Capabilities do not meet.
	RequireCapable bool
	Capabilities   library.Capabilities
	Library        *library.Library
	// Limits bounds the new run, MaxVisits its visits of nodes, MaxBytes its state.
	Limits    machine.Limits
	MaxVisits int
	MaxBytes  int
	// Now is the time of the end of the past, in whole milliseconds.
	Now time.Time
}

// Batch returns the first append of the new run and writes nothing. Its errors are those of Runner.Fork.
func (f *Fork) Batch(ctx context.Context, store history.Store) (history.Batch, error) {
	if f.Correction != nil && f.BeforeNode == "" && f.Retry == nil {
		return history.Batch{}, problem.New(problem.ValidationError, "a correction must have a node").WithHint("Name the node before which the new run starts.")
	}
	if f.Correction != nil {
		var err error
		if f.Correction, err = admit.Object("state", f.Correction, f.MaxBytes, problem.ValidationError); err != nil {
			return history.Batch{}, err
		}
	}
	exec, err := store.Execution(ctx, f.From)
	if err != nil {
		return history.Batch{}, admit.NotFoundAs(err, problem.ExecutionNotFound, f.From)
	}
	prog, err := f.Library.Forked(ctx, &exec, f.Definition)
	if err != nil {
		return history.Batch{}, err
	}
	own := prog
	if f.Definition != nil && f.BeforeNode != "" {
		if own, err = f.Library.Stored(ctx, exec.DefinitionHash); err != nil {
			return history.Batch{}, err
		}
	}
	records, err := store.Read(ctx, f.From, 1, 0)
	if err != nil {
		return history.Batch{}, err
	}
	if f.Definition != nil {
		if err := f.Library.ForkedInput(&exec, prog, InputOf(records)); err != nil {
			return history.Batch{}, err
		}
	}
	var inherited map[string]string
	if f.Parent != "" {
		inherited = exec.Subworkflows
		f.Retry = retryOf(&exec, records)
	}
	versions, children := f.Library.Versions(ctx, prog, inherited)
	fork := &ForkedPast{
		From: f.From, To: f.To, Seq: f.Seq, BeforeNode: f.BeforeNode, Correction: f.Correction, MaxStateBytes: f.MaxBytes,
		Program: prog, Own: own, Subworkflows: versions, MaxVisits: f.MaxVisits, Now: f.Now, Actor: run.ActorOf(ctx), Retry: f.Retry, Changed: f.Definition != nil,
		Parent: f.Parent, Depth: f.Depth, Below: f.below(ctx, store),
	}
	past, m, err := fork.Past(records)
	if err != nil {
		return history.Batch{}, err
	}
	if f.Retry != nil {
		if err := f.rejectBelow(ctx, store, past, records[min(fork.Seq, int64(len(records))):]); err != nil {
			return history.Batch{}, err
		}
	}
	if err := f.Library.LackingAhead(ctx, m, f.Capabilities, f.RequireCapable); err != nil {
		return history.Batch{}, err
	}
	if f.Correction != nil {
		if err := admit.RoomToStart(&history.Execution{ID: f.From}, f.Limits, "correction", f.Correction, past); err != nil {
			return history.Batch{}, err
		}
	}
	link := &history.Link{From: f.From, To: f.To, Kind: history.Forked, Seq: fork.Seq, At: f.Now, Again: f.Again}
	if f.Retry != nil {
		link.Kind = history.Retried
	}
	if a := run.ActorOf(ctx); a != nil {
		link.Actor = a.String()
	}
	return history.Batch{
		Link: link, ExecutionID: f.To, Records: past, Execution: history.Project(f.To, past), Definition: admit.StoredForm(prog), Subworkflows: children,
		SetTimers: true, Timers: run.StoredTimers(f.To, m.Timers()),
	}, nil
}

// retryOf returns the retry of a subworkflow whose parent is retried: from its failure, or from its last position if it was cancelled.
func retryOf(exec *history.Execution, records []history.Record) *Retry {
	end := view.Ending{Status: machine.Status(exec.Phase)}
	end.TakeRecords(records)
	return &Retry{Node: end.NodeID, Code: end.Code, Message: end.Error, Compensated: end.Compensated, AtLimit: problem.Code(end.Code).IsLimit()}
}

// below returns a function that decides how the run's subworkflows continue: those with recorded steps of agents are continued. The
// whole tree is checked before anything is written, because these runs begin later, when the new run is driven.
func (f *Fork) below(ctx context.Context, store history.Store) func(child string) (Continuation, error) {
	known := map[string]Continuation{}
	return func(child string) (Continuation, error) {
		if c, ok := known[child]; ok {
			return c, nil
		}
		c, err := f.continued(ctx, store, child)
		if err == nil {
			known[child] = c
		}
		return c, err
	}
}

func (f *Fork) continued(ctx context.Context, store history.Store, child string) (c Continuation, err error) {
	exec, err := store.Execution(ctx, child)
	if errors.Is(err, problem.ExecutionNotFound) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	c.Exists = true
	tree, err := treeOf(ctx, store, child)
	if err != nil || !slices.ContainsFunc(tree, func(r treeRun) bool { return HasAgents(r.records) }) {
		return c, err
	}
	at := problem.Place{ExecutionID: child}
	end := retryOf(&exec, tree[0].records)
	switch {
	case !exec.Phase.Terminal():
		return c, problem.New(problem.ValidationError, "subworkflow %q has not ended yet, and its agents may still be running", child).WithPlace(at).
			WithHint("Retry again once the subworkflow, which is being cancelled, has ended; nothing was written.")
	case end.Compensated > 0 && end.Node == "":
		return c, RepeatsEffects(effectsOf(tree), at)
	}
	if !f.Again {
		related, err := history.Retries(child, func(id string) ([]history.Link, error) { return store.Links(ctx, id) })
		if err == nil {
			err = (&history.Link{From: child}).AlreadyRetried(related, "")
		}
		if err != nil {
			return c, err
		}
	}
	sub := *f
	sub.From, sub.To, sub.Parent, sub.Depth = child, f.To+strings.TrimPrefix(child, f.From), f.To, f.Depth+1
	sub.Seq, sub.BeforeNode, sub.Correction, sub.Definition, sub.RequireCapable = 0, "", nil, nil, false
	b, err := sub.Batch(ctx, store)
	if err == nil {
		c.Seq = b.Link.Seq
	}
	return c, err
}

// treeRun is a run of a tree.
type treeRun struct {
	id      string
	records []history.Record
}

// treeOf reads runs and their descendants, including runs of another tree that they continue.
func treeOf(ctx context.Context, store history.Store, ids ...string) (tree []treeRun, err error) {
	for i := 0; i < len(ids); i++ {
		records, err := store.Read(ctx, ids[i], 1, 0)
		if err != nil {
			return nil, err
		}
		tree = append(tree, treeRun{ids[i], records})
		for j := range records {
			if records[j].Name != history.SubworkflowStarted {
				continue
			}
			for _, id := range []string{records[j].Payload.ChildExecutionID, records[j].Payload.ForkedFrom.ExecutionID} {
				if id != "" && !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
	}
	return tree, nil
}

// effectsOf lists the calls with side effects, without duplicates: a run also contains the calls of the run it continues.
func effectsOf(tree []treeRun) (calls []string) {
	for _, r := range tree {
		for _, c := range EffectsOf(r.id, r.records) {
			if !slices.Contains(calls, c) {
				calls = append(calls, c)
			}
		}
	}
	return calls
}

// rejectBelow rejects a retry that restarts subworkflows whose agents made calls with side effects. dropped are records of the other
// run that are not copied; the new run continues the subworkflows named in them.
func (f *Fork) rejectBelow(ctx context.Context, store history.Store, past, dropped []history.Record) error {
	if f.Retry.RepeatEffects || f.Retry.Compensated > 0 {
		return nil
	}
	continued := map[string]bool{}
	for i := range past {
		continued[past[i].Payload.ForkedFrom.ExecutionID] = true
	}
	ids := []string{}
	for i := range dropped {
		p := &dropped[i].Payload
		for _, id := range []string{p.ChildExecutionID, p.ForkedFrom.ExecutionID} {
			if id != "" && !continued[id] && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	tree, err := treeOf(ctx, store, ids...)
	if err != nil {
		return err
	}
	return RepeatsEffects(effectsOf(tree), problem.Place{ExecutionID: f.From, NodeID: f.Retry.Node})
}

// corrected appends the corrected state to a past. It is recorded as a whole, so that replay does not apply the patch again.
func (f *ForkedPast) corrected(past []history.Record) ([]history.Record, error) {
	at := problem.Place{ExecutionID: f.From, NodeID: f.BeforeNode}
	newest := -1
	for i := range past {
		if past[i].Name == history.StateUpdated {
			newest = i
		}
	}
	switch {
	case newest < 0:
		return nil, problem.New(problem.ValidationError, "a correction before node %q is not possible: the state there is the input of the run", f.BeforeNode).WithPlace(at).
			WithHint("Start a new run with the corrected input.")
	case inBlock(past):
		return nil, problem.New(problem.ValidationError, "node %q is in a parallel branch, where a correction is not possible", f.BeforeNode).WithPlace(at).
			WithHint("Fork before the parallel node to correct the state.")
	}
	state := jsonvalue.MergePatch(past[newest].Payload.State, f.Correction)
	if size, before := jsonvalue.Size(state, 0), jsonvalue.Size(past[newest].Payload.State, 0); size > f.MaxStateBytes && size > before {
		return nil, problem.New(problem.ValidationError, "the corrected state has %d bytes, which exceeds the limit of %d", size, f.MaxStateBytes).WithPlace(at).
			WithHint("Nothing was written. Replace large values by references.")
	}
	if violations := f.Program.State.Validate(state); len(violations) > 0 {
		return nil, problem.New(problem.ValidationError, "the corrected state would break state_schema: %s", problem.Excerpt(jsonschema.Text(violations), problem.MaxText)).
			WithPlace(at).WithHint("Nothing was written. Correct the values and send them again.")
	}
	return append(slices.Clip(past), history.Record{
		Seq: int64(len(past)) + 1, Kind: history.Event, Name: history.StateUpdated, CreatedAt: f.Now,
		Payload: history.Payload{State: state, Correction: true, Actor: f.Actor},
	}), nil
}

// inBlock reports whether a parallel block is open at the end of a past: not joined, not failed and caught by an outer node, and not
// cancelled with its branch.
func inBlock(past []history.Record) bool {
	var open []string
	for i := range past {
		p := &past[i].Payload
		switch past[i].Name {
		case history.StartParallel:
			open = append(open, p.NodeID)
		case history.JoinParallel:
			open = until(open, p.NodeID)
		case history.FailNode:
			open = until(open, p.CaughtBy)
		case history.CancelParallelBranch:
			if rest := until(open, p.NodeID); len(rest) < len(open) {
				open = append(rest, p.NodeID)
			}
		}
	}
	return len(open) > 0
}

// until returns the blocks around a node, or all if it is not one of them.
func until(open []string, node string) []string {
	if i := slices.Index(open, node); i >= 0 {
		return open[:i]
	}
	return open
}
