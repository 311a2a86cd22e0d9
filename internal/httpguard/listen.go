package httpguard

import (
	"net"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Listen listens on the address of a flag. Without tokens it must be a loopback address.
func Listen(flag, address string, tokens bool) (net.Listener, error) {
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, problem.New(problem.UsageError, "invalid address %q for --%s", address, flag).WithCause(err).
			WithHint("Write host and port, as in 127.0.0.1:8770.")
	}
	if !tokens && !Loopback(addr) {
		return nil, problem.New(problem.UsageError, "--%s: %s is reachable from other machines and requires a token", flag, address).
			WithHint("Name a file with the token: --token-file FILE, or listen on 127.0.0.1.")
	}
	listener, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, problem.New(problem.UsageError, "cannot listen on %s", address).WithCause(err).
			WithHint("If another program uses the port, select a free one: --%s 127.0.0.1:0.", flag)
	}
	return listener, nil
}

// Warning returns the risk of a listening server that the operator should know, and its remedy; "" without a risk.
func Warning(listener net.Listener, tokens bool) (risk, remedy string) {
	switch {
	case !Loopback(listener.Addr()):
		return "connection not encrypted", "token and runs are sent in plain text: put a proxy with TLS in front of the server, and listen on 127.0.0.1"
	case !tokens:
		return "token not configured", "every program and user of this machine can connect: require a token with --token-file FILE"
	}
	return "", ""
}

// CheckNames returns the first invalid value of the flags --allow-host and --allow-origin.
func CheckNames(hosts, origins []string) error {
	for _, origin := range origins {
		if _, err := ParseOrigin(origin); err != nil {
			return problem.New(problem.UsageError, "invalid origin %q for --allow-origin", origin).WithHint("Write scheme and host, as in https://app.example.com.")
		}
	}
	for _, name := range hosts {
		if name == "" || strings.ContainsAny(name, "/*@ ") {
			return problem.New(problem.UsageError, "invalid host name %q for --allow-host", name).WithHint("Write the name, as in flows.example.com.")
		}
	}
	return nil
}
