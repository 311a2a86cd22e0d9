package elicit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

var (
	key  = []byte(strings.Repeat("k", 32))
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

func ticket() elicit.Ticket {
	return elicit.Ticket{ExecutionID: "r", InterruptID: "r:ask#1", Call: elicit.CallOf("workflow_start", []byte(`{"a":1}`)), Tries: 1, Asked: 2, Expires: noon}
}

// TestTickets: a ticket comes back as it was written, from whoever has the key, and until it expires.
func TestTickets(t *testing.T) {
	t.Parallel()
	sealed := elicit.Seal(key, ticket())
	if got, err := elicit.Open(key, sealed, noon.Add(-time.Second)); err != nil || got != ticket() {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := elicit.Open(key, sealed, noon); !errors.Is(err, elicit.ErrExpired) || got != ticket() {
		t.Errorf("at its end: %+v, %v", got, err)
	}
	if _, err := elicit.Open([]byte(strings.Repeat("j", 32)), sealed, noon.Add(-time.Second)); !errors.Is(err, elicit.ErrTicket) {
		t.Errorf("with another key: %v", err)
	}
}

// TestForgedTickets: no ticket that differs in a byte is taken, and none that has no signature, or that of another.
func TestForgedTickets(t *testing.T) {
	t.Parallel()
	sealed := elicit.Seal(key, ticket())
	body, signature, _ := strings.Cut(sealed, ".")
	other := ticket()
	other.InterruptID = "r:pay#1"
	otherBody, _, _ := strings.Cut(elicit.Seal(key, other), ".")
	forged := []string{"", ".", body, body + ".", "." + signature, otherBody + "." + signature, sealed + "=", sealed + ".", " " + sealed, sealed + "\n", strings.Repeat("x", 1<<20)}
	for i := range sealed {
		for _, c := range []byte("A_0") {
			if sealed[i] != c {
				forged = append(forged, sealed[:i]+string(c)+sealed[i+1:])
			}
		}
	}
	for _, text := range forged {
		if got, err := elicit.Open(key, text, noon.Add(-time.Hour)); !errors.Is(err, elicit.ErrTicket) || got != (elicit.Ticket{}) {
			t.Fatalf("%.200s: %+v, %v", text, got, err)
		}
	}
}

// TestCalls: a call is the same however its arguments are spelt, and another with another tool or argument.
func TestCalls(t *testing.T) {
	t.Parallel()
	same := elicit.CallOf("a", []byte(`{"x":1.0,"y":{"b":2,"a":"\u00e9"}}`))
	if got := elicit.CallOf("a", []byte(` { "y":{"a":"é","b":2}, "x":1 }`)); got != same {
		t.Errorf("%s and %s", got, same)
	}
	for _, c := range [][2]string{{"b", `{"x":1,"y":{"b":2,"a":"é"}}`}, {"a", `{"x":2,"y":{"b":2,"a":"é"}}`}, {"a", ``}, {"a", `{`}} {
		if elicit.CallOf(c[0], []byte(c[1])) == same {
			t.Errorf("%v is the same call", c)
		}
	}
}

// FuzzOpen: what is not signed is no ticket.
func FuzzOpen(f *testing.F) {
	f.Add(elicit.Seal([]byte("another key"), ticket()))
	f.Add("e30.e30")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := elicit.Open(key, text, noon); !errors.Is(err, elicit.ErrTicket) || got != (elicit.Ticket{}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
