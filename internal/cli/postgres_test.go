//go:build !nopostgres

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
)

// TestPostgresScript runs the scripts about the store on a PostgreSQL server, each in a schema of its own.
func TestPostgresScript(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "postgres", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		runOnServer(t, file)
	}
}

// needsFile finds what a script has that is about a database in a file.
var needsFile = regexp.MustCompile(`--db|--store|\$RUNS|^older |^unchanged |^damage |runs\\?\.db|data folder|the file has|--vacuum`)

// TestScriptOnPostgres runs the scripts of the other commands with a server as the default database: they do not notice.
func TestScriptOnPostgres(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !needsFile.Match(text) {
			runOnServer(t, file)
			ran++
		}
	}
	if ran < 20 {
		t.Errorf("only %d scripts", ran)
	}
}

// runOnServer runs a script with a schema of its own on the server of the tests as the database.
func runOnServer(t *testing.T, file string) {
	t.Run(filepath.Base(file), func(t *testing.T) {
		t.Parallel()
		server, schema := pgtest.Shared(t), pgtest.Schema(t)
		p := scriptParams(t)
		p.Files = []string{file}
		setup := p.Setup
		p.Setup = func(env *testscript.Env) error {
			env.Setenv("WORKFLOW_ENGINE_STORE_URL", server.URL())
			env.Setenv("WORKFLOW_ENGINE_STORE_SCHEMA", schema)
			env.Setenv("SCHEMA", schema)
			return setup(env)
		}
		p.Cmds["sql"] = func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) != 1 {
				ts.Fatalf("usage: sql STATEMENTS")
			}
			server.Exec(t, args[0])
		}
		if filepath.Base(filepath.Dir(file)) != "postgres" { // these expect an empty database instead of none
			c := exec.Command(program, "store", "migrate")
			c.Env = append(os.Environ(), "WORKFLOW_ENGINE_STORE_URL="+server.URL(), "WORKFLOW_ENGINE_STORE_SCHEMA="+schema)
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		testscript.Run(t, p)
	})
}

func init() {
	scriptVariables = slices.Concat(scriptVariables, []string{
		"WORKFLOW_ENGINE_STORE_URL", "WORKFLOW_ENGINE_STORE_SCHEMA", "WORKFLOW_ENGINE_STORE_MIGRATE", "WORKFLOW_ENGINE_STORE_NOTIFY",
	})
}
