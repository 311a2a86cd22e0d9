package historypg_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// verified gives the findings of a store as "run seq CODE", those that were repaired with a + behind.
func verified(t *testing.T, s *historypg.Store, id string, repair bool) []string {
	t.Helper()
	var out []string
	_, err := s.Verify(t.Context(), id, repair, func(f history.Finding) {
		line := fmt.Sprintf("%s %d %s", f.ExecutionID, f.Seq, f.Code)
		if f.Repaired {
			line += "+"
		}
		if f.Message == "" || f.Hint == "" {
			t.Errorf("%+v says too little", f)
		}
		out = append(out, strings.TrimSpace(line))
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Compact(out)
}

// healthy makes a store with a run that has ended, one that waits, with a timer, one with large values, and one that is ready.
func healthy(t *testing.T) (s *historypg.Store, schema string) {
	t.Helper()
	schema = emptySchema(t)
	s = openWith(t, historypg.Options{Schema: schema})
	text := []byte(`{"nodes":[]}`)
	v, err := jsonvalue.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PutDefinition(t.Context(), history.StoredDefinition{Hash: jsonvalue.Hash(v), Name: "w", Version: "1", Text: text}); err != nil {
		t.Fatal(err)
	}
	ended := historytest.NewTrace(t, "ended")
	ended.Append(s, historytest.Start("w", "host_mediated")...)
	ended.Append(s, "C ScheduleNode a", "E NodeScheduled a", `E ActivityRequested a {"nodeType":"step","attempt":1,"activityExecutionMode":"host_mediated"}`)
	ended.Append(s, `E ActivityCompleted a {"nodeType":"step","result":{"r":1}}`, `C CompleteNode a {"output":{"r":1}}`)
	end := ended.Batch("E ExecutionCompleted")
	end.Deliveries = historytest.Delivers("evt", "{}", historytest.Begin, "ops", "crm")
	if err := s.Append(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	if _, claimed, err := s.ClaimDelivery(t.Context(), history.DeliveryClaim{DeliveryID: "evt-ops", Attempt: 1, Process: "p", At: historytest.Begin}); !claimed || err != nil {
		t.Fatal(claimed, err)
	}
	waits := historytest.NewTrace(t, "waits")
	b := waits.Batch(`E ExecutionStarted {"workflowName":"w","labels":{"a":"1"},"mode":"host_mediated"}`, `E TimerStarted t {"kind":"duration","dueAt":"2030-01-01T00:00:00.000Z"}`)
	b.SetTimers, b.Timers = true, []history.Timer{{Key: "t#1", Due: historytest.Begin}}
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	large := historytest.NewTrace(t, "large")
	large.Append(s, historytest.Start("w", "host_mediated")...)
	large.Append(s, fmt.Sprintf(`E StateUpdated a {"state":{"big":%q}}`, strings.Repeat("large ", 20_000)))
	ready := historytest.NewTrace(t, "ready").Batch(historytest.Start("w", "in_process")...)
	ready.Ready = &history.Ready{Lane: history.Lane{Queue: "default", Needs: "step:a"}}
	if err := s.Append(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	return s, schema
}

func TestVerifyOfAHealthyStore(t *testing.T) {
	t.Parallel()
	s, _ := healthy(t)
	if got := verified(t, s, "", false); len(got) > 0 {
		t.Errorf("found %v", got)
	}
	counts, err := s.Verify(t.Context(), "", false, func(history.Finding) {})
	if want := (history.Verified{Runs: 4, Records: 24, Definitions: 1}); counts != want || err != nil {
		t.Errorf("%+v, %v", counts, err)
	}
	if counts, err := s.Verify(t.Context(), "waits", false, func(history.Finding) {}); counts.Runs != 1 || err != nil {
		t.Errorf("one run: %+v, %v", counts, err)
	}
	if _, err := s.Verify(t.Context(), "nobody", false, func(history.Finding) {}); !errors.Is(err, problem.ExecutionNotFound) {
		t.Errorf("an unknown run: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Verify(ctx, "", false, func(history.Finding) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

// TestVerifyFindsDamage damages one thing at a time. What is found after a repair is what no repair may touch. In the statements, @ stands for the
// schema, and {x} for the number of the run x.
func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage      string
		want, after []string
	}{
		"a record is gone": {
			damage: "DELETE FROM @records WHERE run = {ended} AND seq = 8",
			want:   []string{"ended 9 RECORD_GAP"}, after: []string{"ended 9 RECORD_GAP"},
		},
		"all records are gone": {
			damage: "DELETE FROM @records WHERE run = {waits}",
			want:   []string{"waits 0 RECORD_GAP"}, after: []string{"waits 0 RECORD_GAP"},
		},
		"the last record is gone": {damage: "DELETE FROM @records WHERE run = {waits} AND seq = 2", want: []string{"waits 0 PROJECTION_DIFFERS"}},
		"a payload is no JSON": {
			damage: "UPDATE @records SET payload = '{' WHERE run = {waits} AND seq = 2",
			want:   []string{"waits 2 RECORD_UNREADABLE"}, after: []string{"waits 2 RECORD_UNREADABLE"},
		},
		"an unknown name": {
			damage: "UPDATE @records SET name = 'Thing' WHERE run = {waits} AND seq = 2",
			want:   []string{"waits 2 RECORD_UNREADABLE"}, after: []string{"waits 2 RECORD_UNREADABLE"},
		},
		"an unknown form": {
			damage: "UPDATE @records SET form = 9 WHERE run = {waits} AND seq = 2",
			want:   []string{"waits 2 RECORD_UNREADABLE"}, after: []string{"waits 2 RECORD_UNREADABLE"},
		},
		"a record behind the end": {
			damage: "INSERT INTO @records VALUES ({ended}, 12, 'NodeScheduled', 1795222863003, 0, '{}')",
			want:   []string{"ended 12 RECORD_AFTER_END", "ended 0 PROJECTION_DIFFERS"}, after: []string{"ended 12 RECORD_AFTER_END"},
		},
		"an outcome twice": {
			damage: `UPDATE @records SET name = 'ActivityCompleted', payload = '{"nodeId":"a"}' WHERE run = {ended} AND seq = 10`,
			want:   []string{"ended 10 OUTCOME_TWICE"}, after: []string{"ended 10 OUTCOME_TWICE"},
		},
		"records of no run": {
			damage: "DELETE FROM @runs WHERE execution_id = 'ready'; DELETE FROM @ready",
			want:   []string{"0 DATABASE_DAMAGED"}, after: []string{"0 DATABASE_DAMAGED"},
		},
		"a definition's text": {
			damage: `UPDATE @definitions SET text = '{"nodes":[ ]}'`,
			want:   []string{"0 DEFINITION_HASH_MISMATCH"}, after: []string{"0 DEFINITION_HASH_MISMATCH"},
		},
		"a payload of another run": {
			damage: `UPDATE @records SET payload = replace(payload, '"executionId":"waits"', '"executionId":"other"') WHERE run = {waits} AND seq = 2`,
			want:   []string{"waits 2 RECORD_UNREADABLE"}, after: []string{"waits 2 RECORD_UNREADABLE"},
		},
		"another id": {
			damage: "UPDATE @runs SET execution_id = 'other' WHERE execution_id = 'large'",
			want:   []string{"other 1 RECORD_UNREADABLE"}, after: []string{"other 1 RECORD_UNREADABLE"},
		},
		"no bytes":                {damage: "UPDATE @runs SET bytes = 0 WHERE execution_id = 'large'", want: []string{"large 0 PROJECTION_DIFFERS"}},
		"a byte too many":         {damage: "UPDATE @runs SET bytes = bytes + 1 WHERE execution_id = 'ended'", want: []string{"ended 0 PROJECTION_DIFFERS"}},
		"a projection":            {damage: "UPDATE @runs SET projection = replace(projection, 'w', 'x') WHERE execution_id = 'waits'", want: []string{"waits 0 PROJECTION_DIFFERS"}},
		"a projection is no JSON": {damage: "UPDATE @runs SET projection = '{' WHERE execution_id = 'waits'", want: []string{"waits 0 PROJECTION_DIFFERS"}},
		"a phase":                 {damage: "UPDATE @runs SET phase = 'failed' WHERE execution_id = 'waits'", want: []string{"waits 0 PROJECTION_DIFFERS"}},
		"a projection is early":   {damage: "UPDATE @runs SET seq = 1 WHERE execution_id = 'waits'", want: []string{"waits 0 PROJECTION_DIFFERS"}},
		"a run counts as ready":   {damage: "UPDATE @runs SET driven = 2 WHERE execution_id = 'large'", want: []string{"large 0 PROJECTION_DIFFERS"}},
		"a place is gone":         {damage: "DELETE FROM @ready", want: []string{"ready 0 PROJECTION_DIFFERS"}},
		"a ready run has ended": {
			damage: "INSERT INTO @ready VALUES ({ended}, 'default/step:a', 0, 0, '', 0)", want: []string{"ended 0 ROW_ORPHANED"},
		},
		"a ready run has an owner": {damage: "UPDATE @runs SET owner = 'p', driven = 1 WHERE execution_id = 'ready'", want: []string{"ready 0 ROW_ORPHANED"}},
		"a ready run is gone":      {damage: "INSERT INTO @ready VALUES (4711, 'default/step:a', 0, 0, '', 0)", want: []string{"0 ROW_ORPHANED"}},
		"a link to nobody":         {damage: "INSERT INTO @run_links VALUES ('nobody', 'ended', 'retry', 1, '', 5)", want: []string{"0 ROW_ORPHANED"}},
		"a link from nobody":       {damage: "INSERT INTO @run_links VALUES ('ended', 'nobody', 'retry', 1, '', 5)", want: []string{"0 ROW_ORPHANED"}},
		"a mark of nobody":         {damage: "INSERT INTO @handled VALUES ('nobody', 'seen', '', '', 5)", want: []string{"0 ROW_ORPHANED"}},
		"a timer of nobody":        {damage: "INSERT INTO @timers VALUES (-1, 't#1', 5)", want: []string{"0 ROW_ORPHANED"}},
		"a timer of the ended":     {damage: "INSERT INTO @timers VALUES ({ended}, 't#1', 5)", want: []string{"ended 0 ROW_ORPHANED"}},
		"a share of no limit":      {damage: "INSERT INTO @shares VALUES ('c', 'p', 1, 1, 0, 0)", want: []string{"0 ROW_ORPHANED"}},
		"a label":                  {damage: "INSERT INTO @run_labels VALUES ({ended}, 'customer', '17')", want: []string{"ended 0 PROJECTION_DIFFERS"}},
		"a label is gone":          {damage: "DELETE FROM @run_labels", want: []string{"waits 0 PROJECTION_DIFFERS"}},
		"a label of no run":        {damage: "INSERT INTO @run_labels VALUES (-1, 'customer', '17')", want: []string{"0 ROW_ORPHANED"}},
		"a delivery of nobody": {
			damage: "INSERT INTO @deliveries (delivery_id, event_id, run, target, state, due) VALUES ('d', 'evt', -1, 'ops', 'pending', 5)", want: []string{"0 ROW_ORPHANED"},
		},
		"an event of nobody": {
			damage: "INSERT INTO @delivery_events (event_id, run, seq, event, created_at, body) VALUES ('e', -1, 1, 'run.failed', 5, '{}')", want: []string{"0 ROW_ORPHANED"},
		},
		"a delivery without a body": {
			damage: "INSERT INTO @deliveries (delivery_id, event_id, run, target, state, due) VALUES ('d', 'e', {ended}, 'ops', 'pending', 5)", want: []string{"ended 0 ROW_ORPHANED"},
		},
		"an attempt of no delivery": {
			damage: "INSERT INTO @delivery_attempts (delivery, attempt, process, began_at) VALUES (-77, 1, 'p', 5)", want: []string{"0 ROW_ORPHANED"},
		},
		"half deleted": {
			damage: "UPDATE @runs SET phase = 'deleted' WHERE execution_id = 'ended'",
			want:   []string{"ended 0 DELETION_UNFINISHED"}, after: []string{"ended 0 DELETION_UNFINISHED"},
		},
		"a large value": {
			damage: "UPDATE @blobs SET content = content || ' '",
			want:   []string{"large 6 RECORD_UNREADABLE", "large 0 BLOB_DAMAGED"}, after: []string{"large 6 RECORD_UNREADABLE", "large 0 BLOB_DAMAGED"},
		},
		"a large value is gone": {
			damage: "DELETE FROM @blobs",
			want:   []string{"large 6 RECORD_UNREADABLE"}, after: []string{"large 6 RECORD_UNREADABLE"},
		},
		"a large value of nobody": {
			damage: `INSERT INTO @blobs VALUES ({waits}, '12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126', '""')`, want: []string{"waits 0 ROW_ORPHANED"},
		},
		"a large value of no run": {
			damage: `INSERT INTO @blobs VALUES (-1, '12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126', '""')`, want: []string{"0 ROW_ORPHANED"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, schema := healthy(t)
			server := pgtest.Shared(t)
			damage := c.damage
			for _, id := range []string{"ended", "waits", "large", "ready"} {
				damage = strings.ReplaceAll(damage, "{"+id+"}", "(SELECT run FROM @runs WHERE execution_id = '"+id+"')")
			}
			server.Exec(t, strings.ReplaceAll(damage, "@", schema+"."))
			records := "SELECT coalesce(string_agg(r::text, ';' ORDER BY run, seq), '') FROM " + schema + ".records AS r"
			before := query[string](t, server, records)
			if got := verified(t, s, "", false); !slices.Equal(got, c.want) {
				t.Errorf("found\n%v, want\n%v", got, c.want)
			}
			repaired := verified(t, s, "", true)
			if got := verified(t, s, "", false); !slices.Equal(got, c.after) {
				t.Errorf("after the repair %v\nfound %v, want %v", repaired, got, c.after)
			}
			if query[string](t, server, records) != before {
				t.Errorf("records were changed")
			}
		})
	}
}

// TestARepairedProjectionCountsLargeValues compares what a run takes with what it took before its projection was damaged.
func TestARepairedProjectionCountsLargeValues(t *testing.T) {
	t.Parallel()
	s, schema := healthy(t)
	want, err := s.Execution(t.Context(), "large")
	if err != nil || want.Bytes < 100_000 {
		t.Fatalf("%d bytes, %v", want.Bytes, err)
	}
	pgtest.Shared(t).Exec(t, "UPDATE "+schema+".runs SET projection = '{}', bytes = 0, phase = 'failed' WHERE execution_id = 'large'")
	if got := verified(t, s, "large", true); !slices.Equal(got, []string{"large 0 PROJECTION_DIFFERS+"}) {
		t.Errorf("repaired %v", got)
	}
	if got, err := s.Execution(t.Context(), "large"); err != nil || got.Bytes != want.Bytes || got.Phase != want.Phase {
		t.Errorf("%d bytes, want %d; %v", got.Bytes, want.Bytes, err)
	}
}
