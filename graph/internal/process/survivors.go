package process

import (
	"context"
	"errors"
	"log/slog"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/processid"
)

// survivors is a store in which the lease of a process of this machine ends with the process, even if that was killed: its runs continue
// at once. The lease of a process of another machine has to run out.
type survivors struct {
	history.Store
	log *slog.Logger
	// readOnly releases no lease. The owner of a run only looks as if its lease had been released.
	readOnly bool
}

// release ends the lease of a process that has ended.
func (s survivors) release(ctx context.Context, process string) error {
	if err := s.Store.Release(ctx, process); err != nil {
		return err
	}
	s.log.Info("lease of an ended process released", "process", process)
	return nil
}

// releaseAll ends the leases of all processes that have ended.
func (s survivors) releaseAll(ctx context.Context) error {
	roster, ok := history.As[history.Roster](s.Store)
	if !ok || s.readOnly {
		return nil
	}
	live, err := roster.Processes(ctx)
	if err != nil {
		return err
	}
	for _, p := range live {
		if processid.Gone(p.Name) {
			if err := s.release(ctx, p.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Owner returns the owner of a run; see history.Store.
func (s survivors) Owner(ctx context.Context, executionID string) (history.Owner, error) {
	owner, err := s.Store.Owner(ctx, executionID)
	if err != nil || !owner.Live() || !processid.Gone(owner.Process) {
		return owner, err
	}
	if s.readOnly {
		owner.Left = -1
		return owner, nil
	}
	if err := s.release(ctx, owner.Process); err != nil {
		return history.Owner{}, err
	}
	return s.Store.Owner(ctx, executionID)
}

// Append adds a batch; see history.Store.
func (s survivors) Append(ctx context.Context, b history.Batch) error {
	err := s.Store.Append(ctx, b)
	if !errors.Is(err, problem.LeaseHeld) {
		return err
	}
	if owner, unread := s.Owner(ctx, b.ExecutionID); unread != nil || owner.Live() {
		return err
	}
	return s.Store.Append(ctx, b)
}

// Overview answers the questions that a process repeats; see history.Store.
func (s survivors) Overview(ctx context.Context, process string) (history.Overview, error) {
	o, err := s.Store.Overview(ctx, process)
	if err != nil || s.readOnly {
		return o, err
	}
	ended := false
	for _, p := range o.Live {
		if processid.Gone(p) {
			if err := s.release(ctx, p); err != nil {
				return o, err
			}
			ended = true
		}
	}
	if ended {
		return s.Store.Overview(ctx, process)
	}
	return o, nil
}

// Unowned returns runs that need a driver and have no owner; see history.Store.
func (s survivors) Unowned(ctx context.Context, limit int) ([]string, error) {
	if err := s.releaseAll(ctx); err != nil {
		return nil, err
	}
	return s.Store.Unowned(ctx, limit)
}
