package definition

import (
	"strconv"
	"strings"
	"time"
)

const instantHint = `write RFC 3339 with an offset, for example "2030-01-31T09:00:00Z", or a date, "2030-01-31"`

// parseInstant reads the text of an until (spec: definition, 10.2). standard is set for RFC 3339 and plain dates (UTC
// midnight), which every engine reads alike. Unambiguous other forms are accepted too: RFC 1123, ISO 8601
// dates without day or seconds, a time without offset (UTC), the 24th hour, and days past a month's end up to 31. An instant that an
// offset moves out of the years 0 to 9999 is rejected: no record can hold it.
func parseInstant(s string) (at time.Time, standard, ok bool) {
	at, standard, ok = readInstant(s)
	year := at.UTC().Year()
	return at, standard, ok && year >= 0 && year <= 9999
}

func readInstant(s string) (at time.Time, standard, ok bool) {
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

var isoForm = pattern(`^(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?:T(\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?(?:Z|([+-])(\d\d):(\d\d))?)?$`)

// parseISO reads the date format of ECMAScript: YYYY, YYYY-MM or YYYY-MM-DD, then optionally THH:mm, :ss, .fraction and
// Z or an offset. A time is 24:00:00 at the latest; without Z and offset it is UTC.
func parseISO(s string) (time.Time, bool) {
	m := isoForm().FindStringSubmatch(strings.ToUpper(s))
	if m == nil {
		return time.Time{}, false
	}
	field := func(i, absent int) int {
		if m[i] == "" {
			return absent
		}
		n, _ := strconv.Atoi(m[i]) // it is digits
		return n
	}
	of := func(hours, minutes int) time.Duration {
		return time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	}
	month, day, minute, second := field(2, 1), field(3, 1), field(5, 0), field(6, 0)
	fraction, _ := strconv.ParseFloat("0"+m[7], 64)
	clock := of(field(4, 0), minute) + time.Duration(second)*time.Second + time.Duration(fraction*float64(time.Second))
	offset := of(field(9, 0), field(10, 0))
	if month < 1 || month > 12 || day < 1 || day > 31 || minute > 59 || second > 59 || clock > 24*time.Hour ||
		field(9, 0) > 23 || field(10, 0) > 59 {
		return time.Time{}, false
	}
	if m[8] == "-" {
		offset = -offset
	}
	return time.Date(field(1, 0), time.Month(month), day, 0, 0, 0, 0, time.UTC).Add(clock - offset), true
}
