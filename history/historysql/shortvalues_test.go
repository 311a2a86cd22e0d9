package historysql_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestReusedMemoryIsAnotherValue: a large list or object that is met twice is recognised by its pointer. What a delta says is garbage
// once it is written, and the next one in the same batch may be allocated where it was.
func TestReusedMemoryIsAnotherValue(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{Synchronous: historysql.Normal, WholeBytes: 1, ValueBytes: 256})
	stop, stopped := make(chan struct{}), make(chan struct{})
	defer func() { close(stop); <-stopped }()
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	list := make([]any, 20)
	for i := range list {
		list[i] = strings.Repeat(fmt.Sprintf("%03d ", i), 20)
	}
	x := historytest.NewTrace(t, "a")
	b := history.Batch{ExecutionID: "a"}
	var texts []string
	add := func(name history.Name, p history.Payload) {
		r := history.Record{Kind: history.Event, Name: name, Payload: p, CreatedAt: x.Now}
		r.Payload.NodeID = "n"
		b.Records = append(b.Records, r)
		x.Execution.Apply(r)
		texts = append(texts, string(r.AppendPayload(nil, "a")))
	}
	add(history.StateUpdated, history.Payload{State: map[string]any{"list": list}})
	for n := range 2000 {
		changed := slices.Clone(list)
		for i := range 5 {
			changed[i] = strings.Repeat(fmt.Sprintf("%d.%d", n, i), 12)
		}
		add(history.ActivityCompleted, history.Payload{Result: history.Some(map[string]any{"list": changed})})
	}
	b.Execution = x.Execution
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for i, r := range mustRead(t, s, "a") {
		if got := string(r.AppendPayload(nil, "a")); got != texts[i] {
			t.Fatalf("record %d came back as\n%.200s\nwant\n%.200s", i+1, got, texts[i])
		}
	}
}
