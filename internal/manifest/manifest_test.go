package manifest_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/manifest"
)

// The table of what is accepted and refused (spec: activities, 6.1): "severity line:column keyword pointer" of each
// finding.
func TestParse(t *testing.T) {
	t.Parallel()
	server := func(members string) string { return `{"mcpServers":{"s":{"command":"node"` + members + `}}}` }
	agents := func(text string) string {
		return `{"mcpServers":{"files":{"command":"node"}},` + "\n" + `"delegateAgents":` + text + `}`
	}
	for _, c := range []struct {
		text string
		want string
	}{
		{server(""), ""},
		{server(`,"args":["a"],"env":{"A":"b"}`), ""},
		{`{"mcpServers":{"s":{"command":"  "}}}`, "warning 1:31 profile /mcpServers/s/command"},
		{`{"mcpServers":{"":{"command":"node"}}}`, "warning 1:19 profile /mcpServers/"},
		{agents(`{}`), ""},
		{agents(`{"a":{"server":"files","tool":"t"}}`), ""},

		{`{}`, "error 1:1 required "},
		{`[]`, "error 1:1 type "},
		{`{"mcpServers":[]}`, "error 1:15 type /mcpServers"},
		{`{"mcpServers":{}}`, "error 1:15 minProperties /mcpServers"},
		{`{"mcpServers":{"s":{"command":""}}}`, "error 1:31 minLength /mcpServers/s/command"},
		{`{"mcpServers":{"s":{}}}`, "error 1:20 anyOf /mcpServers/s"},
		{`{"mcpServers":{"s":5}}`, "error 1:20 type /mcpServers/s"},
		{server(`,"args":"a"`), "error 1:45 type /mcpServers/s/args"},
		{server(`,"args":["a",1]`), "error 1:50 type /mcpServers/s/args/1"},
		{server(`,"env":{"A":1}`), "error 1:49 type /mcpServers/s/env/A"},
		{agents(`{"a":{"server":"file","tool":"t"}}`), "error 2:33 profile /delegateAgents/a/server"},
		{agents(`{"a":{"server":"files"}}`), "error 2:23 required /delegateAgents/a"},
		{agents(`{"a":{"tool":"t"}}`), "error 2:23 required /delegateAgents/a"},
		{agents(`{"a":{"server":"files","tool":"t","x":1}}`), "error 2:52 additionalProperties /delegateAgents/a/x"},
		{`{"mcpServers":`, "error 1:15 parse /mcpServers"},
		{`{"mcpServers":{"s":{"url":5,"type":"http"}}}`, "error 1:27 type /mcpServers/s/url"},
		{`{"mcpServers":5,"delegateAgents":{"a":{"server":"files","tool":"t"}}}`, "error 1:15 type /mcpServers"},
		{`{"mcpServers":{"s":{"command":5,"args":"a"}},"delegateAgents":{"a":{"server":"s","tool":5},"b":{"server":"q","tool":""}}}`,
			"error 1:31 type /mcpServers/s/command\nerror 1:40 type /mcpServers/s/args\nerror 1:89 type /delegateAgents/a/tool\n" +
				"error 1:106 profile /delegateAgents/b/server\nerror 1:117 minLength /delegateAgents/b/tool"},
		{``, "error 1:1 parse "},
		{"\ufeff" + server(""), ""},
		{`{"mcpServers":{"s":{"command":"a"},"s":{"command":"b"}}}`, "error 1:36 parse /mcpServers/s"},
		{`{"mcpServers":{"s":{"command":"a"},"s":{"command":"","x":1},"c":5}}`,
			"error 1:36 parse /mcpServers/s\nerror 1:51 minLength /mcpServers/s/command\nwarning 1:54 additionalProperties /mcpServers/s/x\nerror 1:65 type /mcpServers/c"},

		{server(`,"type":"stdio","cwd":"x","disabled":true`), ""},
		{server(`,"type":"sse"`), "error 1:45 enum /mcpServers/s/type"},
		{server(`,"alwaysAllow":[]`), "warning 1:38 additionalProperties /mcpServers/s/alwaysAllow"},
		{server(`,"envFile":".env"`), "warning 1:38 additionalProperties /mcpServers/s/envFile"},
		{server(`,"url":"http://x"`), "error 1:20 not /mcpServers/s"},
		{`{"mcpServers":{"s":{"url":"https://x/mcp","type":"http","headers":{"A":"b"}}}}`, ""},
		{`{"mcpServers":{"s":{"url":"x"}}}`, "error 1:27 pattern /mcpServers/s/url"},
		{`{"inputs":[],"mcpServers":{"s":{"command":"node"}}}`, "warning 1:2 additionalProperties /inputs"},
	} {
		m, findings := manifest.Parse([]byte(c.text))
		var got []string
		for _, f := range findings {
			got = append(got, fmt.Sprintf("%s %d:%d %s %s", f.Severity, f.At.Line, f.At.Column, f.Keyword, f.At.Pointer))
		}
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, text, c.want)
		}
		if (m == nil) != findings.HasErrors() {
			t.Errorf("%s: manifest %v", c.text, m)
		}
	}
}

func TestParseValues(t *testing.T) {
	t.Parallel()
	m, findings := manifest.Parse([]byte(`{"mcpServers":{
		"a":{"command":"npx","args":["-y","x"],"env":{"K":"env:V"},"cwd":"d","disabled":true},
		"b":{"url":"https://x/mcp","headers":{"H":"v"}}},
		"delegateAgents":{" coder ":{"server":" a ","tool":" t "}}}`))
	want := &manifest.Manifest{
		Servers: map[string]manifest.Server{
			"a": {Command: "npx", Args: []string{"-y", "x"}, Env: map[string]string{"K": "env:V"}, Directory: "d", Disabled: true},
			"b": {URL: "https://x/mcp", Headers: map[string]string{"H": "v"}},
		},
		Agents: map[string]manifest.Agent{"coder": {Server: "a", Tool: "t"}},
	}
	if len(findings) > 0 || !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, %v", m, findings)
	}
	if m, _ := manifest.Parse([]byte(`{"mcpServers":{"s":{"command":"x"}}}`)); m.Agents != nil {
		t.Error("agents without delegateAgents")
	}
}

func TestParseTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"mcpServers":{"s":{"command":""}}}`:                                     "must not be empty",
		`{"mcpServers":{"s":{"command":"a\u0000"}}}`:                              "must not contain U+0000",
		`{"mcpServers":{"s":{"command":"a","cwd":""}}}`:                           "must not be empty",
		`{"mcpServers":{"s":{"command":"a","url":"http://x"}}}`:                   "must not have both command and url; Leave one of them out.",
		`{"mcpServers":{"s":{"command":"a","url":"http://x","cwd":"","args":5}}}`: "must not have both command and url; Leave one of them out.\nmust not be empty\nmust be array, not number",
	} {
		_, findings := manifest.Parse([]byte(text))
		if got := texts(findings); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
	const hint = `Write {"stepCommands": {"urn:example:resize": {"command": "python3", "args": ["resize.py"]}}}.`
	for text, want := range map[string]string{
		`{}`:                                    `missing field "stepCommands"; ` + hint,
		`[]`:                                    "must be object, not array; " + hint,
		`{"stepCommands":{"":{"command":"c"}}}`: "the name of a handler must not be blank; Use a URN, as config.handler of the step does.",
		`{"stepCommands":{"a":{"command":""},"b":{"command":" "},"c":{"command":"a\u0000"},"d":{"command":"a","cwd":""}}}`: "must not be empty\nmust not be blank\n" +
			"must not contain U+0000\nmust not be empty",
	} {
		_, findings := manifest.ParseStepCommands([]byte(text))
		if got := texts(findings); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// texts are the messages of findings with their hints, a line for each.
func texts(findings problem.Findings) string {
	var lines []string
	for _, f := range findings {
		line := f.Message
		if f.Hint != "" {
			line += "; " + f.Hint
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"s":{"command":"node","args":[1],"type":"sse"}},"delegateAgents":{"a":{"server":"s"}}}`))
	f.Add([]byte(`{"mcpServers":{"s":{"command":"node","args":[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, findings := manifest.Parse(text)
		if (m == nil) != findings.HasErrors() {
			t.Errorf("manifest %v with %v", m, findings)
		}
		for _, finding := range findings {
			if finding.At.Line < 1 || finding.Code == "" || finding.Severity != problem.SeverityError && finding.Severity != problem.SeverityWarning {
				t.Errorf("%+v", finding)
			}
		}
	})
}
