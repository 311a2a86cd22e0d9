package historypg_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestProcessesMakeTheTablesOnce: processes that open a new schema at the same time all get the same store.
func TestProcessesMakeTheTablesOnce(t *testing.T) {
	t.Parallel()
	schema, url := pgtest.Schema(t), pgtest.Shared(t).URL()
	before, err := historypg.Inspect(t.Context(), url, historypg.Options{Schema: schema})
	if err != nil || before.From != 0 || before.To != 1 || !strings.Contains(before.SQL, "CREATE TABLE \""+schema+"\".runs") {
		t.Errorf("before: %+v, %v", before, err)
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := historypg.Open(t.Context(), url, historypg.Options{Schema: schema, Conns: 1})
			if err != nil {
				t.Error(err)
				return
			}
			if m := s.Migration(); m.To != 1 {
				t.Errorf("%+v", m)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := openWith(t, historypg.Options{Schema: schema, Existing: true, NoMigrate: true})
	historytest.NewTrace(t, "x").Append(s, "E ExecutionStarted")
	after, err := historypg.Inspect(t.Context(), url, historypg.Options{Schema: schema})
	if err != nil || after.From != 1 || after.To != 1 || after.Runs != 1 || after.Bytes < 8192 || after.SQL != "" {
		t.Errorf("after: %+v, %v", after, err)
	}
}

// TestTheMigrationIsItsStatements: the statements that Inspect shows make a store.
func TestTheMigrationIsItsStatements(t *testing.T) {
	t.Parallel()
	schema, server := pgtest.Schema(t), pgtest.Shared(t)
	m, err := historypg.Inspect(t.Context(), server.URL(), historypg.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	server.Exec(t, m.SQL)
	s := openWith(t, historypg.Options{Schema: schema, NoMigrate: true})
	if m := s.Migration(); m.From != 1 || m.To != 1 {
		t.Errorf("%+v", m)
	}
	historytest.NewTrace(t, "x").Append(s, "E ExecutionStarted")
}

// TestSchemasThatAreRefused: nothing is changed in a schema that holds no store of a version that this engine knows.
func TestSchemasThatAreRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for name, c := range map[string]struct {
		made string // %s is the schema
		o    historypg.Options
		want problem.Code
	}{
		"no store, to be opened":        {"", historypg.Options{Existing: true}, problem.StoreUnavailable},
		"no store, to be read":          {"", historypg.Options{ReadOnly: true}, problem.StoreUnavailable},
		"no store, and no migration":    {"", historypg.Options{NoMigrate: true}, problem.StoreUnavailable},
		"an empty schema":               {"CREATE SCHEMA %s", historypg.Options{Existing: true}, problem.StoreUnavailable},
		"another application's tables":  {"CREATE SCHEMA %[1]s; CREATE TABLE %[1]s.runs (id int)", historypg.Options{}, problem.HistoryCorrupt},
		"another application's meta":    {"CREATE SCHEMA %[1]s; CREATE TABLE %[1]s.meta (id int)", historypg.Options{}, problem.HistoryCorrupt},
		"a newer one that we may write": {"STORE UPDATE %[1]s.meta SET version = 7", historypg.Options{}, ""},
		"one that is too new":           {"STORE UPDATE %[1]s.meta SET version = 7, min_reader = 7, min_writer = 7", historypg.Options{}, problem.HistoryNewer},
		"one that is too new to write":  {"STORE UPDATE %[1]s.meta SET version = 7, min_writer = 7", historypg.Options{}, problem.HistoryNewer},
		"one that is only to be read":   {"STORE UPDATE %[1]s.meta SET version = 7, min_writer = 7", historypg.Options{ReadOnly: true}, ""},
		"one that is too new to read":   {"STORE UPDATE %[1]s.meta SET version = 7, min_reader = 7, min_writer = 7", historypg.Options{ReadOnly: true}, problem.HistoryNewer},
		"an empty meta":                 {"STORE DELETE FROM %s.meta", historypg.Options{}, problem.HistoryCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.o.Schema, c.o.Conns = pgtest.Schema(t), 1
			made, store := strings.CutPrefix(c.made, "STORE ")
			if store {
				if err := openWith(t, historypg.Options{Schema: c.o.Schema}).Close(); err != nil {
					t.Fatal(err)
				}
			}
			if made != "" {
				server.Exec(t, fmt.Sprintf(made, c.o.Schema))
			}
			count := "SELECT count(*) FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)"
			before := query[int](t, server, count, c.o.Schema)
			s, err := historypg.Open(t.Context(), server.URL(), c.o)
			if s != nil {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if c.want == "" && err != nil || c.want != "" && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if e, ok := problem.As(err); ok && e.Hint == "" {
				t.Errorf("%v has no hint", err)
			}
			if after := query[int](t, server, count, c.o.Schema); after != before {
				t.Errorf("%d tables and indexes, before %d", after, before)
			}
		})
	}
}

// TestAStoreThatBecomesTooNew: a process notices with its next renewal that a newer release has migrated the store, or that it was replaced.
func TestAStoreThatBecomesTooNew(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]problem.Code{"min_writer = 2": problem.HistoryNewer, "id = 'other'": problem.StoreReplaced} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			schema := pgtest.Schema(t)
			s := openWith(t, historypg.Options{Schema: schema})
			x := historytest.NewTrace(t, "x")
			x.Append(s, "E ExecutionStarted")
			front := openWith(t, historypg.Options{Schema: schema, Existing: true})
			pgtest.Shared(t).Exec(t, "UPDATE "+schema+".meta SET "+change)
			if err := s.Renew(t.Context(), "p", time.Minute); !errors.Is(err, want) {
				t.Errorf("the renewal: %v", err)
			}
			if _, err := front.Overview(t.Context(), ""); !errors.Is(err, want) {
				t.Errorf("a process without a lease: %v", err)
			}
			if err := front.Disown(t.Context(), "p", "x"); !errors.Is(err, want) {
				t.Errorf("its next write: %v", err)
			}
			if err := s.Append(t.Context(), x.Batch("C ScheduleNode a")); !errors.Is(err, want) {
				t.Errorf("an append: %v", err)
			}
			if e, err := s.Execution(t.Context(), "x"); err != nil || e.Seq != 1 {
				t.Errorf("a read: %+v, %v", e, err)
			}
		})
	}
}

// TestStoreOfTheNextRelease: a schema that a neighbouring release has migrated, with more columns, an index and a table, and that this release
// may still write, keeps the whole contract.
func TestStoreOfTheNextRelease(t *testing.T) {
	t.Parallel()
	next := schemaPool{make: func(t testing.TB) string {
		schema := pgtest.Schema(t)
		openWith(t, historypg.Options{Schema: schema})
		var script strings.Builder
		for _, table := range historypg.Tables() {
			fmt.Fprintf(&script, "ALTER TABLE %s.%s ADD COLUMN later text NOT NULL DEFAULT 'x';", schema, table)
		}
		fmt.Fprintf(&script, `CREATE INDEX runs_later ON %[1]s.runs (later, run); CREATE TABLE %[1]s.later (run bigint PRIMARY KEY);
UPDATE %[1]s.meta SET version = version + 1`, schema)
		pgtest.Shared(t).Exec(t, script.String())
		return schema
	}}
	historytest.Run(t, func(t testing.TB, now func() time.Time) history.Store {
		s := openWith(t, historypg.Options{Schema: next.empty(t), Now: now})
		if m := s.Migration(); m.From != m.To+1 {
			t.Errorf("the store is of version %d, this release of %d", m.From, m.To)
		}
		return s
	})
}

// TestAdopt: processes that used a store before it was adopted notice that, and others use it.
func TestAdopt(t *testing.T) {
	t.Parallel()
	schema := pgtest.Schema(t)
	o := historypg.Options{Schema: schema}
	if err := historypg.Adopt(t.Context(), pgtest.Shared(t).URL(), o); !errors.Is(err, problem.StoreUnavailable) {
		t.Errorf("without a store: %v", err)
	}
	s := openWith(t, o)
	historytest.NewTrace(t, "x").Append(s, "E ExecutionStarted")
	if err := historypg.Adopt(t.Context(), pgtest.Shared(t).URL(), o); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(t.Context(), "p", time.Minute); !errors.Is(err, problem.StoreReplaced) {
		t.Errorf("the renewal: %v", err)
	}
	s = openWith(t, o)
	if err := s.Renew(t.Context(), "p", time.Minute); err != nil {
		t.Error(err)
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	url := "host=/nowhere dbname=d"
	for name, c := range map[string]struct {
		url string
		o   historypg.Options
	}{
		"durability":           {url, historypg.Options{Synchronous: "off"}},
		"connections":          {url, historypg.Options{Conns: -1}},
		"whole bytes":          {url, historypg.Options{WholeBytes: -1}},
		"value bytes":          {url, historypg.Options{ValueBytes: 10}},
		"a system's schema":    {url, historypg.Options{Schema: "pg_catalog"}},
		"a long schema":        {url, historypg.Options{Schema: strings.Repeat("s", 64)}},
		"a schema with a null": {url, historypg.Options{Schema: "a\x00b"}},
		"no url":               {"postgres://%zz", historypg.Options{}},
		"a bad port":           {"postgres://h:port/d", historypg.Options{}},
		"a bad sslmode":        {"host=h sslmode=perhaps", historypg.Options{}},
		"a pooler's setting":   {url + " default_query_exec_mode=exec", historypg.Options{Synchronous: historypg.Normal}},
	} {
		if _, err := historypg.Open(t.Context(), c.url, c.o); !errors.Is(err, problem.UsageError) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchemasOfAnyName: the name of a schema needs no quotes by its user.
func TestSchemasOfAnyName(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`With "quotes" and spaces`, "é", strings.Repeat("long", 15)} {
		server := pgtest.Shared(t)
		s := openWith(t, historypg.Options{Schema: schema})
		historytest.WatchReady(t, openWith(t, historypg.Options{Schema: schema}), s)
		var q history.ListQuery
		if page, err := s.List(t.Context(), q); err != nil || len(page.Executions) == 0 {
			t.Errorf("%s: %+v, %v", schema, page, err)
		}
		if w := s.Where(); w.Schema != schema || w.Database != "postgres" {
			t.Errorf("%+v", w)
		}
		t.Cleanup(func() { server.Exec(t, `DROP SCHEMA "`+strings.ReplaceAll(schema, `"`, `""`)+`" CASCADE`) })
	}
}
