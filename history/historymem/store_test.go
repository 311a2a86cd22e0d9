package historymem_test

import (
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

func open(t testing.TB, now func() time.Time) history.Store {
	s := historymem.NewWith(historymem.Options{Now: now})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	historytest.Run(t, open)
}

func TestClockSteps(t *testing.T) {
	t.Parallel()
	var stores sync.Map
	historytest.ClockSteps(t, func(_ testing.TB, c *historytest.SteppedClock) history.Store {
		s, _ := stores.LoadOrStore(c, historymem.NewWith(historymem.Options{Now: c.Now, Uptime: c.Uptime}))
		return s.(history.Store)
	})
}
