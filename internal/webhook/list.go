package webhook

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/dialguard"
	"github.com/workflows-engine/workflows-engine/internal/document"
	"github.com/workflows-engine/workflows-engine/schemas"
)

// MaxBytes bounds the text of a list.
const MaxBytes = 1 << 20

// List is a valid list of targets.
type List struct {
	// Targets holds the targets by name; there is at least one.
	Targets map[string]Target `json:"targets"`
	// PrivateNetworks lists the networks with special addresses that may be dialled, Networks their text in the file.
	PrivateNetworks []netip.Prefix `json:"-"`
	Networks        []string       `json:"privateNetworks"`
}

// Target is a receiver of notifications.
type Target struct {
	graph.Webhook
	TimeoutMs int64 `json:"timeoutMs"`
	// URL is where deliveries are posted.
	URL string `json:"url"`
	// SecretRef and PreviousSecretRef are references to the secrets that sign, as in env:NAME; "" without one.
	SecretRef         string `json:"secretRef"`
	PreviousSecretRef string `json:"previousSecretRef"`
	// Headers holds additional headers by name. Their values may be references.
	Headers map[string]string `json:"headers"`
}

// Hooks returns the targets for a Runner.
func (l *List) Hooks() map[string]graph.Webhook {
	hooks := make(map[string]graph.Webhook, len(l.Targets))
	for name, t := range l.Targets {
		hooks[name] = t.Webhook
	}
	return hooks
}

var kind = document.Kind{Schema: schemas.Webhooks, Code: problem.WebhookConfigInvalid, MaxBytes: MaxBytes}

// Parse reads and checks a list. secret reads the secret that a reference names. The list is nil if there are findings; all problems are
// listed, each with its line, in the order of the text.
func Parse(text []byte, secret func(reference string) (string, error)) (*List, problem.Findings) {
	l := &List{}
	d := kind.Read(text, l)
	if !d.Decoded() {
		return nil, d.Findings()
	}
	for i, network := range l.Networks {
		prefix, err := dialguard.Network(network)
		if err != nil {
			d.Fail(document.At("privateNetworks", i), "format", "invalid network %q", network).Hint = "Write networks as in 10.0.0.0/8 or 127.0.0.1."
		}
		l.PrivateNetworks = append(l.PrivateNetworks, prefix)
	}
	for name, t := range l.Targets {
		l.Targets[name] = t.check(d, document.At("targets", name), secret)
	}
	if !d.Valid() {
		return nil, d.Findings()
	}
	return l, nil
}

// check completes a target, and reports errors that the schema does not find.
func (t Target) check(d *document.Document, at string, secret func(reference string) (string, error)) Target {
	t.URL = strings.TrimSpace(t.URL)
	if u, err := url.Parse(t.URL); err != nil || u.Hostname() == "" || !isPort(u.Port()) {
		d.Fail(at+"/url", "format", "must be an absolute http or https address, as in https://app.example/hooks")
	}
	t.Timeout = time.Duration(t.TimeoutMs) * time.Millisecond
	for i, event := range t.Events {
		t.Events[i] = "run." + event
	}
	for field, reference := range map[string]*string{"secretRef": &t.SecretRef, "previousSecretRef": &t.PreviousSecretRef} {
		if *reference = strings.TrimSpace(*reference); *reference == "" {
			continue
		}
		text, err := secret(*reference)
		if err == nil {
			_, err = keyOf(text)
		}
		if err != nil {
			d.FailWith(at+document.At(field), err)
		}
	}
	first := map[string]string{}
	for _, name := range d.Names(at + "/headers") {
		at := at + "/headers" + document.At(name)
		if value, err := header(t.Headers[name], secret); err != nil {
			d.FailWith(at, err)
		} else if !isFieldValue(value) {
			d.Fail(at, "pattern", "the value of the header %s must not contain control characters", name)
		}
		key := http.CanonicalHeaderKey(name)
		if other, ok := first[key]; ok {
			d.FailName(at, "uniqueItems", "%s and %s are the same header", other, name)
		}
		first[key] = name
	}
	return t
}

// header returns the value of a header of the list, with a reference resolved.
func header(text string, secret func(string) (string, error)) (string, error) {
	if literal, ok := strings.CutPrefix(text, "literal:"); ok {
		return literal, nil
	}
	if strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "file:") {
		return secret(text)
	}
	return text, nil
}

// isPort reports whether a text is a valid port of an address; "" is the scheme's port.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

// isFieldValue reports whether a text may be the value of a header.
func isFieldValue(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}
