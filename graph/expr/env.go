package expr

import (
	"errors"
	"time"

	"github.com/itchyny/timefmt-go"
)

// Env is the input of an evaluation besides the state. The zero value is an evaluation without a time, that is
// neither counted nor abandoned.
type Env struct {
	// Now is the result of the function now, to the millisecond; now fails if this is zero. Use the recorded time of
	// the handled input, so that a replay has the same result.
	Now time.Time
	// Spent, if not nil, is increased by the cost of the evaluation in units: about UnitsPerMillisecond of them make
	// a millisecond. The same program over the same state always costs the same.
	Spent *int
	// Budget, if not nil, is shared with other evaluations; nil is a new one.
	Budget *Budget
	// Stop, if not nil, is asked every few hundred units. Once it returns true, the evaluation ends with ErrAbandoned.
	Stop func() bool
}

// UnitsPerMillisecond is about how many units of cost an evaluation takes in a millisecond.
const UnitsPerMillisecond = 20_000

// ErrAbandoned is the error of an evaluation that Env.Stop ended. It says nothing about the program, which cannot catch
// it: evaluate it again.
var ErrAbandoned = errors.New("the evaluation was abandoned")

func now(m *meter, _ any, _ []any) any {
	if m.env.Now.IsZero() {
		return faultf("now has no value here: no time was recorded for this input")
	}
	return float64(m.env.Now.UnixMilli()) / 1000
}

// parseTime is strptime with names of time zones read as on a machine that runs in UTC.
func parseTime(m *meter, in any, args []any) any {
	s, ok := in.(string)
	if !ok {
		return faultf("strptime cannot be applied to: %s", typeName(in))
	}
	format, ok := args[0].(string)
	if !ok {
		return faultf("strptime expects a format, found %s", typeName(args[0]))
	}
	if !m.charge(callCost+len(s)+len(format)) || !brokenDown(m, in, args) {
		return m.exceeded
	}
	t, err := timefmt.ParseInLocation(s, format, time.UTC)
	if err != nil {
		return faultf("strptime cannot be applied to a string that does not match the format")
	}
	t = t.UTC()
	seconds := float64(t.Second()) + float64(t.Nanosecond())/1e9
	return []any{
		t.Year(), int(t.Month()) - 1, t.Day(), t.Hour(), t.Minute(), seconds, int(t.Weekday()), t.YearDay() - 1,
	}
}
