package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// fuzzer makes the messages of a seed.
type fuzzer struct {
	rng   *rand.Rand
	tools []fuzzedTool
	next  int
	// runs are the ids of the runs of the batch, and scripts the calls that lead them to their ends.
	runs    []string
	scripts [][]string
}

// fuzzedMethods are the methods of all revisions, with parameters.
var fuzzedMethods = []string{
	"initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}`,
	"initialize", `{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`, "server/discover", `{}`, "ping", `{}`,
	"tools/list", `{}`, "prompts/list", `{}`, "prompts/get", `{"name":"drive_run","arguments":{"execution_id":"x"}}`, "resources/list", `{}`,
	"resources/templates/list", `{}`, "resources/read", `{"uri":"workflow://guide"}`, "resources/read", `{"uri":"workflow://runs/x"}`,
	"resources/subscribe", `{"uri":"workflow://guide"}`, "resources/unsubscribe", `{"uri":"workflow://guide"}`,
	"completion/complete", `{"ref":{"type":"ref/prompt","name":"drive_run"},"argument":{"name":"execution_id","value":""}}`,
	"logging/setLevel", `{"level":"debug"}`, "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`, "sampling/createMessage", `{"messages":[],"maxTokens":1}`,
	"elicitation/create", `{"message":"m","requestedSchema":{"type":"object"}}`, "roots/list", `{}`, "tasks/get", `{"taskId":"x"}`, "no/such", `{}`,
	"notifications/initialized", `{}`, "notifications/progress", `{"progressToken":1,"progress":1}`, "notifications/roots/list_changed", `{}`, "notifications/cancelled", `{"requestId":#}`,
	"notifications/cancelled", `{"requestId":#,"reason":"enough"}`,
}

// fuzzedShards are put into messages and are values in them.
var fuzzedShards = []string{
	`null`, `true`, `0`, `-1`, `1.5`, `1e400`, `-0`, `9007199254740993`, strings.Repeat("9", 400), `""`, `"x"`, `"\ud800"`, `"\u0000"`, "\"\xff\xfe\"", "\xc3", "\x00", `[]`, `{}`, `[[],{}]`, `{"":{}}`, `{"a":1,"a":2}`,
	`"../../etc/passwd"`, strings.Repeat("[", 20_000), strings.Repeat("[", 3000) + strings.Repeat("]", 3000), strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500), `"` + strings.Repeat("i", 100_000) + `"`,
	`,"id":1`, `,"method":"ping"`, `"jsonrpc":"1.0",`, `"`, `\`, `}`, `]`, "\ufeff", `//`, `NaN`, `{"ok":true,"result":{}}`,
}

func newFuzzer(t *testing.T, seed uint64, tools []fuzzedTool) *fuzzer {
	f := &fuzzer{rng: rand.New(rand.NewPCG(seed, 27)), tools: tools}
	for n := range 4 {
		id := fmt.Sprintf("r%d-%d", seed, n)
		f.runs = append(f.runs, id, id+":sub:v")
		call := func(tool, rest string) string {
			return f.call(tool, fmt.Sprintf(`{"execution_id":%q,"wait_ms":0%s}`, id, rest))
		}
		start := func(definition string) string {
			return call("workflow_start", fmt.Sprintf(`,"allow_existing_execution_id":%v,"definition":%s`, f.rng.IntN(2) == 0, definition))
		}
		var script []string
		switch f.rng.IntN(6) {
		case 0:
			for _, s := range ticketSteps(t, id) {
				text, _ := json.Marshal(s.args)
				script = append(script, f.call(s.tool, string(text)))
			}
		case 1:
			script = []string{start(asks), call("workflow_resume", `,"resume_payload":{"ok":true}`)}
		case 2:
			script = []string{start(booking), call("workflow_resume", `,"resume_payload":{}`), call("workflow_signal", `,"signal_name":"paid","idempotency_key":"k"`),
				call("workflow_submit_activity", `,"node_id":"o","outcome":{"ok":true}`), call("workflow_submit_activity", `,"node_id":"b","outcome":{"ok":false,"error":"e"}`)}
		case 3:
			script = []string{start(naps(time.Duration(f.rng.IntN(200)) * time.Millisecond)), call("workflow_status", `,"wait_ms":50`)}
		case 4:
			script = []string{start(fan(3))}
			for i := range 3 {
				script = append(script, call("workflow_submit_activity", fmt.Sprintf(`,"node_id":"s%d","outcome":{"ok":true}`, i)))
			}
		case 5:
			script = []string{start(walk(anySchema, `"type":"step","config":{"handler":"local"}`, `"type":"wait","config":{"kind":"signal","signal":"go"}`)), call("workflow_signal", `,"signal_name":"go"`), call("workflow_fork", `,"seq":3`)}
		}
		script = append(script, call("workflow_history", ``), call("workflow_status", ``))
		if f.rng.IntN(3) == 0 {
			script = slices.Insert(script, 1+f.rng.IntN(len(script)-1), call("workflow_cancel", `,"reason":"enough"`))
		}
		f.scripts = append(f.scripts, script)
	}
	return f
}

func (f *fuzzer) pick(from ...string) string { return from[f.rng.IntN(len(from))] }

// message makes a message, a batch of messages, or something else; always one line.
func (f *fuzzer) message() (text string) {
	switch n := f.rng.IntN(20); {
	case n < 9 && len(f.scripts) > 0:
		at := f.rng.IntN(len(f.scripts))
		text = f.scripts[at][0]
		if f.rng.IntN(2) == 0 { // else it is sent again
			if f.scripts[at] = f.scripts[at][1:]; len(f.scripts[at]) == 0 {
				f.scripts = slices.Delete(f.scripts, at, at+1)
			}
		}
		if f.rng.IntN(8) > 0 {
			return text
		}
	case n < 13:
		t := f.tools[f.rng.IntN(len(f.tools))]
		text = f.call(t.Name, f.arguments(t))
	case n < 17:
		at := f.rng.IntN(len(fuzzedMethods)/2) * 2
		text = f.request(fuzzedMethods[at], strings.Replace(fuzzedMethods[at+1], "#", fmt.Sprint(f.next-f.rng.IntN(8)), 1))
	case n == 17:
		var list []string
		for range f.rng.IntN(5) {
			list = append(list, f.message())
		}
		text = "[" + strings.Join(list, ",") + "]"
	case n == 18: // an answer, which nobody may have asked for
		text = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, f.rng.IntN(9), f.pick(`"result":{"action":"accept","content":{}}`, `"result":{}`, `"error":{"code":1,"message":"m"}`, `"error":null`))
	default:
		b := make([]byte, f.rng.IntN(200))
		for i := range b {
			b[i] = byte(f.rng.IntN(256))
		}
		text = f.pick(string(b), f.pick(fuzzedShards...), strings.Repeat(" ", 301_000), `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"`+strings.Repeat("x", 301_000)+`"}}`)
	}
	if f.rng.IntN(4) == 0 {
		text = f.mutate(text)
	}
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(text)
}

// call makes a call of a tool.
func (f *fuzzer) call(tool, arguments string) string {
	return f.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
}

// request makes a request, or a notification, of either protocol.
func (f *fuzzer) request(method, params string) string {
	f.next++
	id := fmt.Sprintf(`"id":%d,`, f.next)
	if strings.HasPrefix(method, "notifications/") != (f.rng.IntN(12) == 0) {
		id = ""
	} else if f.rng.IntN(12) == 0 {
		id = `"id":` + f.pick(fuzzedShards...) + `,`
	}
	if rest := strings.TrimPrefix(params, "{"); f.rng.IntN(4) == 0 && rest != params {
		if rest != "}" {
			rest = "," + rest
		}
		params = `{"_meta":{"progressToken":` + f.pick("1", `"t"`) + `,"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}` + rest
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":%s}`, id, method, params)
}

// arguments are some of the arguments of a tool, mostly with values that fit.
func (f *fuzzer) arguments(t fuzzedTool) string {
	var list []string
	for _, name := range t.arguments {
		if f.rng.IntN(3) == 0 && name != "execution_id" {
			continue
		}
		value := f.pick(fuzzedShards...)
		if f.rng.IntN(6) > 0 {
			switch name {
			case "execution_id":
				value = quoted(f.pick(f.runs...))
			case "definition":
				value = f.pick(asks, booking, naps(time.Second), quoted(asks), collector("c"), parent)
			case "definition_ref":
				value = f.pick(`"asks"`, `"asks@1"`, `"nap"`, `"none"`)
			case "node_id":
				value = quoted(f.pick("a", "q", "w", "s0", "classify", "v", "n0"))
			case "outcome":
				value = f.pick(`{"ok":true,"result":{}}`, `{"ok":true,"result":{"l":[1]}}`, `{"ok":false,"error":"e","code":"C"}`, `{"ok":7}`)
			case "signal_name":
				value = f.pick(`"paid"`, `"go"`)
			case "wait_ms", "seq", "from_seq", "since_seq", "limit":
				value = fmt.Sprint(f.rng.IntN(12))
			case "answer_bytes":
				value = fmt.Sprint(f.rng.IntN(10_000))
			case "input", "payload", "resume_payload", "state", "labels":
				value = f.pick(`{}`, `{"ok":true}`, `{"ticket":"t"}`)
			case "topic", "phase", "activity_execution_mode", "query":
				value = f.pick(`"jq"`, `"failed"`, `"running"`, `"host_mediated"`, `"in_process"`, `"a"`)
			}
		}
		list = append(list, quoted(name)+":"+value)
	}
	return "{" + strings.Join(list, ",") + "}"
}

// mutate changes a text in some places.
func (f *fuzzer) mutate(text string) string {
	for range 1 + f.rng.IntN(3) {
		at := f.rng.IntN(len(text) + 1)
		to := min(len(text), at+f.rng.IntN(12))
		switch f.rng.IntN(6) {
		case 0:
			text = text[:at] + text[to:]
		case 1:
			text = text[:to] + text[at:]
		case 2:
			text = text[:at] + f.pick(fuzzedShards...) + text[to:]
		case 3: // another value
			if colon := strings.IndexByte(text[at:], ':'); colon >= 0 {
				from := at + colon + 1
				end := strings.IndexAny(text[from:], ",}]")
				text = text[:from] + f.pick(fuzzedShards...) + text[from+max(end, 0):]
			}
		case 4: // half a frame
			text = text[:at]
		case 5:
			if at < len(text) {
				text = text[:at] + string([]byte{text[at] ^ 1<<f.rng.IntN(8)}) + text[at+1:]
			}
		}
	}
	return text
}
