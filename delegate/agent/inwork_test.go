package agent

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestLargeResultsWaitForRoom: they are let in as they have come, one that gives up holds up nobody, and in the end all of the room is free.
func TestLargeResultsWaitForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &inWork{}
		if err := r.take(t.Context(), maxInWork-10); err != nil {
			t.Fatal(err)
		}
		let := make(chan string, 3)
		wait := func(ctx context.Context, name string, bytes int) {
			go func() {
				if r.take(ctx, bytes) != nil {
					name += " gave up"
				}
				let <- name
			}()
			synctest.Wait()
		}
		soon, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		wait(soon, "first", maxInWork)
		wait(t.Context(), "second", 20)
		wait(t.Context(), "third", 5)
		if len(let) > 0 {
			t.Errorf("%s had room", <-let)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := <-let; got != "first gave up" || len(let) > 0 {
			t.Errorf("%s, and %d more", got, len(let))
		}
		r.leave(maxInWork - 10)
		got := []string{<-let, <-let}
		slices.Sort(got)
		if !slices.Equal(got, []string{"second", "third"}) || r.taken != 25 {
			t.Errorf("%q, %d bytes taken", got, r.taken)
		}
		r.leave(25)
		if r.taken != 0 || len(r.waiting) > 0 {
			t.Errorf("%d bytes taken, %d wait", r.taken, len(r.waiting))
		}
	})
}
