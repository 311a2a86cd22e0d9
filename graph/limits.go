package graph

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Warning says that a run nears one of its limits, and what to do about it.
type Warning struct {
	// Code is that with which the run fails when it reaches the limit.
	Code problem.Code
	// Used of Limit; for bytes, bytes.
	Used, Limit int64
	Message     string
	Hint        string
}

// warnFrom is the share of a limit, in percent, from which on status warns.
const warnFrom = 80

// limits are those that the machine watches besides the budget of node visits.
func (r *Runner) limits() machine.Limits {
	return machine.Limits{MaxRecords: r.opts.MaxRecords, MaxBytes: r.opts.MaxBytes, MaxPending: r.opts.MaxPending}
}

// The advice for each limit.
const (
	hintVisits  = "A loop may never end: check its switch. If the run needs more, raise the limit (MaxVisits, --max-visits) before it is reached."
	hintRecords = "Cancel the run, or let it end soon; split long work into subworkflows. If it needs more, raise the limit (MaxRecords, --max-records) before it is reached."
	hintBytes   = "Keep large values outside and pass references. If the run needs more, raise the limit (MaxBytes, --max-bytes) before it is reached."
	hintPending = "Fork fewer branches at the same time. If the run needs more, raise the limit (MaxPending, --max-pending) before it is reached."
)

// warnings lists the limits that the run nears. The run must be loaded.
func (x *run) warnings() []Warning {
	o := &x.r.opts
	var out []Warning
	for _, l := range []struct {
		code        problem.Code
		used, limit int64
		what, hint  string
	}{
		{problem.StepBudgetExceeded, int64(x.m.Visits()), int64(x.m.Config().MaxVisits), "node visits", hintVisits},
		{problem.RecordLimitExceeded, x.exec.Seq, o.MaxRecords, "records", hintRecords},
		{problem.ByteLimitExceeded, x.exec.Bytes, o.MaxBytes, "bytes of history", hintBytes},
		{problem.PendingLimitExceeded, int64(x.m.Awaited()), int64(o.MaxPending), "activities awaited at the same time", hintPending},
	} {
		if share := percent(l.used, l.limit); share >= warnFrom {
			out = append(out, Warning{
				Code: l.code, Used: l.used, Limit: l.limit, Hint: l.hint,
				Message: fmt.Sprintf("the run has used %d %% of its limit of %d %s: %d", share, l.limit, l.what, l.used),
			})
		}
	}
	return out
}

func percent(used, limit int64) int64 {
	if limit <= 0 {
		return 0
	}
	return int64(float64(used) / float64(limit) * 100)
}

// sent says what a caller has sent, "" for an input that comes from within.
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

// refuseFull refuses what a caller has sent, and the machine has just taken, if the run has no room for it: if to record
// the call would mean the run's end, now or with what follows, or if what follows at once would not fit. Nothing has been
// committed, so the run stays as it was; only the machine is ahead of it. What the machine refuses by itself does not come
// here: it may be a call that is repeated.
func (x *run) refuseFull(in machine.Input, b machine.Batch) error {
	what, payload := sent(in)
	if what == "" {
		return nil
	}
	switch {
	case x.exec.Seq >= x.r.opts.MaxRecords:
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

// passesBytes reports whether records would take the run past its limit of bytes. They are weighed only where the limit
// is near: those that are written whole as they are; of larger ones, which are written short, what is new is what came
// with the payload, which counts once.
func (x *run) passesBytes(records []history.Record, payload any) bool {
	most := x.r.opts.MaxBytes
	left := most - x.exec.Bytes
	if left <= 0 {
		return true
	}
	if left > max(most/100*(100-warnFrom), nearBytes) {
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

const (
	// nearBytes is the room in a run below which its limit is always near, however small the limit is.
	nearBytes = 16 << 20
	// wholeBytes is the size up to which the stores write a record whole, unless they were told otherwise.
	wholeBytes = 64 << 10
)

func (x *run) full(code problem.Code, what string) error {
	limit, used, option := fmt.Sprintf("%d records", x.r.opts.MaxRecords), x.exec.Seq, "MaxRecords, --max-records"
	way := "Cancel the run, or raise the limit (%s), restart this process and send it again."
	if code == problem.ByteLimitExceeded {
		limit, used, option = fmt.Sprintf("%d bytes of history", x.r.opts.MaxBytes), x.exec.Bytes, "MaxBytes, --max-bytes"
		way = "Send something shorter, such as a reference; or raise the limit (%s), restart this process and send it again; or cancel the run."
	}
	return problem.New(code, "the %s would take the run past its limit of %s, of which it has used %d", what, limit, used).
		WithPlace(problem.Place{ExecutionID: x.id}).
		WithHint("Nothing was recorded: the run stands and waits as before. "+way, option)
}

// refuseLarge refuses the first records of a run that would take it past its limit of bytes at once: it could not take
// anything afterwards.
func (x *run) refuseLarge(input map[string]any, b machine.Batch) error {
	if !x.passesBytes(b.Records, input) {
		return nil
	}
	return problem.New(problem.ByteLimitExceeded, "the input would take the run past its limit of %d bytes of history at once", x.r.opts.MaxBytes).
		WithPlace(problem.Place{ExecutionID: x.id}).
		WithHint("Nothing was started. Send less, such as a reference to what is large; or raise the limit (MaxBytes, --max-bytes), restart this process and start again.")
}
