package agentsteps_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type object = map[string]any

func decode(t testing.TB, text string) object {
	t.Helper()
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := v.(object)
	return m
}

// TestBodies: each kind of an agent's entries has a type; entries of other executors, which may use the same kinds, have none.
func TestBodies(t *testing.T) {
	t.Parallel()
	list := func(text string) any { return decode(t, `{"v":`+text+`}`)["v"] }
	tools, config := `[{"name":"read","readOnly":true,"gate":"ask"},7]`, `{"name":"a","models":[{"model":"m"}],"budgets":{"turns":2},"agents":[{"config":{"name":"sub"}}]}`
	read := agentsteps.Config{Name: "a", Models: []string{"m"}, Budgets: object{"turns": 2.0}, Agents: []agentsteps.Config{{Name: "sub"}}}
	usage := `"usage":{"prompt_tokens":9,"cached_tokens":12,"completion_tokens":4,"estimated":true}`
	used := &agentsteps.Usage{Prompt: 9, Cached: 9, Completion: 4, Estimated: true}
	for text, want := range map[string]any{
		`{"key":"0","kind":"begun","v":2,"wording":3,"agent":"a","system":"s","task":"t","tools":` + tools + `,"config":` + config + `,"configHash":"h"}`: &agentsteps.Begun{
			Agent: "a", System: "s", Task: "t", Form: 2, Wording: 3, Tools: []agentsteps.Tool{{Name: "read", ReadOnly: true}, {}}, Config: read, ConfigHash: "h",
			PlainTools: list(tools), PlainConfig: list(config),
		},
		`{"key":"t1","kind":"reply","model":"m","text":"x","finish":"stop","try":2,"requestHash":"h","dropped":1,"workMs":5,` + usage + `,
			"calls":[{"id":"c","name":"read","arguments":{"p":1}},{"name":"x","raw":"{","why":"w"},7]}`: &agentsteps.Reply{
			Model: "m", Text: "x", Finish: "stop", Try: 2, RequestHash: "h", Dropped: 1, Work: 5 * time.Millisecond, Usage: used,
			Calls: []agentsteps.Wanted{{ID: "c", Name: "read", Arguments: object{"p": 1.0}}, {Name: "x", Raw: "{", Why: "w"}, {Invalid: true}},
		},
		`{"key":"t1","kind":"tried","code":"C","message":"m","try":1,"status":503,"retryAt":"soon","final":true,"compact":true,"afterMs":7}`: &agentsteps.Tried{
			Code: "C", Message: "m", Try: 1, To: -1, Status: 503, RetryAt: "soon", Final: true, Compact: true, After: 7 * time.Millisecond,
		},
		`{"key":"t1","kind":"tried","code":"C","try":1,"class":"busy","next":"n","to":0,"workMs":1e300,` + usage + `}`: &agentsteps.Tried{
			Code: "C", Try: 1, Class: "busy", Next: "n", Usage: used,
		},
		`{"key":"t1.c1","kind":"result","tool":"read","error":{"code":"E","message":"m"},"bytes":7}`: &agentsteps.Result{Tool: "read", Error: &agentsteps.Error{Code: "E", Message: "m"}, Bytes: 7},
		`{"key":"t1.c1","kind":"result","tool":"read","by":"person","output":null,"arguments":{"p":2}}`: &agentsteps.Result{
			Tool: "read", By: "person", HasOutput: true, Bytes: -1, Arguments: object{"p": 2.0},
		},
		`{"key":"t1.c1","kind":"result","tool":"read","outputRef":{"preview":"begin"},"workMs":1500,"toolChanged":["parameters"]}`: &agentsteps.Result{
			Tool: "read", Large: true, Preview: "begin", Bytes: -1, Work: 1500 * time.Millisecond, Changed: []string{"parameters"},
		},
		`{"key":"t1.c1","kind":"piece","piece":1,"pieceText":"x"}`:                                                      &agentsteps.Part{Text: "x"},
		`{"key":"t1.c1","kind":"decided","decision":"replace","reason":"r","model":"m","arguments":{"p":3},"workMs":1}`: &agentsteps.Decided{Decision: "replace", Reason: "r", Model: "m", Arguments: object{"p": 3.0}, Work: time.Millisecond},
		`{"key":"q1","kind":"question","about":"approval","calls":[{"key":"t1.c1","tool":"pay","mayHaveHappened":true}]}`: &agentsteps.Question{
			About: "approval", Calls: []agentsteps.Ask{{Key: "t1.c1", Tool: "pay", MayHaveHappened: true}},
		},
		`{"key":"q1","kind":"answer","expired":true}`:                                                   &agentsteps.Answer{Payload: object{"ok": true}, Expired: true},
		`{"key":"1","kind":"woken"}`:                                                                    &agentsteps.Woken{},
		`{"key":"0","kind":"continued","code":"C","message":"m","agentConfig":"current"}`:               &agentsteps.Resumed{Code: "C", Message: "m", Current: true},
		`{"key":"0","kind":"reconfigured","config":` + config + `,"configHash":"h","previousHash":"g"}`: &agentsteps.Changed{Config: read, Hash: "h", PreviousHash: "g", Plain: list(config)},
		`{"key":"q1","kind":"answered","payload":{"text":"blue"},"nobody":true}`:                        &agentsteps.Answer{Payload: object{"text": "blue"}, Expired: true},
		`{"key":"k1","kind":"compacted","upto":"t4","shrunk":2}`:                                        &agentsteps.Compacted{UpTo: "t4", Shrunk: 2},
		`{"key":"k1","kind":"compacted","upto":"t4","summary":"s","model":"m","try":2,"requestHash":"h","workMs":2,` + usage + `}`: &agentsteps.Compacted{
			UpTo: "t4", Summary: "s", Model: "m", Try: 2, RequestHash: "h", Work: 2 * time.Millisecond, Usage: used,
		},
		`{"key":"1","kind":"answer"}`:                    nil,
		`{"key":"1","kind":"rest"}`:                      nil,
		`{"key":"/1","kind":"result","pages":3}`:         nil,
		`{"key":"/1","kind":"begun"}`:                    nil,
		`{"key":"/1","kind":"reconfigured","config":{}}`: nil,
		`{"key":"/1","kind":"fetched","tool":"read","calls":[],"model":"m","agent":"a","task":"t","decision":"x"}`: nil,
	} {
		if got := agentsteps.Body(decode(t, text), object{"ok": true}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", text, got, want)
		}
	}
}

// TestDecisions: an answer decides about a call by its key, else about all calls.
func TestDecisions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]*agentsteps.Decision{
		`{"decision":"approve","remember":true}`:                                                     {Decision: "approve", Remember: true},
		`{"decision":"deny","calls":{"t1.c1":{"decision":"edit","arguments":{"n":1},"digest":"d"}}}`: {Decision: "edit", Arguments: object{"n": 1.0}, Digest: "d", HasDigest: true},
		`{"calls":{"t1.c1":{"decision":"respond","result":null,"reason":"r","digest":7}}}`:           {Decision: "respond", Reason: "r", HasResult: true, HasDigest: true},
		`{"calls":{"t1.c1":{}}}`:                  {},
		`{"calls":{"t1.c2":{"decision":"deny"}}}`: nil,
	} {
		if got := agentsteps.DecisionOf(decode(t, text), "t1.c1"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if keys := agentsteps.DecidedCalls(decode(t, `{"calls":{"t1.c2":{},"t1.c1":{}}}`)); !slices.Equal(keys, []string{"t1.c1", "t1.c2"}) {
		t.Error(keys)
	}
}

// TestEffects: calls with effects are those of tools that do more than read, unless the engine or a person answered in their place.
func TestEffects(t *testing.T) {
	t.Parallel()
	var steps []agentsteps.Step
	for _, text := range []string{
		`{"key":"0","kind":"begun","agent":"a","task":"t","configHash":"h","tools":[{"name":"read","readOnly":true},{"name":"pay"},{"name":"ask","source":"engine:ask"}]}`,
		`{"key":"t1","kind":"reply","model":"m","calls":[{"name":"read","arguments":{}},{"name":"pay","arguments":{"n":1}},{"name":"pay","arguments":{"n":2}},{"name":"ask","arguments":{}}]}`,
		`{"key":"t1.c1","kind":"result","tool":"read","output":1}`,
		`{"key":"t1.c2","kind":"result","tool":"pay","output":1,"arguments":{"n":9}}`,
		`{"key":"t1.c3","kind":"result","tool":"pay","by":"person","error":{"code":"TOOL_DENIED"}}`,
		`{"key":"t2","kind":"reply","model":"m","calls":[{"name":"pay","arguments":{"n":3}},{"name":"pay","arguments":{"n":4}}]}`,
		`{"key":"q1","kind":"question","about":"approval","calls":[{"key":"t2.c2"}]}`,
	} {
		m := decode(t, text)
		steps = append(steps, agentsteps.Step{Key: m["key"].(string), Kind: m["kind"].(string), Body: m})
	}
	if got := fmt.Sprintf("%v", agentsteps.Effects(steps)); got != `[{t1.c2 pay map[n:9] false} {t2.c1 pay map[n:3] true}]` {
		t.Error(got)
	}
	if n := agentsteps.Made(steps); n != 2 {
		t.Errorf("%d calls have a result", n)
	}
	if n := agentsteps.Kept(steps, "LLM_PROVIDER_ERROR"); n != 6 {
		t.Errorf("%d entries are kept", n)
	}
}
