package toolcall

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
)

// waits lists the fields that servers use for the time to wait, and their units. No standard defines it; servers use
// spellings of the HTTP header.
var waits = map[string]time.Duration{
	"retry-after": time.Second, "retry_after": time.Second, "retryAfter": time.Second, "Retry-After": time.Second,
	"retry_after_seconds": time.Second, "retryAfterSeconds": time.Second,
	"retry_after_ms": time.Millisecond, "retryAfterMs": time.Millisecond, "retry-after-ms": time.Millisecond, "Retry-After-Ms": time.Millisecond,
}

// waitText finds a wait in a sentence: "retry after 30 seconds", "try again in 1.5s".
var waitText = regexp.MustCompile(`(?i)\b(?:retry|try again|wait)(?:[ -]?(?:after|in|for))?:? (?:about |at least )?(\d{1,7}(?:\.\d{1,6})?) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)\b`)

// laterText matches texts about a temporary problem.
var laterText = regexp.MustCompile(`(?i)\b(?:rate.?limit(?:ed)?|too many requests|try again (?:later|in)|retry (?:later|after|in)|temporarily|temporary|overloaded)\b`)

// saysLater reports whether a text announces that another attempt may succeed.
func saysLater(text string) bool { return laterText.MatchString(text) }

// later reads how long a server asks to wait: from the fields of the values, including their field error, else from the text. It is 0
// where it asks for nothing, and bounded as Retry-After of HTTP is.
func later(text string, values ...any) time.Duration {
	for _, v := range values {
		members, _ := v.(map[string]any)
		inner, _ := members["error"].(map[string]any)
		for _, m := range []map[string]any{members, inner} {
			for name, unit := range waits {
				if d := bounded(m[name], unit); d > 0 {
					return d
				}
			}
		}
	}
	found := waitText.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(found[1], 64) // the pattern is one of numbers
	switch unit := strings.ToLower(found[2]); {
	case strings.HasPrefix(unit, "ms"), strings.HasPrefix(unit, "milli"):
		return bounded(n, time.Millisecond)
	case strings.HasPrefix(unit, "m"):
		return bounded(n*60, time.Second)
	default:
		return bounded(n, time.Second)
	}
}

// bounded is a wait of a number of units, or of a text as in HTTP.
func bounded(value any, unit time.Duration) time.Duration {
	header := http.Header{}
	switch v := value.(type) {
	case float64:
		header.Set("Retry-After-Ms", strconv.FormatFloat(v*float64(unit/time.Millisecond), 'f', -1, 64))
	case string:
		if unit == time.Second {
			header.Set("Retry-After", v)
		} else {
			header.Set("Retry-After-Ms", v)
		}
	}
	return activities.RetryAfter(header, time.Now())
}
