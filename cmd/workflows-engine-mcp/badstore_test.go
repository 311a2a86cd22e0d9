package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// script creates a database with the statements of another program.
func script(t *testing.T, path string, statements ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return db
}

// sound creates a database with a run in it, and returns its path.
func sound(t *testing.T) string {
	t.Helper()
	db := database(t)
	p := spawn(t, "--store-path", db)
	p.write(hello, toolCall(1, "workflow_start", `{"execution_id":"n","definition":`+nap(0)+`}`))
	p.read()
	if got := structured(p.read()); got["status"] != "completed" {
		t.Fatalf("answered %v", got)
	}
	p.stdin.Close()
	p.end()
	return db
}

// TestBadStores starts the server over files that it cannot use: it ends with a code and a hint on stderr, writes nothing to
// stdout, and does not change the file. Once the file is sound again, the server serves its content.
func TestBadStores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		code problem.Code
		// spoil damages the file.
		spoil func(t *testing.T, path string, content []byte) []byte
	}{
		{"cut off", problem.HistoryCorrupt, func(_ *testing.T, _ string, c []byte) []byte { return c[:len(c)/3] }},
		{"cut off in its head", problem.HistoryCorrupt, func(_ *testing.T, _ string, c []byte) []byte { return c[:60] }},
		{"overwritten", problem.HistoryCorrupt, func(_ *testing.T, _ string, c []byte) []byte {
			return append([]byte("#!/bin/sh\necho hello\n"), c[21:]...)
		}},
		{"text", problem.HistoryCorrupt, func(*testing.T, string, []byte) []byte { return []byte("to be, or not to be") }},
		{"newer", problem.HistoryNewer, func(t *testing.T, path string, _ []byte) []byte {
			script(t, path, "PRAGMA user_version = 999").Close()
			return nil
		}},
		{"another program's", problem.HistoryCorrupt, func(t *testing.T, path string, _ []byte) []byte {
			os.Remove(path)
			script(t, path, "CREATE TABLE bookmarks (url TEXT)").Close()
			return nil
		}},
		{"a folder", problem.StoreUnavailable, func(t *testing.T, path string, _ []byte) []byte {
			os.Remove(path)
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := sound(t)
			good, err := os.ReadFile(db)
			if err != nil {
				t.Fatal(err)
			}
			if bad := c.spoil(t, db, good); bad != nil {
				if err := os.WriteFile(db, bad, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before, _ := os.ReadFile(db)
			p := spawn(t, "--store-path", db)
			p.stdin.Close()
			if status := p.end(); status != exitFailed {
				t.Errorf("exit status %d", status)
			}
			lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
			if last := lines[max(0, len(lines)-2):]; len(last) < 2 || !strings.Contains(last[0], string(c.code)+": ") || !strings.HasPrefix(last[1], "  ") {
				t.Errorf("want %s and a hint, got\n%s", c.code, p.stderr)
			}
			if after, _ := os.ReadFile(db); string(after) != string(before) {
				t.Error("the file was changed")
			}
			os.Remove(db)
			if err := os.WriteFile(db, good, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := status(t, db, "n"); got["phase"] != "completed" {
				t.Errorf("sound again, the run is %v", got)
			}
		})
	}
}

// TestEmptyFileIsANewStore: the server creates its database in an empty file.
func TestEmptyFileIsANewStore(t *testing.T) {
	t.Parallel()
	db := database(t)
	if err := os.WriteFile(db, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := status(t, db, "n"); got["error"] == nil {
		t.Errorf("answered %v", got)
	}
}

// TestStoreFailsWhileServing makes the store of a running server fail: calls are answered with a code and a hint, nothing is
// written, and the same process continues once the cause is gone.
func TestStoreFailsWhileServing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code problem.Code
		take func(t *testing.T, dir, db string) (back func())
	}{
		"locked": {problem.StoreLocked, func(t *testing.T, _, db string) func() {
			other := script(t, db, "BEGIN IMMEDIATE")
			return func() { other.Close() }
		}},
		"full": {problem.StoreFull, func(t *testing.T, dir, _ string) func() {
			ballast := filepath.Join(dir, "ballast")
			f, err := os.Create(ballast)
			if err != nil {
				t.Fatal(err)
			}
			for block := make([]byte, 4096); err == nil; {
				_, err = f.Write(block)
			}
			f.Close()
			return func() { os.Remove(ballast) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if name == "full" {
				smallDisk(t, dir)
			}
			db := filepath.Join(dir, "runs.db")
			p := spawn(t, "--store-path", db)
			p.write(hello)
			p.read()
			call := func(n int) map[string]any {
				t.Helper()
				note := strings.Repeat("x", 20_000)
				p.write(toolCall(n, "workflow_start", fmt.Sprintf(`{"execution_id":"n%d","input":{"note":%q},"definition":%s}`, n, note, nap(0))))
				return structured(p.read())
			}
			if got := call(1); got["status"] != "completed" {
				t.Fatalf("before: %v", got)
			}
			back := c.take(t, dir, db)
			n := 2
			got := call(n)
			for got["error"] == nil && n < 40 { // there is room in the log, which grows ahead
				n++
				got = call(n)
			}
			text, _ := json.Marshal(got["error"])
			if !strings.Contains(string(text), string(c.code)) || !strings.Contains(string(text), "hint") {
				t.Errorf("answered %.500v, want %s and a hint", got, c.code)
			}
			back()
			if got := call(n); got["status"] != "completed" {
				t.Errorf("after: %v", got)
			}
			p.stdin.Close()
			if status := p.end(); status != 0 {
				t.Errorf("exit status %d\n%s", status, p.stderr)
			}
		})
	}
}
