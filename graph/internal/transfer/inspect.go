package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Inspect runs the checks of a run that need the machine, and changes nothing. It checks that the history can be replayed with the
// definition, and that the outputs, states and result follow from the definition and the recorded outcomes. For an open run it also
// checks that the stored position is usable, that the stored timers match the history, and that completed subworkflows are stored.
// Runs begun and records written by another engine are not checked. With a history.Verifier it checks a whole database, like the
// command verify. check, unless nil, checks the steps of attempts. It fails with EXECUTION_NOT_FOUND or an error of the store.
func Inspect(ctx context.Context, store history.Store, executionID string, check CheckSteps) ([]history.Finding, error) {
	for try := 0; ; try++ {
		before, err := store.Execution(ctx, executionID)
		if err != nil || before.Mode == "" {
			return nil, err
		}
		i := inspection{Store: store, exec: &before}
		if before.Phase.Terminal() {
			err = i.lookBack(ctx)
		} else {
			err = i.look(ctx)
		}
		if err == nil && check != nil {
			err = i.steps(ctx, check)
		}
		if err != nil {
			return nil, err
		}
		after, err := store.Execution(ctx, executionID)
		if err != nil || after.Seq == before.Seq || try == maxInspections {
			return i.findings, err
		}
	}
}

// maxInspections limits how often a run is inspected again because it was written to meanwhile.
const maxInspections = 5

type inspection struct {
	history.Store
	exec     *history.Execution
	findings []history.Finding
}

func (i *inspection) note(seq int64, code problem.Code, hint, format string, args ...any) {
	i.findings = append(i.findings, history.Finding{
		ExecutionID: i.exec.ID, Seq: seq, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

func (i *inspection) look(ctx context.Context) error {
	id := i.exec.ID
	stored, err := i.Definition(ctx, i.exec.DefinitionHash)
	if errors.Is(err, problem.DefinitionNotFound) {
		i.note(0, problem.DefinitionNotFound, "Continue the run with its definition, which is then stored: Runner.Drive.",
			"definition %s is not stored, so the run cannot continue", i.exec.DefinitionHash)
		return nil
	}
	if err != nil {
		return err
	}
	prog, err := library.CompileStored(stored)
	if err != nil {
		i.note(0, problem.DefinitionHashMismatch, "Restore the database from a backup. Until then the run cannot continue.", "%v", err)
		return nil
	}
	if prog == nil {
		i.note(0, problem.DefinitionHashMismatch, "Restore the database from a backup.", "the stored definition is not valid")
		return nil
	}
	records, err := i.Read(ctx, id, 1, 0)
	if err != nil {
		return err
	}
	if err := i.endedChildren(ctx, records); err != nil {
		return err
	}
	now := i.exec.UpdatedAt
	m, b, differences, err := Replay(prog, id, records, nil, 0, now)
	if err != nil {
		i.note(0, problem.Nondeterminism, "The run fails at its next step. Fork it at a record before the difference, or cancel it.",
			"the history does not follow the definition: %v", err)
		return nil
	}
	i.compared(differences, "Records are never repaired. Restore the database from a backup, or fork the run at a record before this one.")
	restored, err := i.position(ctx, prog, now)
	if err != nil || len(b.Records) > 0 {
		return err
	}
	return i.timers(ctx, m, restored)
}

// lookBack compares the records of a completed run, except for its end: it may have failed at a limit, or been cancelled.
func (i *inspection) lookBack(ctx context.Context) error {
	stored, err := i.Definition(ctx, i.exec.DefinitionHash)
	if errors.Is(err, problem.DefinitionNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	prog, err := library.CompileStored(stored)
	if err != nil || prog == nil {
		return nil // the store checks definitions, and the run no longer needs this one
	}
	records, err := i.Read(ctx, i.exec.ID, 1, 0)
	if err != nil {
		return err
	}
	differences, err := ProveEnded(prog, i.exec.ID, records)
	if err != nil {
		i.note(0, problem.Nondeterminism, hintAltered, "the history does not follow the definition: %v", err)
		return nil
	}
	i.compared(differences, hintAltered)
	return nil
}

const hintAltered = "Records are never repaired, and the run has ended. Restore the database from a backup if you need its records."

// compared reports the first difference only; others may follow from it.
func (i *inspection) compared(differences []machine.Difference, hint string) {
	if len(differences) > 0 {
		i.note(differences[0].Seq, problem.Nondeterminism, hint, "%s", differences[0].String())
	}
}

// timers compares the open timers with the stored timers. The poll times of remote tasks and the deadline of a repeated attempt are
// not in the history; the deadline is in the position. restored is the machine of the stored position, or nil.
func (i *inspection) timers(ctx context.Context, m, restored *machine.Machine) error {
	all, err := i.DueTimers(ctx, time.UnixMilli(1<<50), 0)
	if err != nil {
		return err
	}
	stored := map[string]time.Time{}
	for _, t := range all {
		if t.ExecutionID == i.exec.ID {
			stored[t.Key] = t.Due
		}
	}
	const hint = "The next input of the run, a signal for instance, stores the timers again. A missing timer never fires."
	moved := map[string]time.Time{}
	if restored != nil {
		for _, t := range restored.Timers() {
			moved[t.Key] = time.UnixMilli(history.CeilMillis(t.Due))
		}
	}
	for _, t := range m.Timers() {
		due, ok := stored[t.Key]
		switch want := time.UnixMilli(history.CeilMillis(t.Due)); {
		case !ok:
			i.note(0, problem.TimersDiffer, hint, "timer %s, due %s, is not stored", t.Key, history.FormatTimestamp(want))
		case !due.Equal(want) && !due.Equal(moved[t.Key]) && m.Poll(t.Key) == nil:
			i.note(0, problem.TimersDiffer, hint, "timer %s is stored with due time %s, but is due %s by the history", t.Key, history.FormatTimestamp(due), history.FormatTimestamp(want))
		}
		delete(stored, t.Key)
	}
	for key := range stored {
		i.note(0, problem.TimersDiffer, hint, "timer %s is stored, but not open", key)
	}
	return nil
}

// endedChildren checks that completed subworkflows are stored: they are deleted with the run, not before. Copied records of a fork
// name subworkflows of another run. A failed subworkflow may never have started, and an open one may not be stored yet.
func (i *inspection) endedChildren(ctx context.Context, records []history.Record) error {
	for j := range records {
		p := &records[j].Payload
		if records[j].Name != history.SubworkflowCompleted || p.Failed || p.Replayed || records[j].Seq <= i.exec.ForkedFrom.Seq ||
			!history.Descends(p.ChildExecutionID, i.exec.ID) {
			continue
		}
		child, err := i.Execution(ctx, p.ChildExecutionID)
		if err == nil {
			err = i.endedChild(ctx, &records[j], &child)
		}
		switch {
		case history.IsBeingDeleted(err): // reported by another finding
		case errors.Is(err, problem.ExecutionNotFound):
			i.note(records[j].Seq, problem.SubworkflowMissing, "The run continues without it. Restore the database from a backup if you need its history.",
				"subworkflow %q ended here, but is not stored", p.ChildExecutionID)
		case err != nil && !isUnreadable(err):
			return err
		}
	}
	return nil
}

// endedChild compares a subworkflow's end with the run's record of it.
func (i *inspection) endedChild(ctx context.Context, rec *history.Record, child *history.Execution) error {
	last, err := i.Read(ctx, child.ID, child.Seq, 1)
	if err != nil || len(last) == 0 {
		return err
	}
	if why := ChildDiffers(rec, child, &last[0]); why != "" {
		i.note(rec.Seq, problem.Nondeterminism, hintAltered, "%s", why)
	}
	return nil
}

// ChildDiffers describes how a run's record about the end of its subworkflow differs from that end; "" if it does not. last is the
// subworkflow's last record. Subworkflows that another engine began or ended are not compared.
func ChildDiffers(rec *history.Record, child *history.Execution, last *history.Record) string {
	p := &rec.Payload
	switch {
	case rec.Name != history.SubworkflowCompleted || p.Failed || p.Replayed || rec.Foreign || last.Foreign || child.Mode == "":
		return ""
	case child.Phase != history.PhaseCompleted:
		return problem.Format("subworkflow %q has completed, but is stored as %s", child.ID, child.Phase)
	case p.ChildResult.Set && last.Name == history.ExecutionCompleted && !jsonvalue.Equal(p.ChildResult.Value, last.Payload.Result.Value):
		return problem.Format("subworkflow %q has a different stored result", child.ID)
	}
	return ""
}

// isUnreadable reports whether a run is stored but cannot be read; other findings cover this.
func isUnreadable(err error) bool {
	return errors.Is(err, problem.HistoryCorrupt) || errors.Is(err, problem.HistoryNewer)
}

// position tries the stored position, and returns the machine that continues from it, or nil without a position.
func (i *inspection) position(ctx context.Context, prog *definition.Program, now time.Time) (*machine.Machine, error) {
	seq, data, err := i.Position(ctx, i.exec.ID)
	if err != nil || seq == 0 || len(data) == 0 {
		return nil, err
	}
	var state map[string]any
	if at := machine.PositionStateSeq(data); at > 0 {
		records, err := i.Read(ctx, i.exec.ID, at, 1)
		if err != nil {
			return nil, err
		}
		if len(records) == 1 {
			state = records[0].Payload.State
		}
	}
	tail, err := i.Read(ctx, i.exec.ID, seq+1, 0)
	if err != nil {
		return nil, err
	}
	m, err := machine.Restore(prog, data, state)
	if err == nil {
		err = m.Catchup(tail, now)
	}
	if err != nil {
		i.note(seq, problem.PositionUnusable, "Nothing to do: the run continues from its history, and its next step stores a new position.",
			"the stored position is unusable: %v", err)
		return nil, nil
	}
	return m, nil
}

// Verify checks a run, or the whole store if executionID is "", with the store's checks and Inspect. Checks that the store does not
// support are omitted, and steps are checked only with a check. A run with unreadable records is reported and skipped; any other error
// ends the check.
func Verify(ctx context.Context, store history.Store, executionID string, repair bool, check CheckSteps, report func(history.Finding)) (counts history.Verified, err error) {
	reported, tell := false, report
	report = func(f history.Finding) { reported = true; tell(f) }
	if verifier, ok := history.As[history.Verifier](store); ok {
		if counts, err = verifier.Verify(ctx, executionID, repair, report); err != nil {
			return counts, err
		}
	}
	inspect := func(id string) error {
		findings, err := Inspect(ctx, store, id, check)
		for _, f := range findings {
			report(f)
		}
		if errors.Is(err, problem.HistoryCorrupt) || errors.Is(err, problem.HistoryNewer) || errors.Is(err, problem.ExecutionNotFound) && (reported || executionID == "") {
			return nil // it has been reported, or deleted meanwhile
		}
		return err
	}
	if executionID != "" {
		return counts, inspect(executionID)
	}
	return counts, history.Each(ctx, store, "", func(e *history.Execution) error { return inspect(e.ID) })
}
