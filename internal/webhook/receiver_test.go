package webhook_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/webhook"
)

// checked returns the body of a delivery, or why it must not be trusted.
func checked(r *http.Request, secret string) ([]byte, error) {
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	return body, hook.Verify(body, r.Header)
}

// TestTheReceiverOfThePage: the check that docs/webhooks.md shows takes what is sent, and nothing else.
func TestTheReceiverOfThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	send := func(now func() time.Time) got {
		list, findings := webhook.Parse(fmt.Appendf(nil, `{"targets":{"ops":{"url":%q,"secretRef":"env:KEY"}},"privateNetworks":["127.0.0.1"]}`, s.URL), secret)
		if list == nil {
			t.Fatal(findings)
		}
		if r, err := webhook.New(list, webhook.Options{Secret: secret, Now: now}).Deliver(t.Context(), delivery); err != nil || r.Outcome != history.Sent {
			t.Fatalf("%+v, %v", r, err)
		}
		return s.last(t)
	}
	check := func(g got, body []byte, name string, change ...string) ([]byte, error) {
		r := httptest.NewRequest(http.MethodPost, "/hooks", bytes.NewReader(body))
		r.Header = g.header.Clone()
		if len(change) == 2 {
			r.Header.Set(change[0], change[1])
		}
		return checked(r, secrets[name])
	}
	g, old := send(time.Now), send(func() time.Time { return time.Now().Add(-6 * time.Minute) })
	if body, err := check(g, g.body, "env:KEY"); err != nil || !bytes.Equal(body, delivery.Body) {
		t.Errorf("%s, %v", body, err)
	}
	for what, refused := range map[string]func() ([]byte, error){
		"another key":  func() ([]byte, error) { return check(g, g.body, "env:OLD") },
		"another body": func() ([]byte, error) { return check(g, []byte("{}"), "env:KEY") },
		"another id":   func() ([]byte, error) { return check(g, g.body, "env:KEY", "webhook-id", "evt_other") },
		"an old one":   func() ([]byte, error) { return check(old, old.body, "env:KEY") },
		"a moved time": func() ([]byte, error) {
			return check(old, old.body, "env:KEY", "webhook-timestamp", strconv.FormatInt(time.Now().Unix(), 10))
		},
	} {
		if _, err := refused(); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

// TestTheFileOfThePage: the list that docs/webhooks.md shows is accepted as it stands, and the delivery is JSON.
func TestTheFileOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```json\n")
	if len(blocks) != 3 {
		t.Fatalf("%d blocks", len(blocks)-1)
	}
	text, _, _ := strings.Cut(blocks[1], "```")
	l, findings := webhook.Parse([]byte(text), func(string) (string, error) { return "a secret", nil })
	if l == nil || len(l.Targets["ops"].Events) != 3 || l.Targets["ops"].SecretRef != "env:HOOK_SECRET" {
		t.Errorf("%+v, %v", l, findings)
	}
	text, _, _ = strings.Cut(blocks[2], "```")
	for _, member := range []string{`"event":"run.completed"`, `"event_id":"evt_`, `"created_at":"`, `"run":{"execution_id":`} {
		if !strings.Contains(text, member) {
			t.Errorf("the delivery of the page lacks %s", member)
		}
	}
}
