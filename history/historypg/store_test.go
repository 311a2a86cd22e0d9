package historypg_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// open makes an empty store.
func open(t testing.TB, now func() time.Time) history.Store {
	return openWith(t, historypg.Options{Now: now})
}

func openWith(t testing.TB, o historypg.Options) *historypg.Store {
	t.Helper()
	if o.Schema == "" {
		o.Schema = emptySchema(t)
	}
	return openAt(t, pgtest.Shared(t).URL(), o)
}

// schemaPool keeps the schemas of ended tests, which are empty again: making the tables takes longer than most tests.
type schemaPool struct {
	make func(t testing.TB) string
	mu   sync.Mutex
	free []string
}

var schemas = schemaPool{make: pgtest.Schema}

// emptySchema returns a schema without a run for the time of the test. Its tables may exist.
func emptySchema(t testing.TB) string {
	t.Helper()
	return schemas.empty(t)
}

func (p *schemaPool) empty(t testing.TB) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	name := ""
	if n := len(p.free); n > 0 {
		name, p.free = p.free[n-1], p.free[:n-1]
	} else {
		name = p.make(t)
	}
	server := pgtest.Shared(t)
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		var script strings.Builder
		for _, table := range historypg.Tables() {
			fmt.Fprintf(&script, "DELETE FROM %s.%s;", name, table)
		}
		fmt.Fprintf(&script, "UPDATE %s.meta SET seen = 0, ahead = 0", name)
		server.Exec(t, script.String())
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free = append(p.free, name)
	})
	return name
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
		return openAt(t, pgtest.Shared(t).URL()+" default_query_exec_mode=exec", historypg.Options{Schema: emptySchema(t), Now: now})
	})
}

func TestStoreKeepsWhatIsWritten(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	of := map[string]string{}
	historytest.RunPersistent(t, func(t testing.TB, dir string, now func() time.Time) history.Store {
		mu.Lock()
		defer mu.Unlock()
		if of[dir] == "" {
			of[dir] = emptySchema(t)
		}
		return openWith(t, historypg.Options{Schema: of[dir], Now: now})
	})
}
