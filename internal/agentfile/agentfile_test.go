package agentfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentfile"
	"github.com/workflows-engine/workflows-engine/internal/document"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/schemas"
)

// surroundings have the server "files", the file "a.md", the secret env:KEY, and the knowledge bases and skills of testdata.
func surroundings() agentfile.Surroundings {
	return agentfile.Surroundings{
		ReadFile: func(path string) ([]byte, error) {
			switch path {
			case "a.md":
				return []byte("\ufeffFind it.\n"), nil
			case "blank.md":
				return []byte(" \n"), nil
			}
			return nil, os.ErrNotExist
		},
		Secret: func(reference string) error {
			if reference == "env:KEY" {
				return nil
			}
			return errors.New("secret " + reference + " is not set")
		},
		Servers: []string{"files"}, Steps: []string{"urn:total"},
		Absolute: func(path string) string { return "testdata/" + path }, Directories: true,
	}
}

// beside is a list with more members, and an agent with tools.
func beside(members, tools string) string {
	return "{\n" + members + `,` + "\n" + `"models":{"m":{"model":"gpt"}},` + "\n" + `"agents":{"a":{"instructions":"i",` + "\n" + `"tools":[` + tools + `]}}}`
}

// service is a list with a service.
func service(members string) string {
	return beside(`"apis":{"w":{"baseUrl":"https://api.acme.example/v1",`+members+`}}`, `{"api":["w"]}`)
}

func list(agent string) string {
	return `{"models":{"m":{"model":"gpt"}},` + "\n" + `"agents":{"a":` + agent + `,` + "\n" + `"b":{"instructions":"i"}}}`
}

// two is a list of an agent with two models.
func two(members string) string {
	return `{"models":{"m":{"model":"gpt"},"n":{"model":"mini"}},"agents":{"a":{"instructions":"i","models":["m","n"],` + members + `}}}`
}

func models(text string) string {
	return `{"models":` + text + `,` + "\n" + `"agents":{"a":{"instructions":"i"}}}`
}

// What is accepted and refused: "line:column keyword pointer: message; hint" of each finding.
func TestParse(t *testing.T) {
	t.Parallel()
	told := func(members string) string { return list(`{"instructions":"i"` + members + `}`) }
	for _, c := range []struct{ text, want string }{
		{told(""), ""},
		{list(`{"instructionsFile":"a.md"}`), ""},
		{told(`,"tools":[{"server":"files","allow":["read_*"],"parallel":true,"onCrash":"repeat"},{"agent":"b","gate":"ask"},{"builtin":"ask_person"}]`), ""},
		{told(`,"gates":[{"tools":["*"],"unless":"read_only","do":"ask"},{"tools":["x"],"when":".arguments.n > 1","do":"deny","reason":"no"}]`), ""},
		{told(`,"output":{"schema":{"type":"object"},"repairs":0}`), ""},
		{models(`{"m":{"model":"x","endpoint":{"baseUrl":"http://localhost:1/v1","apiKeyEnv":"KEY"}}}`), ""},

		{`{}`, "1:1 required : missing field \"models\"\n1:1 required : missing field \"agents\""},
		{`{"models":`, "1:11 parse /models: expected a value, found the end of the text"},
		{models(`{}`), `1:11 minProperties /models: must name at least one model`},
		{models(`{"m":{"modle":"x"}}`), "1:17 additionalProperties /models/m/modle: unknown field \"modle\"; did you mean \"model\"?"},
		{models(`{"m":{"model":"x","maxTokens":9000,"maxTokensCeiling":8999}}`), `1:65 minimum /models/m/maxTokensCeiling: maxTokensCeiling is less than maxTokens, which is 9000`},
		{models(`{"m":{"model":"x","priceUsdPerMTok":{"input":1}}}`), `1:47 required /models/m/priceUsdPerMTok: missing field "output"`},
		{models(`{"m":{"model":"x","endpoint":{"baseUrl":"x","noAuth":true}}}`), `1:51 pattern /models/m/endpoint/baseUrl: must be an absolute http or https address without user and query, as in http://localhost:11434/v1`},
		{models(`{"m":{"model":"x","endpoint":{"baseUrl":"http://x/v1/chat/completions/","noAuth":true}}}`), `1:51 format /models/m/endpoint/baseUrl: baseUrl must not end with /chat/completions, which is appended; Write http://x/v1.`},
		{models(`{"m":{"model":"x","endpoint":{"baseUrl":"http://x"}}}`), `1:40 oneOf /models/m/endpoint: must have exactly one of apiKeyEnv, apiKeySecretRef and noAuth`},
		{models(`{"m":{"model":"x","endpoint":{"baseUrl":"http://x","apiKeyEnv":"NONE"}}}`), `1:40 profile /models/m/endpoint: secret env:NONE is not set`},
		{models(`{"m":{"model":"x"},"n":{"model":"y"}}`), `2:15 required /agents/a: missing field "model"; Name one of m or n.`},

		{list(`{}`), `2:15 oneOf /agents/a: must have either instructions or instructionsFile; Write the instructions, or name a file that holds them.`},
		{told(`,"instructionsFile":"a.md"`), `2:15 oneOf /agents/a: must have either instructions or instructionsFile; Write the instructions, or name a file that holds them.`},
		{list(`{"instructionsFile":"gone.md"}`), `2:35 profile /agents/a/instructionsFile: the file cannot be read: file does not exist`},
		{list(`{"instructionsFile":"blank.md"}`), `2:35 profile /agents/a/instructionsFile: the file is blank`},
		{told(`,"fallback":{"afterTries":1}`), `2:46 profile /agents/a/fallback: the agent has only one model; List the models in models, in the order of use, or leave fallback out.`},
		{two(`"fallback":{"on":["busy","donw"]}`), `1:132 enum /agents/a/fallback/on/1: must be one of "busy", "down", "slow", "quota", "credentials", "unknown", "context", "refused", "answer", "request", not "donw"; did you mean "down"?`},
		{two(`"fallback":{"on":[],"afterTries":3,"returnAfterMs":1000}`), ""},
		{two(`"fallback":{"afterTries":0}`), `1:132 minimum /agents/a/fallback/afterTries: must be from 1 to 1000, not 0`},
		{told(`,"budgets":{"turns":2,"onExceeded":"finish","finishTokens":500},"output":{"schema":{"type":"object"},"partialAs":"half"}`), ""},
		{told(`,"output":{"schema":{"properties":{"half":{"type":"string"}}},"partialAs":"half"}`), `2:108 profile /agents/a/output/partialAs: the schema does not allow true as its member "half"`},
		{told(`,"model":"mm"`), `2:43 profile /agents/a/model: there is no model "mm"; did you mean "m"?`},
		{told(`,"strema":true`), `2:35 additionalProperties /agents/a/strema: unknown field "strema"; did you mean "stream"?`},
		{told(`,"compaction":{},"results":{"offloadBytes":0}`), ""},
		{told(`,"compaction":{"threshold":85}`), `2:61 maximum /agents/a/compaction/threshold: must be from 0.1 to 1, not 85`},
		{told(`,"compaction":{"model":"n"}`), `2:57 profile /agents/a/compaction/model: there is no model "n"; did you mean "m"?`},
		{told(`,"compaction":{"keepTurn":1}`), `2:49 additionalProperties /agents/a/compaction/keepTurn: unknown field "keepTurn"; did you mean "keepTurns"?`},
		{told(`,"results":{"offloadBytes":-1}`), `2:61 minimum /agents/a/results/offloadBytes: must be from 0 to 2097152, not -1`},
		{told(`,"tools":[{"api":["x"]}]`), `2:52 profile /agents/a/tools/0/api/0: apis has no service "x"`},
		{told(`,"tools":[{"api":[]}]`), `2:51 minItems /agents/a/tools/0/api: must name at least one service`},
		{told(`,"tools":[{"knowledge":["hr"]}]`), `2:45 profile /agents/a/tools/0/knowledge: there are no knowledge bases; Name their directory in the field knowledge of the list.`},
		{told(`,"tools":[{"skills":["memo"]}]`), `2:45 profile /agents/a/tools/0/skills: there are no skills; Name their directory in the field skills of the list.`},
		{told(`,"tools":[{"step":"urn:totl","name":"total","description":"d"}]`), `2:52 profile /agents/a/tools/0/step: there is no step handler "urn:totl"; did you mean "urn:total"?`},
		{told(`,"tools":[{"step":"urn:total","name":"to tal","description":"d"}]`), `2:71 pattern /agents/a/tools/0/name: must be at most 64 letters, digits, "_" and "-"`},
		{told(`,"tools":[{"step":"urn:total","name":"total"}]`), `2:44 required /agents/a/tools/0: missing field "description"`},
		{told(`,"tools":[{"step":"urn:total","name":"total","description":"d","inputSchema":{"type":"array"}}]`), `2:119 enum /agents/a/tools/0/inputSchema/type: must be "object", not "array"`},
		{told(`,"tools":[{"step":"urn:total","name":"total","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"strng"}}}}]`), `format`},
		{told(`,"tools":[{"step":"urn:total","name":"total","description":"d"},{"step":"urn:total","name":"total","description":"e"}]`), `2:98 uniqueItems /agents/a/tools/1: total is listed twice; Leave one of them out.`},
		{beside(`"knowledge":{"path":"k"}`, `{"knowledge":["hr","gone","hr"]}`), "5:29 profile /agents/a/tools/0/knowledge/1: there is no knowledge base \"gone\": no such file or directory\n5:36 uniqueItems /agents/a/tools/0/knowledge/2: must not equal /agents/a/tools/0/knowledge/0; Leave one of them out."},
		{beside(`"knowledge":{"path":"k"}`, `{"knowledge":["hr"]},{"knowledge":["hr"]}`), `5:31 uniqueItems /agents/a/tools/1: search_knowledge is listed twice; Leave one of them out.`},
		{beside(`"skills":{"path":"s"}`, `{"skills":["memo","gone"]}`), `5:28 profile /agents/a/tools/0/skills/1: there is no skill "gone"; A skill is a folder with a file SKILL.md.`},
		{beside(`"skills":{}`, `{"skills":["memo"]}`), `2:10 required /skills: missing field "path"`},
		{beside(`"apis":{}`, `{"builtin":"ask_person"}`), `2:8 minProperties /apis: must name at least one service`},
		{service(`"allowedPaths":["/x"]`), `2:70 pattern /apis/w/allowedPaths/0: must begin with "^/": write ^/widgets/[0-9]+$ for one path, ^/widgets/ for all below it`},
		{service(`"allowedPaths":["^/("]`), `format`},
		{service(`"allowedPaths":[]`), `2:69 minItems /apis/w/allowedPaths: must allow at least one path`},
		{service(`"allowedPaths":["^/"],"allowedMethods":["get"]`), `2:94 enum /apis/w/allowedMethods/0: must be one of "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", not "get"; did you mean "GET"?`},
		{service(`"allowedPaths":["^/"],"allowedMethods":["TRACE"]`), `2:94 enum /apis/w/allowedMethods/0: must be one of "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", not "TRACE"`},
		{service(`"allowedPaths":["^/"],"auth":{"type":"bearer","tokenRef":"env:NONE"}`), `2:111 profile /apis/w/auth/tokenRef: secret env:NONE is not set`},
		{service(`"allowedPaths":["^/"],"auth":{"type":"custom","id":"x"}`), "2:91 enum /apis/w/auth/type: must be one of \"none\", \"bearer\", \"header\", \"basic\", not \"custom\""},
		{service(`"allowedPaths":["^/"],"auth":{"type":"none","tokenRef":"env:KEY"}`), `2:98 additionalProperties /apis/w/auth/tokenRef: unknown field "tokenRef"; Known fields: type.`},
		{service(`"allowedPaths":["^/"],"privateNetworks":["10.0.0.0"]`), `2:95 pattern /apis/w/privateNetworks/0: must be a network such as 10.0.0.0/8`},
		{told(`,"tools":[{}]`), `2:44 anyOf /agents/a/tools/0: must have exactly one of server, step, api, knowledge, skills, agent and builtin`},
		{told(`,"tools":[{"server":"file"}]`), `2:54 profile /agents/a/tools/0/server: there is no MCP server "file"; did you mean "files"?`},
		{told(`,"tools":[{"server":"files","allow":["["]}]`), `2:71 format /agents/a/tools/0/allow/0: invalid pattern of names "["; Write a name; * matches any characters, ? one, [a-z] one of these.`},
		{told(`,"tools":[{"server":"files","allow":["r"]},{"server":"files","allow":["w","r"]}]`), `2:77 uniqueItems /agents/a/tools/1: files__r is listed twice; Leave one of them out.`},
		{told(`,"tools":[{"agent":"other"}]`), `2:53 profile /agents/a/tools/0/agent: there is no agent "other"; there is a and b`},
		{told(`,"tools":[{"agent":"a"}]`), `2:53 profile /agents/a/tools/0/agent: agents call each other in a circle: a calls a, which leads back to a`},
		{told(`,"tools":[` + strings.Repeat(`{"server":"files","allow":["r"]},`, 513) + `{"builtin":"ask_person"}]`), `2:43 maxItems /agents/a/tools: must have at most 512 entries: leave some of the tools to other agents`},
		{`{"models":{"m":{"model":"m"}},"agents":{"a":{"instructions":"x","tools":[{"agent":"b"}]},"b":{"instructions":"x","tools":[{"agent":"a"}]}}}`, `1:132 profile /agents/b/tools/0/agent: agents call each other in a circle: b calls a, which leads back to b`},
		{lattice(), `1:46 profile /agents/a0: a0 has more than 256 sub-agents, each counted once for every agent that calls it; Let agents call fewer others.`},
		{told(`,"tools":[{"builtin":"ask"}]`), `2:55 enum /agents/a/tools/0/builtin: must be "ask_person", not "ask"`},
		{told(`,"gates":[{"tools":["*"],"when":".a |","do":"ask"}]`), `format`},
		{told(`,"gates":[{"tools":["*"],"do":"asks"}]`), `2:64 enum /agents/a/gates/0/do: must be one of "allow", "ask", "deny", not "asks"; did you mean "ask"?`},
		{told(`,"output":{"schema":{"type":"objct"}}`), `format`},
		{told(`,"budgets":{"costUsd":0.5}`), `2:56 profile /agents/a/budgets/costUsd: model "m" has no price; Give it priceUsdPerMTok, or leave costUsd out.`},
		{told(`,"budgets":{"turns":0}`), `2:54 minimum /agents/a/budgets/turns: must be from 1 to 1000000, not 0`},
	} {
		file, findings := agentfile.Parse([]byte(c.text), surroundings())
		var got []string
		for _, f := range findings {
			text := fmt.Sprintf("%d:%d %s %s: %s", f.At.Line, f.At.Column, f.Keyword, f.At.Pointer, f.Message)
			if f.Hint != "" {
				text += "; " + f.Hint
			}
			if c.want == "format" { // the rest is the compiler's
				text = f.Keyword
			}
			got = append(got, text)
			if f.Code != problem.AgentConfigInvalid {
				t.Errorf("%s: code %s", c.text, f.Code)
			}
		}
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, text, c.want)
		}
		if (file == nil) != findings.HasErrors() {
			t.Errorf("%s: file %v", c.text, file)
		}
	}
}

// A budget of money warns of what it does not count: models without a price of agents below, however deep.
func TestBudgetsThatDoNotCountAll(t *testing.T) {
	t.Parallel()
	_, findings := agentfile.Parse([]byte(`{"models":{"paid":{"model":"x","priceUsdPerMTok":{"input":1,"output":1}},"free":{"model":"x","priceUsdPerMTok":{"input":0,"output":0}},"new":{"model":"x"},"old":{"model":"x"}},
"agents":{"top":{"instructions":"i","model":"paid","tools":[{"agent":"middle"},{"agent":"low"},{"agent":"fair"},{"agent":"same"}],
 "budgets":{"costUsd":1}},
"middle":{"instructions":"i","model":"free","tools":[{"agent":"low"}]},
"low":{"instructions":"i","models":["paid","new"],"compaction":{"model":"old"}},
"same":{"instructions":"i","model":"new","compaction":{"model":"new"}},
"fair":{"instructions":"i","model":"free","budgets":{"costUsd":1}}}}`), surroundings())
	var got []string
	for _, f := range findings {
		got = append(got, fmt.Sprintf("%s %d:%d %s: %s", f.Severity, f.At.Line, f.At.Column, f.At.Pointer, f.Message))
	}
	if want := []string{
		`warning 3:23 /agents/top/budgets/costUsd: model "new" of agent "low" has no price: its cost is not counted`,
		`warning 3:23 /agents/top/budgets/costUsd: model "old" of agent "low" has no price: its cost is not counted`,
		`warning 3:23 /agents/top/budgets/costUsd: model "new" of agent "same" has no price: its cost is not counted`,
	}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A list is checked against what there is around it.
func TestSurroundings(t *testing.T) {
	t.Parallel()
	s := surroundings()
	s.Servers, s.NoServers, s.NoProvider = nil, "there is no manifest", "there is no provider"
	_, findings := agentfile.Parse([]byte(list(`{"instructions":"i","tools":[{"server":"files"}]}`)), s)
	if len(findings) != 2 || findings[0].Message != "there is no provider" || !strings.HasSuffix(findings[1].Message, "there is no manifest") {
		t.Errorf("%v", findings)
	}
	s.NoServers, s.NoProvider = "", ""
	if _, findings := agentfile.Parse([]byte(list(`{"instructions":"i","tools":[{"server":"files"}]}`)), s); len(findings) > 0 {
		t.Errorf("%v", findings)
	}
}

func TestParseValues(t *testing.T) {
	t.Parallel()
	file, findings := agentfile.Parse([]byte(`{"models":{
		"main":{"model":"gpt","contextTokens":1000,"maxTokens":10,"maxTokensCeiling":20,"temperature":0,"priceUsdPerMTok":{"input":2,"output":8}},
		"local":{"model":"llama","endpoint":{"baseUrl":"http://localhost:11434/v1","noAuth":true}}},
		"agents":{"a":{"description":"d","instructionsFile":"a.md","models":["main","local"],"stream":true,"maxDepth":2,
			"tools":[{"server":"files","allow":["r"],"parallel":false,"gate":"ask"},{"step":"urn:total","name":"total","description":"Adds.","inputSchema":{"type":"object"},"onCrash":"repeat"},
				{"api":["w"],"gate":"ask"},{"knowledge":["hr","sales/q1"]},{"skills":["memo"]},{"builtin":"ask_person"}],
			"modelRetry":{"maxAttempts":2,"coefficient":1.5},
			"budgets":{"turns":3},"results":{"maxChars":10,"offloadBytes":2048,"maxBytes":2097152},"compaction":{"threshold":0.5,"keepTurns":3,"model":"local"},"repeats":{"warn":1,"stop":2},"output":{"schema":{}}},
		 "b":{"instructions":"i","model":"main","budgets":{"costUsd":0.5,"onExceeded":"finish"}}},
		"apis":{"w":{"baseUrl":"http://w/v1","auth":{"type":"basic","userRef":"env:KEY","passRef":"env:KEY"},"allowedPaths":["^/w$"],"allowedMethods":["GET","POST"],"timeoutMs":5,"privateNetworks":["10.0.0.0/8"]},
			"open":{"baseUrl":"http://o","allowedPaths":["^/"]}},
		"knowledge":{"path":"k","maxReadBytes":7},"skills":{"path":"s"}}`), surroundings())
	if file == nil {
		t.Fatal(findings)
	}
	got, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"Models":{"local":{"model":"llama","endpoint":{"baseUrl":"http://localhost:11434/v1","apiKeySecretRef":"","apiKeyEnv":"","noAuth":true}},` +
		`"main":{"model":"gpt","contextTokens":1000,"maxTokens":10,"maxTokensCeiling":20,"temperature":0,"priceUsdPerMTok":{"input":2,"cachedInput":2,"output":8},"endpoint":null}},` +
		`"Agents":{"a":{"name":"","description":"d","instructions":"Find it.","models":null,"stream":true,"maxDepth":2,"modelRetry":{"maxAttempts":2,"coefficient":1.5},` +
		`"budgets":{"turns":3},"repeats":{"warn":1,"stop":2},"results":{"maxChars":10,"offloadBytes":2048,"maxBytes":2097152},"compaction":{"threshold":0.5,"keepTurns":3},"output":{"schema":{},"repairs":1},"hooks":{},"Models":["main","local"],"SummaryModel":"local",` +
		`"Tools":[{"server":"files","allow":["r"],"parallel":false,"gate":"ask"},` +
		`{"step":"urn:total","name":"total","description":"Adds.","inputSchema":{"type":"object"},"onCrash":"repeat"},{"api":["w"],"gate":"ask"},` +
		`{"knowledge":["hr","sales/q1"]},{"skills":["memo"]},{"builtin":"ask_person"}]},` +
		`"b":{"name":"","instructions":"i","models":null,"modelRetry":{},"budgets":{"costMicros":500000,"onExceeded":"finish"},"repeats":{},"results":{},"compaction":{},"hooks":{},"Models":["main"],"Tools":null}},` +
		`"Settings":{"apis":{"open":{"baseUrl":"http://o","auth":{"type":"none"},"allowedPaths":["^/"]},"w":{"baseUrl":"http://w/v1","auth":{"type":"basic","userRef":"env:KEY","passRef":"env:KEY"},` +
		`"allowedPaths":["^/w$"],"allowedMethods":["GET","POST"],"timeoutMs":5,"privateNetworks":["10.0.0.0/8"]}},"knowledge":{"path":"testdata/k","maxReadBytes":7},"skills":{"path":"testdata/s"}}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

const whole = `{"$schema":"s","models":{
	"m":{"model":"x","contextTokens":9000,"maxTokens":10,"maxTokensCeiling":20,"temperature":1,"priceUsdPerMTok":{"input":1,"cachedInput":1,"output":1},"endpoint":{"baseUrl":"http://x","noAuth":true}},
	"n":{"model":"x","endpoint":{"baseUrl":"http://x","apiKeyEnv":"KEY"}},"o":{"model":"x","endpoint":{"baseUrl":"http://x","apiKeySecretRef":"env:KEY"}}},
	"agents":{"a":{"description":"d","instructions":"i","model":"m","stream":true,"turnTimeoutMs":1,"toolTimeoutMs":1,"maxToolConcurrency":1,"maxDepth":1,
		"modelRetry":{"maxAttempts":1,"initialIntervalMs":1,"coefficient":1,"maxIntervalMs":1},
		"tools":[{"server":"files","allow":["r"],"parallel":true,"onCrash":"ask","gate":"ask"},{"agent":"b","parallel":true,"gate":"deny"},{"builtin":"ask_person"},
			{"step":"urn:total","name":"t","description":"d","inputSchema":{"type":"object","x":1},"parallel":true,"onCrash":"repeat","gate":"ask"},{"api":["w"],"parallel":true,"onCrash":"ask","gate":"ask"},
			{"knowledge":["hr"],"parallel":true,"onCrash":"ask","gate":"ask"},{"skills":["memo"],"parallel":true,"onCrash":"ask","gate":"ask"}],
		"gates":[{"tools":["*"],"when":".turn > 1","unless":"read_only","do":"ask","reason":"r","timeoutMs":1}],
		"budgets":{"turns":1,"toolCalls":1,"tokens":1,"costUsd":1,"workMs":1,"onExceeded":"finish"},"repeats":{"warn":1,"stop":1},"results":{"maxChars":1,"offloadBytes":0,"maxBytes":1048576,"previewChars":1},
		"compaction":{"threshold":0.5,"keepTurns":1,"summaryMaxTokens":1,"model":"m"},
		"output":{"schema":{},"repairs":0}},
	"b":{"instructionsFile":"a.md","models":["m","n"]}},
	"apis":{"w":{"baseUrl":"http://w","auth":{"type":"bearer","tokenRef":"env:KEY"},"allowedPaths":["^/"],"allowedMethods":["GET"],"maxBodyBytes":1,"maxResponseBytes":1,"timeoutMs":1,"privateNetworks":["::1/128"]},
		"v":{"baseUrl":"http://w","auth":{"type":"header","name":"X-Key","valueRef":"env:KEY"},"allowedPaths":["^/"]},
		"u":{"baseUrl":"http://w","auth":{"type":"basic","userRef":"env:KEY","passRef":"env:KEY"},"allowedPaths":["^/"]},
		"t":{"baseUrl":"http://w","auth":{"type":"none"},"allowedPaths":["^/"]}},
	"knowledge":{"path":"k","maxSearchResults":1,"maxReadBytes":1},"skills":{"path":"s"}}`

// The published schema knows every field of the list, and each object rejects another one: by the schema alone, as in an editor, and when
// the list is read.
func TestFields(t *testing.T) {
	t.Parallel()
	raw, err := jsonvalue.Decode(schemas.Agents())
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	accepts := func(text string) (bySchema, whenRead bool) {
		value, err := jsonvalue.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		file, _ := agentfile.Parse([]byte(text), surroundings())
		return len(schema.Validate(value)) == 0, file != nil
	}
	if s, r := accepts(whole); !s || !r {
		t.Errorf("schema %t, read %t: %s", s, r, whole)
	}
	for i := range whole {
		if whole[i] != '{' || strings.HasPrefix(whole[i:], "{}") || strings.HasSuffix(whole[:i], `"models":`) || strings.HasSuffix(whole[:i], `"agents":`) ||
			strings.HasSuffix(whole[:i], `"apis":`) || strings.HasSuffix(whole[:i], `"inputSchema":`) {
			continue
		}
		changed := whole[:i] + `{"zzz":1,` + whole[i+1:]
		if s, r := accepts(changed); s || r {
			t.Errorf("schema %t, read %t: %s", s, r, changed)
		}
	}
	for n, want := range map[int]bool{agentloop.MaxTools: true, agentloop.MaxTools + 1: false} {
		tools := make([]string, n)
		for i := range tools {
			tools[i] = fmt.Sprintf(`{"server":"files","allow":["r%d"]}`, i)
		}
		if s, r := accepts(list(`{"instructions":"i","tools":[` + strings.Join(tools, ",") + `]}`)); s != want || r != want {
			t.Errorf("%d tools: schema %t, read %t", n, s, r)
		}
	}
}

// Each value of a wrong type is one mistake with one finding, whatever refers to it.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	root, err := jsonvalue.Decode([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	const warning = `model "n" of agent "b" has no price: its cost is not counted`
	tried := 0
	var change func(at string, value any, set func(any))
	change = func(at string, value any, set func(any)) {
		switch v := value.(type) {
		case map[string]any:
			for name, field := range v {
				change(at+document.At(name), field, func(other any) { v[name] = other })
			}
		case []any:
			for i, element := range v {
				change(at+document.At(i), element, func(other any) { v[i] = other })
			}
		}
		if strings.Contains(at, "/inputSchema/") || at == "/$schema" { // may be anything
			return
		}
		for _, wrong := range []any{nil, []any{[]any{}}} {
			if _, list := value.([]any); list && wrong != nil {
				wrong = true
			}
			set(wrong)
			file, findings := agentfile.Parse(jsonvalue.Canonical(root), surroundings())
			findings = slices.DeleteFunc(findings, func(f problem.Finding) bool { return f.Severity == problem.SeverityWarning && f.Message == warning })
			if file != nil || len(findings) != 1 || findings[0].At.Pointer != at {
				t.Errorf("%v at %s: %v", wrong, at, findings)
			}
			tried++
		}
		set(value)
	}
	change("", root, func(other any) { root = other })
	if tried < 200 {
		t.Errorf("%d values", tried)
	}
}

// All mistakes are found at once, also beside a value of a wrong type and beside a missing field.
func TestAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, findings := agentfile.Parse([]byte(`{"models":{"m":{"model":5,"maxTokens":10,"maxTokensCeiling":9},"n":{"contextTokens":"many","endpoint":{"baseUrl":"http://x/chat/completions"}}},
"agents":{"a":{"instructions":true,"model":"o","tools":[{"agent":"c"},{"server":"files","allow":5},{"server":"files"}]},
"b":{"model":"n","instructionsFile":"gone.md","instructions":"i","stream":"yes","gates":[{"tools":["["],"do":"ask"},{"tools":[7],"do":"ask"}]}}}`), surroundings())
	var got []string
	for _, f := range findings {
		got = append(got, fmt.Sprintf("%s %s", f.At.Pointer, f.Keyword))
	}
	if want := []string{
		"/models/m/model type", "/models/m/maxTokensCeiling minimum", "/models/n required", "/models/n/contextTokens type", "/models/n/endpoint oneOf",
		"/models/n/endpoint/baseUrl format", "/agents/a/instructions type", "/agents/a/model profile", "/agents/a/tools/0/agent profile",
		"/agents/a/tools/1/allow type", "/agents/b oneOf", "/agents/b/instructionsFile profile", "/agents/b/stream type",
		"/agents/b/gates/0/tools/0 format", "/agents/b/gates/1/tools/0 type",
	}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A mistake hides no other one about the same object or list.
func TestMistakesBesideOthers(t *testing.T) {
	t.Parallel()
	told := func(members string) string {
		return `{"models":{"m":{"model":"gpt"},"n":{"model":"mini"}},"agents":{"a":{` + members + `}}}`
	}
	for _, c := range []struct{ text, want string }{
		{told(`"instructions":"i","models":["m","n","m","zz"]`), `/agents/a/models/2 must not equal /agents/a/models/0
/agents/a/models/3 there is no model "zz"`},
		{told(`"instructions":"i","instructionsFile":"gone.md","models":["m","zz"],"model":"yy"`), `/agents/a must have either instructions or instructionsFile
/agents/a must not have both model and models
/agents/a/instructionsFile the file cannot be read: file does not exist
/agents/a/models/1 there is no model "zz"
/agents/a/model there is no model "yy"`},
		{told(`"instructions":"i","instructionsFile":"a.md","stram":true`), `/agents/a must have either instructions or instructionsFile
/agents/a missing field "model"
/agents/a/stram unknown field "stram"`},
		{told(`"instructions":"i","model":"m","tools":["text",5,null]`), `/agents/a/tools/0 must be object, not string
/agents/a/tools/1 must be object, not number
/agents/a/tools/2 must be object, not null`},
		{told(`"instructions":"i","model":"m","tools":[{"step":"urn:total","name":"t","description":"d"},
{"step":"urn:total","name":"t","description":"d","inputSchema":{"type":"array"}}]`), `/agents/a/tools/1 t is listed twice
/agents/a/tools/1/inputSchema/type must be "object", not "array"`},
		{told(`"instructions":"i","model":"m","tools":[{"skills":["memo",5]},{"knowledge":[" "]}]`), `/agents/a/tools/0/skills there are no skills
/agents/a/tools/0/skills/1 must be string, not number
/agents/a/tools/1/knowledge there are no knowledge bases
/agents/a/tools/1/knowledge/0 must not be blank`},
		{told(`"instructions":"i","model":"m","fallback":{"on":["bsy"]}`), `/agents/a/fallback the agent has only one model
/agents/a/fallback/on/0 must be one of "busy", "down", "slow", "quota", "credentials", "unknown", "context", "refused", "answer", "request", not "bsy"`},
		{told(`"instructions":5,"tools":[{"agent":"gone"}],"tools":[{"agent":"b"}]`), `/agents/a missing field "model"
/agents/a/instructions must be string, not number
/agents/a/tools duplicate field "tools", first at line 1, column 86
/agents/a/tools/0/agent there is no agent "b"`},
	} {
		file, findings := agentfile.Parse([]byte(c.text), surroundings())
		var got []string
		for _, f := range findings {
			got = append(got, f.At.Pointer+" "+f.Message)
		}
		if text := strings.Join(got, "\n"); file != nil || text != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, text, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(list(`{"instructions":"i","tools":[{"server":"files","allow":[1]},{"agent":"a"}],"gates":[{"tools":[],"when":"."}]}`)))
	f.Add([]byte(models(`{"m":{"model":"x","endpoint":5,"temperature":null}}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, findings := agentfile.Parse(text, surroundings())
		if (file == nil) != findings.HasErrors() {
			t.Errorf("file %v with %v", file, findings)
		}
	})
}

// TestTheFileOfThePage: the lists that docs/agents.md shows are accepted as they stand.
func TestTheFileOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	lists := 0
	for rest := string(page); ; lists++ {
		_, after, more := strings.Cut(rest, "```json\n")
		if !more {
			break
		}
		text, after, ok := strings.Cut(after, "```")
		file, findings := agentfile.Parse([]byte(text), agentfile.Surroundings{Servers: []string{"files"}, Steps: []string{"urn:example:total"}})
		if !ok || file == nil || len(findings) > 0 || len(file.Agents) == 0 {
			t.Errorf("%v", findings)
		}
		rest = after
	}
	if lists < 2 {
		t.Errorf("%d lists", lists)
	}
}

// lattice is a list of agents of which each calls all of the next row.
func lattice() string {
	var rows []string
	for i := range 40 {
		calls := fmt.Sprintf(`"tools":[{"agent":"a%d"},{"agent":"b%d"}]`, i+1, i+1)
		rows = append(rows, fmt.Sprintf(`"a%d":{"instructions":"x",%s}`, i, calls))
		if i > 0 {
			rows = append(rows, fmt.Sprintf(`"b%d":{"instructions":"x",%s}`, i, calls))
		}
	}
	return `{"models":{"m":{"model":"m"}},"agents":{` + strings.Join(rows, ",") + `,"a40":{"instructions":"x"},"b40":{"instructions":"x"}}}`
}

// TestBuild: toolsets with a text in the system text come first, skills before knowledge bases, whatever the order of the list. Each kind has
// its place in an agent.
func TestBuild(t *testing.T) {
	t.Parallel()
	file, findings := agentfile.Parse([]byte(`{"models":{"m":{"model":"x"}},
		"agents":{"a":{"instructions":"i","tools":[{"builtin":"ask_person"},{"server":"files"},{"knowledge":["hr"]},{"agent":"b","parallel":true,"gate":"ask"},{"skills":["memo"]},
			{"step":"urn:total","name":"total","description":"Adds."},{"api":["w"]}]},"b":{"instructions":"i"}},
		"apis":{"w":{"baseUrl":"http://w","auth":{"type":"bearer","tokenRef":"env:KEY"},"allowedPaths":["^/"]}},"knowledge":{"path":"k"},"skills":{"path":"s"}}`), surroundings())
	if file == nil {
		t.Fatal(findings)
	}
	agents, err := file.Build(agentfile.Runtime{})
	if err != nil {
		t.Fatal(err)
	}
	a, kinds := agents["a"], []string{}
	for _, set := range a.Tools {
		kinds = append(kinds, fmt.Sprintf("%T", set))
	}
	if got := strings.Join(kinds, " "); got != "*skills.Toolset *knowledge.Toolset *mcptools.Toolset *agent.StepTool *apicall.Toolset" {
		t.Error(got)
	}
	if !a.AskPerson || !slices.Equal(a.Agents, []agent.SubAgent{{Name: "b", Parallel: true, Gate: "ask"}}) || agents["b"].AskPerson {
		t.Errorf("%+v", a)
	}
	var texts []string
	for _, tool := range file.Agents["a"].Tools {
		texts = append(texts, tool.String())
	}
	if got := strings.Join(texts, ", "); got != "ask_person, files, knowledge (hr), agent b, skills (memo), total, api_call (w)" {
		t.Error(got)
	}
	if got := fmt.Sprint(file.SecretsTo); got != "map[service w:http://w]" {
		t.Error(got)
	}
}
