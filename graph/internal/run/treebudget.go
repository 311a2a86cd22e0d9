package run

import (
	"context"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

const (
	// fresh is how old what the store has said of a tree may be. Until then this process adds what it commits itself, so what other
	// processes do meanwhile is the most by which a tree may pass a limit, besides the commits under way.
	fresh = time.Second
	// kept is how long a tree is remembered of which nobody asks.
	kept = time.Minute
)

// TreeBudget watches the trees of the runs that a process drives.
type TreeBudget struct {
	work.Env
	Limits TreeLimits
	// Depth bounds the nesting of subworkflows.
	Depth int

	mu    sync.Mutex
	trees map[string]*tree
	swept time.Time
}

// tree is what is known of one tree.
type tree struct {
	root  string
	asked time.Time // guarded by Budget.mu

	mu   sync.Mutex
	use  history.TreeUse
	read time.Time // when the store was asked
	// reached says which limit that ends runs was reached then.
	reached string
	// beginning are the subworkflows that this process is about to begin: use does not count them yet.
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

// refresh asks the store what the tree has used, unless it has just said so.
func (b *TreeBudget) refresh(ctx context.Context, t *tree, force bool) error {
	now := b.Now()
	if age := now.Sub(t.read); !force && age >= 0 && age < fresh {
		return nil
	}
	use, err := b.Store.Tree(ctx, t.root)
	if err != nil {
		return err
	}
	if n := int64(len(t.beginning)); n > 0 { // some of them may be stored already
		use.Runs = max(t.use.Runs, use.Runs-n)
	}
	t.use, t.read, t.reached = use, now, b.ending(t, use)
	return nil
}

// ending says which limit is reached that ends each run of the tree at its next step.
func (b *TreeBudget) ending(t *tree, use history.TreeUse) string {
	return b.Limits.reached(t.root, use, ofVisits, ofRecords, ofBytes)
}

// Begin admits a subworkflow that is about to be begun, or refuses it. depth is the nesting of its parent. Call done once it has
// begun, or has not.
func (b *TreeBudget) Begin(ctx context.Context, executionID string, depth int) (done func(), err error) {
	if depth >= b.Depth {
		return nil, problem.New(problem.SubworkflowDepthExceeded, "subworkflows are nested more than %d levels deep", b.Depth)
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

// Spent notes what a commit has added to a run, and now and then asks the store, whether ctx has ended or not.
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
	// A commit may count twice, from here and from the store: what ends runs is what the store says alone.
	if err := b.refresh(context.WithoutCancel(ctx), t, t.reached == "" && b.ending(t, t.use) != ""); err != nil {
		b.Log.Warn("limits of a tree of runs not checked", "execution_id", t.root, "error", err)
	}
}

// Reached says which limit of its tree ends a run at its next step, or with pending before it awaits one more activity; "" if none.
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

// Usage is how much of its limits the tree of a run has used; nil for a run that belongs to none.
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
