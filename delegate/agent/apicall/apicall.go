// Package apicall gives agents HTTP APIs that the operator names, in a tool api_call.
//
//	apis, err := apicall.New(apicall.Config{Services: map[string]apicall.Service{"widgets": {
//		BaseURL: "https://api.acme.example/v1", Auth: apicall.Bearer(token),
//		AllowedPaths: []string{"^/widgets(/[0-9]+)?$"}, AllowedMethods: []string{"GET", "POST"},
//	}}})
//	tools, err := apis.Tools([]string{"widgets"})
//
// The model chooses a service, a method, a path, headers and a body, and sees status, some headers and body of the response. It cannot reach
// another host: redirects are not followed, and the path must be written plainly and match a pattern. Credentials are read at each
// call, put in after the model's own headers for that were removed, and masked in all that comes back.
package apicall

import (
	"cmp"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/dialguard"
)

// Defaults of Service, and bounds.
const (
	DefaultMaxBodyBytes     = 1 << 20
	DefaultMaxResponseBytes = 64 << 20
	DefaultTimeout          = 30 * time.Second

	// maxPath bounds a path with its query.
	maxPath = 8 << 10
	// maxHeaders and maxHeaderBytes bound the headers that a model sends.
	maxHeaders, maxHeaderBytes = 50, 8 << 10
)

// Service is an API. BaseURL and AllowedPaths are required.
type Service struct {
	// BaseURL is the address that paths are put behind.
	BaseURL string
	// Auth authorizes calls; nil sends nothing.
	Auth Auth
	// AllowedPaths are regular expressions. One of them must match the path from its beginning. The path is that behind BaseURL, without
	// the query, with its escapes undone: write "^/widgets/[0-9]+$", as without "$" anything may follow.
	AllowedPaths []string
	// AllowedMethods are GET and HEAD by default.
	AllowedMethods []string
	// MaxBodyBytes and MaxResponseBytes bound the bodies; 0 means the defaults.
	MaxBodyBytes, MaxResponseBytes int
	// Timeout bounds a call; 0 means DefaultTimeout.
	Timeout time.Duration
	// PrivateNetworks are the networks with loopback, private and other special addresses that the name of the host may resolve to. An
	// address in BaseURL, and localhost, are dialled without it.
	PrivateNetworks []netip.Prefix
}

// Config configures the services.
type Config struct {
	Services map[string]Service
	// Observe is called after each request that was sent, in the goroutine of the call; it may be nil.
	Observe func(Report)
}

// Report describes a request to an observer.
type Report struct {
	// Path is that of the call, without the query.
	Service, Method, Path string
	// Status is 0 where there is no response.
	Status  int
	Latency time.Duration
	// BytesIn is how much of the response was read.
	BytesIn int64
}

// APIs are services. It is safe for concurrent use.
type APIs struct {
	services map[string]*service
	observe  func(Report)
}

// service is a Service that was checked.
type service struct {
	Service
	name   string
	base   *url.URL
	paths  []*regexp.Regexp
	client *http.Client
}

// New checks the services. Nothing is connected to, and no secret is read. The error has the code AGENT_CONFIG_INVALID.
func New(c Config) (*APIs, error) {
	a := &APIs{services: map[string]*service{}, observe: c.Observe}
	if a.observe == nil {
		a.observe = func(Report) {}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		s, err := newService(name, c.Services[name])
		if err != nil {
			return nil, err
		}
		a.services[name] = s
	}
	return a, nil
}

// Close closes connections that are not in use.
func (a *APIs) Close() error {
	for _, s := range a.services {
		s.client.CloseIdleConnections()
	}
	return nil
}

// methods are those that may be allowed. TRACE would return the credentials of a call, and CONNECT is no call.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

func newService(name string, c Service) (*service, error) {
	bad := func(format string, args ...any) error {
		return problem.New(problem.AgentConfigInvalid, "service %q: %s", name, problem.Format(format, args...))
	}
	if strings.TrimSpace(name) == "" {
		return nil, bad("the name is blank")
	}
	base, err := url.Parse(strings.TrimSpace(c.BaseURL))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" ||
		!dialguard.PlainPath(base) {
		return nil, bad("the base address is not an absolute http or https address without user and query")
	}
	base.Path, base.RawPath = strings.TrimSuffix(base.Path, "/"), ""
	c.MaxBodyBytes = cmp.Or(max(c.MaxBodyBytes, 0), DefaultMaxBodyBytes)
	c.MaxResponseBytes = cmp.Or(max(c.MaxResponseBytes, 0), DefaultMaxResponseBytes)
	c.Timeout = cmp.Or(max(c.Timeout, 0), DefaultTimeout)
	s := &service{Service: c, name: name, base: base}
	if len(c.AllowedPaths) == 0 {
		return nil, bad("no path is allowed")
	}
	for _, pattern := range c.AllowedPaths {
		re, err := CompilePath(pattern)
		if err != nil {
			return nil, bad("%v", err)
		}
		s.paths = append(s.paths, re)
	}
	if len(c.AllowedMethods) == 0 {
		s.AllowedMethods = []string{"GET", "HEAD"}
	}
	for _, m := range s.AllowedMethods {
		if !slices.Contains(methods, m) {
			return nil, bad("%q is not one of the methods %s", m, problem.OrList(methods))
		}
	}
	dialer := &net.Dialer{Timeout: c.Timeout, Control: dialguard.Control(slices.Concat(c.PrivateNetworks, named(base.Hostname())))}
	s.client = &http.Client{
		Transport: &http.Transport{
			// No proxy: it would dial, unseen by the guard.
			Proxy: nil, DialContext: dialer.DialContext, TLSHandshakeTimeout: c.Timeout, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		// Credentials are sent to the service only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// CompilePath compiles a pattern of Service.AllowedPaths. It must begin with "^", so that it is not mistaken for one that matches in the middle of a
// path for one that does not.
func CompilePath(pattern string) (*regexp.Regexp, error) {
	if !strings.HasPrefix(pattern, "^/") {
		return nil, problem.New(problem.AgentConfigInvalid, "the pattern %q of paths does not begin with \"^/\"", pattern).
			WithHint("Write ^/widgets/[0-9]+$ for one path, ^/widgets/ for all below it.")
	}
	if _, err := regexp.Compile(pattern); err != nil { // the text of its error has the pattern as it was written
		return nil, err
	}
	return regexp.Compile(`\A(?:` + pattern + `)`)
}

// named are the special addresses that a host names by itself: the operator has written it, and it can mean no other.
func named(host string) []netip.Prefix {
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap().WithZone("")
		return []netip.Prefix{netip.PrefixFrom(ip, ip.BitLen())}
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	return nil
}
