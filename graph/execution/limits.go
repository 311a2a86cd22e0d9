package execution

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/runview"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// sent returns what a caller has sent, "" for an input that comes from within.
func sent(in machine.Input) (what string, payload any) {
	switch in := in.(type) {
	case machine.Outcome:
		if in.Host {
			return "result", in.Output
		}
	case machine.Signal:
		return "signal", in.Payload
	case machine.Resume:
		return "answer", in.Payload
	}
	return "", nil
}

// refuseFull refuses what a caller has sent, and the machine has just taken, if the run has no room for it: if recording the call
// would mean the run's end, now or with what follows, or if what follows at once would not fit. Nothing has been committed, so
// the run stays as it was; only the machine is ahead of it. What the machine refuses by itself does not come here: it may be a
// call that is repeated.
func (x *Run) refuseFull(in machine.Input, b machine.Batch) error {
	what, payload := sent(in)
	if what == "" {
		return nil
	}
	switch {
	case x.exec.Seq >= x.env.Limits.MaxRecords:
		return x.full(problem.RecordLimitExceeded, what)
	case x.passesBytes(b.Records, payload):
		return x.full(problem.ByteLimitExceeded, what)
	case x.m.Status() != machine.Failed:
		return nil
	}
	_, code, _ := x.m.Failure()
	switch c := problem.Code(code); c {
	case problem.RecordLimitExceeded, problem.ByteLimitExceeded:
		return x.full(c, what)
	}
	return nil
}

const (
	// nearBytes is the room in a run below which its limit is always near, however small the limit is.
	nearBytes = 16 << 20
	// wholeBytes is the size up to which the stores write a record whole, unless they are configured otherwise.
	wholeBytes = 64 << 10
)

// passesBytes reports whether records would take the run past its limit of bytes. They are weighed only where the limit
// is near: those that are written whole as they are; of larger ones, which are written short, what is new is what came
// with the payload, which counts once.
func (x *Run) passesBytes(records []history.Record, payload any) bool {
	most := x.env.Limits.MaxBytes
	left := most - x.exec.Bytes
	if left <= 0 {
		return true
	}
	if left > max(most/100*(100-runview.WarnPercent), nearBytes) {
		return false // nothing that a caller sends is as large
	}
	short := false
	var text []byte
	for i := range records {
		r := &records[i]
		if r.Weigh(wholeBytes) >= wholeBytes {
			short = true
			continue
		}
		if text = r.AppendPayload(text[:0], x.id); len(text) > wholeBytes {
			short = true
			continue
		}
		left -= int64(len(text))
	}
	if short {
		left -= int64(jsonvalue.Weigh(payload, nearBytes))
	}
	return left < 0
}

func (x *Run) full(code problem.Code, what string) error {
	limit, used, option := fmt.Sprintf("%d records", x.env.Limits.MaxRecords), x.exec.Seq, "MaxRecords, --max-records"
	way := "Cancel the run, or raise the limit (%s), restart this process and send it again."
	if code == problem.ByteLimitExceeded {
		limit, used, option = fmt.Sprintf("%d bytes of history", x.env.Limits.MaxBytes), x.exec.Bytes, "MaxBytes, --max-bytes"
		way = "Send something shorter, such as a reference; or raise the limit (%s), restart this process and send it again; or cancel the run."
	}
	return problem.New(code, "the %s would take the run past its limit of %s, of which it has used %d", what, limit, used).
		WithPlace(problem.Place{ExecutionID: x.id}).
		WithHint("Nothing was recorded: the run stands and waits as before. "+way, option)
}

// refuseLarge refuses the first records of a run that would take it past its limit of bytes at once: it could not take
// anything afterwards.
func (x *Run) refuseLarge(input map[string]any, b machine.Batch) error {
	if !x.passesBytes(b.Records, input) {
		return nil
	}
	return problem.New(problem.ByteLimitExceeded, "the input would take the run past its limit of %d bytes of history at once", x.env.Limits.MaxBytes).
		WithPlace(problem.Place{ExecutionID: x.id}).
		WithHint("Nothing was started. Send less, such as a reference to what is large; or raise the limit (MaxBytes, --max-bytes), restart this process and start again.")
}
