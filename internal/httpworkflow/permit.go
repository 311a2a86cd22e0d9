package httpworkflow

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/dialguard"
)

// refusal is why an address is not requested. A run records the text without a hint, so the text names the setting.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func refused(format string, args ...any) *refusal {
	return &refusal{fmt.Sprintf(format, args...)}
}

// prefix is an allowed beginning of addresses.
type prefix struct{ scheme, host, path string }

func parsePrefix(text string) (prefix, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		!dialguard.PlainPath(u) {
		return prefix{}, problem.New(problem.UsageError, "%q is not the beginning of an http or https address", text).
			WithHint("Write it as in https://definitions.example/flows/.")
	}
	return prefix{u.Scheme, host(u), strings.TrimSuffix(u.Path, "/")}, nil
}

// permit rejects an address without an allowed prefix.
func (r *Resolver) permit(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return refused("it is not an http or https address")
	case u.User != nil:
		return refused("the address holds a user name or password")
	case !dialguard.PlainPath(u):
		return refused("the path of the address is not written plainly")
	}
	for _, p := range r.allowed {
		rest, ok := strings.CutPrefix(u.Path, p.path)
		if ok && u.Scheme == p.scheme && host(u) == p.host && (rest == "" || rest[0] == '/') {
			return nil
		}
	}
	return refused("no allowed address is a beginning of %s://%s%s (\"allow\" in %s)", u.Scheme, u.Host, u.EscapedPath(), envname.WorkflowSources)
}

// host is the host with its port, in one spelling.
func host(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), port)
}

// guard makes the check of the address that is dialled, after names were resolved.
func guard(private []netip.Prefix) func(network, address string, _ syscall.RawConn) error {
	control := dialguard.Control(private)
	return func(network, address string, c syscall.RawConn) error {
		if err := control(network, address, c); err != nil {
			return refused("%v (\"privateNetworks\" in %s)", err, envname.WorkflowSources)
		}
		return nil
	}
}
