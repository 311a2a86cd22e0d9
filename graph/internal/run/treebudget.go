package run

import (
	"context"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

const (
	// fresh is the maximum age of a tree's stored usage; this process's own commits are added to it. In that time other processes may pass
	// a limit.
	fresh = time.Second
	// kept is how long an unused tree stays in memory.
	kept = time.Minute
)

// TreeBudget watches the limits of the trees of a process's runs.
type TreeBudget struct {
	work.Env
	Limits TreeLimits
	// Depth bounds the nesting of subworkflows.
	Depth int

	mu    sync.Mutex
	trees map[string]*tree
	swept time.Time
}

// tree is the known usage of one tree.
type tree struct {
	root  string
	asked time.Time // guarded by TreeBudget.mu

	mu   sync.Mutex
	use  history.TreeUse
	read time.Time // the time of the last read of the store
	// reached describes the limit that ended runs then, "" without one.
	reached string
	// beginning are the subworkflows that this process is about to start and that use does not include.
	beginning map[string]bool
}

// of returns the tree of a run, locked.
func (b *TreeBudget) of(executionID string) *tree {
	root, now := history.Root(executionID), b.Now()
	b.mu.Lock()
	if now.Sub(b.swept) > kept {
		for root, t := range b.trees {
			if now.Sub(t.asked) > kept {
				delete(b.trees, root)
			}
		}
		b.swept = now
	}
	t := b.trees[root]
	if t == nil {
		t = &tree{root: root, beginning: map[string]bool{}}
		if b.trees == nil {
			b.trees = map[string]*tree{}
		}
		b.trees[root] = t
	}
	t.asked = now
	b.mu.Unlock()
	t.mu.Lock()
	return t
}

// refresh reads the usage of the tree from the store, unless it is fresh.
func (b *TreeBudget) refresh(ctx context.Context, t *tree, force bool) error {
	now := b.Now()
	if age := now.Sub(t.read); !force && age >= 0 && age < fresh {
		return nil
	}
	use, err := b.Store.Tree(ctx, t.root)
	if err != nil {
		return err
	}
	if n := int64(len(t.beginning)); n > 0 { // some may be stored already
		use.Runs = max(t.use.Runs, use.Runs-n)
	}
	t.use, t.read, t.reached = use, now, b.ending(t, use)
	return nil
}

// ending describes a reached limit that ends each run of the tree at its next step, "" without one.
func (b *TreeBudget) ending(t *tree, use history.TreeUse) string {
	return b.Limits.reached(t.root, use, ofVisits, ofRecords, ofBytes)
}

// Begin admits a new subworkflow, or rejects it. depth is the nesting of its parent. Call done after it has started, or has not.
func (b *TreeBudget) Begin(ctx context.Context, executionID string, depth int) (done func(), err error) {
	if err := admit.Depth(depth, b.Depth); err != nil {
		return nil, err
	}
	t := b.of(executionID)
	defer t.mu.Unlock()
	if err := b.refresh(ctx, t, false); err != nil {
		return nil, err
	}
	use := t.use
	use.Runs += int64(len(t.beginning))
	if reached := b.Limits.reached(t.root, use, ofRuns); t.reached+reached != "" {
		if reached == "" {
			reached = t.reached
		}
		return nil, problem.New(problem.TreeLimitExceeded, "%s", reached).WithPlace(problem.Place{ExecutionID: t.root})
	}
	t.beginning[executionID] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.beginning, executionID)
	}, nil
}

// Spent adds the usage of a commit. It reads the store from time to time, even if ctx has ended.
func (b *TreeBudget) Spent(ctx context.Context, before, after *history.Execution) {
	if !after.InTree() {
		return
	}
	t := b.of(after.ID)
	defer t.mu.Unlock()
	if before.Seq == 0 {
		delete(t.beginning, after.ID)
	}
	t.use.Add(after, 1)
	t.use.Add(before, -1)
	// A commit may count twice, here and in the store, so only the stored usage ends runs.
	if err := b.refresh(context.WithoutCancel(ctx), t, t.reached == "" && b.ending(t, t.use) != ""); err != nil {
		b.Log.Warn("limits of a tree of runs not checked", "execution_id", t.root, "error", err)
	}
}

// Reached describes the limit of the tree that ends a run at its next step or, with pending, before it awaits another activity; ""
// without one.
func (b *TreeBudget) Reached(e *history.Execution, pending bool) string {
	if !e.InTree() {
		return ""
	}
	t := b.of(e.ID)
	defer t.mu.Unlock()
	if pending && t.reached == "" {
		return b.Limits.reached(t.root, t.use, ofPending)
	}
	return t.reached
}

// Usage returns the usage of the limits of a run's tree; nil for a run without a tree.
func (b *TreeBudget) Usage(ctx context.Context, e *history.Execution) []view.Usage {
	if !e.InTree() {
		return nil
	}
	t := b.of(e.ID)
	defer t.mu.Unlock()
	if err := b.refresh(ctx, t, false); err != nil {
		b.Log.Warn("limits of a tree of runs not checked", "execution_id", t.root, "error", err)
		return nil
	}
	return b.Limits.usages(t.use)
}
