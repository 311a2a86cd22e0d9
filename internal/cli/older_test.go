package cli

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// older makes a database of an older version, which nobody has open, from the SQL text of one that is kept for tests.
func older(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: older FILE VERSION")
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "history", "historysql", "testdata", args[1]+".sql"))
	ts.Check(err)
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0]))
	ts.Check(err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec("PRAGMA journal_mode = WAL; " + string(text))
	ts.Check(err)
	ts.Check(db.Close())
}

// unchanged runs a command that only reads on a database in the script's folder, in this process, and compares that folder
// with what it was.
func unchanged(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: unchanged STATUS FILE ARGUMENT…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	args = args[1:]
	look := func() (out string) {
		entries, err := os.ReadDir(ts.MkAbs("."))
		ts.Check(err)
		for _, e := range entries {
			var content []byte
			if !e.IsDir() {
				content, err = os.ReadFile(ts.MkAbs(e.Name()))
				ts.Check(err)
			}
			out += fmt.Sprintf("%s %x\n", e.Name(), sha256.Sum256(content))
		}
		return out
	}
	before := look()
	words := append([]string{args[1], "--db", args[0]}, args[2:]...)
	if args[1] == "store" {
		words = append(args[1:], "--db", args[0])
	}
	if got := runHere(ts, ts.Stdout(), ts.Stderr(), words); got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
	if after := look(); after != before {
		ts.Fatalf("the folder was changed from\n%s\nto\n%s", before, after)
	}
}
