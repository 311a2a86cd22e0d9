package historytest

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// attaching: links, deliveries and keys of another store are added once, if their runs are stored, and what is there stays.
func attaching(t *testing.T, s history.Store) {
	a, ok := s.(history.Attacher)
	if !ok {
		t.Skipf("%T takes over nothing of other stores", s)
	}
	own := Delivers("own", "{}", Begin, "ops")
	endsNotifying(t, s, "first", own...)
	endsNotifying(t, s, "second")
	tries := []history.DeliveryAttempt{
		{Number: 1, Process: "p\x00", BeganAt: Begin, EndedAt: Begin.Add(time.Second), Outcome: history.SendAgain, Status: 503, Error: "busy"},
		{Number: 2, Process: "q", BeganAt: Begin.Add(time.Minute)},
	}
	of := func(d history.Delivery, run string, state history.DeliveryState, step int, tries ...history.DeliveryAttempt) history.Delivery {
		d.ExecutionID, d.Seq, d.State, d.Step, d.Attempts, d.Tries = run, 7, state, step, len(tries), tries
		return d
	}
	there := Delivers("evt", `{"a":"\u0001"}`, Begin, "ops", "crm")
	in := history.Attachments{
		Links: []history.Link{
			{From: "first", To: "second", Kind: history.Retried, Seq: 3, Actor: "kim", At: Begin}, {From: "first", To: "nobody", Kind: history.Forked, Seq: 3, At: Begin},
			{From: "nobody", To: "first", Kind: history.Forked, Seq: 3, At: Begin},
		},
		Deliveries: []history.Delivery{
			of(there[0], "second", history.DeliveryPending, 1, tries...), of(there[1], "second", history.DeliveryDone, 0, tries[0]),
			of(Delivers("lost", "{}", Begin, "ops")[0], "nobody", history.DeliveryPending, 0), of(own[0], "first", history.DeliveryDead, 9),
		},
		Keys: map[string][]byte{"theirs": bytes.Repeat([]byte{7}, history.KeyBytes)},
	}
	if k, ok := s.(history.Keyring); ok {
		ours := got[[]byte](t)(k.Key(t.Context(), "ours"))
		in.Keys["ours"] = append([]byte{ours[0] + 1}, ours[1:]...)
	}
	for round, want := range []history.Attached{{Links: 1, Deliveries: 2, Keys: 1}, {}} {
		if added := got[history.Attached](t)(a.Attach(t.Context(), in)); added != want {
			t.Errorf("round %d: added %+v, want %+v", round, added, want)
		}
	}
	links := got[[]history.Link](t)(s.Links(t.Context(), "first"))
	want := in.Links[0]
	want.Phase = history.PhaseCompleted
	if len(links) != 1 || links[0] != want {
		t.Errorf("links %+v", links)
	}
	page := got[history.DeliveryPage](t)(s.ListDeliveries(t.Context(), history.DeliveryQuery{Bodies: true}))
	if len(page.Deliveries) != 3 {
		t.Fatalf("%d deliveries", len(page.Deliveries))
	}
	for i, want := range []history.Delivery{in.Deliveries[1], in.Deliveries[0]} { // the newest first
		d := page.Deliveries[i]
		if !slices.Equal(d.Tries, want.Tries) || !bytes.Equal(d.Body, want.Body) || d.ID != want.ID || d.EventID != want.EventID || d.ExecutionID != want.ExecutionID || d.Seq != want.Seq ||
			d.Event != want.Event || d.Target != want.Target || d.State != want.State || d.Step != want.Step || d.Attempts != want.Attempts || !d.Due.Equal(want.Due) || !d.CreatedAt.Equal(want.CreatedAt) {
			t.Errorf("got %+v\nwant %+v", d, want)
		}
	}
	if d := page.Deliveries[2]; d.State != history.DeliveryPending || d.Step != 0 {
		t.Errorf("the own delivery is %+v", d)
	}
	if due := dueIDs(t, s, "ops", Begin, 0); due != "own-ops/0 evt-ops/2" {
		t.Errorf("due are %s", due)
	}
	claimDelivery(t, s, "evt-ops", 3, "p", true)
	keys := got[map[string][]byte](t)(a.Keys(t.Context()))
	if !bytes.Equal(keys["theirs"], in.Keys["theirs"]) || bytes.Equal(keys["ours"], in.Keys["ours"]) {
		t.Errorf("keys %x", keys)
	}
	if k, ok := s.(history.Keyring); ok {
		if key := got[[]byte](t)(k.Key(t.Context(), "theirs")); !bytes.Equal(key, in.Keys["theirs"]) {
			t.Errorf("the key is %x", key)
		}
	}
}
