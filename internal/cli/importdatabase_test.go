package cli

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// engineDatabase makes a database of the npm engine with runs in the notation of traces.
func engineDatabase(t *testing.T, path string, runs map[string]string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	exec := func(text string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("PRAGMA journal_mode = WAL")
	exec(`CREATE TABLE history (execution_id TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
		payload_json TEXT NOT NULL, created_at TEXT NOT NULL, record_schema_version INTEGER NOT NULL DEFAULT 1, PRIMARY KEY (execution_id, seq))`)
	for id, lines := range runs {
		seq := 0
		for line := range strings.Lines(lines) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			rec, err := historytest.ParseRecord(line)
			if err != nil {
				t.Fatal(err)
			}
			seq++
			exec("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, 1)", id, seq, string(rec.Kind), string(rec.Name),
				string(rec.AppendPayload(nil, id)), history.FormatTimestamp(historytest.Begin.Add(time.Duration(seq)*time.Second)))
		}
	}
	return db
}

// TestTheRunsOfAnEngineDatabaseAreImported, and what is wrong with the others is said.
func TestTheRunsOfAnEngineDatabaseAreImported(t *testing.T) {
	t.Parallel()
	c := newCommands(t, map[string]string{"ask.workflow.json": askText})
	file, db := filepath.Join(c.folder, "history.sqlite"), filepath.Join(c.folder, "history.imported.db")
	asking := `
		E ExecutionStarted {"workflowName":"ask","workflowVersion":"1","inputKeys":[]}
		C ScheduleNode a
		E NodeScheduled a
		C CompleteNode a {"output":{}}
		E StateUpdated a {"state":{}}
		C ScheduleNode ask
		E NodeScheduled ask
		C RaiseInterrupt ask {"prompt":"Open the gate?"}
		E InterruptRaised ask {"prompt":"Open the gate?"}`
	engine := engineDatabase(t, file, map[string]string{
		"asks": asking, "broken": asking,
		"done": `
			E ExecutionStarted {"workflowName":"lost","workflowVersion":"1","inputKeys":[]}
			C ScheduleNode a
			E ExecutionCompleted {"result":{"n":1}}`,
	})
	if _, err := engine.ExecContext(t.Context(), "UPDATE history SET payload_json = '{' WHERE execution_id = 'broken' AND seq = 3"); err != nil {
		t.Fatal(err)
	}
	now := historytest.Begin.Add(time.Hour)

	// It is no store, and the error has the command that imports it.
	_, stderr := c.at(now, exitFailed, "list", "--db", file)
	wantMatch(t, stderr, `IMPORT_REQUIRED: .*history\.sqlite is a database of the npm engine`, true)
	wantMatch(t, stderr, `workflows-engine db import `+file+` --db `+db+` imports its runs`, true)

	// Without the definition of the open run only the ended one is imported.
	stdout, stderr := c.at(now, exitFailed, "import", file, "--db", db)
	wantMatch(t, stdout, `(?m)^imported run done \(completed\) with 0 subworkflows, 3 records, kept without a definition$`, true)
	wantMatch(t, stderr, `rejected: DEFINITION_REQUIRED: run "asks" is open and follows the workflow "ask", version "1"`, true)
	wantMatch(t, stderr, `rejected: HISTORY_CORRUPT: record 3 of run "broken" has an unreadable payload`, true)
	wantMatch(t, stderr, `2 of 3 runs in .* were not imported`, true)

	// Again, with the definition.
	stdout, stderr = c.at(now, exitFailed, "import", file, "--db", db, "--definition", filepath.Join(c.folder, "ask.workflow.json"))
	wantMatch(t, stdout, `(?m)^unchanged: run done .*imported before$`, true)
	wantMatch(t, stdout, `(?m)^imported run asks \(interrupted\) with 0 subworkflows, 9 records$`, true)
	wantMatch(t, stderr, `1 of 3 runs`, true)

	// The run continues here, and a later import leaves it alone.
	if _, err := engine.ExecContext(t.Context(), "DELETE FROM history WHERE execution_id = 'broken'"); err != nil {
		t.Fatal(err)
	}
	c.at(now, exitOK, "resume", "asks", "--payload", `{"ok":true}`, "--db", db)
	stdout, _ = c.at(now, exitOK, "import", file, "--db", db, "--workflow-dir", c.folder, "--json")
	wantMatch(t, stdout, `(?s)"execution_id": "asks",\s*"phase": "completed".*"unchanged": true`, true)
	wantMatch(t, stdout, `"rejected": \[\]`, true)
	stdout, _ = c.at(now, exitOK, "verify", "--db", db)
	wantMatch(t, stdout, `NONDETERMINISM`, false)
	if _, err := os.Stat(file + "-shm"); err != nil { // the engine has it open all the time
		t.Error(err)
	}
}

// TestFlagsOfADatabaseAreForADatabase: a run file has its definitions.
func TestFlagsOfADatabaseAreForADatabase(t *testing.T) {
	t.Parallel()
	c := newCommands(t, map[string]string{"run.jsonl": "{}\n"})
	_, stderr := c.at(time.Now(), exitUsage, "import", filepath.Join(c.folder, "run.jsonl"), "--mode", "in_process")
	wantMatch(t, stderr, `require a database of the npm engine`, true)
}
