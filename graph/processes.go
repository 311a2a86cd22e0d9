package graph

import (
	"context"

	"github.com/workflows-engine/workflows-engine/history"
)

// Processes returns the processes with a live lease on the store, this one included, in the order of their names. Each describes itself within
// seconds of its first lease, and its load every two seconds. It returns none if the store does not list processes (history.Roster).
func (r *Runner) Processes(ctx context.Context) ([]history.Process, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.p.Leave()
	return r.p.Processes(ctx)
}

// Lanes returns the runs that wait in the store for a process with room, by lane, in the order of the lanes' names. It returns none if the store
// has no queue (history.Queue).
func (r *Runner) Lanes(ctx context.Context) ([]history.LaneUse, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.p.Leave()
	return r.p.Lanes(ctx)
}
