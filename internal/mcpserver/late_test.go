package mcpserver_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// slowWork is a run whose node has 10 minutes an attempt, and three attempts.
const slowWork = `{"document":{"schema":"s","name":"slow","version":"1"},"state_schema":{"type":"object"},
	"nodes":[{"id":"a","type":"start"},
	{"id":"work","type":"step","timeout":"10m","retry":{"max_attempts":3},"config":{"handler":"h"}},{"id":"z","type":"end","config":{"output_mapping":"."}}],
	"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"work"},{"source":"work","target":"z"}]}`

// TestAnOutcomeOfAnAttemptThatTimedOut: the refusal says that the next attempt waits for the same, and has the call for it.
func TestAnOutcomeOfAnAttemptThatTimedOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, hostMediated)
		answer := h.ok("workflow_start", object{"definition": slowWork, "execution_id": "r"})
		want(t, at(t, answer, "pending", 0).(map[string]any), object{"deadline_in_s": 600})
		if answer["now"] == nil {
			t.Error("an answer with a deadline has no now")
		}
		args := at(t, answer, "next", "arguments").(map[string]any)
		args["outcome"] = object{"ok": true, "result": object{"found": "much"}}
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		late := h.refused("ACTIVITY_SUBMIT_NOT_AWAITING", "workflow_submit_activity", args)
		for _, says := range []string{`attempt 1 of node "work" timed out; attempt 2 waits for this result`, `"r:work#1.2"`} {
			if !strings.Contains(late.text, says) {
				t.Errorf("the text lacks %q:\n%s", says, late.text)
			}
		}
		next := late.details()["next"].(map[string]any)
		want(t, h.ok(next["tool"].(string), next["arguments"].(map[string]any)), object{"status": "completed", "result": object{"found": "much"}})
	})
}

// TestAnotherOutcomeOfAnAttemptThatHasOne: the refusal says what is awaited instead.
func TestAnotherOutcomeOfAnAttemptThatHasOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ definition, says string }{
		"the next attempt is open": {slowWork, `Submit the outcome of the current attempt, 2 of node "work", with the key "r:work#1.2"`},
		"the next attempt has not begun": {
			strings.Replace(slowWork, `"max_attempts":3`, `"max_attempts":3,"initial_interval":"1h"`, 1), `Ask workflow_status with wait_ms for the next attempt`,
		},
	} {
		h := newHost(t, hostMediated)
		h.ok("workflow_start", object{"definition": c.definition, "execution_id": "r"})
		args := object{"execution_id": "r", "node_id": "work", "idempotency_key": "r:work#1.1", "outcome": object{"ok": false, "error": "no"}}
		h.ok("workflow_submit_activity", args)
		args["outcome"] = object{"ok": true, "result": object{"found": "much"}}
		stale := h.refused("ACTIVITY_SUBMIT_NOT_AWAITING", "workflow_submit_activity", args)
		if !strings.Contains(stale.text, "was used before, with another content") || !strings.Contains(stale.text, "nothing was changed. Recorded by test ") || !strings.Contains(stale.text, `{"error":"no","ok":false}. `+c.says) {
			t.Errorf("%s: %s", name, stale.text)
		}
	}
}

// race is a block that the first of two branches joins.
const race = `{"document":{"schema":"s","name":"race","version":"1"},"state_schema":{"type":"object"},
	"nodes":[{"id":"a","type":"start"},
	{"id":"p","type":"parallel","config":{"join":"any","branches":[{"name":"fast","entry":"f"},{"name":"slow","entry":"g"}]}},
	{"id":"f","type":"step","config":{"handler":"h"}},{"id":"g","type":"step","config":{"handler":"h"}},
	{"id":"rest","type":"step","config":{"handler":"h"}},{"id":"z","type":"end"}],
	"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"p"},{"source":"f","target":"rest"},{"source":"g","target":"rest"},{"source":"p","target":"rest"},{"source":"rest","target":"z"}]}`

// TestAnOutcomeOfABranchThatIsNotNeeded: it is no error, asks for nothing and changes nothing.
func TestAnOutcomeOfABranchThatIsNotNeeded(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	answer := h.ok("workflow_start", object{"definition": race, "execution_id": "r"})
	entries := answer["pending"].([]any)
	send := func(i int) map[string]any {
		p := entries[i].(map[string]any)
		return object{
			"execution_id": "r", "node_id": p["node_id"], "idempotency_key": p["idempotency_key"], "outcome": object{"ok": true, "result": object{"by": i}},
		}
	}
	answer = h.ok("workflow_submit_activity", send(0))
	want(t, answer, object{"node_id": "rest", "late": nil})
	seq := answer["seq"]
	bySpan := object{"execution_id": "r", "node_id": "g", "parallel_span": at(t, entries[1].(map[string]any), "parallel_span"), "outcome": object{"ok": true}}
	for _, args := range []object{send(1), bySpan} {
		late := h.raw("workflow_submit_activity", args)
		if late.code != "" || !strings.Contains(late.text, `Block "p" was joined by branch "fast" before the outcome of branch "slow" arrived.`) {
			t.Fatalf("answered %s: %s", late.code, late.text)
		}
		want(t, late.content, object{"node_id": "rest", "seq": seq})
	}
	args := at(t, answer, "next", "arguments").(map[string]any)
	args["outcome"] = object{"ok": true}
	want(t, h.ok("workflow_submit_activity", args), object{"status": "completed"})
	want(t, h.ok("workflow_submit_activity", send(1)), object{"status": "completed"})
}

// TestAnOutcomeBesideAFailedBranch: once the failure of a branch is caught, the outcome of another branch is no error either.
func TestAnOutcomeBesideAFailedBranch(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	text := strings.NewReplacer(`"join":"any"`, `"join":"all"`, `{"schema":"s","name":"race","version":"1"},`, `{"schema":"s","name":"race","version":"1"},"x-workflows-engine":{"uses":["catch"]},`,
		`"entry":"g"}]}}`, `"entry":"g"}]},"catch":[{"codes":["*"],"target":"rest"}]}`).Replace(race)
	answer := h.ok("workflow_start", object{"definition": text, "execution_id": "r"})
	entries := answer["pending"].([]any)
	send := func(i int, outcome object) reply {
		p := entries[i].(map[string]any)
		return h.raw("workflow_submit_activity", object{"execution_id": "r", "node_id": p["node_id"], "idempotency_key": p["idempotency_key"], "outcome": outcome})
	}
	failed := send(1, object{"ok": false, "error": "no net", "code": "NO_NET"})
	want(t, failed.content, object{"node_id": "rest", "late": nil})
	late := send(0, object{"ok": true, "result": object{}})
	if late.code != "" || !strings.Contains(late.text, `Block "p" failed in another branch before the outcome of branch "fast" arrived.`) {
		t.Errorf("answered %s: %s", late.code, late.text)
	}
	want(t, late.content, object{"node_id": "rest", "seq": failed.content["seq"]})
}

// TestALongWaitIsNotPolled: for a wait of more than five minutes, next says when to come back, and waits for nothing.
func TestALongWaitIsNotPolled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, hostMediated)
		for duration, says := range map[string]string{
			"5m": "", "301s": "in 6 minutes", "3h": "in 3 hours", "240h": "in 10 days",
		} {
			nap := strings.Replace(nap260, `"duration_ms":260`, `"duration":"`+duration+`"`, 1)
			answer := h.ok("workflow_start", object{"definition": nap, "execution_id": duration, "wait_ms": 0})
			next := answer["next"].(map[string]any)
			_, waits := next["arguments"].(map[string]any)["wait_ms"]
			if note := next["note"].(string); says == "" != waits || !strings.Contains(note, says) || !waits && !strings.Contains(note, "Tell the user") {
				t.Errorf("%s: %v", duration, next)
			}
			if in, ok := at(t, answer, "pending", 0).(map[string]any)["due_in_s"].(float64); !ok || in < 300 {
				t.Errorf("%s: due in %v s", duration, in)
			}
		}
	})
}

// TestSilentCallsSayThatTheyWait: a client that gives up a call after ten seconds of silence keeps this one.
func TestSilentCallsSayThatTheyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runner := enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{Activities: activities.ExecutorFunc(
			func(ctx context.Context, _ activities.Request) (activities.Result, error) {
				<-ctx.Done()
				return activities.Result{}, ctx.Err()
			})})))
		here, there := mcp.NewInMemoryTransports()
		served := make(chan error, 1)
		go func() {
			served <- mcpserver.Serve(context.Background(), mcpserver.New(runner, mcpserver.Options{}), there)
		}()
		begun := time.Now()
		told := make(chan time.Duration, 100)
		client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "0"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { told <- time.Since(begun) },
		})
		session := enginetest.Must(client.Connect(context.Background(), here, nil))
		params := &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"definition": definitionFile(t, "step"), "wait_ms": 35_000}}
		params.SetProgressToken("token")
		begun = time.Now()
		if res, err := session.CallTool(context.Background(), params); err != nil || res.IsError {
			t.Fatalf("%+v, %v", res, err)
		}
		if took := time.Since(begun); took != 35*time.Second {
			t.Errorf("answered after %s", took)
		}
		time.Sleep(time.Minute) // whatever came now would be too late
		close(told)
		last := time.Duration(0)
		for at := range told {
			if at-last > 10*time.Second || at > 35*time.Second {
				t.Errorf("notified after %s, and then after %s", last, at)
			}
			last = at
		}
		if last < 25*time.Second {
			t.Errorf("silent since %s", last)
		}
		session.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
