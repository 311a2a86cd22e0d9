package graph_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// BenchmarkDurableNodes holds the engine against the disk: nodes a second, each of them a commit that is flushed, beside
// the commits a second that SQLite itself makes of one row through the same driver, in a table of the same shape, in the
// same folder, in turns with the engine in the same seconds. x-raw is the first divided by the second. x-sql divides by
// the commits that a program makes of one row through database/sql, which most programs use the driver by. TMPDIR
// chooses the disk.
func BenchmarkDurableNodes(b *testing.B) {
	const nodes = 100
	ids := make([]string, nodes)
	for i := range ids {
		ids[i] = fmt.Sprintf("n%d", i)
	}
	d := linear(b, "lin", ids...)
	b.Run("raw", func(b *testing.B) {
		raw := openRaw(b)
		for b.Loop() {
			raw.commit(b)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "raw-commits/s")
	})
	for _, runs := range []int{1, 50} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			raw := openRaw(b)
			r := newRunner(b, disk(b), graph.Options{Activities: activities.Stub{}})
			plain := openSQL(b)
			var rawTook, sqlTook, took time.Duration
			var commits, done int
			for b.Loop() {
				begun := time.Now()
				for range nodes {
					raw.commit(b)
				}
				rawTook += time.Since(begun)
				begun = time.Now()
				for range nodes {
					plain.commit(b)
				}
				sqlTook += time.Since(begun)
				commits += nodes

				begun = time.Now()
				var all sync.WaitGroup
				for range runs {
					all.Go(func() {
						run, err := r.Start(b.Context(), graph.StartRequest{Definition: d, Wait: graph.Wait{Limit: time.Hour}})
						if err != nil || run.Status != machine.Completed {
							b.Errorf("%+v, %v", run, err)
						}
					})
				}
				all.Wait()
				took += time.Since(begun)
				done += runs * nodes
			}
			nodes, raws := float64(done)/took.Seconds(), float64(commits)/rawTook.Seconds()
			b.ReportMetric(nodes, "nodes/s")
			b.ReportMetric(raws, "raw-commits/s")
			b.ReportMetric(nodes/raws, "x-raw") // of the rates, so that both count what they leave to the log's checkpoints
			b.ReportMetric(nodes*sqlTook.Seconds()/float64(commits), "x-sql")
			b.ReportMetric(0, "ns/op") // an iteration is both, so its time says nothing
		})
	}
}

// rawSQLite commits one row after another, with prepared statements of the driver that the engine uses.
type rawSQLite struct {
	begin, insert, end driver.StmtExecContext
	seq                int64
	payload            string
}

func openRaw(b *testing.B) *rawSQLite {
	b.Helper()
	r := &rawSQLite{}
	check := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(b.TempDir(), "raw.db"))}
	connector, err := sqlite.NewConnector(u.String())
	check(err)
	c, err := connector.Connect(context.Background())
	check(err)
	b.Cleanup(func() { check(c.Close()) })
	_, err = c.(driver.ExecerContext).ExecContext(context.Background(), rawTable, nil)
	check(err)
	prepare := func(text string) driver.StmtExecContext {
		s, err := c.(driver.ConnPrepareContext).PrepareContext(context.Background(), text)
		check(err)
		b.Cleanup(func() { check(s.Close()) })
		return s.(driver.StmtExecContext)
	}
	r.begin, r.insert, r.end, r.payload = prepare("BEGIN IMMEDIATE"), prepare(rawInsert), prepare("COMMIT"), rawPayload
	return r
}

const (
	rawTable = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
		CREATE TABLE history (execution_id TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
			payload_json TEXT NOT NULL, created_at TEXT NOT NULL, record_schema_version INTEGER NOT NULL DEFAULT 1,
			PRIMARY KEY (execution_id, seq))`
	rawInsert = "INSERT INTO history (execution_id, seq, kind, name, payload_json, created_at) VALUES (?, ?, ?, ?, ?, ?)"
)

var rawPayload = `{"executionId":"0f8fad5b-d9cb-469f-a165-70867728950e","nodeId":"n1","text":"` + strings.Repeat("x", 100) + `"}`

// plainSQL commits one row after another as a program does that knows only database/sql.
type plainSQL struct {
	db  *sql.DB
	seq int64
}

func openSQL(b *testing.B) *plainSQL {
	b.Helper()
	db, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "plain.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	db.SetMaxOpenConns(1) // the pragmas are those of a connection
	if _, err := db.ExecContext(b.Context(), rawTable); err != nil {
		b.Fatal(err)
	}
	return &plainSQL{db: db}
}

func (p *plainSQL) commit(b *testing.B) {
	p.seq++
	_, err := p.db.Exec(rawInsert, "0f8fad5b-d9cb-469f-a165-70867728950e", p.seq, "event", "ActivityCompleted",
		rawPayload, "2026-11-21T01:00:00.000Z")
	if err != nil {
		b.Fatal(err)
	}
}

func (r *rawSQLite) commit(b *testing.B) {
	r.seq++
	args := []driver.NamedValue{
		{Ordinal: 1, Value: "0f8fad5b-d9cb-469f-a165-70867728950e"}, {Ordinal: 2, Value: r.seq}, {Ordinal: 3, Value: "event"},
		{Ordinal: 4, Value: "ActivityCompleted"}, {Ordinal: 5, Value: r.payload}, {Ordinal: 6, Value: "2026-11-21T01:00:00.000Z"},
	}
	_, err := r.begin.ExecContext(context.Background(), nil)
	if err == nil {
		_, err = r.insert.ExecContext(context.Background(), args)
	}
	if err == nil {
		_, err = r.end.ExecContext(context.Background(), nil)
	}
	if err != nil {
		b.Fatal(err)
	}
}
