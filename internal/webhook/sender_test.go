package webhook_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/webhook"
)

// got is a request as a receiver got it.
type got struct {
	header http.Header
	body   []byte
}

// site is a receiver that answers with a status, and keeps what it got.
type site struct {
	*httptest.Server
	mu     sync.Mutex
	got    []got
	answer func(w http.ResponseWriter, r *http.Request)
}

func newSite(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *site {
	s := &site{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.got = append(s.got, got{r.Header.Clone(), body})
		s.mu.Unlock()
		if s.answer != nil {
			s.answer(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) all() []got {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *site) last(t *testing.T) got {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) == 0 {
		t.Fatal("nothing came")
	}
	return s.got[len(s.got)-1]
}

var secrets = map[string]string{
	"env:PLAIN": "a secret of text, not base64!", "env:KEY": "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef")),
	"env:OLD": "whsec_" + base64.StdEncoding.EncodeToString([]byte("the key before this one")), "env:TOKEN": "tok-12345", "env:BAD": "whsec_%%",
}

func secret(reference string) (string, error) {
	if value, ok := secrets[reference]; ok {
		return value, nil
	}
	return "", errors.New("secret " + reference + ": the variable is unset or blank")
}

func sender(t *testing.T, text string) *webhook.Sender {
	t.Helper()
	list, findings := webhook.Parse([]byte(text), secret)
	if list == nil {
		t.Fatal(findings)
	}
	return webhook.New(list, webhook.Options{Secret: secret, Setting: "--webhooks"})
}

var delivery = history.Delivery{
	ID: "dlv_abc", EventID: "evt_abc", ExecutionID: "order 17/ü", Event: history.RunCompleted, Target: "ops", Attempts: 3,
	Body: []byte(`{"event":"run.completed","run":{"text":"ü <>"}}`),
}

// TestSignatures verifies deliveries with the library of Standard Webhooks, and the other headers.
func TestSignatures(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for refs, accepted := range map[string][]string{
		`"secretRef":"env:KEY"`:                                 {"env:KEY"},
		`"secretRef":"env:PLAIN"`:                               {"env:PLAIN"},
		`"secretRef":"env:KEY","previousSecretRef":"env:OLD"`:   {"env:KEY", "env:OLD"},
		`"secretRef":"env:OLD","previousSecretRef":"env:PLAIN"`: {"env:OLD", "env:PLAIN"},
	} {
		w := sender(t, fmt.Sprintf(`{"targets":{"ops":{"url":%q,%s,"headers":{"X-Tenant":"acme","X-Token":"env:TOKEN"}}},"privateNetworks":["127.0.0.0/8"]}`, s.URL, refs))
		r, err := w.Deliver(t.Context(), delivery)
		if err != nil || r.Outcome != history.Sent || r.Status != 200 {
			t.Fatalf("%+v, %v", r, err)
		}
		g := s.last(t)
		for name := range secrets {
			if name == "env:TOKEN" || name == "env:BAD" {
				continue
			}
			var standard *standardwebhooks.Webhook
			var err error
			if strings.HasPrefix(secrets[name], "whsec_") {
				standard, err = standardwebhooks.NewWebhook(secrets[name])
			} else {
				standard, err = standardwebhooks.NewWebhookRaw([]byte(secrets[name]))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := standard.Verify(g.body, g.header); (err == nil) != slices.Contains(accepted, name) {
				t.Errorf("%s: the secret %s: %v", refs, name, err)
			}
			if err := standard.Verify(append([]byte(" "), g.body...), g.header); err == nil {
				t.Errorf("%s: another body is accepted", refs)
			}
		}
		at, err := strconv.ParseInt(g.header.Get("webhook-timestamp"), 10, 64)
		if err != nil || time.Since(time.Unix(at, 0)).Abs() > time.Minute {
			t.Errorf("the timestamp is %q", g.header.Get("webhook-timestamp"))
		}
		for _, name := range []string{"X-Workflows-Signature", "X-Workflows-Timestamp", "X-Workflows-Event-Id"} {
			if g.header.Get(name) != "" {
				t.Errorf("%s is sent", name)
			}
		}
		for name, want := range map[string]string{
			"X-Workflows-Event": "run.completed", "X-Workflows-Run-Id": "order%2017/%C3%BC", "webhook-id": "evt_abc",
			"X-Workflows-Delivery": "dlv_abc.3", "X-Workflows-Attempt": "3", "Content-Type": "application/json", "X-Tenant": "acme", "X-Token": "tok-12345",
		} {
			if g.header.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, g.header.Get(name), want)
			}
		}
		if string(g.body) != string(delivery.Body) {
			t.Errorf("the body is %s", g.body)
		}
	}
	w := sender(t, fmt.Sprintf(`{"targets":{"ops":{"url":%q}},"privateNetworks":["127.0.0.1"]}`, s.URL))
	if _, err := w.Deliver(t.Context(), delivery); err != nil {
		t.Fatal(err)
	}
	if g := s.last(t); g.header.Get("webhook-signature") != "" || g.header.Get("webhook-id") != "evt_abc" {
		t.Errorf("without a secret: %v", g.header)
	}
}

// TestOutcomes: what an answer means.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var said int
	var saidAfter string
	say := func(status int, after string) {
		mu.Lock()
		defer mu.Unlock()
		said, saidAfter = status, after
	}
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		status, after := said, saidAfter
		mu.Unlock()
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		fmt.Fprint(w, strings.Repeat("page", 100_000))
	})
	w := sender(t, fmt.Sprintf(`{"targets":{"ops":{"url":%q}},"privateNetworks":["127.0.0.1"]}`, s.URL))
	for _, c := range []struct {
		status int
		after  string
		want   history.SendOutcome
		wait   time.Duration
	}{
		{200, "", history.Sent, 0}, {202, "60", history.Sent, 0}, {299, "", history.Sent, 0},
		{301, "", history.SendRefused, 0}, {307, "", history.SendRefused, 0}, {400, "", history.SendRefused, 0}, {401, "", history.SendRefused, 0},
		{404, "9", history.SendRefused, 0}, {410, "", history.SendRefused, 0}, {422, "", history.SendRefused, 0},
		{408, "", history.SendAgain, 0}, {429, "120", history.SendAgain, 2 * time.Minute}, {429, "soon", history.SendAgain, 0}, {429, "-5", history.SendAgain, 0},
		{500, "", history.SendAgain, 0}, {503, " 7 ", history.SendAgain, 7 * time.Second}, {503, time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), history.SendAgain, 0},
		{599, "", history.SendAgain, 0},
	} {
		say(c.status, c.after)
		r, err := w.Deliver(t.Context(), delivery)
		if err != nil || r.Outcome != c.want || r.Status != c.status || r.RetryAfter != c.wait || (r.Error == "") != (c.want == history.Sent) {
			t.Errorf("%d: %+v, %v", c.status, r, err)
		}
	}
	say(503, time.Now().Add(10*time.Minute).UTC().Format(http.TimeFormat))
	if r, err := w.Deliver(t.Context(), delivery); err != nil || (r.RetryAfter-10*time.Minute).Abs() > 5*time.Second {
		t.Errorf("a date: %+v, %v", r, err)
	}
	say(429, "99999999999999999999")
	if r, err := w.Deliver(t.Context(), delivery); err != nil || r.RetryAfter < time.Hour {
		t.Errorf("a time that is too long for a number: %+v, %v", r, err)
	}
	for _, g := range s.all() {
		if g.header.Get("X-Workflows-Event") == "" {
			t.Error("a redirect was followed")
		}
	}
}

// TestSwitchingProtocols: an answer that makes another protocol of the connection, and then says nothing, is refused at once.
func TestSwitchingProtocols(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: talk\r\n\r\n")
		t.Cleanup(func() { _ = c.Close() })
	})
	w := sender(t, fmt.Sprintf(`{"targets":{"ops":{"url":%q}},"privateNetworks":["127.0.0.1"]}`, s.URL))
	if r, err := w.Deliver(t.Context(), delivery); err != nil || r.Outcome != history.SendRefused || r.Status != 101 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestUnreachable: errors say what failed, and nothing of the address but its host; special addresses are not dialled unless the list has
// their network.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	address := s.URL + "/path-that-is-secret?token=hidden"
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	_, err := sender(t, fmt.Sprintf(`{"targets":{"ops":{"url":%q}},"privateNetworks":["127.0.0.1"]}`, address)).Deliver(ctx, delivery)
	if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a time-out: %v", err)
	}
	before := len(s.all())
	for _, networks := range []string{`[]`, `["10.0.0.0/8"]`} {
		_, err = sender(t, fmt.Sprintf(`{"targets":{"ops":{"url":%q}},"privateNetworks":%s}`, address, networks)).Deliver(t.Context(), delivery)
		if err == nil || !strings.Contains(err.Error(), `127.0.0.1 is not a public address ("privateNetworks" in --webhooks)`) {
			t.Errorf("a special address: %v", err)
		}
	}
	if len(s.all()) != before {
		t.Error("it was dialled")
	}
	s.Close()
	_, err = sender(t, fmt.Sprintf(`{"targets":{"ops":{"url":%q}},"privateNetworks":["127.0.0.1"]}`, address)).Deliver(t.Context(), delivery)
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("nobody listens: %v", err)
	}
	secrets := map[string]string{"env:S": "s3cret-value"}
	list, _ := webhook.Parse([]byte(`{"targets":{"ops":{"url":"http://127.0.0.1:1","secretRef":"env:S"}}}`), func(r string) (string, error) { return secrets[r], nil })
	gone := webhook.New(list, webhook.Options{Secret: secret})
	if _, err := gone.Deliver(t.Context(), delivery); err == nil || !strings.Contains(err.Error(), "env:S") {
		t.Errorf("a secret that is gone: %v", err)
	}
}
