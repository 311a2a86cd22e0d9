package history

import "time"

// timestampLayout is the protocol's form of a time: UTC, milliseconds, 24 characters (spec: execution, 2.1).
const timestampLayout = "2006-01-02T15:04:05.000Z"

// AppendTimestamp appends a time in the protocol's form, for instance 2026-11-21T01:03:46.919Z, truncated to milliseconds.
func AppendTimestamp(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(dst, timestampLayout)
	}
	hour, minute, second := t.Clock()
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(dst,
		digit(year/1000), digit(year/100), digit(year/10), digit(year), '-',
		digit(int(month)/10), digit(int(month)), '-', digit(day/10), digit(day), 'T',
		digit(hour/10), digit(hour), ':', digit(minute/10), digit(minute), ':', digit(second/10), digit(second), '.',
		digit(ms/100), digit(ms/10), digit(ms), 'Z')
}

func digit(n int) byte { return byte('0' + n%10) }

// FormatTimestamp returns a time in the protocol's form.
func FormatTimestamp(t time.Time) string {
	return string(AppendTimestamp(make([]byte, 0, len(timestampLayout)), t))
}

// ParseTimestamp parses an RFC 3339 time of any precision and zone, and returns it in UTC.
func ParseTimestamp(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t.UTC(), err
}

// CeilMillis returns a time in milliseconds since 1970, rounded up, so that a timer is never early.
func CeilMillis(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return ms
}
