package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/dialguard"
	"github.com/workflows-engine/workflows-engine/internal/httpbody"
)

// The headers of a delivery besides the user's.
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"

	headerEvent    = "X-Workflows-Event"
	headerRun      = "X-Workflows-Run-Id"
	headerDelivery = "X-Workflows-Delivery"
	headerAttempt  = "X-Workflows-Attempt"
)

const (
	dialTimeout = 10 * time.Second
	// maxAnswer is how many bytes of an answer are read, so that its connection can be used again. They are ignored.
	maxAnswer = 64 << 10
)

// Options of a Sender.
type Options struct {
	// Secret resolves a reference. It is called for each attempt: a secret can be replaced while the process runs.
	Secret func(reference string) (string, error)
	// Setting names the list in errors.
	Setting string
	// Now is the clock of timestamps; nil means time.Now.
	Now func() time.Time
}

// Sender posts deliveries. It is safe for concurrent use.
type Sender struct {
	targets map[string]Target
	options Options
	client  *http.Client
}

// New makes a Sender for the targets of a list. It dials no private or otherwise special address outside of the list's networks, follows no
// redirect and uses no proxy.
func New(l *List, o Options) *Sender {
	if o.Now == nil {
		o.Now = time.Now
	}
	dialer := &net.Dialer{Timeout: dialTimeout, Control: dialguard.Control(l.PrivateNetworks)}
	return &Sender{targets: l.Targets, options: o, client: &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Deliver makes one attempt; see graph.Options.Deliver.
func (s *Sender) Deliver(ctx context.Context, d history.Delivery) (history.Receipt, error) {
	t, ok := s.targets[d.Target]
	if !ok {
		return history.Receipt{}, fmt.Errorf("target %q is not configured", d.Target)
	}
	req, err := s.request(ctx, &t, &d)
	if err != nil {
		return history.Receipt{}, err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return history.Receipt{}, s.plainly(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(httpbody.Of(res), maxAnswer)) // an error here does not matter: the status was received
	r := history.Receipt{Status: res.StatusCode, Outcome: outcomeOf(res.StatusCode)}
	switch r.Outcome {
	case history.Sent:
	case history.SendAgain:
		r.RetryAfter = s.retryAfter(res.Header.Get("Retry-After"))
		fallthrough
	default:
		r.Error = strings.TrimSpace(fmt.Sprintf("the target answered with status %d %s", res.StatusCode, http.StatusText(res.StatusCode)))
	}
	return r, nil
}

func outcomeOf(status int) history.SendOutcome {
	switch {
	case status >= 200 && status <= 299:
		return history.Sent
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500:
		return history.SendAgain
	}
	return history.SendRefused
}

// request makes the request of an attempt. The headers of the list are set first, so that they never replace the delivery's own.
func (s *Sender) request(ctx context.Context, t *Target, d *history.Delivery) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(d.Body))
	if err != nil {
		return nil, errors.New("invalid address of the target")
	}
	req.Header.Set("User-Agent", "workflows-engine")
	for name, text := range t.Headers {
		value, err := header(text, s.options.Secret)
		if err != nil {
			return nil, err
		}
		req.Header.Set(name, value)
	}
	seconds := strconv.FormatInt(s.options.Now().Unix(), 10)
	for name, value := range map[string]string{
		"Content-Type": "application/json", headerID: d.EventID, headerTimestamp: seconds, headerEvent: string(d.Event),
		headerRun: printable(d.ExecutionID), headerDelivery: history.AttemptID(d.ID, d.Attempts), headerAttempt: strconv.Itoa(d.Attempts),
	} {
		req.Header.Set(name, value)
	}
	keys, err := s.keys(t)
	if err != nil || len(keys) == 0 {
		return req, err
	}
	req.Header.Set(headerSignature, signature(keys, d.EventID, seconds, d.Body))
	return req, nil
}

// keys returns the keys that sign, the present one first.
func (s *Sender) keys(t *Target) (keys [][]byte, err error) {
	for _, reference := range []string{t.SecretRef, t.PreviousSecretRef} {
		if reference == "" {
			continue
		}
		secret, err := s.options.Secret(reference)
		if err != nil {
			return nil, err
		}
		key, err := keyOf(secret)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// printable returns the id of a run for a header: characters that are invalid there, and the percent sign, are percent-encoded.
func printable(id string) string {
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c >= 0x7f || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// retryAfter reads how long a target asks to wait: seconds, or a date.
func (s *Sender) retryAfter(text string) time.Duration {
	if n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31); err == nil || errors.Is(err, strconv.ErrRange) { // n is then the largest
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(s.options.Now()))
	}
	return 0
}

// plainly returns the error of a request without its address, which may be confidential: errors are stored.
func (s *Sender) plainly(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	if why, ok := errors.AsType[*dialguard.Refusal](err); ok {
		return fmt.Errorf("%w (\"privateNetworks\" in %s)", why, s.options.Setting)
	}
	return err
}
