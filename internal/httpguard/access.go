package httpguard

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

var errNoOrigin = errors.New("an origin must be a scheme and a host, as in https://app.example.com")

// Access configures who may send requests. The zero value admits every client that reaches the address, and no web page.
type Access struct {
	// Hosts lists the names of the server in requests, besides localhost and addresses.
	Hosts []string
	// Origins are those of web pages that may connect, as in https://app.example.com.
	Origins []string
	// LocalPages also admits web pages of this machine.
	LocalPages bool
	// Tokens are the bearer tokens of requests; without any, requests need no token.
	Tokens Tokens
	// Methods and Exposed are the methods and the response headers that admitted pages may use (CORS).
	Methods, Exposed string
}

// Admit checks the Host header, the Origin header and the token of a request, and returns the caller that the token names.
// It reports whether the request may proceed. Otherwise it has been answered: a preflight request by Admit, any other by
// refuse.
func (a *Access) Admit(w http.ResponseWriter, r *http.Request, refuse func(status int, message string)) (caller Caller, ok bool) {
	if !a.AdmitOrigin(w, r, refuse) {
		return Caller{}, false
	}
	if a.Tokens.None() {
		return Caller{}, true
	}
	given, found := bearer(r.Header.Get("Authorization"))
	if found {
		if caller, ok = a.Tokens.Find(given); ok {
			return caller, true
		}
	}
	challenge, said := `Bearer realm="workflows-engine"`, "missing bearer token"
	if found {
		challenge, said = challenge+`, error="invalid_token"`, "invalid bearer token"
	}
	w.Header().Set("WWW-Authenticate", challenge)
	refuse(http.StatusUnauthorized, said+": send Authorization: Bearer with it")
	return Caller{}, false
}

// AdmitOrigin is Admit without the token.
func (a *Access) AdmitOrigin(w http.ResponseWriter, r *http.Request, refuse func(status int, message string)) bool {
	if !a.KnowsHost(r) {
		refuse(http.StatusForbidden, fmt.Sprintf("the server does not answer to the Host header %q; its operator can allow the name with --allow-host", r.Host))
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		if OtherSite(r) && !Opens(r) { // a picture, a script or a frame: browsers send no Origin for these
			refuse(http.StatusForbidden, "pages of other sites may not load this")
			return false
		}
		return true
	}
	if !a.knowsOrigin(origin) {
		refuse(http.StatusForbidden, fmt.Sprintf("pages of origin %q may not connect; the server's operator can allow it with --allow-origin", origin))
		return false
	}
	if a.share(w.Header(), r, origin) {
		w.WriteHeader(http.StatusNoContent)
		return false
	}
	return true
}

// OtherSite reports whether a browser says that a page of another site, or of another server of the same host, caused a request.
func OtherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// Opens reports whether a browser says that it opens the answer of a request as a page of its own, as a link does.
func Opens(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// KnowsHost reports whether a request addresses the server by an address, as localhost or by an allowed name. A page of
// another site can let its own name resolve to the server, but cannot use an address or localhost. A request to a
// loopback address must name a loopback address.
func (a *Access) KnowsHost(r *http.Request) bool {
	name := hostname(r.Host)
	if slices.ContainsFunc(a.Hosts, func(allowed string) bool { return hostname(allowed) == name }) || name == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	here, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return addr.Unmap().IsLoopback() || here == nil || !Loopback(here)
}

// Loopback reports whether an address can be reached only from this machine.
func Loopback(a net.Addr) bool {
	addr, err := netip.ParseAddrPort(a.String())
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// hostname returns a host without its port, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// knowsOrigin reports whether pages of an origin may connect.
func (a *Access) knowsOrigin(origin string) bool {
	u, err := ParseOrigin(origin)
	if err != nil {
		return false
	}
	if slices.ContainsFunc(a.Origins, func(allowed string) bool {
		canonical, err := ParseOrigin(allowed)
		return err == nil && canonical == u
	}) {
		return true
	}
	parsed, err := url.Parse(u)
	if err != nil || !a.LocalPages {
		return false
	}
	addr, err := netip.ParseAddr(parsed.Hostname())
	return parsed.Hostname() == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// ParseOrigin returns the canonical form of an origin, as in https://app.example.com: scheme and host in lower case, the port unless it
// is the scheme's own.
func ParseOrigin(origin string) (string, error) {
	u, err := url.Parse(strings.ToLower(origin))
	if err != nil {
		return "", err
	}
	if u.Host == "" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return "", &url.Error{Op: "parse", URL: origin, Err: errNoOrigin}
	}
	if ports := map[string]string{"http": "80", "https": "443"}; u.Port() != "" && ports[u.Scheme] == u.Port() {
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	return u.Scheme + "://" + u.Host, nil
}

// share lets the page of a known origin read the answer (CORS), and reports whether the request only asked for that.
func (a *Access) share(header http.Header, r *http.Request, origin string) (asked bool) {
	header.Set("Access-Control-Allow-Origin", origin)
	header.Add("Vary", "Origin")
	header.Set("Access-Control-Expose-Headers", a.Exposed)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", a.Methods)
	if names := r.Header.Get("Access-Control-Request-Headers"); names != "" {
		header.Set("Access-Control-Allow-Headers", names)
	}
	header.Set("Access-Control-Max-Age", "600")
	return true
}

// bearer returns the token of an Authorization header.
func bearer(header string) (token string, found bool) {
	scheme, token, _ := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}
