package memory_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/memory"
)

// inBubble calls a test with a budget without room: enter returns how long it has waited too, makeRoom makes room.
func inBubble(t *testing.T, test func(ctx context.Context, enter func(context.Context) (func(), time.Duration, error), makeRoom func())) {
	synctest.Test(t, func(t *testing.T) {
		var live atomic.Int64
		live.Store(1000)
		b := memory.New(400, live.Load, func() {}, time.Now)
		test(t.Context(), func(ctx context.Context) (func(), time.Duration, error) {
			began := time.Now()
			leave, err := b.Enter(ctx)
			return leave, time.Since(began), err
		}, func() { live.Store(100) })
	})
}

func TestWorkThatIsAloneDoesNotWait(t *testing.T) {
	t.Parallel()
	inBubble(t, func(bubble context.Context, enter func(context.Context) (func(), time.Duration, error), _ func()) {
		for range 2 {
			leave, waited, err := enter(bubble)
			if waited != 0 || err != nil {
				t.Fatalf("waited %s, %v", waited, err)
			}
			leave()
		}
	})
}

func TestWorkWaitsForRoom(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after func(makeRoom, leave func())
		want  time.Duration
	}{
		"until there is room":       {func(makeRoom, _ func()) { makeRoom() }, 3 * time.Second},
		"until the other work ends": {func(_, leave func()) { leave() }, 3 * time.Second},
		"not for ever":              {func(_, _ func()) {}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(bubble context.Context, enter func(context.Context) (func(), time.Duration, error), makeRoom func()) {
				first, _, _ := enter(bubble)
				time.AfterFunc(3*time.Second-time.Millisecond, func() { tt.after(makeRoom, first) })
				if _, waited, err := enter(bubble); waited != tt.want || err != nil {
					t.Errorf("waited %s, %v, want %s", waited, err, tt.want)
				}
			})
		})
	}
}

// TestWorkThatEndsDoesNotWait: what is cancelled ends at once; of what has a deadline, a quarter of the time is waited.
func TestWorkThatEndsDoesNotWait(t *testing.T) {
	t.Parallel()
	inBubble(t, func(bubble context.Context, enter func(context.Context) (func(), time.Duration, error), _ func()) {
		if _, _, err := enter(bubble); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(bubble)
		time.AfterFunc(time.Second, cancel)
		if _, waited, err := enter(ctx); waited != time.Second || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: waited %s, %v", waited, err)
		}
		ctx, cancel = context.WithTimeout(bubble, 8*time.Second)
		defer cancel()
		if _, waited, err := enter(ctx); waited != 2*time.Second || err != nil {
			t.Errorf("deadline: waited %s, %v", waited, err)
		}
	})
}
