package historysql_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestDeliveriesAreReadAsOfOneMoment: a delivery is listed with exactly the attempts that its own row counts, while attempts start and end.
func TestDeliveriesAreReadAsOfOneMoment(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	b := historytest.NewTrace(t, "r").Batch(slices.Concat(historytest.Start("w", "in_process"), historytest.End())...)
	b.Deliveries = historytest.Delivers("e", "{}", historytest.Begin, "ops")
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	id := b.Deliveries[0].ID
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 1; n <= 100; n++ {
			if _, claimed, err := s.ClaimDelivery(t.Context(), history.DeliveryClaim{DeliveryID: id, Attempt: n, Process: "p", TTL: time.Second, At: historytest.Begin}); err != nil || !claimed {
				t.Errorf("attempt %d: %v, %v", n, claimed, err)
				return
			}
			if err := s.SettleDelivery(t.Context(), history.Settlement{
				DeliveryID: id, Attempt: n, At: historytest.Begin, State: history.DeliveryPending, Step: n, Due: historytest.Begin, Receipt: history.Receipt{Outcome: history.SendAgain},
			}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for sending := true; sending; {
		select {
		case <-ended:
			sending = false
		default:
		}
		page, err := s.ListDeliveries(t.Context(), history.DeliveryQuery{DeliveryID: id, Limit: 1})
		if err != nil {
			t.Error(err)
			break
		}
		d := page.Deliveries[0]
		failures := 0
		for _, a := range d.Tries {
			if !a.EndedAt.IsZero() {
				failures++
			}
		}
		if d.Attempts != len(d.Tries) || d.Step != failures {
			t.Errorf("%d attempts and %d failures are counted, %d and %d listed", d.Attempts, d.Step, len(d.Tries), failures)
			break
		}
	}
	<-ended
}
