package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// TestStoredTextsDoNotSteerATerminal: whatever an older release, another program or a forger has put into titles, labels, actors, ids and
// messages of runs, no command prints characters that a terminal acts on, for people or as JSON.
func TestStoredTextsDoNotSteerATerminal(t *testing.T) {
	t.Parallel()
	const evil = "ev\x1b[2J\u009b2J\u202eil\x07\r"
	evilJSON := strconv.QuoteToASCII(evil)
	evilJSON = strings.NewReplacer(`\x1b`, `\u001b`, `\a`, `\u0007`).Replace(evilJSON)
	db := filepath.Join(t.TempDir(), "runs.db")
	store, err := historysql.Open(t.Context(), db, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	begun := strings.ReplaceAll(`E ExecutionStarted {"workflowName":EVIL,"workflowVersion":EVIL,"inputKeys":[EVIL],"definitionHash":EVIL,"activityExecutionMode":"in_process","title":EVIL,
		"labels":{EVIL:EVIL},"actor":{"via":EVIL,"name":EVIL,"title":EVIL,"version":EVIL},"importedAt":"2026-11-21T01:00:00.000Z","importedBy":{"name":EVIL},"notify":[EVIL],
		"forkedFrom":{"executionId":EVIL,"seq":1}}`, "EVIL", evilJSON)
	of := func(line string) string { return strings.ReplaceAll(line, "EVIL", evilJSON) }
	for id, lines := range map[string][]string{
		"waits": {
			of(`C ScheduleNode {"nodeId":EVIL}`), of(`E NodeScheduled {"nodeId":EVIL}`),
			of(`C RaiseInterrupt {"nodeId":EVIL,"prompt":EVIL}`), of(`E InterruptRaised {"nodeId":EVIL,"prompt":EVIL}`),
		},
		"busy": {
			of(`C ScheduleNode {"nodeId":EVIL}`), of(`E NodeScheduled {"nodeId":EVIL}`),
			of(`E ActivityRequested {"nodeId":EVIL,"nodeType":EVIL,"attempt":1,"activityExecutionMode":"in_process","agentId":EVIL,"protocol":EVIL}`),
			of(`E ActivityFailed {"nodeId":EVIL,"nodeType":EVIL,"attempt":1,"error":EVIL,"code":EVIL,"willRetry":true,"retryAt":"2026-11-21T01:00:00.005Z"}`),
		},
		"idle":              {of(`C ScheduleNode {"nodeId":EVIL}`), of(`E NodeScheduled {"nodeId":EVIL}`)},
		"failed":            {of(`C FailNode {"nodeId":EVIL,"reason":EVIL,"message":EVIL}`), of(`E ExecutionFailed {"reason":EVIL,"message":EVIL,"code":EVIL,"failedNodeId":EVIL}`)},
		"id" + evil + "own": {of(`E ExecutionFailed {"reason":EVIL,"message":EVIL}`)},
	} {
		x := historytest.NewTrace(t, id)
		x.Append(store, append([]string{begun}, lines...)...)
	}
	if err := store.Handle(t.Context(), history.Handling{ExecutionID: "failed", Note: evil, Actor: evil, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	c := newCommands(t, nil)
	shows := 0
	for _, args := range [][]string{
		{"list"}, {"list", "--json"}, {"status", "ID"}, {"status", "ID", "--json"}, {"history", "ID"}, {"history", "ID", "--json"},
		{"verify"}, {"verify", "--json"}, {"verify", "ID"}, {"recover", "--dry-run"}, {"recover", "--dry-run", "--json"},
		{"doctor"}, {"doctor", "--json"}, {"gc", "--older-than", "0", "--dry-run"},
	} {
		for _, id := range []string{"waits", "busy", "idle", "failed", "id" + evil + "own"} {
			here := append([]string{}, args...)
			for i := range here {
				here[i] = strings.Replace(here[i], "ID", id, 1)
			}
			stdout, stderr := c.printed(append(here, "--db", db)...)
			for _, text := range []string{stdout, stderr} {
				if at := strings.IndexFunc(text, jsonvalue.IsControl); at >= 0 {
					t.Errorf("%q prints %q", here, text[max(0, at-60):min(len(text), at+20)])
				}
				if strings.Contains(text, `\u001b[2J`) {
					shows++
				}
			}
		}
	}
	if shows < 20 {
		t.Errorf("only %d texts show what is stored", shows)
	}
}

// printed runs a command whatever its exit status.
func (c *commands) printed(args ...string) (stdout, stderr string) {
	c.t.Helper()
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, now: time.Now, env: config.Environment{
		GOOS: "linux", Home: c.folder, Directory: c.folder, ReadFile: os.ReadFile,
	}}
	a.execute(c.t.Context(), args)
	return out.String(), errs.String()
}
