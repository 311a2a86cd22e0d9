package process_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestOutageIsLoggedOnce takes the store away for 70 s: a worker, whose tasks all meet it, says so once for each cause, and once when it is
// back.
func TestOutageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historytest.NewFaultStore(historymem.New())
		var lines bytes.Buffer
		p := open(store, func(c *process.Config) {
			c.Work, c.Log = process.WorkAll, slog.New(slog.NewTextHandler(&lines, nil))
		})
		defer func() {
			if err := p.Close(process.Closing{Limit: time.Minute}); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(5 * time.Second)
		for _, tt := range []struct {
			causes []problem.Code
		}{
			{[]problem.Code{problem.StoreUnavailable}},
			{[]problem.Code{problem.StoreReplaced}},
			{[]problem.Code{problem.StoreUnavailable, problem.StoreReplaced, problem.StoreUnavailable}},
		} {
			synctest.Wait()
			lines.Reset()
			causes := map[problem.Code]bool{}
			for _, code := range tt.causes {
				causes[code] = true
				store.Set(historytest.Fault{At: 1, Reads: true, Dead: true, Code: code})
				time.Sleep(70 * time.Second)
			}
			store.Revive()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			got := lines.String()
			fails, back := strings.Count(got, `level=ERROR msg="store not available"`), strings.Count(got, `level=INFO msg="store available again" after=`)
			if other := strings.Count(got, "\n") - strings.Count(got, "lease lost") - fails - back; fails != len(causes) || back != 1 || other != 0 {
				t.Fatalf("%v: the log is\n%s", tt.causes, got)
			}
		}
	})
}
