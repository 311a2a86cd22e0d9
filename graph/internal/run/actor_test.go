package run_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// TestHostileNamesAreHarmless: whatever a stranger calls itself, what is recorded is short, and no character of it acts on a terminal
// or a log.
func TestHostileNamesAreHarmless(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, want string }{
		{"claude-code", "claude-code"},
		{"Zoë 東京 🦊", "Zoë 東京 🦊"},
		{"a\nb\tc\r", `a\nb\tc\r`},
		{"\x1b[2Jx\x00\u009b", `\x1b[2Jx\x00\u009b`},
		{"pay \u202eroot\u2066 \u200b\u2028\ufeff", `pay \u202eroot\u2066 \u200b\u2028\ufeff`},
		{"\ufdd031\ufdd1red\U000e0041", `\ufdd031\ufdd1red\U000e0041`},
		{"no UTF-8: \xff\xfe", "no UTF-8: ��"},
		{strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{strings.Repeat("x", 1<<20), strings.Repeat("x", 64) + "…"},
		{strings.Repeat("é", 1<<20), strings.Repeat("é", 32) + "…"},
		{strings.Repeat("x", 60) + "\x1b[31m", strings.Repeat("x", 60) + `\x1b…`},
		{strings.Repeat("x", 62) + "\x1b[31m", strings.Repeat("x", 62) + "…"},
	} {
		got := run.ActorOf(run.WithActor(t.Context(), history.Actor{Via: c.name, Name: c.name, Title: c.name, Version: c.name}))
		if got.Name != c.want || got.Title != c.want {
			t.Errorf("%.20q: %q and %q, want %q", c.name, got.Name, got.Title, c.want)
		}
		if most := 32 + len("…"); len(got.Via) > most || len(got.Version) > most {
			t.Errorf("%.20q: via has %d bytes, version %d", c.name, len(got.Via), len(got.Version))
		}
		for _, text := range []string{got.Via, got.Name, got.Title, got.Version} {
			if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%.20q: recorded %q", c.name, text)
			}
		}
	}
}

// TestOnlyInputsFromOutsideAreSigned: what the engine does by itself has no actor, though a call has led to it.
func TestOnlyInputsFromOutsideAreSigned(t *testing.T) {
	t.Parallel()
	ctx := run.WithActor(t.Context(), history.Actor{Name: "kim"})
	for _, c := range []struct {
		in     machine.Input
		signed bool
	}{
		{machine.Resume{}, true},
		{machine.Signal{}, true},
		{machine.Cancel{}, true},
		{machine.Outcome{Host: true}, true},
		{machine.Outcome{}, false},
		{machine.TimerFired{}, false},
		{machine.ChildEnded{}, false},
		{machine.Continue{}, false},
	} {
		records := make([]history.Record, 2)
		run.SignInput(ctx, c.in, records)
		if signed := records[0].Payload.Actor != nil; signed != c.signed || records[1].Payload.Actor != nil {
			t.Errorf("%T: signed %v and %v", c.in, signed, records[1].Payload.Actor)
		}
		run.SignInput(ctx, c.in, nil)
	}
	if a := run.ActorOf(run.WithoutActor(ctx)); a != nil {
		t.Errorf("%v is left", a)
	}
}
