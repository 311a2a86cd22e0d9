package historypg_test

import (
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// open makes a store in a new schema.
func open(t testing.TB, now func() time.Time) history.Store {
	return openWith(t, historypg.Options{Now: now})
}

func openWith(t testing.TB, o historypg.Options) *historypg.Store {
	t.Helper()
	if o.Schema == "" {
		o.Schema = pgtest.Schema(t)
	}
	return openAt(t, pgtest.Shared(t).URL(), o)
}

func openAt(t testing.TB, url string, o historypg.Options) *historypg.Store {
	t.Helper()
	if o.Conns == 0 {
		o.Conns = 4
	}
	s, err := historypg.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	historytest.Run(t, open)
}

// TestStoreWithoutStatements: behind a transaction pooler there are no prepared statements, no settings of a session and no notifications.
func TestStoreWithoutStatements(t *testing.T) {
	t.Parallel()
	historytest.Run(t, func(t testing.TB, now func() time.Time) history.Store {
		return openAt(t, pgtest.Shared(t).URL()+" default_query_exec_mode=exec", historypg.Options{Schema: pgtest.Schema(t), Now: now})
	})
}

func TestStoreKeepsWhatIsWritten(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	schemas := map[string]string{}
	historytest.RunPersistent(t, func(t testing.TB, dir string, now func() time.Time) history.Store {
		mu.Lock()
		defer mu.Unlock()
		if schemas[dir] == "" {
			schemas[dir] = pgtest.Schema(t)
		}
		return openWith(t, historypg.Options{Schema: schemas[dir], Now: now})
	})
}
