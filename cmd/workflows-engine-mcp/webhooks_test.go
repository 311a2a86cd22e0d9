package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// hookSecret signs the webhooks of these tests. Nothing that is stored or printed may hold it, nor the token.
const (
	hookSecret = "whsec_c2VudGluZWwgb2YgdGhlIHdlYmhvb2tzIQ=="
	hookToken  = "sentinel-of-the-header-77aTb0x9"
)

// hooks are the settings of a server that notifies an address.
func hooks(t *testing.T, db, address string) *exec.Cmd {
	t.Helper()
	list := fmt.Sprintf(`{"targets":{"ops":{"url":%q,"secretRef":"env:HOOK_SECRET","headers":{"Authorization":"env:HOOK_TOKEN"},"timeoutMs":1000}},"privateNetworks":["127.0.0.1"]}`, address)
	cmd := command(t, "--store-path", db, "--log-level", "debug")
	cmd.Env = append(cmd.Env, "WORKFLOW_ENGINE_WEBHOOKS="+list, "HOOK_SECRET="+hookSecret, "HOOK_TOKEN="+hookToken)
	return cmd
}

// TestKilledWhileItNotifies kills servers with SIGKILL: between the commit of an event and its sending, while the receiver has the event, and
// between its answer and the record of that. Every event arrives, under one id, and more than once only because of a death.
//
// The short form kills a few times, `make soak` hundreds of times; SOAK_KILLS sets how often.
func TestKilledWhileItNotifies(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short leaves out what starts processes")
	}
	kills := soak.Setting("SOAK_KILLS", soak.Size(4, 2, 300))
	standard, err := standardwebhooks.NewWebhook(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	ids, got := map[string]string{}, map[string]int{} // of runs and their events
	killed := 0
	kill := func() {} // called with the lock held
	rng := rand.New(rand.NewPCG(5, 5))
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := standard.Verify(body, r.Header); err != nil || r.Header.Get("Authorization") != hookToken {
			t.Errorf("a delivery that cannot be believed: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		event := r.Header.Get("X-Workflows-Run-Id") + " " + r.Header.Get("X-Workflows-Event")
		if id := ids[event]; id != "" && id != r.Header.Get("webhook-id") {
			t.Errorf("%s has the ids %s and %s", event, id, r.Header.Get("webhook-id"))
		}
		ids[event] = r.Header.Get("webhook-id")
		got[event]++
		if killed < kills && rng.IntN(2) == 0 {
			killed++
			kill()
		}
	}))
	t.Cleanup(receiver.Close)
	db := database(t)
	a := &arena{t: t}
	s := &seat{arena: a, make: func() *exec.Cmd { return hooks(t, db, receiver.URL) }}
	t.Cleanup(s.end)
	definition := json.RawMessage(`{"document":{"schema":"urn:test","name":"asks","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"s","type":"start"},{"id":"i","type":"interrupt","config":{"prompt":"well?","resume_schema":{"type":"object"}}},{"id":"e","type":"end"}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"i"},{"source":"i","target":"e"}]}`)
	repeat := func(tool string, args object) {
		for try := 0; ; try++ {
			after := time.Duration(-1)
			mu.Lock()
			if killed < kills && rng.IntN(4) == 0 {
				after = time.Duration(rng.IntN(20_000)) * time.Microsecond
			}
			mu.Unlock()
			_, _, err := s.call(tool, args, after)
			if after >= 0 && err != nil {
				mu.Lock()
				killed++
				mu.Unlock()
			}
			mu.Lock()
			if p := s.cmd; p != nil {
				kill = func() { _ = p.Process.Kill() }
			}
			mu.Unlock()
			if err == nil {
				return
			}
			if try > 200 {
				t.Fatalf("%s: %v", tool, err)
			}
		}
	}
	runs := 0
	for done := false; !done; runs++ {
		id := fmt.Sprint("run-", runs)
		repeat("workflow_start", object{"execution_id": id, "definition": definition, "notify": []string{"ops"}, "allow_existing_execution_id": true})
		repeat("workflow_resume", object{"execution_id": id, "resume_payload": object{"ok": true}})
		mu.Lock()
		done = killed >= kills
		mu.Unlock()
		if runs > 100*kills {
			t.Fatal("nothing is killed")
		}
	}
	want := map[string]bool{}
	for n := range runs {
		want[fmt.Sprintf("run-%d run.interrupted", n)], want[fmt.Sprintf("run-%d run.completed", n)] = true, true
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // leases of the dead run out
		repeat("workflow_status", object{"execution_id": "run-0"}) // there is a server
		out := commandLine(t, db, "webhooks", "list", "--json", "--state", "pending")
		if strings.TrimSpace(out) == "" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("still pending:\n%s", out)
		}
	}
	s.end()
	mu.Lock()
	defer mu.Unlock()
	again := 0
	for event := range want {
		if got[event] < 1 || got[event] > 1+killed {
			t.Errorf("%s came %d times", event, got[event])
		}
		again += max(0, got[event]-1)
	}
	if len(got) != len(want) {
		t.Errorf("%d events, want %d", len(got), len(want))
	}
	const atOnce = 4 // attempts of one process
	if again > atOnce*killed {
		t.Errorf("%d events more than once, and %d deaths", again, killed)
	}
	t.Logf("%d kills, %d events, %d came again", killed, len(got), again)
	checkFile(t, db)
}

// TestWebhookSecretsStayOut: neither the secret, nor its key, nor a header's secret stands in the database, the log, or an answer, whatever
// the receiver says; an address stands in none of them either.
func TestWebhookSecretsStayOut(t *testing.T) {
	t.Parallel()
	came := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came <- r.Header.Get("X-Workflows-Event")
		w.Header().Set("X-Key", hookSecret)
		w.WriteHeader(http.StatusGone)
		fmt.Fprint(w, hookSecret, r.Header)
	}))
	t.Cleanup(receiver.Close)
	db := database(t)
	cmd := hooks(t, db, receiver.URL+"/hidden-path?token=hidden-query")
	var log strings.Builder
	cmd.Stderr = &log
	s := &seat{arena: &arena{t: t}, make: func() *exec.Cmd { return cmd }}
	t.Cleanup(s.end)
	answer, isError, err := s.call("workflow_start", object{
		"execution_id": "r", "definition": json.RawMessage(nap(time.Millisecond)), "notify": []string{"ops"}, "wait_ms": 5000,
	}, -1)
	if err != nil || isError {
		t.Fatal(answer, err)
	}
	if event := <-came; event != "run.completed" {
		t.Errorf("came %s", event)
	}
	var list string
	for end := time.Now().Add(10 * time.Second); !strings.Contains(list, `"state":"dead"`) && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		list = commandLine(t, db, "webhooks", "list", "--json")
	}
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	bytes := stored(t, db)
	s.end()
	for what, said := range map[string]string{
		"the answer": string(text), "the list": list, "the log": log.String(), "the database": bytes, "the history": commandLine(t, db, "history", "r", "--json"),
		"the status": commandLine(t, db, "status", "r", "--json"), "the export": commandLine(t, db, "export", "r"),
	} {
		if said == "" {
			t.Errorf("%s is empty: the test proves nothing", what)
		}
		for _, secret := range []string{hookSecret, hookSecret[6:], "sentinel of the webhooks", hookToken, "hidden-path", "hidden-query"} {
			if strings.Contains(said, secret) {
				t.Errorf("%s holds %q", what, secret)
			}
		}
	}
	if !strings.Contains(list, "410") || !strings.Contains(list, `"state":"dead"`) {
		t.Errorf("the list is %s", list)
	}
}

// stored is every byte of a database and of its log.
func stored(t *testing.T, db string) string {
	t.Helper()
	all := ""
	for _, suffix := range []string{"", "-wal"} {
		text, err := os.ReadFile(db + suffix)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	return all
}
