package agent_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// outage is how a provider fails, and what becomes of it.
type outage struct {
	reply chattest.Reply
	class chat.Class
	// asked is how often the first model is asked while there is a spare.
	asked int
	// alone is the code without a spare.
	alone string
	// stays says that no spare is asked.
	stays bool
}

func outages() map[string]outage {
	fail := func(status int, text string, headers ...string) chattest.Reply {
		r := chattest.Fail(status, text, headers...)
		r.Always = true
		return r
	}
	broken := chattest.Text("Half of an answer that breaks off.")
	broken.Break, broken.Always = true, true
	hangs := chattest.Reply{Hang: true, Always: true}
	return map[string]outage{
		"429":                     {fail(429, "slow down"), chat.ClassBusy, 2, "LLM_PROVIDER_ERROR", false},
		"429 for a while":         {fail(429, "slow down", "Retry-After", "20"), chat.ClassBusy, 2, "LLM_PROVIDER_ERROR", false},
		"429 for long":            {fail(429, "slow down", "Retry-After", "3000"), chat.ClassBusy, 1, "LLM_PROVIDER_ERROR", false},
		"503 without a word":      {fail(503, ""), chat.ClassBusy, 1, "LLM_PROVIDER_ERROR", false},
		"529":                     {fail(529, ""), chat.ClassBusy, 1, "LLM_PROVIDER_ERROR", false},
		"500":                     {fail(500, "boom"), chat.ClassDown, 2, "LLM_PROVIDER_ERROR", false},
		"502":                     {fail(502, "<html>"), chat.ClassDown, 2, "LLM_PROVIDER_ERROR", false},
		"an answer that is cut":   {broken, chat.ClassDown, 2, "LLM_PROVIDER_ERROR", false},
		"no answer":               {hangs, chat.ClassSlow, 2, "TIMEOUT", false},
		"no credit":               {fail(429, "insufficient_quota"), chat.ClassQuota, 1, "LLM_QUOTA_EXCEEDED", false},
		"402":                     {fail(402, "pay"), chat.ClassQuota, 1, "LLM_QUOTA_EXCEEDED", false},
		"401":                     {fail(401, "no"), chat.ClassCredentials, 1, "LLM_CREDENTIALS_REFUSED", false},
		"403":                     {fail(403, "no"), chat.ClassCredentials, 1, "LLM_CREDENTIALS_REFUSED", false},
		"404":                     {fail(404, "no such model"), chat.ClassUnknown, 1, "LLM_PROVIDER_ERROR", false},
		"too long":                {fail(413, ""), chat.ClassContext, 1, "AGENT_CONTEXT_EXCEEDED", false},
		"a filter":                {fail(400, "content_filter"), chat.ClassRefused, 1, "LLM_PROVIDER_ERROR", true},
		"a wrong request":         {fail(400, "messages.1: unknown role"), chat.ClassRequest, 1, "LLM_PROVIDER_ERROR", true},
		"a request of no use":     {fail(422, "no"), chat.ClassRequest, 1, "LLM_PROVIDER_ERROR", true},
		"a server without a body": {fail(504, ""), chat.ClassDown, 2, "LLM_PROVIDER_ERROR", false},
	}
}

// TestTheSpareAnswersInAnOutage: whatever is wrong with the first model, whole or streamed, the next one is asked after at most two requests;
// without one the agent fails with the code of that class. What may be wrong with the request ends the agent.
func TestTheSpareAnswersInAnOutage(t *testing.T) {
	t.Parallel()
	for name, o := range outages() {
		for _, way := range []string{"whole", "streamed"} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					first := chattest.ServeInMemory(t, o.reply)
					spare := chattest.ServeInMemory(t, chattest.Text("The spare says so."))
					var log logged
					store := historymem.New()
					r := withModels(t, store, &log, way == "streamed", first, spare)
					run := work(t, r)
					shut(t, r)
					if got := len(first.Asked()); got != o.asked {
						t.Errorf("the first model was asked %d times, want %d", got, o.asked)
					}
					if o.stays {
						if run.Status != machine.Failed || run.ErrorCode != o.alone || len(spare.Asked()) != 0 {
							t.Errorf("%s %s %s, the spare was asked %d times", run.Status, run.ErrorCode, run.Error, len(spare.Asked()))
						}
					} else if run.Status != machine.Completed || run.FinalState["text"] != "The spare says so." {
						t.Errorf("%s %s %s", run.Status, run.ErrorCode, run.Error)
					}
					if tried := triedSteps(t, store); len(tried) != o.asked || tried[0]["class"] != string(o.class) {
						t.Errorf("tries %v, want class %s", tried, o.class)
					}
					mends := o.class == chat.ClassCredentials || o.class == chat.ClassUnknown || o.class == chat.ClassQuota
					if text := log.String(); strings.Contains(text, "class="+string(o.class)) != mends {
						t.Errorf("log %q", text)
					}

					first.Play(o.reply)
					alone := withModels(t, historymem.New(), &logged{}, way == "streamed", first)
					begin(t, alone, "r")
					run = end(t, alone, "r")
					shut(t, alone)
					if run.Status != machine.Failed || run.ErrorCode != o.alone {
						t.Errorf("alone: %s %s %s", run.Status, run.ErrorCode, run.Error)
					}
				})
			})
		}
	}
}

// TestAllModelsFail: they are asked once more after a pause in which nothing waits, then the run fails with what the first one said, and the
// others behind it.
func TestAllModelsFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		always := func(status int, text string, headers ...string) chattest.Reply {
			r := chattest.Fail(status, text, headers...)
			r.Always = true
			return r
		}
		first := chattest.ServeInMemory(t, always(401, "the first refuses"))
		spare := chattest.ServeInMemory(t, always(503, "the spare is away", "Retry-After", "50"))
		r := withModels(t, historymem.New(), &logged{}, false, first, spare)
		defer shut(t, r)
		began := time.Now()
		run := work(t, r)
		if run.Status != machine.Failed || run.ErrorCode != "LLM_CREDENTIALS_REFUSED" || !strings.Contains(run.Error, "the first refuses") || !strings.Contains(run.Error, "the spare is away") {
			t.Errorf("%s %s %s", run.Status, run.ErrorCode, run.Error)
		}
		if asked := len(first.Asked()); asked != 2 || time.Since(began) < 50*time.Second {
			t.Errorf("the first model was asked %d times in %v", asked, time.Since(began))
		}
	})
}

// TestAnAgentReturnsToItsFirstModel once returnAfterMs have passed, also in another process.
func TestAnAgentReturnsToItsFirstModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		look := func() chattest.Reply { return chattest.Calls(chattest.Call("look", `{}`)) }
		first := chattest.ServeInMemory(t, chattest.Fail(529, ""), chattest.Text("The first is back."))
		spare := chattest.ServeInMemory(t, look(), look(), look(), look())
		slow := agent.Func("look", "Looks.", func(ctx context.Context, _ struct{}) (object, error) {
			return object{"seen": time.Now().Unix()}, wait.For(ctx, 100*time.Second)
		}, agent.WithOnCrash(agent.Repeat))
		store := historymem.New()
		options := func(c *agent.Agent) { c.Tools, c.ToolTimeoutMs = []agent.Toolset{slow}, 200_000 }
		r := withModelsAs(t, store, &logged{}, false, options, first, spare)
		begin(t, r, "r")
		time.Sleep(150 * time.Second)
		shut(t, r)
		r = withModelsAs(t, store, &logged{}, false, options, first, spare)
		defer shut(t, r)
		run := end(t, r, "r")
		if run.Status != machine.Completed || run.FinalState["text"] != "The first is back." {
			t.Errorf("%s %s %s %v", run.Status, run.ErrorCode, run.Error, run.FinalState)
		}
		if a, b := len(first.Asked()), len(spare.Asked()); a != 2 || b < 3 {
			t.Errorf("the first was asked %d times, the spare %d times", a, b)
		}
	})
}

// logged is a log that is read while it is written.
type logged struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

func withModels(t testing.TB, store *historymem.Store, log *logged, stream bool, servers ...*chattest.Server) *graph.Runner {
	return withModelsAs(t, store, log, stream, nil, servers...)
}

// withModelsAs is an engine whose agent asks the models of several providers, in order.
func withModelsAs(t testing.TB, store *historymem.Store, log *logged, stream bool, change func(*agent.Agent), servers ...*chattest.Server) *graph.Runner {
	t.Helper()
	clerk := agent.Agent{Config: agentloop.Config{Instructions: "Be brief.", Stream: stream, TurnTimeoutMs: 60_000}}
	models := map[string]agent.Model{}
	for i, s := range servers {
		name := "m" + string(rune('1'+i))
		llm := enginetest.Must(llmcall.New(llmcall.Config{BaseURL: s.URL, Client: s.Client(), APIKey: func(context.Context) (llmcall.Secret, error) {
			return llmcall.NewSecret("a-key-of-these-tests"), nil
		}}))
		models[name] = agent.Model{Chat: llm, Model: agentloop.Model{Model: "gpt-" + name}}
		clerk.Models = append(clerk.Models, name)
	}
	if change != nil {
		change(&clerk)
	}
	return shopOf(t, store, agent.Config{Models: models, Agents: map[string]agent.Agent{"clerk": clerk}, Log: slog.New(slog.NewTextHandler(log, nil))})
}

func triedSteps(t testing.TB, store *historymem.Store) (tried []object) {
	t.Helper()
	for _, r := range enginetest.Must(store.Read(t.Context(), "r", 1, 0)) {
		if s, _, ok := machine.StepOf(&r); ok && s.Kind == agentloop.StepTried {
			tried = append(tried, s.Body)
		}
	}
	return tried
}
