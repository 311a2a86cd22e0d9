package run

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Admit opens a run for a call that may repeat its definition and input, and verifies both against what was recorded. Mismatches
// are problems of the given code. The machine may be older than the history: Apply decides again. A run that has ended is
// admitted too, without a machine: its refusal, or its recorded outcome, is the caller's business.
//
// replays says that the call may end a run of another engine whose recorded commands the definition does not repeat, as a
// repeated start does by the protocol (spec: execution, 10.3). Any other call is refused then.
func (x *Run) Admit(ctx context.Context, c admit.Caller, code problem.Code, replays bool) error {
	if x.m == nil {
		exec, err := x.env.Store.Execution(ctx, x.id)
		if err != nil {
			return err
		}
		x.see(exec)
	}
	if x.exec.Phase == history.PhaseCancelled {
		return nil // said before anything else (spec: execution, 1.3, 7.2, 7.3 and 8.6)
	}
	if err := admit.SameDefinition(&x.exec, c.Definition, code); err != nil {
		return err
	}
	if c.InputSet {
		if err := x.verifyInput(ctx, c.Input, code); err != nil {
			return err
		}
	}
	if x.m != nil {
		return nil
	}
	x.foreignMode = c.Mode
	unbound := x.exec.DefinitionHash == ""
	if err := x.load(ctx, x.exec, c.Definition); err != nil || !unbound {
		return err
	}
	return x.verifyFit(code, replays)
}

// verifyFit refuses a definition that a run of another engine, which has bound none, cannot have been walked with: one
// of another name, or one that does not repeat the recorded commands.
func (x *Run) verifyFit(code problem.Code, replays bool) error {
	if x.m == nil {
		return nil
	}
	name := x.exec.DefinitionName
	_, failed, _ := x.m.Failure()
	if (name == "" || name == x.prog.Name) && (replays || failed != string(problem.Nondeterminism)) {
		return nil
	}
	e := problem.New(code, "the definition given does not fit what run %q has recorded", x.id).WithPlace(problem.Place{ExecutionID: x.id})
	x.forget()
	x.unstored, x.exec.DefinitionHash = nil, ""
	return e.WithHint("Send the definition that the run was started with, of the name %q.", name)
}

// verifyInput compares an input with that of the run, by value: the order of members does not matter.
func (x *Run) verifyInput(ctx context.Context, input map[string]any, code problem.Code) error {
	plain, err := admit.Object("input", input, x.env.MaxDocumentBytes, code)
	if err != nil {
		return err
	}
	x.foreignInput = plain
	same := jsonvalue.Hash(plain) == x.exec.InputHash
	if x.exec.InputHash == "" {
		records, err := x.env.Store.Read(ctx, x.id, 1, admit.FirstRecords)
		if err != nil {
			return err
		}
		same = admit.MatchesFirstState(plain, records)
	}
	if same {
		return nil
	}
	return admit.OtherInput(x.id, code)
}
