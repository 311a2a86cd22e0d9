package transfer

import (
	"context"
	"slices"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// CheckSteps checks the steps recorded for an attempt by an executor; see graph.Options.CheckSteps.
type CheckSteps func(activities.RecordedAttempt) (at int, err error)

// stepPage is the number of records read at a time.
const stepPage = 256

// attempt collects the steps of one attempt.
type attempt struct {
	node          string
	visit, number int
	activities.RecordedAttempt
	seqs []int64 // records of the steps
}

// steps checks the recorded steps of each attempt of a run.
func (i *inspection) steps(ctx context.Context, check CheckSteps) error {
	var open []*attempt
	judge := func(a *attempt, end int64) {
		at, err := check(a.RecordedAttempt)
		if err == nil {
			return
		}
		seq := end
		if at < len(a.seqs) {
			seq = a.seqs[at]
		}
		message := err.Error()
		if e, ok := problem.As(err); ok {
			message = e.Message
		}
		i.note(seq, problem.AgentStepsDiffer, hintDiffer, "attempt %d at %q: %s", a.number, a.node, message)
	}
	last := int64(0)
	for next := int64(1); ; next = last + 1 {
		records, err := i.Read(ctx, i.exec.ID, next, stepPage)
		if err != nil {
			return err
		}
		for j := range records {
			r := &records[j]
			last = r.Seq
			at := slices.IndexFunc(open, func(a *attempt) bool { return a.has(&r.Payload) })
			switch s, _, ok := machine.StepOf(r); {
			case ok:
				if at < 0 {
					at = len(open)
					open = append(open, &attempt{node: r.Payload.NodeID, visit: max(r.Payload.Visit, 1), number: max(r.Payload.Attempt, 1)})
				}
				open[at].Steps = append(open[at].Steps, activities.Step{Key: s.Key, Kind: s.Kind, Body: s.Body, Totals: s.Totals, At: r.CreatedAt})
				open[at].seqs = append(open[at].seqs, r.Seq)
			case at < 0:
			case r.Name == history.ActivityCompleted:
				open[at].Completed, open[at].Output = true, r.Payload.Result.Value
				fallthrough
			case r.Name == history.ActivityFailed:
				judge(open[at], r.Seq)
				open = slices.Delete(open, at, at+1)
			}
		}
		if len(records) < stepPage {
			break
		}
	}
	for _, a := range open {
		judge(a, last)
	}
	return nil
}

// has reports whether a record belongs to the attempt.
func (a *attempt) has(p *history.Payload) bool {
	return a.node == p.NodeID && a.visit == max(p.Visit, 1) && a.number == max(p.Attempt, 1)
}

const hintDiffer = "Records are never repaired. Restore the database from a backup, or fork the run at a record before this one."

// RecordedSteps checks the steps in a run that is not stored. It fails with AGENT_STEPS_DIFFER for the first step that does not
// follow.
func RecordedSteps(ctx context.Context, executionID string, records []history.Record, check CheckSteps) error {
	i := inspection{Store: unstored{records: records}, exec: &history.Execution{ID: executionID}}
	if err := i.steps(ctx, check); err != nil || len(i.findings) == 0 {
		return err
	}
	first := i.findings[0]
	return problem.New(problem.AgentStepsDiffer, "record %d: %s", first.Seq, first.Message).WithPlace(problem.Place{ExecutionID: executionID}).
		WithHint("Nothing was written. Export the run again from where it is as it was; a newer release may have written it.")
}

// unstored is a Store that reads the records of one run.
type unstored struct {
	history.Store
	records []history.Record
}

func (u unstored) Read(_ context.Context, _ string, from int64, limit int) ([]history.Record, error) {
	all := u.records[min(from-1, int64(len(u.records))):]
	return all[:min(limit, len(all))], nil
}
