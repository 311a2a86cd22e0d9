package manifest_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/manifest"
)

// "line:column keyword pointer" of each finding in a list of step commands.
func TestParseStepCommands(t *testing.T) {
	t.Parallel()
	command := func(members string) string {
		return `{"stepCommands":{` + "\n" + `"urn:x":{"command":"c"` + members + `}}}`
	}
	for _, c := range []struct{ text, want string }{
		{command(""), ""},
		{command(`,"args":["a"],"env":{"A":"b"},"cwd":"d","timeoutMs":5,"maxOutputBytes":6`), ""},
		{`{"$schema":"x","stepCommands":{"urn:x":{"command":"c"}}}`, ""},

		{``, "1:1 parse "},
		{`{"stepCommands":`, "1:17 parse /stepCommands"},
		{`[]`, "1:1 type "},
		{`{}`, "1:1 required "},
		{`{"stepCommand":{}}`, "1:2 additionalProperties /stepCommand"},
		{`{"stepCommands":[]}`, "1:17 type /stepCommands"},
		{`{"stepCommands":{}}`, "1:17 minProperties /stepCommands"},
		{`{"stepCommands":{" ":{"command":"c"}}}`, "1:18 propertyNames /stepCommands/ "},
		{`{"stepCommands":{"a":{"command":"c"},` + "\n" + `"a ":{"command":"c"}}}`, "2:1 unique /stepCommands/a "},
		{`{"stepCommands":{"a":{"command":"c"},"a":{"command":"c"}}}`, "1:38 parse /stepCommands/a"},
		{`{"stepCommands":{"a":{"command":"c"},"a":{"command":""},"c":5}}`, "1:38 parse /stepCommands/a\n1:53 minLength /stepCommands/a/command\n1:61 type /stepCommands/c"},
		{`{"stepCommands":{"a":5}}`, "1:22 type /stepCommands/a"},
		{`{"stepCommands":{"a":{}}}`, "1:22 required /stepCommands/a"},
		{`{"stepCommands":{"a":{"command":" "}}}`, "1:33 pattern /stepCommands/a/command"},
		{`{"stepCommands":{"a":{"command":["c"]}}}`, "1:33 type /stepCommands/a/command"},
		{`{"stepCommands":{"a":{"command":5},` + "\n" + `"a ":{"command":"c"}}}`, "1:33 type /stepCommands/a/command\n2:1 unique /stepCommands/a "},
		{command(`,"args":"a"`), "2:31 type /stepCommands/urn:x/args"},
		{command(`,"env":{"A":1}`), "2:35 type /stepCommands/urn:x/env/A"},
		{command(`,"timeoutMs":0`), "2:36 minimum /stepCommands/urn:x/timeoutMs"},
		{command(`,"timeoutMs":1e9`), "2:36 maximum /stepCommands/urn:x/timeoutMs"},
		{command(`,"maxOutputBytes":1.5`), "2:41 type /stepCommands/urn:x/maxOutputBytes"},
		{command(`,"maxOutputBytes":"1"`), "2:41 type /stepCommands/urn:x/maxOutputBytes"},
		{command(`,"timeout":5`), "2:24 additionalProperties /stepCommands/urn:x/timeout"},
	} {
		commands, findings := manifest.ParseStepCommands([]byte(c.text))
		var got []string
		for _, f := range findings {
			got = append(got, fmt.Sprintf("%d:%d %s %s", f.At.Line, f.At.Column, f.Keyword, f.At.Pointer))
		}
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, text, c.want)
		}
		if (commands == nil) != findings.HasErrors() {
			t.Errorf("%s: commands %v", c.text, commands)
		}
	}
	got, _ := manifest.ParseStepCommands([]byte(`{"stepCommands":{" urn:x ":{"command":" c ","args":["a"],"env":{"A":"b"},"cwd":"d","timeoutMs":1500,"maxOutputBytes":6}}}`))
	want := map[string]manifest.StepCommand{"urn:x": {
		Command: "c", Args: []string{"a"}, Env: map[string]string{"A": "b"}, Directory: "d", Timeout: 1500 * time.Millisecond, MaxOutputBytes: 6,
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func FuzzParseStepCommands(f *testing.F) {
	f.Add([]byte(`{"stepCommands":{"urn:x":{"command":"c","args":["a"],"env":{"A":"b"},"timeoutMs":0,"x":1}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		commands, findings := manifest.ParseStepCommands(text)
		if (commands == nil) != findings.HasErrors() {
			t.Errorf("commands %v with %v", commands, findings)
		}
		for _, finding := range findings {
			if finding.At.Line < 1 || finding.Code == "" {
				t.Errorf("%+v", finding)
			}
		}
	})
}
