package streamable

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
)

// guard rejects requests without permission, and reports whether the request is permitted.
func (o Options) guard(w http.ResponseWriter, r *http.Request) bool {
	if !o.knowsHost(r) {
		refuse(w, http.StatusForbidden, frame.Refuse(jsonrpc.CodeInvalidRequest,
			"Host %q is not allowed; the server's operator can allow it with --allow-host", r.Host))
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if !o.knowsOrigin(origin) {
			refuse(w, http.StatusForbidden, frame.Refuse(jsonrpc.CodeInvalidRequest,
				"Origin %q is not allowed; the server's operator can allow it with --allow-origin", origin))
			return false
		}
		if share(w.Header(), r, origin) {
			w.WriteHeader(http.StatusNoContent)
			return false
		}
	}
	if o.Token == "" {
		return true
	}
	given, found := bearer(r.Header.Get("Authorization"))
	if found && sameSecret(given, o.Token) {
		return true
	}
	challenge, said := `Bearer realm="workflows-engine"`, "missing bearer token"
	if found {
		challenge, said = challenge+`, error="invalid_token"`, "invalid bearer token"
	}
	w.Header().Set("WWW-Authenticate", challenge)
	refuse(w, http.StatusUnauthorized, frame.Refuse(jsonrpc.CodeInvalidRequest, "%s: send Authorization: Bearer with the server's token", said))
	return false
}

// knowsHost reports whether a request addresses the server by an address, as localhost or by an allowed name. A page of
// another site can let its own name resolve to the server, but cannot use an address or localhost. A request to a
// loopback address must name a loopback address.
func (o Options) knowsHost(r *http.Request) bool {
	name := hostname(r.Host)
	if slices.ContainsFunc(o.Hosts, func(allowed string) bool { return hostname(allowed) == name }) || name == "localhost" {
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

// knowsOrigin reports whether pages of an origin may connect: those of this machine, and allowed ones.
func (o Options) knowsOrigin(origin string) bool {
	u, err := ParseOrigin(origin)
	if err != nil {
		return false
	}
	if slices.ContainsFunc(o.Origins, func(allowed string) bool {
		a, err := ParseOrigin(allowed)
		return err == nil && a == u
	}) {
		return true
	}
	parsed, err := url.Parse(u)
	if err != nil {
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
func share(header http.Header, r *http.Request, origin string) (asked bool) {
	header.Set("Access-Control-Allow-Origin", origin)
	header.Add("Vary", "Origin")
	header.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
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

// sameSecret compares in a time that does not depend on the content.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// refuse answers with a JSON-RPC error.
func refuse(w http.ResponseWriter, status int, r *frame.Refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(r.Encode()) // a client that is gone needs no answer
}
