package activities

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is the longest wait that a server may ask for: a wrong clock must not delay a run for years.
const maxRetryAfter = time.Hour

// RetryAfter reads how long a server asks to wait, for Failure.RetryAfter: Retry-After-Ms, or Retry-After in
// seconds or as a date. It is an hour at most, and 0 where nothing can be read.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	within := func(n float64, unit time.Duration) time.Duration {
		if !(n > 0) {
			return 0
		}
		return time.Duration(min(n*float64(unit), float64(maxRetryAfter)))
	}
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return within(ms, time.Millisecond)
	}
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return within(seconds, time.Second)
	}
	if date, err := http.ParseTime(text); err == nil {
		return within(date.Sub(now).Seconds(), time.Second)
	}
	return 0
}
