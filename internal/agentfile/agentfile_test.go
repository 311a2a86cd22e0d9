package agentfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentfile"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/schemas"
)

// surroundings have the server "files", the file "a.md" and the secret env:KEY.
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
		Servers: []string{"files"},
	}
}

func list(agent string) string {
	return `{"models":{"m":{"model":"gpt"}},` + "\n" + `"agents":{"a":` + agent + `,` + "\n" + `"b":{"instructions":"i"}}}`
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

		{`{}`, "1:1 required : missing member \"models\"\n1:1 required : missing member \"agents\""},
		{`{"models":`, "1:11 parse /models: expected a value, found the end of the text"},
		{models(`{}`), `1:11 minProperties /models: there is no model; Name at least one model.`},
		{models(`{"m":{"modle":"x"}}`), "1:16 required /models/m: missing member \"model\"\n1:17 additionalProperties /models/m/modle: unknown member \"modle\"; did you mean \"model\"?"},
		{models(`{"m":{"model":"x","maxTokens":9000,"maxTokensCeiling":8999}}`), `1:65 range /models/m/maxTokensCeiling: maxTokensCeiling is less than maxTokens, which is 9000`},
		{models(`{"m":{"model":"x","priceUsdPerMTok":{"input":1}}}`), `1:47 required /models/m/priceUsdPerMTok: missing member "output"`},
		{models(`{"m":{"model":"x","endpoint":{"baseUrl":"x","noAuth":true}}}`), `1:51 format /models/m/endpoint/baseUrl: baseUrl is not an absolute http or https address without user and query`},
		{models(`{"m":{"model":"x","endpoint":{"baseUrl":"http://x"}}}`), `1:40 oneOf /models/m/endpoint: expected exactly one of apiKeyEnv, apiKeySecretRef and noAuth`},
		{models(`{"m":{"model":"x","endpoint":{"baseUrl":"http://x","apiKeyEnv":"NONE"}}}`), `1:40 profile /models/m/endpoint: secret env:NONE is not set`},
		{models(`{"m":{"model":"x"},"n":{"model":"y"}}`), `2:15 required /agents/a: missing member "model"; Name one of m or n.`},

		{list(`{}`), `2:15 required /agents/a: missing member "instructions"; Say what the agent does, in instructions or in the file that instructionsFile names.`},
		{told(`,"instructionsFile":"a.md"`), `2:15 oneOf /agents/a: the agent has instructions and instructionsFile; Leave one of them out.`},
		{list(`{"instructionsFile":"gone.md"}`), `2:35 profile /agents/a/instructionsFile: the file cannot be read: file does not exist`},
		{list(`{"instructionsFile":"blank.md"}`), `2:35 profile /agents/a/instructionsFile: the file is blank`},
		{told(`,"model":"mm"`), `2:43 profile /agents/a/model: there is no model "mm"; did you mean "m"?`},
		{told(`,"strema":true`), `2:35 additionalProperties /agents/a/strema: unknown member "strema"; did you mean "stream"?`},
		{told(`,"compaction":{},"results":{"offloadBytes":0}`), ""},
		{told(`,"compaction":{"threshold":85}`), `2:61 range /agents/a/compaction/threshold: expected a number from 0.1 to 1, found 85`},
		{told(`,"compaction":{"model":"n"}`), `2:57 profile /agents/a/compaction/model: there is no model "n"; did you mean "m"?`},
		{told(`,"compaction":{"keepTurn":1}`), `2:49 additionalProperties /agents/a/compaction/keepTurn: unknown member "keepTurn"; did you mean "keepTurns"?`},
		{told(`,"results":{"offloadBytes":-1}`), `2:61 range /agents/a/results/offloadBytes: expected a whole number from 0 to 2097152, found -1`},
		{told(`,"tools":[{"api":["x"]}]`), `2:45 profile /agents/a/tools/0/api: "api" is not supported yet; Leave it out.`},
		{told(`,"tools":[{}]`), `2:44 oneOf /agents/a/tools/0: expected exactly one of server, agent and builtin`},
		{told(`,"tools":[{"server":"file"}]`), `2:54 profile /agents/a/tools/0/server: the manifest has no server "file"; did you mean "files"?`},
		{told(`,"tools":[{"server":"files","allow":["["]}]`), `2:71 format /agents/a/tools/0/allow/0: "[" is not a pattern of names; Write a name; * stands for any characters, ? for one, [a-z] for one of these.`},
		{told(`,"tools":[{"server":"files","allow":["r"]},{"server":"files","allow":["w","r"]}]`), `2:77 uniqueItems /agents/a/tools/1: files__r is listed twice; Leave one of them out.`},
		{told(`,"tools":[{"agent":"other"}]`), `2:53 profile /agents/a/tools/0/agent: there is no agent "other"; there is a and b`},
		{told(`,"tools":[{"agent":"a"}]`), `2:53 profile /agents/a/tools/0/agent: agents call each other in a circle: a calls a, which leads back to a`},
		{told(`,"tools":[{"builtin":"ask"}]`), `2:55 enum /agents/a/tools/0/builtin: expected ask_person, found "ask"`},
		{told(`,"gates":[{"tools":["*"],"when":".a |","do":"ask"}]`), `format`},
		{told(`,"gates":[{"tools":["*"],"do":"asks"}]`), `2:64 enum /agents/a/gates/0/do: expected allow, ask or deny, found "asks"; did you mean "ask"?`},
		{told(`,"output":{"schema":{"type":"objct"}}`), `format`},
		{told(`,"budgets":{"costUsd":0.5}`), `2:56 profile /agents/a/budgets/costUsd: model "m" has no price; Give it priceUsdPerMTok, or leave costUsd out.`},
		{told(`,"budgets":{"turns":0}`), `2:54 range /agents/a/budgets/turns: expected a whole number from 1 to 1000000, found 0`},
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
			"tools":[{"server":"files","allow":["r"],"parallel":false,"gate":"ask"},{"builtin":"ask_person"}],
			"modelRetry":{"maxAttempts":2,"coefficient":1.5},
			"budgets":{"turns":3},"results":{"maxChars":10,"offloadBytes":2048},"compaction":{"threshold":0.5,"keepTurns":3,"model":"local"},"repeats":{"warn":1,"stop":2},"output":{"schema":{}}},
		 "b":{"instructions":"i","model":"main","budgets":{"costUsd":0.5,"onExceeded":"finish"}}}}`), surroundings())
	if file == nil {
		t.Fatal(findings)
	}
	got, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"Models":{"local":{"model":"llama","Endpoint":{"BaseURL":"http://localhost:11434/v1","KeyReference":"","NoAuth":true}},` +
		`"main":{"model":"gpt","contextTokens":1000,"maxTokens":10,"maxTokensCeiling":20,"temperature":0,"priceUsdPerMTok":{"input":2,"cachedInput":2,"output":8},"Endpoint":null}},` +
		`"Agents":{"a":{"name":"","description":"d","instructions":"Find it.","models":null,"stream":true,"maxDepth":2,"modelRetry":{"maxAttempts":2,"coefficient":1.5},` +
		`"budgets":{"turns":3},"repeats":{"warn":1,"stop":2},"results":{"maxChars":10,"offloadBytes":2048},"compaction":{"threshold":0.5,"keepTurns":3},"output":{"schema":{},"repairs":1},"hooks":{},"Models":["main","local"],"SummaryModel":"local",` +
		`"Tools":[{"Server":"files","Allow":["r"],"Agent":"","AskPerson":false,"Parallel":false,"OnCrash":"","Gate":"ask"},` +
		`{"Server":"","Allow":null,"Agent":"","AskPerson":true,"Parallel":null,"OnCrash":"","Gate":""}]},` +
		`"b":{"name":"","instructions":"i","models":null,"modelRetry":{},"budgets":{"costMicros":500000,"onExceeded":"finish"},"repeats":{},"results":{},"compaction":{},"hooks":{},"Models":["main"],"SummaryModel":"","Tools":null}}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

const whole = `{"$schema":"s","models":{
	"m":{"model":"x","contextTokens":9000,"maxTokens":10,"maxTokensCeiling":20,"temperature":1,"priceUsdPerMTok":{"input":1,"cachedInput":1,"output":1},"endpoint":{"baseUrl":"http://x","noAuth":true}},
	"n":{"model":"x","endpoint":{"baseUrl":"http://x","apiKeyEnv":"KEY"}},"o":{"model":"x","endpoint":{"baseUrl":"http://x","apiKeySecretRef":"env:KEY"}}},
	"agents":{"a":{"description":"d","instructions":"i","model":"m","stream":true,"turnTimeoutMs":1,"toolTimeoutMs":1,"maxToolConcurrency":1,"maxDepth":1,
		"modelRetry":{"maxAttempts":1,"initialIntervalMs":1,"coefficient":1,"maxIntervalMs":1},
		"tools":[{"server":"files","allow":["r"],"parallel":true,"onCrash":"ask","gate":"ask"},{"agent":"b","parallel":true,"gate":"deny"},{"builtin":"ask_person"}],
		"gates":[{"tools":["*"],"when":".turn > 1","unless":"read_only","do":"ask","reason":"r","timeoutMs":1}],
		"budgets":{"turns":1,"toolCalls":1,"tokens":1,"costUsd":1,"workMs":1,"onExceeded":"finish"},"repeats":{"warn":1,"stop":1},"results":{"maxChars":1,"offloadBytes":0,"previewChars":1},
		"compaction":{"threshold":0.5,"keepTurns":1,"summaryMaxTokens":1,"model":"m"},
		"output":{"schema":{},"repairs":0}},
	"b":{"instructionsFile":"a.md","models":["m","n"]}}}`

// The published schema and Parse agree about every member: each is known to both, and each object refuses another one.
func TestSchema(t *testing.T) {
	t.Parallel()
	var raw any
	if err := json.Unmarshal(schemas.Agents(), &raw); err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	accepts := func(text string) (bySchema, byParse bool) {
		value, err := jsonvalue.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, findings := agentfile.Parse([]byte(text), surroundings())
		return len(schema.Validate(value)) == 0, !findings.HasErrors()
	}
	if s, p := accepts(whole); !s || !p {
		t.Errorf("schema %t, Parse %t", s, p)
	}
	for i := range whole {
		if whole[i] != '{' || strings.HasPrefix(whole[i:], "{}") || strings.HasSuffix(whole[:i], `"models":`) || strings.HasSuffix(whole[:i], `"agents":`) {
			continue
		}
		changed := whole[:i] + `{"zzz":1,` + whole[i+1:]
		if s, p := accepts(changed); s || p {
			t.Errorf("schema %t, Parse %t: %s", s, p, changed)
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
	blocks := strings.Split(string(page), "```json\n")[1:]
	if len(blocks) != 2 {
		t.Errorf("%d lists", len(blocks))
	}
	for _, rest := range blocks {
		text, _, ok := strings.Cut(rest, "```")
		file, findings := agentfile.Parse([]byte(text), agentfile.Surroundings{Servers: []string{"files"}})
		if !ok || file == nil || len(findings) > 0 {
			t.Errorf("%v in\n%s", findings, text)
		}
	}
}
