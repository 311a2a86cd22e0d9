package historysql_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// asked appends a run that has ended, with requests to a model: all have the same system prompt, and each a prompt of its own.
func asked(t *testing.T, s history.Store, id, system string, prompts ...string) []map[string]any {
	t.Helper()
	x := historytest.NewTrace(t, id)
	x.Append(s, historytest.Start(id, "in_process")...)
	var requests []map[string]any
	b := history.Batch{ExecutionID: id, ExpectedSeq: x.Execution.Seq}
	add := func(name history.Name, p history.Payload) {
		r := history.Record{Kind: history.Event, Name: name, Payload: p, CreatedAt: x.Now}
		b.Records = append(b.Records, r)
		x.Execution.Apply(r)
	}
	for _, prompt := range prompts {
		requests = append(requests, map[string]any{
			"model": "m", "$filter": "odd names are kept", "messages": []any{
				map[string]any{"role": "system", "content": system}, map[string]any{"role": "user", "content": prompt},
			},
		})
		add(history.ActivityRequested, history.Payload{NodeID: "n", NodeType: "llm_call", Attempt: 1, Request: requests[len(requests)-1]})
		add(history.ActivityCompleted, history.Payload{NodeID: "n", Result: history.Some(map[string]any{})})
	}
	add(history.ExecutionCompleted, history.Payload{Result: history.Some(nil)})
	b.Execution = x.Execution
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return requests
}

// TestLargeRequestsAreBlobs: what is large in a request is kept once, in rows that other engines can read; the runs are read, verified
// and deleted with it.
func TestLargeRequestsAreBlobs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	system := strings.Repeat("You are careful. ", 2000)
	long := strings.Repeat("a long prompt ", 10_000)
	requests := asked(t, s, "one", system, "short", long, "another")
	asked(t, s, "two", system, "short")
	if n := count(t, path, "SELECT count(*) FROM history WHERE record_schema_version <> 1"); n != 0 {
		t.Errorf("%d rows cannot be read by other engines", n)
	}
	if n := count(t, path, "SELECT max(length(payload_json)) FROM history"); n > 1000 {
		t.Errorf("a row has %d bytes: its request was not moved to blobs", n)
	}
	if n := count(t, path, "SELECT sum(length(content)) FROM blobs"); n > int64(len(system)+len(long)+1000) {
		t.Errorf("the blobs have %d bytes: the system prompt is kept more than once", n)
	}
	i := 0
	for _, r := range mustRead(t, s, "one") {
		if r.Name != history.ActivityRequested {
			continue
		}
		text := history.Record{Name: r.Name, Payload: history.Payload{NodeID: "n", NodeType: "llm_call", Attempt: 1, Request: requests[i]}}
		if !jsonvalue.Equal(r.Payload.Request, requests[i]) || string(r.Text("one")) != string(text.AppendPayload(nil, "one")) {
			t.Errorf("request %d came back as %.200s", i, r.Text("one"))
		}
		i++
	}
	if i != 3 {
		t.Fatalf("%d requests were read", i)
	}
	if found := verified(t, s, "", false); len(found) > 0 {
		t.Errorf("findings %q", found)
	}
	for _, left := range []struct {
		without string
		blobs   int64
	}{{"one", 1}, {"two", 0}} {
		page, err := s.Prune(t.Context(), history.PruneQuery{DefinitionName: left.without})
		if err != nil || len(page.Trees) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		if n := count(t, path, "SELECT count(*) FROM blobs"); n != left.blobs {
			t.Errorf("%d blobs are left without run %s, want %d", n, left.without, left.blobs)
		}
	}
}

// TestADamagedRequestIsFound: a run whose request has lost its blob is reported like any damaged record.
func TestADamagedRequestIsFound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	asked(t, s, "one", strings.Repeat("system ", 2000), "short")
	if found := verified(t, s, "one", false); len(found) > 0 {
		t.Fatalf("findings %q", found)
	}
	r := &reference{t, plain(t, path)}
	defer r.conn.Close()
	r.exec("DELETE FROM blobs")
	if found := verified(t, s, "one", false); !slices.Contains(found, "one 6 RECORD_UNREADABLE") {
		t.Errorf("findings %q", found)
	}
	if _, err := s.Read(t.Context(), "one", 1, 0); err == nil {
		t.Error("the run is read although its request is lost")
	}
	if _, err := s.Execution(t.Context(), "one"); err != nil {
		t.Errorf("its projection: %v", err)
	}
}
