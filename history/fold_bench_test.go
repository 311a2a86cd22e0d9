package history_test

import (
	"fmt"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
)

// forked returns the records with which a block of n branches begins, each with an activity of a host.
func forked(n int) []history.Record {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("b", i)
	}
	records := []history.Record{{Kind: history.Command, Name: history.StartParallel, Payload: history.Payload{NodeID: "p", Join: "all", BranchNames: names}}}
	for _, name := range names {
		records = append(records, history.Record{Kind: history.Event, Name: history.ActivityRequested, Payload: history.Payload{
			NodeID: "n" + name, Mode: "host_mediated", Span: &history.ParallelSpan{ParallelNodeID: "p", BranchName: name},
		}})
	}
	return records
}

// BenchmarkFork folds the beginning of large blocks: the time per branch should not grow much with their number.
func BenchmarkFork(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		records := forked(n)
		b.Run(fmt.Sprint("branches=", n), func(b *testing.B) {
			for b.Loop() {
				var e history.Execution
				e.ApplyAll(records)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/branch")
		})
	}
}

// TestCopiesOfAProjectionStayAsTheyAre goes on with a projection in two ways, and with waits that begin out of branch order.
func TestCopiesOfAProjectionStayAsTheyAre(t *testing.T) {
	t.Parallel()
	records := forked(4)
	var e history.Execution
	e.ApplyAll([]history.Record{records[0], records[3], records[1]})
	one, two := e, e
	one.ApplyAll([]history.Record{records[2], records[4]})
	two.ApplyAll([]history.Record{records[4], {Kind: history.Event, Name: history.ActivityCompleted, Payload: records[1].Payload}})
	for _, c := range []struct {
		e    history.Execution
		want string
	}{{e, "nb0 nb2"}, {one, "nb0 nb1 nb2 nb3"}, {two, "nb2 nb3"}} {
		got := ""
		for _, w := range c.e.Waits {
			got += " " + w.NodeID
		}
		if got != " "+c.want {
			t.Errorf("waits%s, want %s", got, c.want)
		}
	}
}
