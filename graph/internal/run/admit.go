package run

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Admit opens a run for a call that may repeat its definition and input, and compares both with the run's. A mismatch is an error of the
// given code. The machine may be older than the history: Apply decides again. A run that has ended is admitted too, without a machine;
// its rejection, or its recorded outcome, is up to the caller.
func (x *Run) Admit(ctx context.Context, c admit.Caller, code problem.Code) error {
	if x.m == nil {
		exec, err := x.env.Store.Execution(ctx, x.id)
		if err != nil {
			return err
		}
		x.see(exec)
	}
	if x.exec.Phase == history.PhaseCancelled {
		return nil // this answer comes first (spec: execution, 1.3, 7.2, 7.3 and 8.6)
	}
	if err := admit.SameDefinition(&x.exec, c.Definition, code); err != nil {
		return err
	}
	if c.InputSet {
		if err := x.verifyInput(c.Input, code); err != nil {
			return err
		}
	}
	if x.m != nil {
		return nil
	}
	return x.load(ctx, x.exec, c.Definition)
}

// verifyInput compares an input with the run's, by value: the order of fields does not matter.
func (x *Run) verifyInput(input map[string]any, code problem.Code) error {
	plain, err := admit.Object("input", input, x.env.MaxDocumentBytes, code)
	if err != nil {
		return err
	}
	if jsonvalue.Hash(plain) == x.exec.InputHash {
		return nil
	}
	return admit.OtherInput(x.id, code)
}
