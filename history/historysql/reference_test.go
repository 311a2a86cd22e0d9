package historysql_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

var update = flag.Bool("update", false, "rewrite golden files")

// referenceTable is the table as the reference engine makes it (spec: cli-and-config, 5.2).
const referenceTable = `CREATE TABLE IF NOT EXISTS history (
	execution_id TEXT NOT NULL,
	seq INTEGER NOT NULL,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	payload_json TEXT NOT NULL,
	created_at TEXT NOT NULL,
	record_schema_version INTEGER NOT NULL DEFAULT 1,
	PRIMARY KEY (execution_id, seq)
)`

// reference writes and reads a file as the reference engine does: one transaction a row, no waiting for locks, and
// columns named where it names them.
type reference struct {
	t    testing.TB
	conn *sql.Conn
}

// plain opens a connection of its own to a file.
func plain(t testing.TB, path string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = db.Close()
	})
	return conn
}

func openReference(t testing.TB, path string) *reference {
	t.Helper()
	r := &reference{t, plain(t, path)}
	r.exec(referenceTable)
	var versions int
	r.scan("SELECT count(*) FROM pragma_table_info('history') WHERE name = 'record_schema_version'", &versions)
	if versions == 0 {
		r.exec("ALTER TABLE history ADD COLUMN record_schema_version INTEGER NOT NULL DEFAULT 1")
	}
	r.exec("PRAGMA journal_mode = WAL")
	r.exec("PRAGMA foreign_keys = ON")
	return r
}

func (r *reference) exec(text string, args ...any) {
	r.t.Helper()
	if _, err := r.conn.ExecContext(context.Background(), text, args...); err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
}

func (r *reference) scan(text string, into ...any) {
	r.t.Helper()
	if err := r.conn.QueryRowContext(context.Background(), text).Scan(into...); err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
}

// append adds records in the notation of traces.
func (r *reference) append(id string, lines ...string) {
	r.t.Helper()
	for _, line := range lines {
		rec, err := historytest.ParseRecord(line)
		if err != nil {
			r.t.Fatal(err)
		}
		r.exec("BEGIN IMMEDIATE")
		var seq int64
		row := r.conn.QueryRowContext(context.Background(), "SELECT COALESCE(MAX(seq), 0) FROM history WHERE execution_id = ?", id)
		if err := row.Scan(&seq); err != nil {
			r.t.Fatal(err)
		}
		at := historytest.Begin.Add(time.Duration(seq) * time.Second)
		r.exec(`INSERT INTO history (execution_id, seq, kind, name, payload_json, created_at, record_schema_version) VALUES (?, ?, ?, ?, ?, ?, 1)`,
			id, seq+1, string(rec.Kind), string(rec.Name), string(rec.AppendPayload(nil, id)), history.FormatTimestamp(at))
		r.exec("COMMIT")
	}
}

// referenceRuns are the runs of testdata/reference, by id.
func referenceRuns(t testing.TB) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("testdata/reference/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces found: %v", err)
	}
	runs := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		id := "ref-" + strings.TrimSuffix(filepath.Base(file), ".txt")
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				runs[id] = append(runs[id], line)
			}
		}
	}
	return runs
}

// dump writes a file as SQL text: schema, rows and what marks the file.
func dump(t testing.TB, path string) string {
	t.Helper()
	conn := plain(t, path)
	var out strings.Builder
	query := func(text string, each func(values []any)) {
		rows, err := conn.QueryContext(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			each(values)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	var tables []string
	var triggers strings.Builder // after the rows, which they would add to
	query("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid", func(v []any) {
		into := &out
		switch v[0] {
		case "trigger":
			into = &triggers
		case "table":
			tables = append(tables, v[1].(string))
		}
		fmt.Fprintf(into, "%s;\n", v[2])
	})
	for _, table := range tables {
		query("SELECT * FROM "+table, func(values []any) {
			literals := make([]string, len(values))
			for i, v := range values {
				switch v := v.(type) {
				case nil:
					literals[i] = "NULL"
				case string:
					literals[i] = "'" + strings.ReplaceAll(v, "'", "''") + "'"
				case []byte:
					literals[i] = fmt.Sprintf("X'%X'", v)
				default:
					literals[i] = fmt.Sprint(v)
				}
			}
			fmt.Fprintf(&out, "INSERT INTO %s VALUES (%s);\n", table, strings.Join(literals, ", "))
		})
	}
	out.WriteString(triggers.String())
	for _, pragma := range []string{"application_id", "user_version"} {
		query("PRAGMA "+pragma, func(v []any) { fmt.Fprintf(&out, "PRAGMA %s = %d;\n", pragma, v[0]) })
	}
	return out.String()
}

// load makes a file from SQL text in testdata.
func load(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "runs.db")
	r := &reference{t, plain(t, path)}
	r.exec("PRAGMA journal_mode = WAL")
	r.exec(string(text))
	return path
}
