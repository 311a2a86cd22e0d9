package stepcommand

import (
	"testing"
	"time"
)

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{"output":{"a":1},"usage":{"b":2}}`, `{"error":"x","code":"Y","retryable":true,"retry_after_ms":5}`, `{}`, ``, `[`, `{"output":`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a, fault := parse(text)
		if fault != "" {
			return
		}
		if (a.output == nil) == (a.failure == nil) {
			t.Errorf("%q gives %v and %v", text, a.output, a.failure)
		}
		if a.failure != nil && (a.failure.Code == "" || a.failure.RetryAfter < 0 || a.failure.RetryAfter > time.Hour) {
			t.Errorf("%q gives %+v", text, a.failure)
		}
	})
}
