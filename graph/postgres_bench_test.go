package graph_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
)

// BenchmarkPostgres measures runs over a PostgreSQL server of its own, which flushes. TMPDIR chooses the disk. It reports x-raw of what commits:
// how much of the commits a second that one connection makes of one row of the same size, in turns; or how many of them a call takes.
func BenchmarkPostgres(b *testing.B) {
	server := pgtest.New(b)
	raw, err := pgx.Connect(b.Context(), server.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close(b.Context())
	if _, err := raw.Exec(b.Context(), "CREATE TABLE raw (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text)"); err != nil {
		b.Fatal(err)
	}
	payload := strings.Repeat("x", 1200)
	// commits returns how long n commits take.
	commits := func(n int) time.Duration {
		begun := time.Now()
		for range n {
			if _, err := raw.Exec(b.Context(), "INSERT INTO raw (text) VALUES ($1)", payload); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(begun)
	}
	open := func(b *testing.B) (history.Store, string) {
		schema := pgtest.Schema(b)
		s, err := historypg.Open(b.Context(), server.URL(), historypg.Options{Schema: schema})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := s.Close(); err != nil {
				b.Error(err)
			}
		})
		return s, schema
	}
	const nodes = 500
	ids := make([]string, nodes)
	for i := range ids {
		ids[i] = fmt.Sprint("n", i)
	}
	b.Run("run", func(b *testing.B) {
		store, schema := open(b)
		r := newRunner(b, store, graph.Options{Activities: activities.Stub{}})
		d := linear(b, "lin", ids...)
		var took, rawTook time.Duration
		n := 0
		for b.Loop() {
			rawTook += commits(nodes)
			begun := time.Now()
			run, err := r.Start(b.Context(), graph.StartRequest{Definition: d, Wait: graph.Wait{Limit: time.Hour}})
			if err != nil || run.Status != machine.Completed {
				b.Fatal(run, err)
			}
			took += time.Since(begun)
			n++
		}
		var size int64
		if err := raw.QueryRow(b.Context(), "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = $1::regnamespace", schema).Scan(&size); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(n*nodes)/took.Seconds(), "nodes/s")
		b.ReportMetric(rawTook.Seconds()/took.Seconds(), "x-raw")
		b.ReportMetric(float64(size)/float64(n*nodes), "B/node")
		b.ReportMetric(0, "ns/op")
	})
	b.Run("submit", func(b *testing.B) {
		store, _ := open(b)
		r := newRunner(b, store, hostOptions)
		d := endless(b, 1<<30)
		start(b, r, "model", d, object{"n": 0})
		var took, rawTook time.Duration
		for b.Loop() {
			rawTook += commits(1)
			begun := time.Now()
			submit(b, r, "model", "a", object{"n": 1})
			took += time.Since(begun)
		}
		b.ReportMetric(took.Seconds()/rawTook.Seconds(), "x-raw")
	})
	for _, where := range []string{"status here", "status elsewhere"} { // by the process that has the run in memory, and by another one
		b.Run(where, func(b *testing.B) {
			store, schema := open(b)
			r := newRunner(b, store, hostOptions)
			start(b, r, "waits", linear(b, "lin", "a"), object{"in": 1})
			if where == "status elsewhere" {
				other, err := historypg.Open(b.Context(), server.URL(), historypg.Options{Schema: schema})
				if err != nil {
					b.Fatal(err)
				}
				defer other.Close()
				r = newRunner(b, other, graph.Options{Work: graph.WorkNone})
			}
			for b.Loop() {
				status(b, r, "waits")
			}
		})
	}
}
