package expr

import (
	"time"

	"github.com/itchyny/timefmt-go"
)

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
