package historypg_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// Diagnose describes the server, and what a user with fewer rights and connections lacks.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	server, schema := pgtest.Shared(t), pgtest.Schema(t)
	o := historypg.Options{Schema: schema}
	d, err := historypg.Diagnose(t.Context(), server.URL(), o)
	if err != nil || d.Major < 14 || !strings.HasPrefix(d.Version, fmt.Sprint(d.Major)) || !d.UTF8 || d.Standby || d.Synchronous ||
		d.RoundTrip <= 0 || d.Ahead.Abs() > time.Second || d.Left <= 0 || d.Left > d.Most || d.SchemaExists || !d.MayCreate || len(d.Lacking) > 0 {
		t.Errorf("%+v, %v", d, err)
	}
	openWith(t, o)
	if d, err = historypg.Diagnose(t.Context(), server.URL(), o); err != nil || !d.SchemaExists || len(d.Lacking) > 0 {
		t.Errorf("%+v, %v", d, err)
	}
	role := "role_" + schema
	server.Exec(t, fmt.Sprintf(`CREATE ROLE %[1]s LOGIN CONNECTION LIMIT 7; GRANT USAGE ON SCHEMA %[2]s TO %[1]s;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[2]s TO %[1]s; REVOKE UPDATE ON %[2]s.runs FROM %[1]s`, role, schema))
	d, err = historypg.Diagnose(t.Context(), server.URL()+" user="+role, o)
	if err != nil || d.MayCreate || len(d.Lacking) != 1 || d.Lacking[0] != "runs" || d.Left != 6 {
		t.Errorf("%+v, %v", d, err)
	}
	_, err = historypg.Diagnose(t.Context(), server.URL()+" user=nobody_sentinel", o)
	if !errors.Is(err, problem.StoreUnavailable) || strings.Contains(err.Error(), "sentinel") {
		t.Errorf("%v", err)
	}
}

// A role without the right to create uses the tables that another role has made, with the rights that the block of docs/database.md grants.
func TestRightsToRun(t *testing.T) {
	t.Parallel()
	server, schema := pgtest.Shared(t), pgtest.Schema(t)
	openWith(t, historypg.Options{Schema: schema})
	page, err := os.ReadFile("../../docs/database.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "\n```sql\n")
	block, _, found := strings.Cut(block, "```\n")
	if !found || strings.Contains(block, "GRANT ALL") {
		t.Fatalf("the page has no block, or one that grants too much: %s", block)
	}
	role := "runs_" + schema
	reader := "reads_" + schema
	server.Exec(t, fmt.Sprintf("CREATE ROLE %[1]s LOGIN; GRANT USAGE ON SCHEMA %[2]s TO %[1]s; GRANT SELECT ON ALL TABLES IN SCHEMA %[2]s TO %[1]s", reader, schema))
	openAt(t, server.URL()+" user="+reader, historypg.Options{Schema: schema, ReadOnly: true})
	if _, err := historypg.Open(t.Context(), server.URL()+" user="+reader, historypg.Options{Schema: schema}); !errors.Is(err, problem.StoreUnavailable) || !strings.Contains(err.Error(), "may not write blobs") {
		t.Errorf("a role that only reads opens the store for writing: %v", err)
	}
	server.Exec(t, "CREATE ROLE "+role+" LOGIN; "+strings.NewReplacer("TO workflows;", "TO "+role+";", "workflows_engine", schema).Replace(block))
	s := openAt(t, server.URL()+" user="+role, historypg.Options{Schema: schema, NoMigrate: true})
	historytest.FillRuns(t, s, 20)
	for name, do := range map[string]func() error{
		"lease":  func() error { return s.Renew(t.Context(), "p", time.Minute) },
		"probe":  func() error { return s.Probe(t.Context()) },
		"key":    func() error { _, err := s.Key(t.Context(), "k"); return err },
		"gc":     func() error { _, err := s.Prune(t.Context(), history.PruneQuery{Limit: 5}); return err },
		"verify": func() error { _, err := s.Verify(t.Context(), "", true, func(history.Finding) {}); return err },
		"definitions": func() error {
			_, err := s.PruneDefinitions(t.Context(), false)
			return err
		},
	} {
		if err := do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
