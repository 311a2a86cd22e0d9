package expr_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// TestHostileProgramsWithinTheDefaults runs the endless programs to the default limits, which takes minutes under the race
// detector.
func TestHostileProgramsWithinTheDefaults(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("takes minutes under the race detector; make soak runs it")
	}
	for _, src := range endless {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		units, err := expr.Cost(p, nil)
		if e, ok := problem.As(err); err != nil && (!ok || e.Code != problem.ExpressionLimit && e.Code != problem.ExpressionFailed) {
			t.Errorf("%s: %v", src, err)
		}
		if units > expr.DefaultLimits().Cost {
			t.Errorf("%s: %d units", src, units)
		}
	}
}

// TestHeapStaysWithinTheLimit: what Go's heap grows by, with what its collector has not yet found to be free, is about
// what is counted. It does not run in parallel, so that the heap is its own.
func TestHeapStaysWithinTheLimit(t *testing.T) {
	programs := []string{
		`[range(1e9)]`, `[range(1e9) | [range(100)]] | length`, `[range(1e9) | {a: .}] | length`, `"<" * 5e6 | @html`,
		`reduce range(100) as $i ("\u0000"; tojson)`,
	}
	for _, src := range programs[:soak.Size(1, 1, len(programs))] {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		grown := growth(func() { _, err = p.Eval(nil) })
		if e, ok := problem.As(err); !ok || e.Code != problem.ExpressionLimit {
			t.Errorf("%s: %v", src, err)
		}
		if limit := expr.DefaultLimits().Memory; grown > uint64(limit)*5/4 { // the collector may come late
			t.Errorf("%s: the heap grew by %d bytes; the limit is %d", src, grown, limit)
		}
	}
}

// BenchmarkHostile: the time of each has to stay below a second on a machine with two cores that does nothing else, the
// largest heap below 64 MiB.
func BenchmarkHostile(b *testing.B) {
	for _, src := range endless {
		p, err := expr.Compile(src)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(named(src), func(b *testing.B) { measure(b, p) })
	}
}

// unitPrograms are mostly calls of one function each.
var unitPrograms = []string{
	`[range(1e5)] | length`, `[range(1e5) | . + 1] | length`, `last(range(3e5))`, `0 | until(. > 1e5; . + 1)`,
	`[range(5e4) | {a: .}] | length`, `[range(5e4) | [.]] | length`, `[range(2e4) | tostring] | length`,
	`[range(2e4) | tojson | fromjson] | length`, `[range(2e4) | tostring | ascii_upcase] | length`,
	`[range(2e4) | tostring | ltrimstr("1")] | length`, `"x" * 5e6 | ascii_downcase | length`, `"x" * 2e5 | explode | implode | length`,
	`"x," * 1e5 | split(",") | length`, `"x " * 5e4 | [scan("\\w+")] | length`, `"x " * 5e4 | gsub("x"; "y") | length`,
	`"x " * 2e4 | [match("x"; "g")] | length`, `"x " * 1e5 | test("[a-z]+ [a-z]+y")`, `"x " * 5e3 | [match("x(?= )"; "g")] | length`,
	`[range(5e4) | . * 7 % 1000] | sort | length`, `[range(5e4) | . * 7 % 1000] | group_by(.) | length`,
	`[range(5e4) | . * 7 % 1000] | unique_by(.) | length`, `[range(2e4) | tostring] | sort | length`,
	`[range(300) | [range(300)]] | flatten | add`, `[range(300) | [range(300)]] | transpose | length`,
	`[range(300) | [range(300)]] | [paths] | length`, `[range(300) | [range(300)]] | [..] | length`,
	`reduce range(3e4) as $i ({}; .[$i | tostring] = $i) | length`, `reduce range(300) as $i ({}; . + {($i | tostring): $i}) | length`,
	`[range(3e4) | {key: tostring, value: .}] | from_entries | to_entries | length`, `[range(2e4)] | map_values(. + 1) | length`,
	`[range(1e5)] | tojson | length`, `[range(5e4)] | @csv | length`, `[range(2e4) | gmtime | mktime] | length`,
	`[range(2e4) | todate | fromdate] | length`, `[range(3e4) | try error("x") catch .] | length`, `[range(5e4)] | index([49999])`,
	`"ab" * 1e5 | indices("ab") | length`, `[range(2e3)] - [range(2e3)] | length`,
}

// BenchmarkUnits shows the time of a unit where it is spent on one thing: prices are right if it is about the same
// everywhere, 20 to 50 ns.
func BenchmarkUnits(b *testing.B) {
	for _, src := range unitPrograms {
		p, err := expr.Compile(src)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(src, func(b *testing.B) {
			if _, err := p.Eval(nil); err != nil {
				b.Fatal(err)
			}
			measure(b, p)
		})
	}
}

// measure reports the time of a unit and the largest heap.
func measure(b *testing.B, p *expr.Program) {
	units := 0
	grown := growth(func() {
		for b.Loop() {
			p.EvalAt(nil, expr.Env{Spent: &units})
		}
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(units), "ns/unit")
	b.ReportMetric(float64(grown)/1e6, "MB-heap")
}

// growth returns by how many bytes the heap is larger at most while something is done.
func growth(do func()) uint64 {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	most, stop, stopped := before.HeapAlloc, make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for now := new(runtime.MemStats); ; most = max(most, now.HeapAlloc) {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
				runtime.ReadMemStats(now)
			}
		}
	}()
	do()
	close(stop)
	<-stopped
	return most - before.HeapAlloc
}
