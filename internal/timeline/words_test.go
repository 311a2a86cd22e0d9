package timeline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

func stepOf(text string) history.Record {
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		panic(err)
	}
	return history.Record{Payload: history.Payload{NodeID: "n", NodeType: "agent_delegate", AgentID: "clerk", AgentStep: v.(object)}}
}

func TestLines(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]string{
		`{"key":"0","kind":"begun","n":1,"agent":"clerk","task":"pay"}`:                                                                                         `0 "clerk" 0s "pay"`,
		`{"key":"t1.c2/t3","kind":"reply","n":2,"model":"m","text":"a","calls":[{"name":"read"},{"name":"read"},{"name":"b"}],"workMs":1900}`:                   `1 "m" 1.9s "calls read 2×, b"`,
		`{"key":"t3","kind":"reply","n":2,"model":"m","text":" half ","finish":"length","calls":[]}`:                                                            `0 "m" 0s "cut: half"`,
		`{"key":"t3","kind":"tried","n":2,"try":1,"code":"LLM_RATE_LIMITED","message":"slow","next":"other"}`:                                                   `0 "" 0s "LLM_RATE_LIMITED slow; continues with other"`,
		`{"key":"t3.c1","kind":"result","n":2,"tool":"read","bytes":14200,"output":1}`:                                                                          `0 "read" 0s "14.2 kB"`,
		`{"key":"t3.c1","kind":"result","n":2,"tool":"read","output":"four"}`:                                                                                   `0 "read" 0s "6 B"`,
		`{"key":"t3.c1","kind":"result","n":2,"tool":"read","by":"person","error":{"code":"TOOL_DENIED","message":"no"}}`:                                       `0 "read" 0s "failed: TOOL_DENIED no, given by a person"`,
		`{"key":"t3.c1","kind":"decided","n":2,"decision":"deny","reason":"no"}`:                                                                                `0 "decided" 0s "deny no"`,
		`{"key":"k1","kind":"compacted","n":2,"upto":"t12","dropped":12}`:                                                                                       `0 "compacts" 0s "leaves out all up to t12"`,
		`{"key":"k1","kind":"compacted","n":2,"upto":"t12","summary":"short","model":"m"}`:                                                                      `0 "m" 0s "sums up all up to t12: short"`,
		`{"key":"q1","kind":"question","n":2,"about":"approval","calls":[{"key":"t1.c1","tool":"refund","arguments":{"n":1}},{"key":"t1.c2","tool":"refund"}]}`: `0 "asked" 0s "refund {\"n\":1}, refund {}"`,
		`{"key":"t3.c1","kind":"piece","n":2,"piece":1,"pieceText":"[1,2"}`:                                                                                     `0 "piece" 0s "4 B of the result that follows"`,
		`{"key":"0","kind":"continued","n":4,"code":"LLM_PROVIDER_ERROR","message":"down"}`:                                                                     `0 "continues" 0s "after LLM_PROVIDER_ERROR down"`,
		`{"key":"0","kind":"continued","n":4,"code":"C","message":"spent","agentConfig":"current"}`:                                                             `0 "continues" 0s "with today's configuration, after C spent"`,
		`{"key":"0","kind":"reconfigured","n":5,"configHash":"h","config":{"models":[{"model":"m"},{"model":"n"}],"budgets":{"turns":9}}}`:                      `0 "reconfigured" 0s "asks m, n within {\"turns\":9}"`,
		// Other executors have kinds of the same names.
		`{"key":"/1","kind":"reconfigured","n":2}`:       ``,
		`{"key":"/1","kind":"result","n":2,"pages":3}`:   ``,
		`{"key":"/1","kind":"begun","n":2}`:              ``,
		`{"key":"/1","kind":"question","n":2,"pages":3}`: ``,
	} {
		r := stepOf(step)
		l, ok := timeline.WordsOf(&r)
		got := ""
		if ok {
			got = fmt.Sprintf("%d %q %v %q", l.Depth, l.By, l.Took, l.Text)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", step, got, want)
		}
	}
	answer := stepOf(`{"key":"q1","kind":"answer","n":3}`)
	answer.Payload.SignalPayload = object{"ok": true}
	if l, ok := timeline.WordsOf(&answer); !ok || l.Text != `{"ok":true}` {
		t.Errorf("%+v", l)
	}
	answer.Payload.AgentID, answer.Payload.NodeType = "", "step"
	if _, ok := timeline.WordsOf(&answer); ok {
		t.Error("an answer to another executor is an agent's")
	}
}

func TestAnswerText(t *testing.T) {
	t.Parallel()
	two := []agentsteps.Ask{{Key: "t1.c1", Tool: "refund"}, {Key: "t1.c2", Tool: "mail"}}
	for _, c := range []struct {
		calls   []agentsteps.Ask
		payload object
		expired bool
		want    string
	}{
		{two, object{"decision": "approve", "remember": true}, false, "refund: approved from now on, mail: approved from now on"},
		{two, object{"calls": object{"t1.c1": object{"decision": "edit"}, "t1.c2": object{"decision": "deny", "reason": "no"}}}, false, "refund: approved by edit, mail: denied (no)"},
		{two, object{"decision": "deny", "calls": object{"t1.c1": object{"decision": "respond"}}}, true, "no answer in time: refund: answered in its place, mail: denied"},
		{nil, object{"decision": "stop"}, false, "stopped"},
		{nil, object{"text": "blue"}, false, "blue"},
		{nil, object{"year": 2024.0}, false, `{"year":2024}`},
		{nil, nil, false, "{}"},
	} {
		if got := timeline.AnswerText(c.calls, c.payload, c.expired); got != c.want {
			t.Errorf("%v: %q, want %q", c.payload, got, c.want)
		}
	}
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	for micros, want := range map[int64]string{0: "$0", 99: "<$0.0001", 280: "$0.0003", 12_448: "$0.0124", 500_000: "$0.50", 1_234_567: "$1.23"} {
		if got := timeline.USD(micros); got != want {
			t.Errorf("%d: %s, want %s", micros, got, want)
		}
	}
	for n, want := range map[int64]string{999: "999 B", 14_249: "14.2 kB", 999_950: "1.0 MB"} {
		if got := timeline.Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// TestWorkDoesNotGrow: what is kept of an agent at work is what is outstanding, however many turns it has had.
func TestWorkDoesNotGrow(t *testing.T) {
	t.Parallel()
	var w timeline.Work
	take := func(text string) {
		r := stepOf(text)
		w.Take(&r)
	}
	take(`{"key":"0","kind":"begun","n":1,"agent":"clerk","task":"x","config":{"models":[{"model":"m"}],"agents":[{"config":{"name":"sub","models":[{"model":"n"}]}}]}}`)
	for i := 1; i <= 1000; i++ {
		take(fmt.Sprintf(`{"key":"t%d","kind":"reply","n":2,"model":"m","calls":[{"name":"agent__sub"},{"name":"read"}]}`, i))
		take(fmt.Sprintf(`{"key":"t%d.c1/0","kind":"begun","n":3,"agent":"sub","task":"x"}`, i))
		if got, want := w.Text(), fmt.Sprintf("turn %d, sub: turn 1, asks n and 1 more", i); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		take(fmt.Sprintf(`{"key":"t%d.c1","kind":"result","n":4,"tool":"agent__sub"}`, i))
		take(fmt.Sprintf(`{"key":"t%d.c2","kind":"result","n":5,"tool":"read"}`, i))
		if got, want := w.Text(), fmt.Sprintf("turn %d, asks m", i+1); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	if n := w.Kept(); n != 1 {
		t.Errorf("%d agents are kept", n)
	}
}

// TestWorkWithAnotherConfiguration: an agent, its sub-agents and its budgets are those of the newest configuration.
func TestWorkWithAnotherConfiguration(t *testing.T) {
	t.Parallel()
	var w timeline.Work
	begun := `{"key":"0","kind":"begun","n":1,"agent":"clerk","task":"x","config":{"models":[{"model":"m"}],"budgets":{"tokens":10},"agents":[{"config":{"name":"sub","models":[{"model":"n"}]}}]}}`
	reconfigured := `{"key":"0","kind":"reconfigured","n":4,"configHash":"h","config":{"models":[{"model":"M"}],"budgets":{"tokens":90},"agents":[{"config":{"name":"sub","models":[{"model":"N"}]}}]}}`
	reply := `{"key":"t1","kind":"reply","n":2,"model":"m","calls":[{"name":"agent__sub"}],"totals":{"prompt_tokens":9,"completion_tokens":1}}`
	for _, text := range []string{begun, reply, `{"key":"t1.c1/0","kind":"begun","n":3,"agent":"sub","task":"x"}`, reconfigured} {
		r := stepOf(text)
		w.Take(&r)
	}
	if got := w.Text() + ", " + w.Spent(); got != "turn 1, sub: turn 1, asks N, 9+1 tokens of 90" {
		t.Error(got)
	}
	s, ok := agentsteps.StatusOf(stepOf(begun).Payload.AgentStep, stepOf(reconfigured).Payload.AgentStep, stepOf(reply).Payload.AgentStep, nil)
	if !ok || s.Name != "clerk" || s.Budgets["tokens"] != 90.0 {
		t.Errorf("%+v", s)
	}
}

// FuzzLine: whatever is recorded as a step, its line, what follows of it and its status are made without a panic.
func FuzzLine(f *testing.F) {
	f.Add(`{"key":"t1","kind":"reply","n":2,"model":"m","calls":[{"name":1},null,[]],"totals":{"cost_micros":1e300}}`, `{"calls":{"a":3}}`)
	f.Add(`{"key":"//","kind":"question","n":-1,"about":"approval","calls":[{}],"usage":[]}`, `{"decision":"edit"}`)
	f.Add(`{"key":"0","kind":"begun","agent":{},"task":[],"config":{"agents":[{"config":{"agents":[0]}}],"models":[3]}}`, `null`)
	f.Fuzz(func(t *testing.T, step, payload string) {
		v, err := jsonvalue.Decode([]byte(step))
		body, ok := v.(object)
		if err != nil || !ok {
			return
		}
		answer, _ := jsonvalue.Decode([]byte(payload))
		object, _ := answer.(object)
		r := history.Record{CreatedAt: time.Unix(0, 0), Payload: history.Payload{AgentID: "a", AgentStep: body, SignalPayload: object}}
		timeline.WordsOf(&r)
		var w timeline.Work
		for range 2 {
			w.Take(&r)
			_, _ = w.Text(), w.Spent()
		}
		if s, ok := agentsteps.StatusOf(body, body, body, body); ok {
			s.JSON().Append(nil)
		}
		agentsteps.CallsJSON(agentsteps.Approval(body))
	})
}
