package cli

import (
	"testing"
	"time"
)

func TestAges(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30d": 30 * day, "2w": 14 * day, "1w2d3h": 9*day + 3*time.Hour, "12h": 12 * time.Hour, "1d12h30m": 36*time.Hour + 30*time.Minute,
		"0": 0, "0d": 0, "0s": 0, "90s": 90 * time.Second,
	} {
		if got, err := parseAge(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "1.5d", "30", "-5h", "1d-5h", "1d2w", "99999999d", "month", "1d 2h", "dd", "w1",
		// more than a duration holds
		"20000w", "65535w", "15000w65535d", "15000w2000000h",
	} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("%q became %v", text, got)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1234: "1.23 kB", 45_678: "45.7 kB", 3_200_000: "3.2 MB", 12_345_000_000: "12.35 GB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
