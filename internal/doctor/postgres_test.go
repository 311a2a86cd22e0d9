//go:build !nopostgres

package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// Each fault of a server has a finding with a fix, and a server without faults has none.
func TestServerState(t *testing.T) {
	t.Parallel()
	sound := config.ServerState{Version: "16.4", Major: 16, UTF8: true, RoundTrip: time.Millisecond, Left: 50, Most: 100, SchemaExists: true, MayCreate: true}
	for name, tt := range map[string]struct {
		change  func(*config.ServerState)
		code    Code
		level   Level
		message string
	}{
		"sound":      {func(*config.ServerState) {}, DatabaseServer, OK, "PostgreSQL 16.4, one server, answers after 1ms"},
		"replicated": {func(s *config.ServerState) { s.Synchronous = true }, DatabaseServer, OK, "commits wait for a replica"},
		"replica": {
			func(s *config.ServerState) {
				s.Standby, s.Lag = true, history.Lag{Replica: true, Known: true, Behind: 3200 * time.Millisecond}
			}, DatabaseServer, OK, "a replica, at most 3s behind",
		},
		"read-only":   {func(s *config.ServerState) { s.ReadOnly = true }, DatabaseServer, Warning, "default_transaction_read_only"},
		"old":         {func(s *config.ServerState) { s.Version, s.Major = "13.9", 13 }, DatabaseServer, Problem, "13.9"},
		"encoding":    {func(s *config.ServerState) { s.UTF8 = false }, DatabaseServer, Problem, "UTF8"},
		"far":         {func(s *config.ServerState) { s.RoundTrip = 80 * time.Millisecond }, DatabaseServer, Warning, "80ms"},
		"rights":      {func(s *config.ServerState) { s.Lacking = []string{"blobs", "runs"} }, DatabaseRights, Problem, "blobs and runs"},
		"connections": {func(s *config.ServerState) { s.Left = 3 }, DatabaseConnections, Warning, "3 of 100"},
		"ahead":       {func(s *config.ServerState) { s.Ahead = time.Minute }, DatabaseClock, Warning, "1m0s ahead of"},
		"behind":      {func(s *config.ServerState) { s.Ahead = -time.Hour }, DatabaseClock, Warning, "1h0m0s behind"},
	} {
		var r Report
		s := sound
		tt.change(&s)
		r.serverState(s, 9)
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Code == tt.code })
		if i < 0 || r.Findings[i].Level != tt.level || !strings.Contains(r.Findings[i].Message, tt.message) || (r.Findings[i].Fix == "") != (tt.level == OK) {
			t.Errorf("%s: %+v", name, r.Findings)
		}
		for _, f := range r.Findings {
			if f.Code != tt.code && f.Level != OK {
				t.Errorf("%s: also %+v", name, f)
			}
		}
	}
}

// The database of a server is described before its tables exist, with them, and for a user without rights.
func TestStoreOnServer(t *testing.T) {
	t.Parallel()
	server, schema := pgtest.Shared(t), pgtest.Schema(t)
	check := func(url string) (r Report) {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags := config.Register(set)
		if err := set.Parse([]string{"--store-url", url, "--store-schema", schema}); err != nil {
			t.Fatal(err)
		}
		c, err := flags.Load(config.Environment{GOOS: "linux", Home: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		r.Store(t.Context(), c, time.Now())
		return r
	}
	want := func(when string, r Report, level Level, message string) {
		t.Helper()
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Level == level && strings.Contains(f.Message, message) }) {
			t.Errorf("%s: %+v", when, r.Findings)
		}
	}
	r := check(server.URL())
	want("before", r, OK, "the first run creates the tables in ")
	want("before", r, OK, "PostgreSQL ")
	s, err := historypg.Open(t.Context(), server.URL(), historypg.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r = check(server.URL())
	want("empty", r, OK, "schema "+schema+": no runs")
	if r.Problems() > 0 {
		t.Errorf("%+v", r.Findings)
	}
	server.Exec(t, "UPDATE "+schema+".meta SET version = 7")
	if r = check(server.URL()); !slices.ContainsFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.Message, ": no runs") }) ||
		slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Code == DatabaseVersion }) {
		t.Errorf("migrated by a newer release: %+v", r.Findings)
	}
	want("only reading", check(server.URL()+" default_transaction_read_only=on"), Warning, "default_transaction_read_only")
	role := "doctor_" + schema
	server.Exec(t, "CREATE ROLE "+role+" LOGIN; GRANT USAGE ON SCHEMA "+schema+" TO "+role)
	want("without rights", check(server.URL()+" user="+role), Problem, "the user may not read and write the tables ")
	want("without a role", check(server.URL()+" user=missing_"+role), Problem, "")
}
