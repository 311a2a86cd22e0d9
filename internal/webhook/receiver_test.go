package webhook_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/webhook"
)

// checked returns the body of a delivery, or why it is not to be believed.
func checked(r *http.Request, key []byte, now time.Time) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	stamp := r.Header.Get("X-Workflows-Timestamp")
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	want := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	if !hmac.Equal([]byte(r.Header.Get("X-Workflows-Signature")), []byte(want)) {
		return nil, errors.New("the signature does not match")
	}
	ms, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || now.Sub(time.UnixMilli(ms)).Abs() > 5*time.Minute {
		return nil, errors.New("the delivery is too old, or from the future")
	}
	return body, nil
}

// TestTheReceiverOfThePage: the check that docs/webhooks.md shows takes what is sent, and nothing else.
func TestTheReceiverOfThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	w := sender(t, fmt.Sprintf(`{"targets":{"ops":{"url":%q,"secretRef":"env:PLAIN"}},"privateNetworks":["127.0.0.1"]}`, s.URL))
	if r, err := w.Deliver(t.Context(), delivery); err != nil || r.Outcome != history.Sent {
		t.Fatalf("%+v, %v", r, err)
	}
	g := s.last(t)
	again := func(body []byte) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/hooks", bytes.NewReader(body))
		r.Header = g.header.Clone()
		return r
	}
	key := []byte(secrets["env:PLAIN"])
	if body, err := checked(again(g.body), key, time.Now()); err != nil || !bytes.Equal(body, delivery.Body) {
		t.Errorf("%s, %v", body, err)
	}
	for what, refused := range map[string]func() error{
		"another key":  func() error { _, err := checked(again(g.body), []byte("x"), time.Now()); return err },
		"another body": func() error { _, err := checked(again([]byte("{}")), key, time.Now()); return err },
		"an old one":   func() error { _, err := checked(again(g.body), key, time.Now().Add(6*time.Minute)); return err },
		"a moved time": func() error {
			r := again(g.body)
			r.Header.Set("X-Workflows-Timestamp", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
			_, err := checked(r, key, time.Now())
			return err
		},
	} {
		if refused() == nil {
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
