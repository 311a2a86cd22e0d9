package webhook_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/webhook"
	"github.com/workflows-engine/workflows-engine/schemas"
)

const whole = `{
  "$schema": "webhooks.schema.json",
  "targets": {
    "ops": {"url": "https://app.example/hooks?x=1", "secretRef": "env:KEY", "previousSecretRef": "env:OLD", "events": ["completed", "failed"],
      "headers": {"X-Tenant": "acme", "Authorization": "env:TOKEN"}, "all": true, "timeoutMs": 1500},
    "none": {"url": "http://app.example", "events": []},
    "plain": {"url": "http://app.example:8080/"}
  },
  "privateNetworks": ["10.0.0.0/8", "::1"]
}`

// TestList reads everything that a list may have.
func TestList(t *testing.T) {
	t.Parallel()
	l, findings := webhook.Parse([]byte(whole), secret)
	if l == nil || len(findings) > 0 {
		t.Fatal(findings)
	}
	ops, none, plain := l.Targets["ops"], l.Targets["none"], l.Targets["plain"]
	if fmt.Sprint(ops.Events) != "[run.completed run.failed]" || !ops.All || ops.Timeout != 1500*time.Millisecond || ops.SecretRef != "env:KEY" ||
		ops.PreviousSecretRef != "env:OLD" || ops.Headers["Authorization"] != "env:TOKEN" {
		t.Errorf("%+v", ops)
	}
	if none.Events == nil || plain.Events != nil || len(l.PrivateNetworks) != 2 || len(l.Hooks()) != 3 || l.Hooks()["none"].Events == nil {
		t.Errorf("%+v, %+v, %v", none, plain, l.PrivateNetworks)
	}
}

// TestListDuplicates finds a name that occurs twice and the other mistakes, too.
func TestListDuplicates(t *testing.T) {
	t.Parallel()
	l, findings := webhook.Parse([]byte(`{"targets":{"a":{"url":"http://x"},"a":{"url":"ftp://x"},"c":5,"d":{"url":"http://x","secretRef":"env:NONE"}}}`), secret)
	var got []string
	for _, f := range findings {
		got = append(got, f.Keyword+" "+f.At.Pointer)
	}
	if text := fmt.Sprint(got); l != nil || text != "[parse /targets/a pattern /targets/a/url type /targets/c profile /targets/d/secretRef]" {
		t.Error(text)
	}
}

// mistakes are lists with one each, and what is said of it.
var mistakes = []struct{ text, want string }{
	{`{`, "1:2"},
	{`[]`, "1:1 must be object, not array"},
	{`{}`, `missing field "targets"`},
	{`{"targets":{}}`, "1:12 must name at least one target"},
	{`{"targets":null}`, "1:12 must be object, not null"},
	{"{\"targets\":{\n\"a\":{}}}", `2:5`},
	{`{"targets":{" ":{"url":"http://x"}}}`, "1:13 the name of a target"},
	{`{"targets":{"a":{"url":"ftp://x"}}}`, "1:24 must be an absolute http"},
	{`{"targets":{"a":{"url":"http://u:p@x"}}}`, "1:24 must be an absolute http"},
	{`{"targets":{"a":{"url":"http://x:99999/"}}}`, "1:24 must be an absolute http"},
	{`{"targets":{"a":{"url":"http://x:0/"}}}`, "1:24 must be an absolute http"},
	{`{"targets":{"a":{"url":"http://x","headers":{"X-A":"1","x-a":"2"}}}}`, "1:56 X-A and x-a are the same header"},
	{`{"targets":{"a":{"url":"http://x","ulr":1}}}`, `"ulr"`},
	{`{"targets":{"a":{"url":"http://x","secretRef":"env:NONE"}}}`, "1:47 secret env:NONE"},
	{`{"targets":{"a":{"url":"http://x","secretRef":"env:BAD"}}}`, "1:47 the secret after whsec_"},
	{`{"targets":{"a":{"url":"http://x","previousSecretRef":"env:OLD"}}}`, `1:35 needs the field "secretRef" beside it`},
	{`{"targets":{"a":{"url":"http://x","events":["complete"]}}}`, `1:45 must be one of "completed"`},
	{`{"targets":{"a":{"url":"http://x","events":"all"}}}`, "1:44 must be array"},
	{`{"targets":{"a":{"url":"http://x","headers":{"X-Workflows-Event":"x"}}}}`, "1:46 must not be a header that the engine"},
	{`{"targets":{"a":{"url":"http://x","headers":{"WEBHOOK-ID":"x"}}}}`, "1:46 must not be a header that the engine"},
	{`{"targets":{"a":{"url":"http://x","headers":{"content-type":"x"}}}}`, "1:46 must not be a header that the engine"},
	{`{"targets":{"a":{"url":"http://x","headers":{"a b":"x"}}}}`, "1:46"},
	{`{"targets":{"a":{"url":"http://x","headers":{"a":"x\ny"}}}}`, "1:50"},
	{`{"targets":{"a":{"url":"http://x","headers":{"a":"env:NONE"}}}}`, "1:50 secret env:NONE"},
	{`{"targets":{"a":{"url":"http://x","timeoutMs":0}}}`, "1:47 must be from 1 to 300000"},
	{`{"targets":{"a":{"url":"http://x","all":"yes"}}}`, "1:41 must be boolean"},
	{`{"targets":{"a":{"url":"http://x"}},"privateNetworks":["ten"]}`, "1:56 must be a network"},
	{`{"targets":{"a":{"url":"http://x"}},"privateNetworks":["1:2"]}`, "1:56 invalid network"},
	{`{"targets":{"a":{"url":"http://x","headers":{"Host":"x"}}}}`, "1:46 must not be a header that the engine"},
}

// TestMistakes are rejected, with line and column: by the published schema alone, as in an editor, but for those of secrets, networks, header
// names that differ in case and ports, and when the list is read.
func TestMistakes(t *testing.T) {
	t.Parallel()
	raw, err := jsonvalue.Decode(schemas.Webhooks())
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	accepts := func(text string) bool {
		value, err := jsonvalue.Decode([]byte(text))
		return err == nil && len(schema.Validate(value)) == 0
	}
	if !accepts(whole) {
		t.Error("the schema rejects the whole list")
	}
	for _, c := range mistakes {
		beyond := strings.Contains(c.want, "secret env:") || strings.Contains(c.want, "whsec_") || strings.Contains(c.text, "http://x:") ||
			strings.Contains(c.want, "same header") || strings.Contains(c.want, "invalid network")
		if !beyond && accepts(c.text) {
			t.Errorf("the schema accepts %s", c.text)
		}
		l, findings := webhook.Parse([]byte(c.text), secret)
		var said []string
		for _, f := range findings {
			said = append(said, fmt.Sprintf("%d:%d %s", f.At.Line, f.At.Column, f.Message))
		}
		if l != nil || len(said) != 1 || !strings.Contains(said[0], c.want) {
			t.Errorf("%s: got %q, want %q", c.text, said, c.want)
		}
	}
}

// TestAllMistakesAtOnce: a value of a wrong type does not hide other mistakes.
func TestAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, findings := webhook.Parse([]byte(`{"targets":{"a":{"url":"http://x:0/","all":"yes","secretRef":"env:NONE"},"b":{"url":5,"headers":{"X-A":1,"x-a":"env:NONE"}},"c":{"secretRef":"env:NONE"}},
"privateNetworks":["1:2",5]}`), secret)
	var got []string
	for _, f := range findings {
		got = append(got, f.At.Pointer+" "+f.Keyword)
	}
	if want := "/targets/a/url format, /targets/a/all type, /targets/a/secretRef profile, /targets/b/url type, /targets/b/headers/X-A type, " +
		"/targets/b/headers/x-a uniqueItems, /targets/b/headers/x-a profile, /targets/c required, /targets/c/secretRef profile, /privateNetworks/0 format, " +
		"/privateNetworks/1 type"; strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	for _, c := range mistakes {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, findings := webhook.Parse(text, secret)
		if (l == nil) != findings.HasErrors() {
			t.Errorf("%v, %v", l, findings)
		}
		if l != nil {
			webhook.New(l, webhook.Options{Secret: secret})
		}
	})
}
