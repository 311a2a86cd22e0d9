package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/history"
)

// CopyOptions configure Copy.
type CopyOptions struct {
	// Target names the target in the reason of runs that have moved there. It should have no secrets.
	Target string
	// CheckSteps checks the journals of agents; see Options.CheckSteps. nil does not check them.
	CheckSteps func(activities.RecordedAttempt) (at int, err error)
	// Progress, unless nil, is called after each tree of runs: done of them have been copied, rejected or found in the target.
	Progress func(done, of int)
}

// CopyResult tells what a copy has done.
type CopyResult struct {
	// Copied is what this copy has added to the target, Existed what was there before.
	Copied, Existed CopyCounts
	// Moved are the copied runs that had not ended: they continue in the target and have ended in the source.
	Moved int
	// KeptLimits are the classes of shared limits that differ from those of the target, which stay.
	KeptLimits []string
	// Left are the roots of trees that were not copied, with the reasons.
	Left []CopyLeft
	// PendingDeliveries is the number of deliveries of webhooks that a process of the source still sends: those of runs that were left, those
	// that it was sending, and those that were queued again in the source after an earlier copy.
	PendingDeliveries int
	// Source and Target are the problems that a check of the stores found.
	Source, Target []history.Finding
}

// CopyCounts counts runs, subworkflows included, their records, definitions, shared limits, deliveries of webhooks, links between runs and their
// retries and forks, and keys of history.Keyring.
type CopyCounts struct {
	Runs, Records, Definitions, Limits, Deliveries, Links, Keys int
}

// CopyLeft is a run that was not copied. Err is LEASE_HELD if a process of the source drives it, HISTORY_CONFLICT if it continued meanwhile,
// DUPLICATE_EXECUTION_ID if the target has another run of its id or an earlier copy has moved it, or an error of Import.
type CopyLeft struct {
	ExecutionID string
	Err         error
}

// Copy copies all definitions, shared limits, keys and runs of a store into another one, which must be a history.Importer, and then checks both. With
// the runs go their marks as handled and, into a history.Attacher, their deliveries and the links to their retries and forks. A shared limit or
// key that the target has stays there. Ended runs are copied as they are. Other runs move: Copy claims them, cancels them in the source with a reason that names the target, without a rollback and without
// cancelling tasks at agents, and imports their records before that cancel. So no two processes continue a run, even if Copy is interrupted:
// call it again to complete. Runs that a process of the source drives are left.
//
// Pending deliveries move, too: the target sends them, with their attempts counted on, and in the source they are history.DeliveryMoved. A delivery
// that a process of the source is sending stays there; see CopyResult.PendingDeliveries.
//
// Not copied are the turns of waiting runs: workers of the target find moved runs as they find runs whose process has ended.
//
// A run that has moved to one target is left by a copy to another one, and by a copy back: exactly one store continues it.
//
// The error is that of a store, or USAGE_ERROR if both are the same one. The result counts what was done before it.
func Copy(ctx context.Context, from, to history.Store, o CopyOptions) (*CopyResult, error) {
	res, err := transfer.Copy(ctx, from, to, transfer.CopyOptions{Target: o.Target, CheckSteps: o.CheckSteps, Progress: o.Progress})
	if res == nil {
		return nil, err
	}
	out := &CopyResult{
		Copied: CopyCounts(res.Copied), Existed: CopyCounts(res.Existed), Moved: res.Moved, KeptLimits: res.KeptLimits,
		PendingDeliveries: res.PendingDeliveries, Source: res.Source, Target: res.Target,
	}
	for _, l := range res.Left {
		out.Left = append(out.Left, CopyLeft(l))
	}
	return out, err
}
