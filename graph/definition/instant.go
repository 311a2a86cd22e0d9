package definition

import (
	"strconv"
	"strings"
	"time"
)

const instantHint = `write RFC 3339 with an offset, for example "2030-01-31T09:00:00Z", or a date, "2030-01-31"`

// parseInstant reads the text of an until (spec: definition, 10.2). standard is set for RFC 3339 and plain dates (UTC
// midnight), which every engine reads alike. Unambiguous other forms are accepted too: RFC 1123, ISO 8601
// dates without day or seconds, a time without offset (UTC), the 24th hour, and days past a month's end up to 31.
func parseInstant(s string) (at time.Time, standard, ok bool) {
	if at, err := time.Parse(time.RFC3339, s); err == nil && strings.ContainsRune(s, 'T') {
		return at, true, true
	}
	if at, err := time.Parse(time.DateOnly, s); err == nil {
		return at, true, true
	}
	if at, ok := parseISO(s); ok {
		return at, false, true
	}
	for _, layout := range []string{time.RFC1123, time.RFC1123Z, "Mon, 2 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 MST"} {
		at, err := time.Parse(layout, s)
		if name, offset := at.Zone(); err == nil && (name == "UTC" || name == "GMT" || offset != 0 || layout == time.RFC1123Z) {
			return at.UTC(), false, true
		}
	}
	return time.Time{}, false, false
}

// parseISO reads the date format of ECMAScript: YYYY, YYYY-MM or YYYY-MM-DD, then optionally THH:mm, :ss, .fraction and
// Z or an offset.
func parseISO(s string) (time.Time, bool) {
	date, clock, hasClock := strings.Cut(strings.ToUpper(s), "T")
	parts := strings.Split(date, "-")
	if len(parts) > 3 {
		return time.Time{}, false
	}
	fields := [3]int{0, 1, 1}
	for i, p := range parts {
		n, ok := digits(p, [3]int{4, 2, 2}[i])
		if !ok {
			return time.Time{}, false
		}
		fields[i] = n
	}
	if fields[1] < 1 || fields[1] > 12 || fields[2] < 1 || fields[2] > 31 {
		return time.Time{}, false
	}
	day := time.Date(fields[0], time.Month(fields[1]), fields[2], 0, 0, 0, 0, time.UTC)
	if !hasClock {
		return day, true
	}
	offset, ok := cutOffset(&clock)
	if !ok {
		return time.Time{}, false
	}
	sinceMidnight, ok := parseClock(clock)
	return day.Add(sinceMidnight - offset), ok
}

// cutOffset takes Z or ±HH:MM off the end of a time; without one the time is UTC.
func cutOffset(clock *string) (time.Duration, bool) {
	if rest, found := strings.CutSuffix(*clock, "Z"); found {
		*clock = rest
		return 0, true
	}
	i := strings.LastIndexAny(*clock, "+-")
	if i < 0 {
		return 0, true
	}
	sign := time.Duration(1)
	if (*clock)[i] == '-' {
		sign = -1
	}
	h, m, found := strings.Cut((*clock)[i+1:], ":")
	hours, ok1 := digits(h, 2)
	minutes, ok2 := digits(m, 2)
	*clock = (*clock)[:i]
	ok := found && ok1 && ok2 && hours < 24 && minutes < 60
	return sign * (time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute), ok
}

// parseClock reads HH:mm, HH:mm:ss or HH:mm:ss.fraction, up to 24:00:00.
func parseClock(clock string) (time.Duration, bool) {
	clock, fraction, hasFraction := strings.Cut(clock, ".")
	parts := strings.Split(clock, ":")
	if len(parts) < 2 || len(parts) > 3 || hasFraction && len(parts) != 3 {
		return 0, false
	}
	var total time.Duration
	for i, p := range parts {
		n, ok := digits(p, 2)
		if !ok || i > 0 && n > 59 {
			return 0, false
		}
		total += time.Duration(n) * [3]time.Duration{time.Hour, time.Minute, time.Second}[i]
	}
	if hasFraction {
		f, err := strconv.ParseFloat("0."+fraction, 64)
		if err != nil || strings.Trim(fraction, "0123456789") != "" || fraction == "" {
			return 0, false
		}
		total += time.Duration(f * float64(time.Second))
	}
	return total, total <= 24*time.Hour
}

// digits reads exactly n decimal digits.
func digits(s string, n int) (int, bool) {
	if len(s) != n || n == 0 {
		return 0, false
	}
	total := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		total = total*10 + int(c-'0')
	}
	return total, true
}

func instantText(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
