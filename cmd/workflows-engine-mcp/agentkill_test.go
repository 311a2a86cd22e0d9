package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// The SIGKILL loop of agents. Two servers share one file; several hosts start agents and answer what those ask, each call through either
// server. The model's endpoint, and the world in which tools do what they do, stand in the test's process: they see every effect, and now
// and then, at one, a server is killed. Its MCP server ends with it. In the end every agent has answered, and what the endpoint and the
// world have seen is held against the histories.
//
// The short form runs some agents, `make soak` 500; SOAK_RUNS sets how many, SOAK_SEED when servers are killed.

// asShop makes the test binary an MCP server whose tools act on the world at this address.
const asShop = "WORKFLOWS_ENGINE_MCP_TEST_AS_SHOP"

func serveShop(world string) {
	type in struct {
		Item string `json:"item"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	for _, name := range []string{"price", "note", "refund"} {
		mcp.AddTool(server, &mcp.Tool{Name: name, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: name == "price"}},
			func(_ context.Context, req *mcp.CallToolRequest, in in) (*mcp.CallToolResult, object, error) {
				key, _ := req.Params.Meta["idempotencyKey"].(string)
				// What has been begun goes on when the engine is gone.
				resp, err := http.PostForm(world+"/tool", url.Values{"tool": {name}, "key": {key}})
				if err != nil {
					return nil, nil, err
				}
				return nil, object{"item": in.Item, "done": name}, resp.Body.Close()
			})
	}
	_ = server.Run(context.Background(), &mcp.StdioTransport{}) // until the engine closes it
}

// witness sees the effects of all agents.
type witness struct {
	endpoint *chattest.Server
	mu       sync.Mutex
	// asked and made are when the model was asked and tools were called, by the keys of the effects.
	asked, made map[string][]time.Time
	seen, next  int
	// strike is called at an effect from time to time.
	strike func(*rand.Rand)
	rng    *rand.Rand
}

// newWitness has the script of the clerk: what the model says depends on the conversation alone.
func newWitness(t *testing.T) *witness {
	t.Helper()
	return &witness{
		asked: map[string][]time.Time{}, made: map[string][]time.Time{},
		endpoint: chattest.Serve(
			t, chattest.Reply{When: "PROBE", Always: true, Text: "Here.", Delay: 300 * time.Millisecond},
			chattest.Reply{When: "REFUNDED", Always: true, Text: "Done."},
			always("NOTED", chattest.Call("shop__refund", `{"item":"REFUNDED"}`)),
			always("", chattest.Call("shop__price", `{"item":"tea"}`), chattest.Call("shop__price", `{"item":"milk"}`), chattest.Call("shop__note", `{"item":"NOTED"}`)),
		),
	}
}

func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/tool" {
		w.note(w.made, r.FormValue("key"))
		return
	}
	w.note(w.asked, r.Header.Get("Idempotency-Key"))
	w.endpoint.Config.Handler.ServeHTTP(rw, r)
}

func (w *witness) note(in map[string][]time.Time, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in[key] = append(in[key], time.Now())
	if w.seen++; w.strike != nil && w.seen >= w.next {
		w.next = w.seen + 8 + w.rng.IntN(24)
		w.strike(w.rng)
	}
}

func (w *witness) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.strike = nil
}

const clerkWorkflow = `{"document":{"schema":"urn:test","name":"clerk","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},` +
	`{"id":"work","type":"agent_delegate","config":{"agent_id":"clerk","protocol":"sdk","input_mapping":{"task":"${ .task }"}}},{"id":"e","type":"end"}],` +
	`"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"work"},{"source":"work","target":"e"}]}`

// clerks are two servers with the agent clerk.
func clerks(t *testing.T, w *witness) *arena {
	t.Helper()
	folder := t.TempDir()
	site := httptest.NewServer(w)
	t.Cleanup(site.Close)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{
		"mcp.json": object{"mcpServers": object{"shop": object{"command": program, "env": object{asShop: site.URL, "GORACE": "atexit_sleep_ms=0"}}}},
		"agents.json": object{
			"models": object{"m": object{"model": "x", "endpoint": object{"baseUrl": site.URL + "/v1", "noAuth": true}}},
			"agents": object{"clerk": object{
				"instructions": "You work in a shop.", "tools": []any{object{"server": "shop"}},
				"gates": []any{object{"tools": []string{"shop__refund"}, "do": "ask"}},
			}},
		},
	} {
		text, err := json.Marshal(v)
		if err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	db := filepath.Join(folder, "runs.db")
	store, err := historysql.Open(t.Context(), db, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	a := &arena{t: t, db: db, store: store}
	for range 2 {
		a.seats = append(a.seats, &seat{arena: a, make: func() *exec.Cmd {
			cmd := command(t, "--store-path", db, "--mcp-config", "mcp.json")
			cmd.Dir = folder
			cmd.Env = append(cmd.Env, "WORKFLOW_ENGINE_AGENTS=agents.json", "WORKFLOW_ENGINE_MCP_ALLOW_COMMANDS="+program)
			return cmd
		}})
	}
	t.Cleanup(func() {
		for _, s := range a.seats {
			s.end()
		}
	})
	return a
}

func TestAgentsAreKilled(t *testing.T) {
	t.Parallel()
	runs, seed := soak.Setting("SOAK_RUNS", soak.Size(10, 3, 500)), uint64(soak.Setting("SOAK_SEED", 17))
	t.Logf("seed %d", seed)
	w := newWitness(t)
	w.rng, w.next = rand.New(rand.NewPCG(seed, 1)), 5
	a := clerks(t, w)
	w.strike = a.strike
	const hosts = 8
	var work sync.WaitGroup
	for host := range hosts {
		work.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(host)+2))
			for n := host; n < runs && !t.Failed(); n += hosts {
				a.clerk(rng, fmt.Sprintf("run-%d", n))
			}
		})
	}
	work.Wait()
	w.rest()
	if t.Failed() {
		return
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := 0; i < len(a.probes); i++ { // a server that the last strike killed is started again, and adds one
		a.clerk(rng, a.probes[i])
	}
	for _, s := range a.seats {
		s.end()
	}
	w.check(t, checkFile(t, a.db), hosts, int(a.killed.Load()))
	if a.killed.Load() < int64(runs)/16 {
		t.Errorf("the loop exercises too little: %d kills", a.killed.Load())
	}
}

func always(when string, calls ...chat.Call) chattest.Reply {
	return chattest.Reply{When: when, Always: true, Calls: calls}
}

// clerk drives a run of the agent to its end, as a host that repeats calls that are not answered. One of four refunds is denied.
func (a *arena) clerk(rng *rand.Rand, id string) {
	answer := object{"decision": "approve"}
	if rng.IntN(4) == 0 {
		answer = object{"decision": "deny", "reason": "not this time"}
	}
	tool, args := "workflow_start", startClerk(id, "Do what there is to do.")
	var got object
	for begun := time.Now(); time.Since(begun) < 5*time.Minute; {
		got, _ = a.call(rng, tool, args)
		if a.t.Failed() || got["phase"] == "completed" {
			return
		}
		tool, args = "workflow_status", object{"execution_id": id, "wait_ms": 50}
		if pending, _ := got["pending"].([]any); got["phase"] == "interrupted" && len(pending) > 0 {
			question := pending[0].(object)["interrupt_id"]
			tool, args = "workflow_resume", object{"execution_id": id, "interrupt_id": question, "resume_payload": answer, "wait_ms": 50}
		}
	}
	a.t.Errorf("%s did not end: %v", id, got)
}

func startClerk(id, task string) object {
	return object{
		"execution_id": id, "definition": json.RawMessage(clerkWorkflow), "input": object{"task": task}, "activity_execution_mode": "in_process",
		"wait_ms": 0, "allow_existing_execution_id": true,
	}
}

// strike kills one of the servers.
func (a *arena) strike(rng *rand.Rand) {
	s := a.seats[rng.IntN(len(a.seats))]
	time.AfterFunc(time.Duration(rng.IntN(4000))*time.Microsecond, func() {
		if p := s.live.Swap(nil); p != nil && p.Kill() == nil {
			a.killed.Add(1)
		}
	})
}

// check holds what the world has seen against what is recorded.
func (w *witness) check(t *testing.T, store history.Store, hosts, kills int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	told := map[string]bool{} // the runs whose model was told that something is not known
	for _, r := range w.endpoint.Asked() {
		if bytes.Contains(r.Body, []byte(agentloop.ToolOutcomeUnknown)) {
			told[strings.Split(r.Key, ":")[0]] = true
		}
	}
	var runs, replies, requests, results, unknown, again, refunds, denied int
	ends := map[string]time.Time{} // of what is recorded
	for q := (history.ListQuery{Limit: 100}); ; {
		page, err := store.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Executions {
			runs++
			var answered time.Time
			approved := false
			rs, err := store.Read(t.Context(), e.ID, 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rs {
				s, _, ok := machine.StepOf(&r)
				if !ok {
					continue
				}
				key := fmt.Sprintf("%s:work#1.1/%s", e.ID, s.Key)
				switch s.Kind {
				case agentloop.StepAnswer:
					payload, _ := s.Body["payload"].(map[string]any)
					answered, approved = r.CreatedAt, payload["decision"] == "approve"
				case agentloop.StepReply:
					replies++
					ends[key] = r.CreatedAt
					if len(w.asked[key]) == 0 {
						t.Errorf("%s is recorded, and the model was not asked", key)
					}
				case agentloop.StepResult:
					results++
					ends[key] = r.CreatedAt
					made, tool := w.made[key], s.Body["tool"]
					failure, _ := s.Body["error"].(map[string]any)
					switch {
					case failure["code"] == agentloop.ToolOutcomeUnknown:
						unknown++
						if !told[e.ID] || tool == "shop__price" {
							t.Errorf("%s of %v is not known; the model was told: %v", key, tool, told[e.ID])
						}
					case failure["code"] == agentloop.ToolDenied:
						denied++
					case failure != nil || len(made) == 0:
						t.Errorf("%s of %v has failed, or was not made: %v", key, tool, failure)
					}
					if tool != "shop__price" && len(made) > 1 {
						t.Errorf("%s of %v is not to be repeated, and was made %d times", key, tool, len(made))
					}
					if tool == "shop__refund" {
						refunds += len(made)
						if len(made) > 0 && (!approved || made[0].Before(answered.Truncate(time.Millisecond))) {
							t.Errorf("%s was made without approval", key)
						}
					}
				}
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	for _, seen := range []map[string][]time.Time{w.asked, w.made} {
		for key, times := range seen {
			end, recorded := ends[key]
			if last := times[len(times)-1]; !recorded || last.After(end.Add(2*time.Millisecond)) {
				t.Errorf("%s was performed at %v, and recorded at %v", key, last, end)
			}
			again += len(times) - 1
		}
	}
	for _, times := range w.asked {
		requests += len(times)
	}
	if requests > replies+kills*hosts {
		t.Errorf("%d requests for %d replies and %d kills", requests, replies, kills)
	}
	t.Logf("%d runs, %d kills; %d requests to the model for %d replies; %d results, of which %d are not known and %d denied; %d refunds; %d effects performed again",
		runs, kills, requests, replies, results, unknown, denied, refunds, again)
}
