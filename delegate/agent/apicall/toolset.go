package apicall

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/dialguard"
	"github.com/workflows-engine/workflows-engine/internal/httpbody"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Name is the name of the tool.
const Name = "api_call"

// Toolset is the tool api_call over some services.
type Toolset struct {
	apis    *APIs
	names   []string
	options []agent.Option
}

// Tools makes the tool over the named services. If all of them allow only GET and HEAD, calls run beside other calls and are repeated after
// a crash. Otherwise calls run alone, and after a crash the model is told that a call may have been made. Options override both. The error
// has the code AGENT_CONFIG_INVALID.
func (a *APIs) Tools(services []string, options ...agent.Option) (*Toolset, error) {
	for _, name := range services {
		if a.services[name] == nil {
			known := slices.Sorted(maps.Keys(a.services))
			return nil, problem.New(problem.AgentConfigInvalid, "unknown service %q", name).WithHint("%s", hint(name, known))
		}
	}
	return &Toolset{apis: a, names: slices.Clone(services), options: options}, nil
}

func hint(name string, known []string) string {
	if near := suggest.DidYouMean(name, known); near != "" || len(known) == 0 {
		return near
	}
	return "the services are " + problem.AndList(known)
}

// Tools implements agent.Toolset. Without a service there is no tool.
func (t *Toolset) Tools(context.Context) ([]agent.Tool, error) {
	if len(t.names) == 0 {
		return nil, nil
	}
	reads := true
	var known, allowed []any
	about := "Calls an HTTP API. Services:"
	for _, name := range t.names {
		s := t.apis.services[name]
		known = append(known, name)
		for _, m := range s.AllowedMethods {
			if !slices.Contains(allowed, any(m)) {
				allowed = append(allowed, m)
			}
		}
		about += "\n- " + name + ": " + problem.OrList(s.AllowedMethods) + " on paths that match " + problem.OrList(s.AllowedPaths)
		reads = reads && !slices.ContainsFunc(s.AllowedMethods, func(m string) bool { return m != "GET" && m != "HEAD" })
	}
	tool := agent.Tool{
		Name: Name, Description: about + "\nThe engine authorizes the calls.", Source: "api", ReadOnly: reads, Parallel: reads, OnCrash: agent.Report,
		Parameters: map[string]any{
			"type": "object", "required": []any{"service", "method", "path"}, "additionalProperties": false,
			"properties": map[string]any{
				"service": map[string]any{"enum": known},
				"method":  map[string]any{"enum": allowed},
				// A rule that looks at path sees the whole of it and nothing else: a query is no second spelling of a path.
				"path":         map[string]any{"type": "string", "pattern": "^/[^?#]*$", "description": "behind the address of the service, without the query, such as /items; written exactly as it is sent: a space is %20"},
				"query":        map[string]any{"type": "string", "description": "without ?, such as page=2&sort=name; written exactly as it is sent"},
				"headers":      map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
				"body":         map[string]any{"description": "sent as JSON"},
				"bodyEncoding": map[string]any{"enum": []any{"json", "raw"}, "description": "raw sends a text as it is"},
			},
		},
	}
	if reads {
		tool.OnCrash = agent.Repeat
	}
	for _, o := range t.options {
		o(&tool)
	}
	return []agent.Tool{tool}, nil
}

// Call implements agent.Toolset. A response of any status is a result.
func (t *Toolset) Call(ctx context.Context, c agent.Call) (any, error) {
	if c.Name != Name {
		return nil, activities.Fail(agentloop.ToolUnknown, "services have no tool %q", c.Name)
	}
	name, _ := c.Arguments["service"].(string)
	if !slices.Contains(t.names, name) {
		return nil, activities.Fail(problem.APIServiceUnknown, "there is no service %q here; %s", problem.Clip(name, problem.MaxQuoted), hint(name, t.names))
	}
	s := t.apis.services[name]
	made, err := s.check(c.Arguments)
	if err != nil {
		return nil, err
	}
	var given Credentials
	if s.Auth != nil {
		given, err = s.Auth(ctx, Target{Service: name, Method: made.method, Path: made.path})
		if err == nil {
			err = given.check()
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, activities.Fail(problem.APICredentialsMissing, "service %q: %s", name, given.mask().Scrub(err.Error()))
		}
	}
	if err := made.authorize(given.Header); err != nil {
		return nil, err
	}
	return t.apis.send(ctx, s, &made, given.mask())
}

// send makes the request and reads the response.
func (a *APIs) send(parent context.Context, s *service, c *call, mask masker) (any, error) {
	ctx, stop := context.WithTimeout(parent, s.Timeout)
	defer stop()
	to := *s.base
	to.Path, to.RawPath, to.RawQuery = s.base.Path+c.path, s.base.EscapedPath()+spelled(c.path), c.query
	var body io.Reader
	if c.body != nil {
		body = bytes.NewReader(c.body)
	}
	req, err := http.NewRequestWithContext(ctx, c.method, to.String(), body)
	if err != nil {
		return nil, activities.Fail(problem.APIPathForbidden, "the address cannot be made: the path is not written plainly")
	}
	req.Header = c.header
	req.Header.Set("User-Agent", "workflows-engine")
	began := time.Now()
	report := Report{Service: s.name, Method: c.method, Path: c.path}
	defer func() {
		report.Latency = time.Since(began)
		a.observe(report)
	}()
	fail := func(err error) error {
		if parent.Err() != nil {
			return context.Cause(parent)
		}
		return activities.Fail(problem.APIUnreachable, "service %q: %s", s.name, mask.Scrub(s.why(ctx, err)))
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, fail(err)
	}
	defer res.Body.Close()
	report.Status = res.StatusCode
	read, err := io.ReadAll(io.LimitReader(httpbody.Of(res), int64(s.MaxResponseBytes)+1))
	report.BytesIn = int64(len(read))
	switch {
	case len(read) > s.MaxResponseBytes:
		return nil, activities.Fail(problem.APIResponseTooLarge, "service %q answered with status %d and more than %d bytes: the call was made; ask for less", s.name, res.StatusCode, s.MaxResponseBytes)
	case err != nil:
		return nil, fail(err)
	}
	return result(res, read, c, mask), nil
}

// why explains a missing response, without addresses and without data of the service: a part of a secret would not be masked.
func (s *service) why(ctx context.Context, err error) string {
	if refusal, ok := errors.AsType[*dialguard.Refusal](err); ok {
		return refusal.Error() + ": name its network in privateNetworks of the service"
	}
	if ctx.Err() != nil {
		return "there was no whole response within " + s.Timeout.String() + ": the call may have been made"
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return "the name of its host cannot be resolved: " + dns.Err
	}
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return certificate.Error()
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "it cannot be reached: " + op.Err.Error()
	}
	return "the connection ended before there was a whole response in HTTP: the call may have been made"
}

// shown are the headers of a response that a model sees, besides those that begin with shownPrefix.
var shown = []string{"Content-Type", "Location", "Retry-After", "Etag", "Last-Modified", "Link", "Allow", "Content-Range", "X-Total-Count", "X-Request-Id"}

const shownPrefix = "X-Ratelimit-"

// result is the result for the model. All data of the service is masked first.
func result(res *http.Response, read []byte, c *call, mask masker) map[string]any {
	headers := map[string]any{}
	for name := range res.Header {
		if value := res.Header.Get(name); slices.Contains(shown, name) || strings.HasPrefix(name, shownPrefix) {
			headers[mask.Scrub(name)] = problem.Excerpt(mask.Scrub(strings.ToValidUTF8(value, "\ufffd")), 1000)
		}
	}
	out := map[string]any{"status": float64(res.StatusCode), "headers": headers}
	if len(c.removed) > 0 {
		out["headers_not_sent"] = c.removed
	}
	if len(read) == 0 {
		return out
	}
	if body, ok := content(read, res.Header.Get("Content-Type"), mask); ok {
		out["body"] = body
	} else {
		out["body_bytes"], out["note"] = float64(len(read)), "the body is not text, and is not shown"
	}
	return out
}

// content is a body as a value: JSON, or text. A JSON text that a value would change, such as one with numbers of 20 digits, stays a text.
func content(read []byte, kind string, mask masker) (any, bool) {
	media, parameters, _ := mime.ParseMediaType(kind)
	if charset := strings.ToLower(parameters["charset"]); charset == "iso-8859-1" || charset == "latin1" {
		runes := make([]rune, len(read))
		for i, b := range read {
			runes[i] = rune(b)
		}
		read = []byte(string(runes))
	}
	read = bytes.TrimPrefix(read, []byte("\ufeff"))
	if !utf8.Valid(read) || bytes.IndexByte(read, 0) >= 0 {
		return nil, false
	}
	text := string(read)
	if first := strings.TrimSpace(text); media == "application/json" || strings.HasSuffix(media, "+json") || strings.HasPrefix(first, "{") || strings.HasPrefix(first, "[") {
		v, losses, err := jsonvalue.DecodeExact(read)
		if err == nil {
			clean := mask.value(jsonvalue.Clone(v))
			if len(losses) == 0 || !jsonvalue.Equal(clean, v) { // a text can spell a secret in ways that only the value shows
				return clean, true
			}
		}
	}
	return mask.Scrub(text), true
}

var _ agent.Toolset = (*Toolset)(nil)
