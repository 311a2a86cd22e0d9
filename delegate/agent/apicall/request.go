package apicall

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/dialguard"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// call is a checked call of a service.
type call struct {
	method string
	// path is that behind the base address, with its escapes undone.
	path, query string
	header      http.Header
	removed     []any
	body        []byte
}

// check makes a call of a model's arguments, or returns why it cannot be made. It sends nothing.
func (s *service) check(arguments map[string]any) (c call, err error) {
	c.method, _ = arguments["method"].(string)
	if !slices.Contains(s.AllowedMethods, c.method) {
		return c, activities.Fail(problem.APIMethodForbidden, "service %q takes %s, not %q", s.name, problem.OrList(s.AllowedMethods), problem.Clip(c.method, problem.MaxQuoted))
	}
	given, _ := arguments["path"].(string)
	if query, _ := arguments["query"].(string); query != "" {
		if strings.Contains(given, "?") {
			return c, activities.Fail(problem.APIPathForbidden, "there is a query in path and in query: leave it out of path")
		}
		given += "?" + query
	}
	if c.path, c.query, err = plain(given); err != nil {
		return c, activities.Fail(problem.APIPathForbidden, "%v", err)
	}
	if !slices.ContainsFunc(s.paths, func(re *regexp.Regexp) bool { return re.MatchString(c.path) }) {
		return c, activities.Fail(problem.APIPathForbidden, "service %q takes paths that match %s", s.name, problem.OrList(s.AllowedPaths))
	}
	c.header = http.Header{}
	headers, _ := arguments["headers"].(map[string]any)
	c.setHeaders(headers)
	return c, s.setBody(&c, arguments)
}

// plain reads a path with its query, as those write it who began before the tool had a parameter for queries. It must be written exactly as it is sent: rules and people have decided about the text that the model
// wrote, and a second spelling of a path would pass them. A path that servers could read in two ways is rejected.
func plain(given string) (clean, query string, err error) {
	raw, query, _ := strings.Cut(given, "?")
	lower := strings.ToLower(raw)
	switch {
	case len(given) > maxPath:
		return "", "", fmt.Errorf("the path is longer than %d bytes", maxPath)
	case !strings.HasPrefix(raw, "/"):
		return "", "", fmt.Errorf("the path does not begin with a slash: it is behind the address of the service, which is not part of it")
	case strings.Contains(given, "#"):
		return "", "", fmt.Errorf("the path has a fragment (#)")
	case strings.Contains(lower, "%2f"), strings.Contains(lower, "%5c"), strings.Contains(lower, "%25"):
		return "", "", fmt.Errorf("the path has an escaped slash, backslash or percent sign")
	}
	clean, err = url.PathUnescape(raw)
	switch {
	case err != nil || !utf8.ValidString(clean) || strings.ContainsFunc(clean, unicode.IsControl):
		return "", "", fmt.Errorf("the path has wrong escapes or control characters")
	case !dialguard.PlainPath(&url.URL{Path: clean}):
		return "", "", fmt.Errorf("the path is not written plainly: leave out \"..\", \".\", \"//\" and \"\\\"")
	}
	sent := spelled(clean)
	if query != "" {
		written, err := written(query)
		if err != nil {
			return "", "", err
		}
		sent += "?" + written
	}
	if sent != given {
		return "", "", fmt.Errorf("the path is not written as it is sent: write %s", problem.Excerpt(sent, problem.MaxQuoted))
	}
	return clean, query, nil
}

// subDelims undoes the escapes of the characters that package url escapes in a path although they need it not (RFC 3986, 2.2).
var subDelims = strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")

// spelled returns the canonical form of a path: only characters that need it are escaped.
func spelled(clean string) string { return subDelims.Replace((&url.URL{Path: clean}).EscapedPath()) }

// neverEscaped are the characters that a query never has escaped, besides letters and digits; mustEscape those that it never has as they are.
const (
	neverEscaped = "-._~/:@?$!*'()"
	mustEscape   = "\"<>\\^`{|}"
)

// written returns the canonical form of a query.
func written(query string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(query); i++ {
		c, escape := query[i], false
		if c == '%' {
			if i+2 >= len(query) || !isHex(query[i+1]) || !isHex(query[i+2]) {
				return "", fmt.Errorf("the query has a wrong escape")
			}
			c, escape = unhex(query[i+1])<<4|unhex(query[i+2]), true
			i += 2
		}
		plainChar := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(neverEscaped, c) >= 0
		if c <= ' ' || c >= 0x7f || strings.IndexByte(mustEscape, c) >= 0 || escape && !plainChar {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// unsent are headers of a model that are not sent: they hold credentials, the sender, or the framing of the request.
var unsent = []string{
	"authorization", "proxy-authorization", "cookie", "cookie2", "x-api-key", "api-key", "apikey", "x-auth-token", "x-access-token", "x-csrf-token",
	"host", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "expect", "accept-encoding",
	"x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url", "forwarded", "via", "x-real-ip", "user-agent",
}

// spelling is a header's name as all servers read it: some take "_" for "-".
func spelling(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// setHeaders sets a model's headers, and notes those that are not sent.
func (c *call) setHeaders(headers map[string]any) {
	for i, name := range jsonvalue.Keys(headers) {
		value, text := headers[name].(string)
		as := spelling(name)
		if i >= maxHeaders || !text || !headerName(name) || !headerValue(value) || len(value) > maxHeaderBytes || slices.Contains(unsent, as) ||
			strings.HasPrefix(as, "proxy-") || strings.HasPrefix(as, "x-forwarded-") || strings.HasPrefix(as, "sec-") {
			c.removed = append(c.removed, problem.Clip(name, problem.MaxQuoted))
			continue
		}
		c.header[name] = []string{value}
	}
}

// authorize sets the credentials, in place of any header of the model's that a server could take for it. The others have
// one spelling: of two that differ in their letters alone a rule could see the one and the service the other.
func (c *call) authorize(given http.Header) error {
	for name := range given {
		for mine := range c.header {
			if spelling(mine) == spelling(name) {
				delete(c.header, mine)
				c.removed = append(c.removed, mine)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.header)) {
		one, value := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")), strings.Join(c.header[name], ",")
		if one != name || strings.TrimSpace(value) != value {
			return activities.Fail(agentloop.ToolArgumentsInvalid, "the header %q is not written as it is sent: write %q, and its value without spaces around it",
				problem.Clip(name, problem.MaxQuoted), problem.Clip(one, problem.MaxQuoted))
		}
	}
	for name, values := range given {
		c.header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	return nil
}

// setBody encodes the body: any JSON, or with bodyEncoding raw a text as it is.
func (s *service) setBody(c *call, arguments map[string]any) error {
	body := arguments["body"]
	if body == nil {
		return nil
	}
	kind := "application/json"
	if encoding, _ := arguments["bodyEncoding"].(string); encoding == "raw" {
		text, ok := body.(string)
		if !ok {
			return activities.Fail(problem.APIRawBodyNotText, "a body that is sent raw is a text; leave bodyEncoding out for JSON")
		}
		c.body, kind = []byte(text), "text/plain; charset=utf-8"
	} else {
		c.body = jsonvalue.Canonical(body)
	}
	if len(c.body) > s.MaxBodyBytes {
		return activities.Fail(problem.APIBodyTooLarge, "the body has %d bytes, of at most %d", len(c.body), s.MaxBodyBytes)
	}
	if c.header.Get("Content-Type") == "" {
		c.header.Set("Content-Type", kind)
	}
	return nil
}
