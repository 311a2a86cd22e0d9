//go:build unix && !nopostgres

package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/internal/cli"
)

// storeKey is the password of TestPostgresSentinel.
const storeKey = "sentinel/store'pw+51Qz7w=="

// passwordPlaces are the places that may hold a password, as variables. folder takes files.
var passwordPlaces = map[string]func(t *testing.T, folder, host, password string) []string{
	"URL": func(_ *testing.T, _, host, password string) []string {
		return []string{"WORKFLOW_ENGINE_STORE_URL=postgres://zorro:" + url.QueryEscape(password) + "@/postgres?host=" + host}
	},
	"query of the URL": func(_ *testing.T, _, host, password string) []string {
		return []string{"WORKFLOW_ENGINE_STORE_URL=postgres:///postgres?user=zorro&host=" + host + "&password=" + url.QueryEscape(password)}
	},
	"keys and values": func(_ *testing.T, _, host, password string) []string {
		return []string{"WORKFLOW_ENGINE_STORE_URL=" + keysAndValues(host, password)}
	},
	"file": func(t *testing.T, folder, host, password string) []string {
		return []string{"WORKFLOW_ENGINE_STORE_URL_FILE=" + secretFile(t, folder, "url", keysAndValues(host, password))}
	},
	"PGPASSWORD": func(_ *testing.T, _, host, password string) []string {
		return []string{"WORKFLOW_ENGINE_STORE_URL=" + keysAndValues(host, ""), "PGPASSWORD=" + password}
	},
	"password file": func(t *testing.T, folder, host, password string) []string {
		return []string{"WORKFLOW_ENGINE_STORE_URL=" + keysAndValues(host, ""), "PGPASSFILE=" + secretFile(t, folder, "pass", "*:*:*:zorro:"+password)}
	},
	"service file": func(t *testing.T, folder, host, password string) []string {
		text := "[runs]\nhost=" + host + "\nuser=zorro\ndbname=postgres\npassword=" + password
		return []string{"WORKFLOW_ENGINE_STORE_URL=service=runs", "PGSERVICEFILE=" + secretFile(t, folder, "service", text)}
	},
}

func keysAndValues(host, password string) string {
	text := "user=zorro dbname=postgres host=" + host
	if password != "" {
		text += " password='" + strings.ReplaceAll(password, "'", `\'`) + "'"
	}
	return text
}

func secretFile(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPostgresSentinel connects with a password in every place that may hold one: with the right one, with a wrong one, and to a server that has
// stopped. Then it searches everything that was printed, logged, answered and exported, the stacks of a killed process included.
func TestPostgresSentinel(t *testing.T) {
	open, err := os.MkdirTemp("", "hba") // t.TempDir is closed to the user of the server
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(open) })
	hba := filepath.Join(open, "hba.conf")
	if err := os.WriteFile(hba, []byte("local all test trust\nlocal all all scram-sha-256\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	server := pgtest.New(t, "-c", "hba_file="+hba)
	server.Exec(t, "CREATE ROLE zorro LOGIN PASSWORD '"+strings.ReplaceAll(storeKey, "'", "''")+"'; GRANT CREATE ON DATABASE postgres TO zorro")
	host, _, _ := strings.Cut(strings.TrimPrefix(server.URL(), "host="), " ")
	everything := map[string]string{}
	run := func(t *testing.T, where string, ok bool, args ...string) {
		var out bytes.Buffer
		status := cli.Main(t.Context(), args, strings.NewReader(""), &out, &out)
		everything[where+": "+strings.Join(args, " ")] = out.String()
		if ok && status != 0 || out.Len() == 0 {
			t.Errorf("%v: exit status %d\n%s", args, status, out.String())
		}
	}
	settings := map[string][]string{}
	for place, variables := range passwordPlaces {
		settings[place] = variables(t, t.TempDir(), host, storeKey)
	}
	with := func(place string, variables []string, do func(t *testing.T)) {
		t.Run(place, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			for _, v := range variables {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			do(t)
		})
	}
	for place, variables := range settings {
		with(place, variables, func(t *testing.T) {
			id := strings.ReplaceAll(place, " ", "-")
			p := spawnWith(t, "", variables, "--log-level", "debug")
			p.write(hello, toolCall(1, "workflow_start", `{"execution_id":"`+id+`","definition":`+booking+`}`))
			p.read()
			if got := structured(p.read()); got["status"] != "interrupted" {
				t.Errorf("started: %v", got)
			}
			everything[place+": an answer"] = p.stdout.Text()
			run(t, place, true, "list", "--log-level", "debug")
			run(t, place, true, "list", "--json")
			run(t, place, true, "status", id)
			run(t, place, true, "status", id, "--json")
			run(t, place, true, "history", id, "--json", "--reveal")
			run(t, place, true, "export", id)
			run(t, place, true, "workers")
			run(t, place, true, "verify", "--json")
			run(t, place, true, "store", "migrate", "--dry-run", "--json")
			run(t, place, true, "gc", "--older-than", "0", "--dry-run", "--json")
			run(t, place, false, "gc", "--older-than", "0", "--vacuum")
			run(t, place, false, "status", "unknown")
			run(t, place, false, "doctor")
			run(t, place, false, "doctor", "--json")
			run(t, place, false, "ui", "--link")
			run(t, place, false, "install", "--host", "claude-desktop", "--print")
			if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
				t.Error(err)
			}
			for p.stdout.Scan() {
			}
			_ = p.cmd.Wait() // it was killed
			everything[place+": the log and the stacks"] = p.stderr.String()
			if !strings.Contains(p.stderr.String(), "goroutine ") {
				t.Errorf("no stacks: %s", p.stderr)
			}
		})
		wrong := passwordPlaces[place](t, t.TempDir(), host, storeKey+"-wrong")
		with(place+", wrong", wrong, func(t *testing.T) {
			for _, args := range [][]string{{"list", "--log-level", "debug"}, {"doctor", "--json"}, {"store", "migrate"}} {
				run(t, place+", wrong", false, args...)
				text := everything[place+", wrong: "+strings.Join(args, " ")]
				if !strings.Contains(text, "STORE_UNAVAILABLE") && !strings.Contains(text, "password") {
					t.Errorf("%v: %s", args, text)
				}
			}
			p := spawnWith(t, "", wrong, "--log-level", "debug")
			p.write(hello, toolCall(1, "workflow_list", `{}`))
			p.read()
			p.read()
			everything[place+", wrong: an answer"] = p.stdout.Text()
			p.stdin.Close()
			p.end()
			everything[place+", wrong: the log"] = p.stderr.String()
		})
	}
	server.Stop(t, true)
	for place, variables := range settings {
		with(place+", stopped", variables, func(t *testing.T) {
			run(t, place+", stopped", false, "list")
			run(t, place+", stopped", false, "doctor")
		})
	}
	with("invalid", nil, func(t *testing.T) {
		for i, address := range []string{"postgres://zorro:" + storeKey + "@[/", "host=x sslmode=y password=" + storeKey, "zorro:" + storeKey + "@db.example.com"} {
			t.Setenv("WORKFLOW_ENGINE_STORE_URL", address)
			run(t, fmt.Sprint("invalid ", i), false, "list")
			run(t, fmt.Sprint("invalid ", i), false, "doctor")
		}
	})
	for i, address := range []string{"postgres://zorro:" + url.QueryEscape(storeKey) + "@db.example.com", keysAndValues("db.example.com", storeKey)} {
		var out bytes.Buffer
		for _, args := range [][]string{{"list", "--store-url", address}, {"store", "copy", "--to", address}, {"install", "--print", "--host", "claude-desktop", "--", "--store-url", address}} {
			if status := cli.Main(t.Context(), args, strings.NewReader(""), &out, &out); status != 2 || !strings.Contains(out.String(), "must not contain a password") {
				t.Errorf("%v: exit status %d", args[0], status)
			}
		}
		everything[fmt.Sprint("on the command line ", i)] = out.String()
	}
	if len(everything) < 150 {
		t.Errorf("only %d texts were searched", len(everything))
	}
	noneHolds(t, everything, storeKey)
}

// A server that is started while PostgreSQL does not run reports why, and works as soon as it runs, without a restart.
func TestServerWaitsForPostgres(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	server.Stop(t, false)
	p := spawnWith(t, "", []string{"WORKFLOW_ENGINE_STORE_URL=" + server.URL()})
	p.write(hello, toolCall(1, "workflow_list", `{}`))
	p.read()
	p.read()
	if answer := p.stdout.Text(); !strings.Contains(answer, "STORE_UNAVAILABLE") {
		t.Errorf("without a server: %s", answer)
	}
	server.Start(t)
	p.write(toolCall(2, "workflow_start", `{"execution_id":"r","definition":`+booking+`}`))
	if got := structured(p.read()); got["status"] != "interrupted" {
		t.Errorf("with a server: %v", got)
	}
}

// A server is killed while a run waits; another one, started with the same address, continues it.
func TestServersShareADatabaseOnAServer(t *testing.T) {
	t.Parallel()
	variables := []string{
		"WORKFLOW_ENGINE_STORE_URL=" + pgtest.Shared(t).URL(), "WORKFLOW_ENGINE_STORE_SCHEMA=" + pgtest.Schema(t),
		`WORKFLOW_ENGINE_STEP_HANDLERS={"urn:book":{"booked":true},"urn:other":{}}`,
	}
	first := spawnWith(t, "", variables)
	first.write(hello, toolCall(1, "workflow_start", `{"execution_id":"r","definition":`+booking+`}`))
	first.read()
	if got := structured(first.read()); got["status"] != "interrupted" {
		t.Fatalf("started: %v", got)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second := spawnWith(t, "", variables)
	second.write(hello, toolCall(1, "workflow_resume", `{"execution_id":"r","resume_payload":{"ok":true}}`), toolCall(2, "workflow_signal", `{"execution_id":"r","signal_name":"paid","wait_ms":20000}`))
	second.read()
	second.read()
	if got := structured(second.read()); got["status"] != "completed" {
		t.Errorf("signalled: %v", got)
	}
	if log := second.stderr.String(); !strings.Contains(log, "execution history store: postgres (") {
		t.Errorf("the log does not name the store: %s", log)
	}
}
