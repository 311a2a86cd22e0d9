package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Pruner is a Store that can delete ended runs. Both stores of this module implement it.
//
// A tree is deleted as a whole: a run and all subworkflows below it. It is deleted only if all its runs have ended and its root matches the
// query, so that no open run loses a subworkflow. As soon as the deletion begins, its runs are EXECUTION_NOT_FOUND (see BeingDeleted). A very
// large tree is deleted in several transactions, so that other writers do not wait for long. If the process ends in between, the next Prune
// continues.
type Pruner interface {
	// Prune deletes a page of trees, longest ended first. It returns VALIDATION_ERROR for a query with phases that are not terminal, or with
	// a negative limit.
	Prune(ctx context.Context, q PruneQuery) (PrunePage, error)

	// PruneDefinitions deletes the unneeded stored definitions. A definition is needed if a run started with it or is bound to it
	// (Execution.Subworkflows), or if a stored run can start it as a subworkflow: by its hash or, for the newest definition of a name, by
	// that name. With dryRun it only returns them.
	PruneDefinitions(ctx context.Context, dryRun bool) ([]StoredDefinition, error)
}

// Shrinker is a Store in a file that can be compacted.
type Shrinker interface {
	// Size returns the size of the file, including its WAL, and the free space in it, in bytes.
	Size(ctx context.Context) (bytes, free int64, err error)

	// Shrink rewrites the file without its free space. Writers of all processes wait until it is done, or give up. It needs as much free disk
	// space as the runs take.
	Shrink(ctx context.Context) error
}

// PruneQuery selects trees by the run at their root. Zero values do not filter.
type PruneQuery struct {
	// Before selects trees whose runs were all last updated at this time or earlier.
	Before time.Time
	// Phases are completed, failed and cancelled; an empty list selects all three.
	Phases []Phase
	// DefinitionName is the definition name of the root.
	DefinitionName string
	// Limit is the maximum number of trees that one call deletes; 0 means 100.
	Limit int
	// Cursor is PrunePage.NextCursor of the previous call with the same filters; "" begins with the oldest.
	Cursor string
	// DryRun lists the trees and deletes nothing.
	DryRun bool
}

// PrunePage is the result of one call: the trees that it deleted, or would delete.
type PrunePage struct {
	Trees []PrunedTree
	// Finished counts the runs, including subworkflows, whose interrupted deletion this call finished or would finish. They are not part of a
	// tree.
	Finished int
	// NextCursor is "" after the last page. An empty page may have one.
	NextCursor string
}

// PrunedTree is a deleted run with its subworkflows.
type PrunedTree struct {
	// ExecutionID, DefinitionName, Phase and UpdatedAt are the root's.
	ExecutionID    string
	DefinitionName string
	Phase          Phase
	UpdatedAt      time.Time
	// Executions, Records and Bytes count the whole tree. Bytes is the size of the payloads that other runs do not share.
	Executions int
	Records    int64
	Bytes      int64
}

// BeingDeleted returns the error DELETION_UNFINISHED of a run whose deletion has begun and not finished. Such a run counts as deleted, so
// errors.Is also reports ExecutionNotFound.
func BeingDeleted(executionID string) error {
	return problem.New(problem.DeletionUnfinished, "run %q is being deleted: it counts as deleted", executionID).WithReason(problem.ExecutionNotFound).
		WithPlace(problem.Place{ExecutionID: executionID}).
		WithHint("Its id is free after that. If no process deletes it now, one was interrupted; the next deletion finishes it: Runner.Prune.")
}

// IsBeingDeleted reports whether an error comes from BeingDeleted.
func IsBeingDeleted(err error) bool { return errors.Is(err, problem.DeletionUnfinished) }

const defaultPruneLimit = 100

// Check validates the query and sets the defaults.
func (q *PruneQuery) Check() error {
	if q.Limit < 0 {
		return problem.New(problem.ValidationError, "limit %d is negative", q.Limit)
	}
	if q.Limit == 0 {
		q.Limit = defaultPruneLimit
	}
	for _, p := range q.Phases {
		if !p.Terminal() {
			return problem.New(problem.ValidationError, "runs in phase %q have not ended, and are never deleted", p).
				WithHint("Choose from completed, failed and cancelled. To delete an open run, cancel it first.")
		}
	}
	if len(q.Phases) == 0 {
		q.Phases = []Phase{PhaseCompleted, PhaseFailed, PhaseCancelled}
	}
	return nil
}

// Selects reports whether the query selects a tree for deletion. tree holds the projections of all its runs, the root first.
func (q *PruneQuery) Selects(tree []Execution) bool {
	root := &tree[0]
	if !slices.Contains(q.Phases, root.Phase) || q.DefinitionName != "" && root.DefinitionName != q.DefinitionName {
		return false
	}
	return !slices.ContainsFunc(tree, func(e Execution) bool {
		return !e.Phase.Terminal() || !q.Before.IsZero() && e.UpdatedAt.After(q.Before)
	})
}

// PruneCursor is the start of a page of candidates: the runs of the query's phases, one phase after another, each in the order of ListedAt and Run.
type PruneCursor struct {
	// ListedAt and Run are those of the last candidate before the page.
	ListedAt, Run int64
	phase         int // index into the query's phases
	end           bool
}

// Start parses the query's cursor, after Check. The error is INVALID_LIST_CURSOR.
func (q *PruneQuery) Start() (PruneCursor, error) {
	at := PruneCursor{ListedAt: math.MinInt64}
	if q.Cursor == "" {
		return at, nil
	}
	if n, err := fmt.Sscanf(q.Cursor, "%d|%d|%d", &at.phase, &at.ListedAt, &at.Run); err != nil || n != 3 || at.phase < 0 || at.phase >= len(q.Phases) {
		return at, problem.New(problem.InvalidListCursor, "invalid cursor %q", q.Cursor).
			WithHint("Pass NextCursor of the previous page unchanged, with the same filters.")
	}
	return at, nil
}

// String returns the cursor as PrunePage.NextCursor.
func (at *PruneCursor) String() string {
	if at.end {
		return ""
	}
	return fmt.Sprintf("%d|%d|%d", at.phase, at.ListedAt, at.Run)
}

// Candidates returns the ids of the next page of runs that the query may select, and moves the cursor past them. read returns at most limit runs
// of a phase behind a cursor that were listed at before, in milliseconds, or earlier, and the position of the last one.
func (q *PruneQuery) Candidates(at *PruneCursor, read func(phase Phase, before int64, at PruneCursor, limit int) (ids []string, listedAt, run int64, err error)) ([]string, error) {
	before := int64(math.MaxInt64)
	if !q.Before.IsZero() {
		before = q.Before.UnixMilli()
	}
	var ids []string
	for len(ids) < q.Limit {
		want := q.Limit - len(ids)
		page, listedAt, run, err := read(q.Phases[at.phase], before, *at, want)
		if err != nil {
			return nil, err
		}
		ids = append(ids, page...)
		switch {
		case len(page) == want:
			at.ListedAt, at.Run = listedAt, run
		case at.phase+1 == len(q.Phases):
			at.end = true
			return ids, nil
		default:
			at.phase, at.ListedAt, at.Run = at.phase+1, math.MinInt64, 0
		}
	}
	return ids, nil
}

// ChildMark separates a run's id from the name of its subworkflow (spec: execution, 12.1). Other ids do not contain it.
const ChildMark = ":sub:"

// Ancestors returns the possible ancestors of a run by its id, nearest first.
func Ancestors(executionID string) []string {
	var out []string
	for {
		i := strings.LastIndex(executionID, ChildMark)
		if i <= 0 {
			return out
		}
		executionID = executionID[:i]
		out = append(out, executionID)
	}
}

// Descends reports whether a run is, by its id, a subworkflow below another run.
func Descends(executionID, ancestor string) bool {
	return strings.HasPrefix(executionID, ancestor+ChildMark)
}

// DescendantRange returns the half-open range of ids, in bytewise order, of all subworkflows below a run.
func DescendantRange(executionID string) (from, to string) {
	return executionID + ChildMark, executionID + ChildMark[:len(ChildMark)-1] + ";"
}

// Unneeded returns the stored definitions that the runs with these definition hashes do not need; see Pruner.PruneDefinitions. stored is in
// the order of storing.
func Unneeded(stored []StoredDefinition, hashes []string) []StoredDefinition {
	byHash, byName, byVersion := map[string]int{}, map[string]int{}, map[string]int{}
	for i := range stored {
		d := &stored[i]
		byHash[d.Hash] = i
		byName[d.Name] = i // the definition stored last
		byVersion[d.Name+"@"+d.Version] = i
	}
	needed := make([]bool, len(stored))
	var need func(i int, ok bool)
	need = func(i int, ok bool) {
		if !ok || needed[i] {
			return
		}
		needed[i] = true
		for _, ref := range subworkflowRefs(stored[i].Text) {
			for _, m := range []map[string]int{byHash, byName, byVersion} {
				j, found := m[ref]
				need(j, found)
			}
		}
	}
	for _, h := range hashes {
		i, ok := byHash[h]
		need(i, ok)
	}
	var out []StoredDefinition
	for i := range stored {
		if !needed[i] {
			out = append(out, stored[i])
		}
	}
	return out
}

// subworkflowRefs returns the lookup names of a definition's subworkflows: each reference, its part after the last colon, and the pinned
// hash.
func subworkflowRefs(canonical []byte) []string {
	v, err := jsonvalue.Decode(canonical)
	if err != nil {
		return nil
	}
	nodes, _ := object(v)["nodes"].([]any)
	var refs []string
	for _, n := range nodes {
		config := object(object(n)["config"])
		ref := text(config["workflow_ref"])
		refs = append(refs, ref, ref[strings.LastIndex(ref, ":")+1:], text(config["version_pin"]))
	}
	return refs
}
