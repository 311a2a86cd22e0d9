package elicit_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

func start(f func()) { go f() }

// TestADeskAsksOnce: whoever asks while a question is open waits for the same answer; it is not asked again after the person did not
// answer, unless that is asked for, and then a few times at most.
func TestADeskAsksOnce(t *testing.T) {
	t.Parallel()
	for state, kept := range map[elicit.State]bool{
		elicit.Answered: false, elicit.Overtaken: false, elicit.Failed: false,
		elicit.Declined: true, elicit.Closed: true, elicit.Unfit: true, elicit.Unable: true,
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d elicit.Desk
				k := elicit.Key{Session: 1, Interrupt: "i"}
				times := 0
				put := func() elicit.End {
					times++
					time.Sleep(time.Minute)
					return elicit.End{State: state, Err: errors.ErrUnsupported}
				}
				var asking sync.WaitGroup
				for range 3 {
					asking.Go(func() {
						q := d.Ask(k, true, start, put)
						if <-q.Done(); q.End().State != state {
							t.Errorf("ended as %q", q.End().State)
						}
					})
				}
				synctest.Wait()
				if end, more := d.Of(k); end.State != elicit.Asking || more {
					t.Errorf("while it is open: %v, %v", end, more)
				}
				if end, more := d.Of(elicit.Key{Session: 2, Interrupt: "i"}); end.State != "" || !more {
					t.Errorf("of another session: %v, %v", end, more)
				}
				asking.Wait()
				want := elicit.State("")
				if kept {
					want = state
				}
				if end, more := d.Of(k); end.State != want || !more || times != 1 {
					t.Fatalf("then: %v, %v after %d", end, more, times)
				}
				if !kept {
					return
				}
				if q := d.Ask(k, false, start, put); q.End().State != state || times != 1 {
					t.Errorf("asked again")
				}
				for range 10 {
					<-d.Ask(k, true, start, put).Done()
				}
				if end, more := d.Of(k); times != elicit.MaxTimes || more || end.State != state {
					t.Errorf("asked %d times: %v, %v", times, end, more)
				}
			})
		})
	}
}

// TestADeskForgets: sessions that have ended, and of many questions the oldest.
func TestADeskForgets(t *testing.T) {
	t.Parallel()
	var d elicit.Desk
	for i := range 1100 {
		d.Settle(elicit.Key{Interrupt: fmt.Sprint(i)}, elicit.End{State: elicit.Declined})
	}
	for i, want := range map[int]elicit.State{0: "", 99: "", 100: elicit.Declined, 1099: elicit.Declined} {
		if end, _ := d.Of(elicit.Key{Interrupt: fmt.Sprint(i)}); end.State != want {
			t.Errorf("%d: %q, want %q", i, end.State, want)
		}
	}
	one, two := elicit.Key{Session: 1, Interrupt: "i"}, elicit.Key{Session: 2, Interrupt: "i"}
	d.Settle(one, elicit.End{State: elicit.Closed})
	d.Settle(two, elicit.End{State: elicit.Closed})
	d.Forget(1)
	if end, _ := d.Of(one); end.State != "" {
		t.Errorf("of the session that has ended: %v", end)
	}
	if end, _ := d.Of(two); end.State != elicit.Closed {
		t.Errorf("of the other: %v", end)
	}
	d.Settle(two, elicit.End{State: elicit.Answered})
	if end, more := d.Of(two); end.State != "" || !more {
		t.Errorf("answered at last: %v, %v", end, more)
	}
}

// TestAnOpenQuestionOfASessionThatEnded ends by itself and leaves nothing behind.
func TestAnOpenQuestionOfASessionThatEnded(t *testing.T) {
	t.Parallel()
	var d elicit.Desk
	k := elicit.Key{Session: 1, Interrupt: "i"}
	gone := make(chan struct{})
	q := d.Ask(k, false, start, func() elicit.End { <-gone; return elicit.End{State: elicit.Declined} })
	d.Forget(1)
	close(gone)
	<-q.Done()
	if end, more := d.Of(k); end.State != "" || !more {
		t.Errorf("%v, %v", end, more)
	}
}
