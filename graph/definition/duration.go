package definition

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// maxDelay bounds every duration: longer ones are cut to it. It leaves room to add a duration to any date that a
// clock shows.
const maxDelay = 290 * 365 * 24 * time.Hour

const durationHint = `write digits and one unit of ms, s, m or h, for example "500ms", "30s" or "2h"`

// ParseDuration reads the protocol's durations: digits and an optional unit ms, s, m, h in any letter case; without a
// unit the number counts milliseconds (spec: definition, 10.1). Longer durations are cut to 290 years. The error is a
// *problem.Error with code DURATION_INVALID.
func ParseDuration(s string) (time.Duration, error) {
	ms, err := parseMilliseconds(s)
	if err != nil {
		return 0, err
	}
	return boundedMilliseconds(ms), nil
}

// parseMilliseconds is ParseDuration without the bound.
func parseMilliseconds(s string) (float64, error) {
	text := expr.TrimSpace(s)
	end := 0
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	unit, known := durationUnits[strings.ToLower(expr.TrimSpace(text[end:]))]
	if end == 0 || !known {
		return 0, problem.New(problem.DurationInvalid, "invalid duration %q", s).WithHint("%s", durationFix(text))
	}
	n, err := strconv.ParseFloat(text[:end], 64)
	if err != nil {
		n = math.Inf(1) // more digits than a double holds: a very long time
	}
	return n * unit, nil
}

// durationUnits are in milliseconds.
var durationUnits = map[string]float64{"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}

// durationFix suggests the protocol's form of a duration in another usual form.
func durationFix(text string) string {
	lower := strings.ToLower(text)
	if d, err := time.ParseDuration(strings.ReplaceAll(lower, " ", "")); err == nil && d > 0 {
		return fmt.Sprintf("write %q: one whole number and one unit", durationText(d))
	}
	if d, ok := isoDuration(lower); ok {
		return fmt.Sprintf("write %q instead of the ISO 8601 form", durationText(d))
	}
	digits := strings.IndexFunc(lower, func(r rune) bool { return r < '0' || r > '9' })
	if digits > 0 && digits < 7 {
		n, err := strconv.Atoi(lower[:digits])
		if unit, ok := wordUnits[strings.TrimSpace(lower[digits:])]; ok && err == nil {
			return fmt.Sprintf("write %q", durationText(time.Duration(n)*unit))
		}
	}
	return durationHint
}

// wordUnits are units that people write and the grammar does not have.
var wordUnits = map[string]time.Duration{
	"sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"w": 168 * time.Hour, "week": 168 * time.Hour, "weeks": 168 * time.Hour,
}

// isoDuration reads PnDTnHnMnS as far as an author is likely to write it.
func isoDuration(lower string) (time.Duration, bool) {
	rest, ok := strings.CutPrefix(lower, "p")
	if !ok {
		return 0, false
	}
	day, clock, _ := strings.Cut(rest, "t")
	if day == "" && clock == "" {
		return 0, false
	}
	total := 0.0
	if day != "" {
		n, err := strconv.ParseFloat(strings.TrimSuffix(day, "d"), 64)
		if err != nil || !strings.HasSuffix(day, "d") {
			return 0, false
		}
		total += n * 24 * 3600
	}
	d := time.Duration(0)
	if clock != "" {
		var err error
		if d, err = time.ParseDuration(clock); err != nil {
			return 0, false
		}
	}
	return d + boundedMilliseconds(total*1000), true
}

// durationText writes a duration in the protocol's grammar, with the largest unit that keeps it whole.
func durationText(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d >= u.unit && d%u.unit == 0 {
			return strconv.FormatInt(int64(d/u.unit), 10) + u.name
		}
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}

// boundedMilliseconds turns milliseconds into a duration between 0 and maxDelay, rounded down to nanoseconds.
func boundedMilliseconds(ms float64) time.Duration {
	switch {
	case math.IsNaN(ms) || ms <= 0:
		return 0
	case ms >= float64(maxDelay/time.Millisecond):
		return maxDelay
	}
	return time.Duration(ms * float64(time.Millisecond))
}
