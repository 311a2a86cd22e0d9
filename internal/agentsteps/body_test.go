package agentsteps_test

import (
	"fmt"
	"testing"

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
	for text, want := range map[string]string{
		`{"key":"0","kind":"begun","agent":"a","task":"t","tools":[{"name":"read","readOnly":true},7],"config":{"models":[{"model":"m"}],"agents":[{"config":{"name":"sub"}}]}}`: `&{a  t [{read  true} {  false}] { [m] map[] [{sub [] map[] []}]}}`,
		`{"key":"t1","kind":"reply","model":"m","calls":[{"name":"read","arguments":{"p":1}},{"name":"x","raw":"{"}]}`:                                                           `&{m   [{read map[p:1] <nil>} {x map[] {}] 0s <nil>}`,
		`{"key":"t1","kind":"tried","code":"C","try":1,"status":503,"retryAt":"soon"}`:                                                                                           `&{C    soon 503}`,
		`{"key":"t1.c1","kind":"result","tool":"read","error":{"code":"E"},"bytes":7}`:                                                                                           `&{read  map[code:E] map[] <nil>  false 7 [] 0s}`,
		`{"key":"t1.c1","kind":"result","tool":"read","outputRef":{"preview":"begin"},"workMs":1500}`:                                                                            `&{read  map[] map[] <nil> begin true -1 [] 1.5s}`,
		`{"key":"q1","kind":"question","about":"approval","calls":[{"key":"t1.c1","tool":"pay","mayHaveHappened":true}]}`:                                                        `&{approval [{t1.c1 pay map[]  true}]}`,
		`{"key":"q1","kind":"answer","expired":true}`:                                                                                                                            `&{map[ok:true] true}`,
		`{"key":"0","kind":"continued","code":"C","message":"m","agentConfig":"current"}`:                                                                                        `&{C m true}`,
		`{"key":"q1","kind":"answered","payload":{"text":"blue"},"nobody":true}`:                                                                                                 `&{map[text:blue] true}`,
		`{"key":"k1","kind":"compacted","upto":"t4","shrunk":2}`:                                                                                                                 `&{t4   2}`,
		`{"key":"1","kind":"answer"}`:                    `<nil>`,
		`{"key":"/1","kind":"result","pages":3}`:         `<nil>`,
		`{"key":"/1","kind":"begun"}`:                    `<nil>`,
		`{"key":"/1","kind":"reconfigured","config":{}}`: `<nil>`,
		`{"key":"/1","kind":"fetched","tool":"read","calls":[],"model":"m","agent":"a","task":"t","decision":"x"}`: `<nil>`,
	} {
		if got := fmt.Sprintf("%v", agentsteps.Body(decode(t, text), object{"ok": true})); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
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
