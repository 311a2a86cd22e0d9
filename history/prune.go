package history

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Pruner is a Store that can delete runs that have ended. Both stores of this module are.
//
// What is deleted together is a tree: a run and all its subworkflows, theirs included. It goes only if every run in it has
// ended and the run at its root passes the query, so that no live run ever loses a child. To everybody else a tree is there
// or it is not: from the moment in which its deletion begins its runs are EXECUTION_NOT_FOUND (see BeingDeleted). A very large tree is
// deleted in several transactions, so that nobody waits for long; should the process end in between, the next Prune
// goes on.
type Pruner interface {
	// Prune deletes a page of trees, those that ended longest ago first. VALIDATION_ERROR for a query that asks for
	// phases that do not end a run, or for a negative limit.
	Prune(ctx context.Context, q PruneQuery) (PrunePage, error)

	// PruneDefinitions deletes the stored definitions that no run needs: none has begun with it, and none that is stored
	// can start it as a subworkflow, by its hash or, as the newest one, by its name. With dryRun it only lists them.
	PruneDefinitions(ctx context.Context, dryRun bool) ([]StoredDefinition, error)
}

// Shrinker is a Store in a file that can be made smaller.
type Shrinker interface {
	// Size gives the size of the file, its log included, and how much of it is free for new runs.
	Size(ctx context.Context) (bytes, free int64, err error)

	// Shrink writes the file anew without its free space. Writers of every process wait until it is done, or give up;
	// it needs as much space on the disk once more as the runs take.
	Shrink(ctx context.Context) error
}

// PruneQuery selects trees by the run at their root. Zero values do not filter.
type PruneQuery struct {
	// Before: only if every run of the tree was updated last at this time or earlier.
	Before time.Time
	// Phases are completed, failed and cancelled; none means all three.
	Phases []Phase
	// DefinitionName is that of the root.
	DefinitionName string
	// Limit is the most trees to delete in one call; 0 means 100.
	Limit int
	// Cursor is PrunePage.NextCursor of the call before, made with the same filters; "" begins with the oldest.
	Cursor string
	// DryRun only lists.
	DryRun bool
}

// PrunePage is what one call has deleted, or would delete.
type PrunePage struct {
	Trees []PrunedTree
	// Finished counts the runs, subworkflows included, whose deletion was begun by a call that was cut short, and that this
	// one has taken away, or would. They are in no tree.
	Finished int
	// NextCursor is "" if there is nothing left to look at. A page may be empty and yet have one.
	NextCursor string
}

// PrunedTree is a deleted run with its subworkflows.
type PrunedTree struct {
	// ExecutionID, DefinitionName, Phase and UpdatedAt are the root's.
	ExecutionID    string
	DefinitionName string
	Phase          Phase
	UpdatedAt      time.Time
	// Executions, Records and Bytes count the whole tree. Bytes are what the store keeps of the records'
	// payloads and for nobody else.
	Executions int
	Records    int64
	Bytes      int64
}

// BeingDeleted is the error of a run whose deletion has begun and is not over: DELETION_UNFINISHED. Since such a run counts
// as not there, it is an ExecutionNotFound too, for errors.Is.
func BeingDeleted(executionID string) error {
	return problem.New(problem.DeletionUnfinished, "run %q is being deleted", executionID).
		WithPlace(problem.Place{ExecutionID: executionID}).WithCause(notThere{}).
		WithHint("Its id is free once that is over. If nothing deletes it now, a gc was cut short, and the next one goes on with it: workflows-engine gc --older-than 30d, with the --store-path of this database.")
}

// notThere is why a run that is being deleted is no run.
type notThere struct{}

func (notThere) Error() string { return "it counts as not there" }

// Is implements what errors.Is looks for.
func (notThere) Is(target error) bool { return target == error(problem.ExecutionNotFound) }

// IsBeingDeleted tells BeingDeleted from NotFound.
func IsBeingDeleted(err error) bool { return errors.Is(err, problem.DeletionUnfinished) }

const defaultPruneLimit = 100

// Check refuses what cannot be asked, and fills in what is left out.
func (q *PruneQuery) Check() error {
	if q.Limit < 0 {
		return problem.New(problem.ValidationError, "limit %d is negative", q.Limit)
	}
	if q.Limit == 0 {
		q.Limit = defaultPruneLimit
	}
	for _, p := range q.Phases {
		if !p.Terminal() {
			return problem.New(problem.ValidationError, "runs in phase %q have not ended and are never deleted", p).
				WithHint("Choose among completed, failed and cancelled; cancel a run that is to go.")
		}
	}
	if len(q.Phases) == 0 {
		q.Phases = []Phase{PhaseCompleted, PhaseFailed, PhaseCancelled}
	}
	return nil
}

// Selects reports whether a tree goes; tree are the projections of all its runs, the root first.
func (q *PruneQuery) Selects(tree []Execution) bool {
	root := &tree[0]
	if !slices.Contains(q.Phases, root.Phase) || q.DefinitionName != "" && root.DefinitionName != q.DefinitionName {
		return false
	}
	return !slices.ContainsFunc(tree, func(e Execution) bool {
		return !e.Phase.Terminal() || !q.Before.IsZero() && e.UpdatedAt.After(q.Before)
	})
}

// childMark stands between a run's id and what names its subworkflow (spec: execution, 12.1).
const childMark = ":sub:"

// Ancestors gives the ids of the runs that a run can be a subworkflow of, going by its own id: the nearest one first.
func Ancestors(executionID string) []string {
	var out []string
	for {
		i := strings.LastIndex(executionID, childMark)
		if i <= 0 {
			return out
		}
		executionID = executionID[:i]
		out = append(out, executionID)
	}
}

// Descends reports whether a run is, going by its id, a subworkflow below another one.
func Descends(executionID, ancestor string) bool {
	return strings.HasPrefix(executionID, ancestor+childMark)
}

// DescendantRange gives the half-open range of ids, in bytewise order, of all subworkflows below a run.
func DescendantRange(executionID string) (from, to string) {
	return executionID + childMark, executionID + childMark[:len(childMark)-1] + ";"
}

// Unneeded gives the definitions, of all that are stored, in the order of storing, that none of the runs' definition
// hashes needs; see Pruner.PruneDefinitions.
func Unneeded(stored []StoredDefinition, hashes []string) []StoredDefinition {
	byHash, byName, byVersion := map[string]int{}, map[string]int{}, map[string]int{}
	for i := range stored {
		d := &stored[i]
		byHash[d.Hash] = i
		byName[d.Name] = i // the one stored last counts
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

// subworkflowRefs gives what the subworkflow nodes of a definition may be found by: the reference, its part behind the
// last colon, which commands look for too, and the pinned hash.
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
