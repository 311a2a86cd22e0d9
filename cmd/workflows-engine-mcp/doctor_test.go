package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/doctor"
)

// TestDoctorStartsTheServer looks at the real server, with the environment of a desktop host: one that works, one of another
// version, and one that is in trouble.
func TestDoctorStartsTheServer(t *testing.T) {
	t.Parallel()
	host := func(args ...string) doctor.Start {
		return doctor.Start{
			Subject: "host", Command: os.Args[0], Args: args, Env: map[string]string{asServer: "1", "GORACE": "atexit_sleep_ms=0"},
			Home: t.TempDir(), Directory: t.TempDir(), Version: buildVersion(), Reinstall: "install",
		}
	}
	older, without := host(), host()
	older.Version = "0.1"
	without.Home = ""
	for _, c := range []struct {
		name  string
		start doctor.Start
		want  map[doctor.Code]doctor.Level
		fix   string
	}{
		{"it works", host(), map[doctor.Code]doctor.Level{doctor.Server: doctor.OK}, ""},
		{"another version", older, map[doctor.Code]doctor.Level{doctor.ServerVersion: doctor.Warning, doctor.Server: doctor.OK}, "install"},
		{"no home folder", without, map[doctor.Code]doctor.Level{doctor.ServerTrouble: doctor.Problem}, "Set HOME"},
		{"no folder", host("--db", filepath.Join(t.TempDir(), "missing", "runs.db")), map[doctor.Code]doctor.Level{doctor.ServerTrouble: doctor.Problem}, "Create the directory"},
		{"unknown flag", host("--stor", "memory"), map[doctor.Code]doctor.Level{doctor.ServerFailed: doctor.Problem}, "--help"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var r doctor.Report
			r.Serve(t.Context(), c.start)
			if len(r.Findings) != len(c.want) {
				t.Fatalf("%+v", r.Findings)
			}
			for _, f := range r.Findings {
				if c.want[f.Code] != f.Level || f.Level != doctor.OK && !strings.Contains(f.Fix, c.fix) {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}
