package run

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Begin writes the first records of a new run, and stores its definition with children, those of its subworkflows. startedHere says that it fails here if it comes to what this process lacks.
// ErrConflict means that a run with this id exists.
func (x *Run) Begin(ctx context.Context, prog *definition.Program, children []history.StoredDefinition, config machine.Config, input map[string]any, startedHere bool, w *Work) error {
	if x.exec.Seq > 0 {
		// Known here already; should it be gone from the store by now, it is known no more.
		switch _, err := x.behind(ctx); {
		case err == nil:
			return ErrConflict
		case !errors.Is(err, problem.ExecutionNotFound):
			return err
		}
		x.forget()
	}
	x.setExecution(history.Execution{ID: x.id, Parent: config.Parent})
	x.prior = history.Prior{}
	x.prog, x.unstored, x.unstoredChildren = prog, admit.StoredForm(prog), children
	config.Limits = x.limits()
	begin := func() error { x.m = machine.Start(prog, config, input, x.env.Now()); return nil }
	if _ = x.decide(false, begin); x.m.Stopped() && x.env.Context.Err() == nil {
		_ = x.decide(true, begin)
	}
	x.lastStatus, x.sincePosition, x.startedHere = "", 0, startedHere
	x.become(Following)
	b := x.m.Ready()
	Sign(ctx, b.Records)
	err := admit.RoomToStart(&x.exec, x.env.Limits, "input", input, b.Records)
	if x.m.Stopped() {
		err = context.Cause(x.env.Context)
	}
	if err == nil {
		err = x.commit(ctx, b, intent{mayOwn: true}, w)
	} else {
		x.forget()
	}
	if err != nil {
		x.setExecution(history.Execution{})
		x.unstored, x.unstoredChildren, x.startedHere = nil, nil, false
	}
	return err
}
