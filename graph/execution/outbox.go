package execution

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/recorded"
	"github.com/workflows-engine/workflows-engine/graph/runview"
	"github.com/workflows-engine/workflows-engine/history"
)

// deliveries returns what targets are notified of by records after which the projection is exec.
func (x *Run) deliveries(ctx context.Context, exec *history.Execution, records []history.Record) []history.Delivery {
	return x.env.Outbox.Deliveries(x.exec.Phase, exec, records, func() *runview.Run { return x.prospectiveView(ctx, exec, records) })
}

// prospectiveView is where the run stands once records are appended, after which the projection is exec. What subworkflows wait for
// is not in it, because only their own locks give it away.
func (x *Run) prospectiveView(ctx context.Context, exec *history.Execution, records []history.Record) *runview.Run {
	s := runview.Source{
		Execution: exec, Machine: x.m, Program: x.prog, MaxVisits: x.env.MaxVisits, Limits: x.env.Limits, Tree: x.env.Tree.Usage(ctx, exec), Now: x.env.Now(),
	}
	if x.m.Status().Terminal() {
		end := runview.EndingOf(x.m, exec.DefinitionHash)
		s.Ending = &end
	}
	v := runview.Of(s)
	if err := recorded.Journals(ctx, x.env.Store, v.Pending); err != nil {
		x.env.Log.Warn("question not read for a webhook", LogRun, x.id, LogError, err)
	}
	for i := range v.Pending {
		p := &v.Pending[i]
		if at := p.QuestionSeq - x.exec.Seq - 1; at >= 0 && at < int64(len(records)) {
			if q := machine.QuestionOf(&records[at]); q != nil && len(q.Body) > 0 {
				p.Show = q.Body // it is about to be recorded
			}
		}
	}
	return v
}
