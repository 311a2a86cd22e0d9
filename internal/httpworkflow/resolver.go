package httpworkflow

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Defaults and bounds of Config.
const (
	DefaultTimeout      = 10 * time.Second
	DefaultMaxBytes     = 2 << 20
	DefaultMaxDocuments = 64
	DefaultRetryPause   = 250 * time.Millisecond

	maxRedirects = 5
	maxTries     = 3
)

// Config configures a Resolver. Only Allow is required.
type Config struct {
	// Allow lists the allowed prefixes of addresses, as in "https://definitions.example/flows/". A path ends at a slash:
	// "https://x/flows" allows /flows and /flows/a, not /flows2.
	Allow []string
	// PrivateNetworks lists the networks with special addresses that may be dialled all the same.
	PrivateNetworks []netip.Prefix
	// Timeout bounds one resolution, redirects and further tries included. 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxBytes bounds a document. 0 means DefaultMaxBytes.
	MaxBytes int64
	// MaxDocuments bounds how many documents are kept. 0 means DefaultMaxDocuments.
	MaxDocuments int
	// RetryPause is the pause before another try after a transient failure; the one after it waits twice as long. 0
	// means DefaultRetryPause.
	RetryPause time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Resolver finds definitions by address, which makes it a graph.Resolver. It is safe for concurrent use.
type Resolver struct {
	config  Config
	allowed []prefix
	client  *http.Client
	kept    cache
}

// New checks the configuration and makes a Resolver. The error is a *problem.Error with code USAGE_ERROR.
func New(c Config) (*Resolver, error) {
	r := &Resolver{}
	for _, text := range c.Allow {
		p, err := parsePrefix(text)
		if err != nil {
			return nil, err
		}
		r.allowed = append(r.allowed, p)
	}
	c.Timeout = cmp.Or(max(c.Timeout, 0), DefaultTimeout)
	c.MaxBytes = cmp.Or(max(c.MaxBytes, 0), DefaultMaxBytes)
	c.MaxDocuments = cmp.Or(max(c.MaxDocuments, 0), DefaultMaxDocuments)
	c.RetryPause = cmp.Or(max(c.RetryPause, 0), DefaultRetryPause)
	if c.Now == nil {
		c.Now = time.Now
	}
	r.config = c
	r.kept.init(c.MaxDocuments)
	dialer := &net.Dialer{Timeout: c.Timeout, Control: guard(c.PrivateNetworks)}
	r.client = &http.Client{
		Transport: &http.Transport{
			// No proxy: it would dial, unseen by guard.
			Proxy: nil, DialContext: dialer.DialContext, TLSHandshakeTimeout: c.Timeout,
			MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return refused("it is redirected more than %d times", maxRedirects)
			}
			return r.permit(req.URL)
		},
	}
	return r, nil
}

// ResolveWorkflow finds the definition at an address. The error is a *problem.Error: WORKFLOW_NOT_FOUND if it cannot be
// fetched, VALIDATION_ERROR if it is not a definition. Whether it has the pinned hash is left to the caller.
func (r *Resolver) ResolveWorkflow(ctx context.Context, ref, pin string) (*definition.Document, error) {
	address, err := url.Parse(ref)
	if err == nil {
		err = r.permit(address)
	}
	if err != nil {
		return nil, notFound(ref, err)
	}
	address.Fragment = ""
	ctx, stop := context.WithTimeout(ctx, r.config.Timeout)
	defer stop()
	key := address.String()
	e, err := r.kept.acquire(ctx, key)
	if err != nil {
		return nil, notFound(ref, err)
	}
	defer r.kept.release(e)
	if e.document != nil && (e.document.Hash() == pin || pin == "" && r.config.Now().Before(e.freshUntil)) {
		return e.document, nil
	}
	if err := r.fetch(ctx, key, e); err != nil {
		if p, ok := problem.As(err); ok {
			return nil, p
		}
		return nil, notFound(ref, err)
	}
	return e.document, nil
}

// notFound returns the error for a document that cannot be fetched.
func notFound(ref string, cause error) error {
	if address, err := url.Parse(ref); err == nil {
		ref = address.Redacted()
	}
	e := problem.New(problem.WorkflowNotFound, "workflow %q cannot be fetched", ref).WithCause(cause)
	if _, ok := errors.AsType[*refusal](cause); ok {
		return e.WithHint("The operator sets the allowed addresses.")
	}
	return e.WithHint("See that the address answers with the definition; a run that has begun does not need it any more.")
}
