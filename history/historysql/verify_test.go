package historysql_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// verified gives the findings of a store as "run seq CODE", those that were repaired with a + behind.
func verified(t *testing.T, s *historysql.Store, id string, repair bool) []string {
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
	return out
}

// healthy makes a database with a run that has ended, one that waits, with a timer, and one with large values.
func healthy(t *testing.T) (s *historysql.Store, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "runs.db")
	s = openFile(t, path, historysql.Options{})
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
	b := waits.Batch(append(historytest.Start("w", "host_mediated"), `E TimerStarted t {"kind":"duration","dueAt":"2030-01-01T00:00:00.000Z"}`)...)
	b.SetTimers, b.Timers = true, []history.Timer{{Key: "t#1", Due: historytest.Begin}}
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	large := historytest.NewTrace(t, "large")
	large.Append(s, historytest.Start("w", "host_mediated")...)
	large.Append(s, fmt.Sprintf(`E StateUpdated a {"state":{"big":%q}}`, strings.Repeat("large ", 20_000)))
	return s, path
}

func TestVerifyOfAHealthyDatabase(t *testing.T) {
	t.Parallel()
	s, _ := healthy(t)
	if got := verified(t, s, "", false); len(got) > 0 {
		t.Errorf("found %v", got)
	}
	counts, err := s.Verify(t.Context(), "", false, func(history.Finding) {})
	if want := (history.Verified{Runs: 3, Records: 23, Definitions: 1}); counts != want || err != nil {
		t.Errorf("%+v, %v", counts, err)
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

// TestVerifyFindsDamage damages one thing at a time. What is found after a repair is what no repair may touch.
func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	const insert = "INSERT INTO history (execution_id, seq, kind, name, payload_json, created_at, writer) VALUES "
	for name, c := range map[string]struct {
		damage      string
		want, after []string
	}{
		"a record is gone": {
			damage: "DELETE FROM history WHERE execution_id = 'ended' AND seq = 8",
			want:   []string{"ended 9 RECORD_GAP"}, after: []string{"ended 9 RECORD_GAP"},
		},
		"the first record is gone": {
			damage: "DELETE FROM history WHERE execution_id = 'ended' AND seq = 1",
			want:   []string{"ended 2 RECORD_GAP", "ended 0 PROJECTION_DIFFERS"}, after: []string{"ended 2 RECORD_GAP"},
		},
		"a record before the first": {
			damage: insert + "('ended', 0, 'command', 'ScheduleNode', '{}', '2026-11-21T01:00:00.000Z', 1)",
			want:   []string{"ended 0 RECORD_GAP", "ended 0 PROJECTION_DIFFERS"}, after: []string{"ended 0 RECORD_GAP"},
		},
		"a ready run has ended": {
			damage: "INSERT INTO ready SELECT run, 'default/step:a', 0, 0, '', 0 FROM executions WHERE execution_id = 'ended'",
			want:   []string{"ended 0 ROW_ORPHANED"},
		},
		"a ready run has an owner": {
			damage: "UPDATE executions SET owner = 'p' WHERE execution_id = 'large'; INSERT INTO ready SELECT run, 'default/step:a', 0, 0, '', 0 FROM executions WHERE execution_id = 'large'",
			want:   []string{"large 0 ROW_ORPHANED"},
		},
		"a ready run is gone": {
			damage: "INSERT INTO ready VALUES (4711, 'default/step:a', 0, 0, '', 0)",
			want:   []string{"0 ROW_ORPHANED"},
		},
		"a run counts as ready": {
			damage: "UPDATE executions SET driven = 2 WHERE execution_id = 'large'",
			want:   []string{"large 0 PROJECTION_DIFFERS"},
		},
		"a payload is no JSON": {
			damage: "UPDATE history SET payload_json = '{' WHERE execution_id = 'waits' AND seq = 2",
			want:   []string{"waits 2 RECORD_UNREADABLE"}, after: []string{"waits 2 RECORD_UNREADABLE"},
		},
		"an unknown kind": {
			damage: "UPDATE history SET kind = 'thing' WHERE execution_id = 'waits' AND seq = 3",
			want:   []string{"waits 3 RECORD_UNREADABLE"}, after: []string{"waits 3 RECORD_UNREADABLE"},
		},
		"an unknown name": {
			damage: "UPDATE history SET name = 'Thing' WHERE execution_id = 'waits' AND seq = 3",
			want:   []string{"waits 3 RECORD_UNREADABLE"}, after: []string{"waits 3 RECORD_UNREADABLE"},
		},
		"a name of the other kind": {
			damage: "UPDATE history SET kind = 'command' WHERE execution_id = 'waits' AND seq = 3",
			want:   []string{"waits 3 RECORD_UNREADABLE"}, after: []string{"waits 3 RECORD_UNREADABLE"},
		},
		"a newer version": {
			damage: "UPDATE history SET record_schema_version = 7 WHERE execution_id = 'waits' AND seq = 3",
			want:   []string{"waits 3 HISTORY_VERSION_UNSUPPORTED"}, after: []string{"waits 3 HISTORY_VERSION_UNSUPPORTED"},
		},
		"no time": {
			damage: "UPDATE history SET created_at = 'noon' WHERE execution_id = 'waits' AND seq = 3",
			want:   []string{"waits 3 RECORD_UNREADABLE"}, after: []string{"waits 3 RECORD_UNREADABLE"},
		},
		"a record behind the end": {
			damage: insert + "('ended', 12, 'event', 'NodeScheduled', '{}', '2026-11-21T01:00:00.003Z', 1)",
			want:   []string{"ended 12 RECORD_AFTER_END", "ended 0 PROJECTION_DIFFERS"}, after: []string{"ended 12 RECORD_AFTER_END"},
		},
		"a second end": {
			damage: insert + "('ended', 12, 'event', 'ExecutionFailed', '{}', '2026-11-21T01:00:00.003Z', 1)",
			want:   []string{"ended 12 RECORD_AFTER_END", "ended 0 PROJECTION_DIFFERS"}, after: []string{"ended 12 RECORD_AFTER_END"},
		},
		"an outcome twice": {
			damage: `UPDATE history SET kind = 'event', name = 'ActivityCompleted', payload_json = '{"nodeId":"a"}' WHERE execution_id = 'ended' AND seq = 10`,
			want:   []string{"ended 10 OUTCOME_TWICE"}, after: []string{"ended 10 OUTCOME_TWICE"},
		},
		"a definition's text": {
			damage: `UPDATE definitions SET text = '{"nodes":[ ]}'`,
			want:   []string{"0 DEFINITION_HASH_MISMATCH"}, after: []string{"0 DEFINITION_HASH_MISMATCH"},
		},
		"a payload of another run": {
			damage: `UPDATE history SET payload_json = replace(payload_json, '"executionId":"waits"', '"executionId":"other"') WHERE execution_id = 'waits' AND seq = 2`,
			want:   []string{"waits 2 RECORD_UNREADABLE"}, after: []string{"waits 2 RECORD_UNREADABLE"},
		},
		"another id": {
			damage: "UPDATE history SET execution_id = 'other' WHERE execution_id = 'waits'; UPDATE executions SET execution_id = 'other' WHERE execution_id = 'waits'; UPDATE timers SET execution_id = 'other'",
			want:   []string{"other 1 RECORD_UNREADABLE"}, after: []string{"other 1 RECORD_UNREADABLE"},
		},
		"a projection":          {damage: `UPDATE executions SET projection = replace(projection, 'w', 'x') WHERE execution_id = 'waits'`, want: []string{"waits 0 PROJECTION_DIFFERS"}},
		"a projection is gone":  {damage: "DELETE FROM executions WHERE execution_id = 'waits'", want: []string{"waits 0 PROJECTION_DIFFERS"}},
		"a phase":               {damage: "UPDATE executions SET phase = 'failed' WHERE execution_id = 'waits'", want: []string{"waits 0 PROJECTION_DIFFERS"}},
		"a projection is early": {damage: "UPDATE executions SET seq = 4 WHERE execution_id = 'waits'", want: []string{"waits 0 PROJECTION_DIFFERS"}},
		"wrongly unreadable":    {damage: "UPDATE executions SET problem = 'HISTORY_CORRUPT: x' WHERE execution_id = 'waits'", want: []string{"waits 0 PROJECTION_DIFFERS"}},
		"a run without records": {damage: "DELETE FROM history WHERE execution_id = 'ended'", want: []string{"ended 0 ROW_ORPHANED"}},
		"a link from nobody": {
			damage: "INSERT INTO run_links (to_id, from_id, kind, seq, at) VALUES ('ended', 'nobody', 'retry', 1, 5)", want: []string{"nobody 0 ROW_ORPHANED"},
		},
		"a link to nobody": {
			damage: "INSERT INTO run_links (to_id, from_id, kind, seq, at) VALUES ('nobody', 'ended', 'retry', 1, 5)", want: []string{"nobody 0 ROW_ORPHANED"},
		},
		"a mark of nobody":  {damage: "INSERT INTO handled (execution_id, note, at) VALUES ('nobody', 'seen', 5)", want: []string{"nobody 0 ROW_ORPHANED"}},
		"a timer of nobody": {damage: "INSERT INTO timers VALUES ('nobody', 't#1', 5)", want: []string{"nobody 0 ROW_ORPHANED"}},
		"a delivery of nobody": {
			damage: "INSERT INTO deliveries (delivery_id, event_id, execution_id, target, state, due) VALUES ('d', 'e', 'nobody', 'ops', 'pending', 5)",
			want:   []string{"nobody 0 ROW_ORPHANED"},
		},
		"an event of nobody": {
			damage: "INSERT INTO delivery_events (event_id, execution_id, seq, event, created_at, body) VALUES ('e', 'nobody', 1, 'run.failed', 5, '{}')",
			want:   []string{"nobody 0 ROW_ORPHANED"},
		},
		"a delivery without a body": {
			damage: "INSERT INTO deliveries (delivery_id, event_id, execution_id, target, state, due) VALUES ('d', 'e', 'ended', 'ops', 'pending', 5)",
			want:   []string{"ended 0 ROW_ORPHANED"},
		},
		"an attempt of no delivery": {
			damage: "INSERT INTO delivery_attempts (delivery, attempt, process, began_at) VALUES (77, 1, 'p', 5)",
			want:   []string{"0 ROW_ORPHANED"},
		},
		"a timer of the ended": {damage: "INSERT INTO timers VALUES ('ended', 't#1', 5)", want: []string{"ended 0 ROW_ORPHANED"}},
		"half deleted": {
			damage: "UPDATE executions SET phase = 'deleted', problem = 'deleted' WHERE execution_id = 'ended'",
			want:   []string{"ended 0 DELETION_UNFINISHED"}, after: []string{"ended 0 DELETION_UNFINISHED"},
		},
		"a large value": {
			damage: "UPDATE blobs SET content = content || ' '",
			want:   []string{"0 BLOB_DAMAGED", "large 6 RECORD_UNREADABLE"}, after: []string{"0 BLOB_DAMAGED", "large 6 RECORD_UNREADABLE"},
		},
		"a large value is gone": {
			damage: "DELETE FROM blobs",
			want:   []string{"large 6 RECORD_UNREADABLE"}, after: []string{"large 6 RECORD_UNREADABLE"},
		},
		"a large value is not held": {
			damage: "DELETE FROM blob_refs",
			want:   []string{"large 0 BLOB_DAMAGED"},
		},
		"a large value of nobody": {
			damage: `INSERT INTO blobs (hash, content) VALUES ('12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126', '""')`,
			want:   []string{"0 ROW_ORPHANED"},
		},
		"a large value of nobody beside a run that cannot be read": {
			damage: `INSERT INTO blobs (hash, content) VALUES ('12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126', '""');
				UPDATE history SET payload_json = '{' WHERE execution_id = 'waits' AND seq = 2`,
			want:  []string{"waits 2 RECORD_UNREADABLE", "0 ROW_ORPHANED"},
			after: []string{"waits 2 RECORD_UNREADABLE", "0 ROW_ORPHANED"},
		},
		"a label": {
			damage: "INSERT INTO run_labels SELECT run, 'customer', '17' FROM executions WHERE execution_id = 'waits'",
			want:   []string{"waits 0 PROJECTION_DIFFERS"},
		},
		"a label of no run": {
			damage: "INSERT INTO run_labels VALUES (999, 'customer', '17')",
			want:   []string{"0 ROW_ORPHANED"},
		},
		"an index": {
			damage: "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '(phase', '(seq') WHERE name = 'executions_by_phase'; PRAGMA writable_schema = RESET",
			want:   []string{"0 DATABASE_DAMAGED"}, after: []string{"0 DATABASE_DAMAGED"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, path := healthy(t)
			if err := s.Script(c.damage); err != nil {
				t.Fatal(err)
			}
			s = openFile(t, path, historysql.Options{}) // another process, which knows nothing
			unchanged := allRows(t, s)
			got := slices.Compact(verified(t, s, "", false))
			if !slices.Equal(got, c.want) {
				t.Errorf("found\n%v, want\n%v", got, c.want)
			}
			repaired := slices.Compact(verified(t, s, "", true))
			after := slices.Compact(verified(t, s, "", false))
			if !slices.Equal(after, c.after) {
				t.Errorf("after the repair %v\nfound %v, want %v", repaired, after, c.after)
			}
			if got := allRows(t, s); got != unchanged {
				t.Errorf("records were changed")
			}
		})
	}
}

// TestARepairedProjectionCountsLargeValues compares what a run takes with what it took before its projection was lost.
func TestARepairedProjectionCountsLargeValues(t *testing.T) {
	t.Parallel()
	s, _ := healthy(t)
	want, err := s.Execution(t.Context(), "large")
	if err != nil || want.Bytes < 100_000 {
		t.Fatalf("%d bytes, %v", want.Bytes, err)
	}
	if err := s.Script("DELETE FROM executions WHERE execution_id = 'large'"); err != nil {
		t.Fatal(err)
	}
	if got := verified(t, s, "", true); !slices.Equal(got, []string{"large 0 PROJECTION_DIFFERS+"}) {
		t.Errorf("repaired %v", got)
	}
	if got, err := s.Execution(t.Context(), "large"); err != nil || got.Bytes != want.Bytes {
		t.Errorf("%d bytes, want %d; %v", got.Bytes, want.Bytes, err)
	}
}

// allRows is everything in the table of records.
func allRows(t *testing.T, s *historysql.Store) string {
	t.Helper()
	text, err := s.Text("SELECT COALESCE(group_concat(quote(execution_id) || seq || kind || name || quote(payload_json), char(10)), '') FROM (SELECT * FROM history ORDER BY execution_id, seq)")
	if err != nil {
		t.Fatal(err)
	}
	return text
}
