package definition_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestParseDuration holds the protocol's table (spec: definition, 10.1); -1 stands for an error.
func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, ms := range map[string]float64{
		"500ms": 500, "30s": 30_000, "5m": 300_000, "24h": 86_400_000, "10": 10, " 10 s ": 10_000, "10S": 10_000,
		"5 MS": 5, "5\n": 5, "0": 0, "0s": 0, "007s": 7000, "\u00a05s": 5000,
		"": -1, "   ": -1, "1.5s": -1, "-1s": -1, "+1s": -1, "1e3ms": -1, "1d": -1, "1h30m": -1, "PT30S": -1, "٣s": -1,
		"10 ms x": -1, "s": -1, "5 minutes": -1, "5_0s": -1, "0x5s": -1,
	} {
		d, err := definition.ParseDuration(text)
		switch {
		case ms < 0 && !errors.Is(err, problem.DurationInvalid):
			t.Errorf("%q: got %v, %v, want an error", text, d, err)
		case ms >= 0 && (err != nil || d != time.Duration(ms)*time.Millisecond):
			t.Errorf("%q: got %v, %v, want %v ms", text, d, err, ms)
		}
	}
}

// TestW08b_LongTimesDoNotOverflow shows that a time beyond 32-bit milliseconds, and beyond every timer, stays long.
func TestW08b_LongTimesDoNotOverflow(t *testing.T) {
	t.Parallel()
	const most = 290 * 365 * 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"600h": 600 * time.Hour, "99999999999999999999h": most, strings.Repeat("9", 400) + "s": most,
	} {
		if d, err := definition.ParseDuration(text); err != nil || d != want {
			t.Errorf("%.20s: got %v, %v", text, d, err)
		}
	}
	for ms, want := range map[float64]time.Duration{2_147_483_648: 2_147_483_648 * time.Millisecond, 1e300: most, 0: 0} {
		w := definition.WaitConfig{Kind: definition.WaitDuration, DurationMS: ms}
		if d := w.Duration(); d != want {
			t.Errorf("%v ms: got %v", ms, d)
		}
	}
}

func TestDurationHints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1.5s": `"1500ms"`, "1h30m": `"90m"`, "PT30S": `"30s"`, "PT1H30M": `"90m"`, "P1D": `"24h"`, "P1DT12H": `"36h"`, "1d": `"24h"`,
		"5 minutes": `"5m"`, "2 weeks": `"336h"`, "90 sec": `"90s"`, "soon": `"30s"`, "-5s": `"30s"`, "P": `"30s"`, "PT": `"30s"`,
		"999999999d": `"30s"`,
	} {
		_, err := definition.ParseDuration(text)
		if e, ok := problem.As(err); !ok || !strings.Contains(e.Hint, want) {
			t.Errorf("%q: got %v, want a hint with %s", text, err, want)
		}
	}
}

// TestRetryDelay holds the delays observed of the protocol (spec: definition, 10.1), for attempts 2, 3, ….
func TestRetryDelay(t *testing.T) {
	t.Parallel()
	ms := func(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }
	for _, tt := range []struct {
		name  string
		retry string
		want  []float64
	}{
		{"doubling with a cap", `{"max_attempts":5,"initial_interval":"100ms","backoff_coefficient":2,"max_interval":"300ms"}`, []float64{100, 200, 300, 300}},
		{"one and a half", `{"max_attempts":5,"initial_interval":"100ms","backoff_coefficient":1.5}`, []float64{100, 150, 225, 337.5}},
		{"zero", `{"max_attempts":5,"initial_interval":"100ms","backoff_coefficient":0}`, []float64{100, 0, 0}},
		{"negative", `{"max_attempts":5,"initial_interval":"100ms","backoff_coefficient":-2}`, []float64{100, 100, 100}},
		{"no interval", `{"max_attempts":5,"backoff_coefficient":2,"max_interval":"1s"}`, []float64{0, 0, 0}},
		{"blank interval", `{"max_attempts":5,"initial_interval":"  "}`, []float64{0, 0}},
		{"no coefficient", `{"max_attempts":5,"initial_interval":"1s"}`, []float64{1000, 1000}},
		{"cap of zero", `{"max_attempts":5,"initial_interval":"1s","max_interval":"0"}`, []float64{0, 0}},
	} {
		_, p, findings := compileValue(t, patch(t, base(t, "linear"), `set /nodes/1/retry `+tt.retry))
		if p == nil {
			t.Errorf("%s: refused\n%s", tt.name, list(findings))
			continue
		}
		r := p.Node("greet").Retry
		for i, want := range tt.want {
			if got := r.Delay(i + 2); got != ms(want) {
				t.Errorf("%s: before attempt %d got %v, want %v", tt.name, i+2, got, ms(want))
			}
		}
	}
	huge := definition.Retry{Initial: 200 * 365 * 24 * time.Hour, Coefficient: math.MaxFloat64}
	for _, next := range []int{2, 3, 1000, math.MaxInt} {
		if d := huge.Delay(next); d <= 0 || d > 290*365*24*time.Hour {
			t.Errorf("before attempt %d the delay overflows: %v", next, d)
		}
	}
}

// Jitter takes off up to its part of a delay: the same for the same attempt, spread evenly over many.
func TestRetryJitter(t *testing.T) {
	t.Parallel()
	_, p, findings := compileValue(t, patch(t, base(t, "linear"),
		`set /nodes/1/retry {"max_attempts":5,"initial_interval":"1s","backoff_coefficient":10,"max_interval":"4s","jitter":0.5}`))
	if p == nil {
		t.Fatal(list(findings))
	}
	r := p.Node("greet").Retry
	const runs = 1000
	var sum, least, most time.Duration
	least = time.Hour
	for i := range runs {
		key := fmt.Sprintf("run-%d:greet#1.1", i)
		d := r.DelayOf(3, key)
		if d != r.DelayOf(3, key) {
			t.Fatalf("%s: two delays for one attempt", key)
		}
		sum, least, most = sum+d, min(least, d), max(most, d)
	}
	if least < 2*time.Second || least > 2020*time.Millisecond || most > 4*time.Second || most < 3980*time.Millisecond {
		t.Errorf("delays from %v to %v, want them spread from 2 s to 4 s", least, most)
	}
	if mean := sum / runs; mean < 2900*time.Millisecond || mean > 3100*time.Millisecond {
		t.Errorf("the mean is %v, want about 3 s", mean)
	}
	if r.DelayOf(2, "a:greet#1.1") == r.DelayOf(2, "b:greet#1.1") {
		t.Error("two runs come back together")
	}
	for _, fixed := range []definition.Retry{{Initial: time.Second, Coefficient: 1}, {Jitter: 1, Coefficient: 1}} {
		if got, want := fixed.DelayOf(2, "a"), fixed.Delay(2); got != want {
			t.Errorf("%+v: got %v, want %v", fixed, got, want)
		}
	}
	for _, bad := range []string{"-0.1", "1.1", "true", `"0.5"`, "null"} {
		if _, p, _ := compileValue(t, patch(t, base(t, "linear"), `set /nodes/1/retry {"max_attempts":2,"jitter":`+bad+`}`)); p != nil {
			t.Errorf("jitter %s is accepted", bad)
		}
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	wait := func(config string) (*definition.WaitConfig, problem.Findings) {
		// A second way around the wait keeps a bad one a warning.
		_, p, findings := compileValue(t, patch(t, base(t, "routing"), `set /nodes/5 {"id":"search","type":"wait","config":`+config+`}`))
		if p == nil {
			t.Fatalf("%s: refused\n%s", config, list(findings))
		}
		return p.Node("search").Wait, findings
	}
	for _, tt := range []struct {
		until, want string
		standard    bool
	}{
		{"2030-01-31T09:00:00Z", "2030-01-31T09:00:00Z", true},
		{"2030-01-31T09:00:00.123+02:00", "2030-01-31T07:00:00.123Z", true},
		{"2030-01-31", "2030-01-31T00:00:00Z", true},
		{"2030-01-31T09:00:00", "2030-01-31T09:00:00Z", false},
		{"2030-01-31T09:00", "2030-01-31T09:00:00Z", false},
		{"2030-01-31T09:00Z", "2030-01-31T09:00:00Z", false},
		{"2030-01-31t09:00:00z", "2030-01-31T09:00:00Z", false},
		{"2030-01", "2030-01-01T00:00:00Z", false},
		{"2030", "2030-01-01T00:00:00Z", false},
		{"2030-02-30", "2030-03-02T00:00:00Z", false},
		{"2030-01-31T24:00:00Z", "2030-02-01T00:00:00Z", false},
		{"Thu, 31 Jan 2030 09:00:00 GMT", "2030-01-31T09:00:00Z", false},
		{"Thu, 31 Jan 2030 09:00:00 +0100", "2030-01-31T08:00:00Z", false},
	} {
		w, findings := wait(`{"kind":"until","until":"` + tt.until + `"}`)
		if w.Err != nil || !w.UntilAt.Equal(at(tt.want)) || w.Until != tt.until {
			t.Errorf("%q: got %v, %v, want %s", tt.until, w.UntilAt, w.Err, tt.want)
		}
		if (len(findings) == 0) != tt.standard {
			t.Errorf("%q: findings\n%s", tt.until, list(findings))
		}
	}
	for _, until := range []string{
		"tomorrow", "24h", "20260101", "2026-13-01", "2026-W01", " 2030-01-31", "2030-01-31 ", "2026/01/01", "1 Jan 2026", "1",
		"2030-01-32", "2030-01-31T25:00:00Z", "2030-01-31T09:60:00Z", "2030-01-31T09", "2030-01-31T09:00:00.Z", "2030-01-31T24:00:01Z",
		"2030-01-31T09:00:00+1:00", "+002030-01-31", "Thu, 31 Jan 2030 09:00:00 XYZ", "2030-1-31", "T09:00:00Z", "--",
		"9999-12-31T23:59:59-00:01", "9999-12-31T24:00:00Z", "0000-01-01T00:00:00+00:01", // in years that no record can hold
	} {
		w, findings := wait(`{"kind":"until","until":"` + until + `"}`)
		if !errors.Is(w.Err, problem.InstantInvalid) || len(findings) != 1 {
			t.Errorf("%q: got %v, %v\n%s", until, w.UntilAt, w.Err, list(findings))
		}
	}
	if w, _ := wait(`{"kind":"duration","duration_ms":1500,"duration":"bad"}`); w.Duration() != 1500*time.Millisecond || w.Err != nil {
		t.Errorf("duration_ms does not win: %v, %v", w.Duration(), w.Err)
	}
	if w, _ := wait(`{"kind":"duration","duration":"600h"}`); w.Duration() != 600*time.Hour {
		t.Errorf("a long wait: %v", w.Duration())
	}
	if w, _ := wait(`{"kind":"duration","duration_ms":1e300}`); w.Duration() != 290*365*24*time.Hour {
		t.Errorf("an endless wait: %v", w.Duration())
	}
	if w, _ := wait(`{"kind":"signal","signal":"  go\n"}`); w.Signal != "go" || w.Err != nil {
		t.Errorf("the signal is %q, %v", w.Signal, w.Err)
	}
	if w, _ := wait(`{"kind":"signal","signal":"\t"}`); !errors.Is(w.Err, problem.ConfigBlank) {
		t.Errorf("a blank signal: %v", w.Err)
	}
}
