package webhook_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
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
	_ = history.RunEvents()
}

// mistakes are lists with one each, and what is said of it.
var mistakes = []struct{ text, want string }{
	{`{`, "1:2"},
	{`[]`, "1:1 expected object, found array"},
	{`{}`, `missing member "targets"`},
	{`{"targets":{}}`, "1:12 there is no target"},
	{`{"targets":null}`, "1:12 expected object, found null"},
	{"{\"targets\":{\n\"a\":{}}}", `2:5`},
	{`{"targets":{" ":{"url":"http://x"}}}`, "1:13 the name of a target"},
	{`{"targets":{"a":{"url":"ftp://x"}}}`, "1:24 url is not an absolute http"},
	{`{"targets":{"a":{"url":"http://u:p@x"}}}`, "1:24 url is not an absolute http"},
	{`{"targets":{"a":{"url":"http://x:99999/"}}}`, "1:24 url is not an absolute http"},
	{`{"targets":{"a":{"url":"http://x:0/"}}}`, "1:24 url is not an absolute http"},
	{`{"targets":{"a":{"url":"http://x","headers":{"X-A":"1","x-a":"2"}}}}`, "1:56 X-A and x-a are the same header"},
	{`{"targets":{"a":{"url":"http://x","ulr":1}}}`, `"ulr"`},
	{`{"targets":{"a":{"url":"http://x","secretRef":"env:NONE"}}}`, "1:47 secret env:NONE"},
	{`{"targets":{"a":{"url":"http://x","secretRef":"env:BAD"}}}`, "1:47 what follows whsec_"},
	{`{"targets":{"a":{"url":"http://x","previousSecretRef":"env:OLD"}}}`, "1:35 previousSecretRef needs a secretRef"},
	{`{"targets":{"a":{"url":"http://x","events":["complete"]}}}`, "1:45 expected completed"},
	{`{"targets":{"a":{"url":"http://x","events":"all"}}}`, "1:44 expected array"},
	{`{"targets":{"a":{"url":"http://x","headers":{"X-Workflows-Event":"x"}}}}`, "1:46 the header X-Workflows-Event is the engine's"},
	{`{"targets":{"a":{"url":"http://x","headers":{"WEBHOOK-ID":"x"}}}}`, "1:46 the header WEBHOOK-ID is the engine's"},
	{`{"targets":{"a":{"url":"http://x","headers":{"content-type":"x"}}}}`, "1:46 the header content-type is the engine's"},
	{`{"targets":{"a":{"url":"http://x","headers":{"a b":"x"}}}}`, "1:46"},
	{`{"targets":{"a":{"url":"http://x","headers":{"a":"x\ny"}}}}`, "1:50"},
	{`{"targets":{"a":{"url":"http://x","headers":{"a":"env:NONE"}}}}`, "1:50 secret env:NONE"},
	{`{"targets":{"a":{"url":"http://x","timeoutMs":0}}}`, "1:47 expected a whole number"},
	{`{"targets":{"a":{"url":"http://x","all":"yes"}}}`, "1:41 expected boolean"},
	{`{"targets":{"a":{"url":"http://x"}},"privateNetworks":["ten"]}`, "1:56 invalid network"},
}

// TestMistakes are refused, with line and column.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range mistakes {
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

// TestSchema: the schema for editors takes what the reader takes, and refuses what it refuses, but for secrets, ports and headers that are
// the same.
func TestSchema(t *testing.T) {
	t.Parallel()
	text, err := jsonvalue.Decode(schemas.Webhooks())
	if err != nil {
		t.Fatal(err)
	}
	s, err := jsonschema.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonvalue.Decode([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if found := s.Validate(v); len(found) > 0 {
		t.Errorf("%v", found)
	}
	for _, c := range mistakes {
		v, err := jsonvalue.Decode([]byte(c.text))
		if err != nil || strings.Contains(c.want, "secret env:") || strings.Contains(c.want, "whsec_") || strings.Contains(c.text, "http://x:") || strings.Contains(c.want, "same header") {
			continue
		}
		if found := s.Validate(v); len(found) == 0 {
			t.Errorf("the schema takes %s", c.text)
		}
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
