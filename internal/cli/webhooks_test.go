package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRetryThatIsRefusedAgainFails: a delivery that a target refuses for good is dead, and so is its retry, whose exit status is 1; once the
// target takes it, it is 0.
func TestRetryThatIsRefusedAgainFails(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	status.Store(http.StatusGone)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	t.Cleanup(receiver.Close)
	folder := t.TempDir()
	for name, text := range map[string]string{
		"hooks.json": fmt.Sprintf(`{"targets":{"ops":{"url":%q}},"privateNetworks":["127.0.0.1/32"]}`, receiver.URL),
		"short.json": `{"document":{"schema":"urn:example","name":"short","version":"1"},"state_schema":{"type":"object"},
"nodes":[{"id":"s","type":"start"},{"id":"e","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"e"}]}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(folder, name) }
	command := func(want int, args ...string) string {
		got, stdout, stderr := call(t, 0, append(args, "--store-path", in("runs.db"))...)
		if got != want {
			t.Fatalf("%v: %d, want %d\n%s%s", args, got, want, stdout, stderr)
		}
		return stdout + stderr
	}
	hooks := []string{"--webhooks", in("hooks.json")}
	command(0, append(hooks, "run", in("short.json"), "--notify", "ops", "--id", "order-17")...)
	listed := command(0, "webhook", "list", "--state", "dead")
	delivery := regexp.MustCompile(`dlv_\w+`).FindString(listed)
	if again := "workflows-engine webhook retry " + delivery + " --db "; !strings.Contains(listed, again) {
		t.Errorf("the list does not say %q:\n%s", again, listed)
	}
	if said := command(1, append(hooks, "webhook", "retry", delivery)...); !strings.Contains(said, "410") {
		t.Error(said)
	}
	command(1, append(hooks, "webhook", "retry", delivery, "--json")...)
	status.Store(http.StatusNoContent)
	if said := command(0, append(hooks, "webhook", "retry", delivery)...); !strings.Contains(said, "delivered to ops") {
		t.Error(said)
	}
	if listed := command(0, "webhook", "list"); strings.Contains(listed, "webhook retry") {
		t.Error(listed)
	}
}
