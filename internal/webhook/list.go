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
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/dialguard"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const (
	// MaxBytes bounds the text of a list.
	MaxBytes = 1 << 20
	// maxTimeout bounds an attempt, and maxName the name of a target.
	maxTimeout = 5 * time.Minute
	maxName    = 128
)

// List is a valid list of targets.
type List struct {
	// Targets are the targets by their names; there is at least one.
	Targets map[string]Target
	// PrivateNetworks are the networks with special addresses that may be dialled all the same.
	PrivateNetworks []netip.Prefix
}

// Target is somebody who is notified.
type Target struct {
	graph.Webhook
	// URL is where deliveries are posted.
	URL string
	// SecretRef and PreviousSecretRef are references to the secrets that sign, as in env:NAME; "" for none.
	SecretRef, PreviousSecretRef string
	// Headers are sent, too, under the names of the list. Their values may be references.
	Headers map[string]string
}

// Hooks are the targets as a Runner knows them.
func (l *List) Hooks() map[string]graph.Webhook {
	hooks := make(map[string]graph.Webhook, len(l.Targets))
	for name, t := range l.Targets {
		hooks[name] = t.Webhook
	}
	return hooks
}

// Parse reads and checks a list. secret reads what a reference names. The list is nil if there are findings; all problems are listed, each
// with its line, in the order of the text.
func Parse(text []byte, secret func(reference string) (string, error)) (*List, problem.Findings) {
	r := &reader{secret: secret, report: jsonobject.Report{Code: problem.WebhookConfigInvalid}}
	node, faults := jsonvalue.Parse(text, 0, MaxBytes)
	for _, fault := range faults {
		r.report.Findings = append(r.report.Findings, problem.Finding{
			Code: problem.WebhookConfigInvalid, Severity: problem.SeverityError, Message: fault.Message, Keyword: "parse",
			At: problem.Place{Pointer: fault.Pointer, Line: fault.Line, Column: fault.Column},
		})
	}
	var list *List
	if node != nil {
		if root := r.report.Node(node); root != nil {
			list = r.list(root)
		}
	}
	r.report.Findings.Sort()
	if r.report.Findings.HasErrors() {
		return nil, r.report.Findings
	}
	return list, nil
}

type reader struct {
	secret func(reference string) (string, error)
	report jsonobject.Report
}

func (r *reader) list(root *jsonobject.Object) *List {
	root.Known("$schema")
	l := &List{Targets: map[string]Target{}}
	targets := root.Require("targets")
	if members := targets.Map(); members != nil {
		if len(members) == 0 {
			targets.Fail("minProperties", "there is no target").Hint = "Name at least one, with its url."
		}
		for name, v := range targets.Members() {
			if strings.TrimSpace(name) == "" || len(name) > maxName || strings.ContainsAny(name, "\r\n") {
				v.AtName().Fail("pattern", "the name of a target is one line of 1 to %d bytes", maxName)
			}
			l.Targets[name] = r.target(v.Object())
		}
	}
	for _, v := range root.Get("privateNetworks").Elements() {
		network, err := dialguard.Network(v.Text())
		if err != nil {
			v.Fail("format", "invalid network %q", v.Text()).Hint = "Write networks as in 10.0.0.0/8 or 127.0.0.1."
		}
		l.PrivateNetworks = append(l.PrivateNetworks, network)
	}
	root.Close()
	return l
}

func (r *reader) target(o *jsonobject.Object) (t Target) {
	if o == nil {
		return t
	}
	address := o.Require("url")
	t.URL = strings.TrimSpace(address.Text())
	if u, err := url.Parse(t.URL); t.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" || !isPort(u.Port())) {
		address.Fail("format", "url is not an absolute http or https address without a user").Hint = "Write it as in https://app.example/hooks."
	}
	secret, previous := o.Get("secretRef"), o.Get("previousSecretRef")
	t.SecretRef, t.PreviousSecretRef = r.reference(secret), r.reference(previous)
	if previous.Present() && !secret.Present() {
		previous.AtName().Fail("dependentRequired", "previousSecretRef needs a secretRef, by which new receivers check")
	}
	if events := o.Get("events"); events.Present() {
		t.Events = []history.RunEvent{}
		for _, e := range events.Elements() {
			if name := e.Choice("completed", "failed", "interrupted", "cancelled"); name != "" {
				t.Events = append(t.Events, history.RunEvent("run."+name))
			}
		}
	}
	if headers := o.Get("headers"); headers.Map() != nil {
		t.Headers = map[string]string{}
		first := map[string]string{}
		for name, v := range headers.Members() {
			t.Headers[name] = r.header(name, v)
			if other, ok := first[http.CanonicalHeaderKey(name)]; ok {
				v.AtName().Fail("uniqueItems", "%s and %s are the same header", other, name)
			}
			first[http.CanonicalHeaderKey(name)] = name
		}
	}
	t.All = o.Get("all").Bool()
	if ms, ok := o.Get("timeoutMs").Whole(1, maxTimeout.Milliseconds()); ok {
		t.Timeout = time.Duration(ms) * time.Millisecond
	}
	o.Close()
	return t
}

// reference reads a reference to a secret, which must be there.
func (r *reader) reference(v jsonobject.Value) string {
	reference := strings.TrimSpace(v.NonBlank())
	if reference == "" {
		return ""
	}
	text, err := r.secret(reference)
	if err == nil {
		_, err = keyOf(text)
	}
	fail(v, err)
	return reference
}

// fail reports why a reference cannot be used.
func fail(v jsonobject.Value, err error) {
	if err == nil {
		return
	}
	f := v.Fail("profile", "%v", err)
	if p, ok := problem.As(err); ok {
		f.Hint = p.Hint
	}
}

func (r *reader) header(name string, v jsonobject.Value) string {
	text := v.Text()
	switch {
	case !isToken(name):
		v.AtName().Fail("pattern", "%q is not the name of a header", name)
	case reserved(name):
		v.AtName().Fail("not", "the header %s is the engine's", name).Hint = "Choose another name."
	}
	value, err := header(text, r.secret)
	fail(v, err)
	if err == nil && !isFieldValue(value) {
		v.Fail("pattern", "the value of the header %s has characters that none may have", name)
	}
	return text
}

// header returns the value of a header as the list has it: a reference stands for what it names.
func header(text string, secret func(string) (string, error)) (string, error) {
	if literal, ok := strings.CutPrefix(text, "literal:"); ok {
		return literal, nil
	}
	if strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "file:") {
		return secret(text)
	}
	return text, nil
}

// reserved reports whether a header is one that the engine, or its HTTP client, sets.
func reserved(name string) bool {
	name = http.CanonicalHeaderKey(name)
	switch name {
	case "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "Host", "Trailer", "Te", "Upgrade", "Expect", "Keep-Alive":
		return true
	}
	return strings.HasPrefix(name, "X-Workflows-") || strings.HasPrefix(name, "Webhook-")
}

// isPort reports whether a text may be the port of an address; "" stands for the scheme's.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

// isToken reports whether a text may be the name of a header (RFC 9110, 5.6.2).
func isToken(text string) bool {
	for _, c := range text {
		if c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) {
			return false
		}
	}
	return text != ""
}

// isFieldValue reports whether a text may be the value of a header.
func isFieldValue(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}
