package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/stdio"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/streamable"
)

// The transports.
const (
	transportStdio = "stdio"
	transportHTTP  = "http"
)

const (
	flagTransport, flagListen, flagTokenFile = "transport", "listen", "token-file"
	flagAllowOrigin, flagAllowHost           = "allow-origin", "allow-host"

	// defaultListen is an address of this machine alone.
	defaultListen = "127.0.0.1:8770"
)

// listenOptions configure the transport.
type listenOptions struct {
	transport, address, tokenFile string
	allowOrigins, allowHosts      []string
}

func (d *listenOptions) register(set *pflag.FlagSet) {
	set.StringVar(&d.transport, flagTransport, transportStdio, "stdio for the one host that starts the server, or http for clients that connect to --listen")
	set.StringVar(&d.address, flagListen, defaultListen, "`address` that http clients connect to; port 0 takes a free one")
	set.StringVar(&d.tokenFile, flagTokenFile, "", "`file` with the bearer token of http clients (or $WORKFLOW_ENGINE_HTTP_TOKEN); needed beyond this machine")
	set.StringSliceVar(&d.allowOrigins, flagAllowOrigin, nil, "`origins` of web pages that may connect, as in https://app.example.com, besides pages of this machine")
	set.StringSliceVar(&d.allowHosts, flagAllowHost, nil, "host `names` by which http clients may address the server, besides localhost and addresses")
}

// check returns the first mistake in the settings.
func (d *listenOptions) check(set *pflag.FlagSet) error {
	if d.transport != transportStdio && d.transport != transportHTTP {
		return problem.New(problem.UsageError, "invalid value %q for --transport", d.transport).WithHint("Write stdio or http.")
	}
	for _, name := range []string{flagListen, flagTokenFile, flagAllowOrigin, flagAllowHost} {
		if d.transport == transportStdio && set.Changed(name) {
			return problem.New(problem.UsageError, "--%s has no effect without --transport http", name).
				WithHint("Add --transport http, or leave it out.")
		}
	}
	for _, origin := range d.allowOrigins {
		if _, err := httpguard.ParseOrigin(origin); err != nil {
			return problem.New(problem.UsageError, "invalid origin %q for --allow-origin", origin).WithHint("Write scheme and host, as in https://app.example.com.")
		}
	}
	if i := slices.IndexFunc(d.allowHosts, func(name string) bool { return name == "" || strings.ContainsAny(name, "/*@ ") }); i >= 0 {
		return problem.New(problem.UsageError, "invalid host name %q for --allow-host", d.allowHosts[i]).WithHint("Write the name, as in flows.example.com.")
	}
	return nil
}

// transport serves clients until ctx or their input ends.
type transport func(ctx context.Context, server *mcp.Server, log *slog.Logger, healthy func(context.Context) error) error

// open opens the transport and tells the operator about it.
func (c *settings) open(stdin io.Reader, stdout io.Writer, notes notices) (transport, error) {
	if c.clients.transport == transportStdio {
		return func(ctx context.Context, server *mcp.Server, log *slog.Logger, _ func(context.Context) error) error {
			return mcpserver.Serve(ctx, server, &stdio.Transport{In: stdin, Out: stdout, MaxMessageBytes: c.maxMessageBytes, Logger: log})
		}, nil
	}
	if c.Config == nil { // not even a token can be read
		return nil, c.trouble
	}
	token, err := c.HTTPToken(c.clients.tokenFile)
	if err != nil {
		return nil, err
	}
	listener, err := listen(c.clients.address, token)
	if err != nil {
		return nil, err
	}
	notes.say("serves MCP at http://" + listener.Addr().String() + streamable.Path)
	switch {
	case !httpguard.Loopback(listener.Addr()):
		notes.warn("plain text", "whoever is between a client and this server reads token and runs: put a proxy with TLS in front of it, and listen on 127.0.0.1")
	case token == "":
		notes.warn("no token", "every program and every user of this machine can connect: --token-file FILE asks for a token")
	}
	return func(ctx context.Context, server *mcp.Server, log *slog.Logger, healthy func(context.Context) error) error {
		return mcpserver.ServeHTTP(ctx, server, listener, mcpserver.HTTPOptions{
			Token: token, Origins: c.clients.allowOrigins, Hosts: c.clients.allowHosts, MaxMessageBytes: c.maxMessageBytes, Healthy: healthy, Logger: log,
		})
	}, nil
}

// listen takes an address, which without a token must be one of this machine alone.
func listen(address, token string) (net.Listener, error) {
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, problem.New(problem.UsageError, "invalid address %q for --listen", address).WithCause(err).
			WithHint("Write host and port, as in 127.0.0.1:8770.")
	}
	if token == "" && !httpguard.Loopback(addr) {
		return nil, problem.New(problem.UsageError, "--listen: %s can be reached from other machines, and there is no token", address).
			WithHint("Name a file with one: --token-file FILE, or listen on 127.0.0.1.")
	}
	listener, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, problem.New(problem.UsageError, "cannot listen on %s", address).WithCause(err).
			WithHint("Another program may use the port: --listen 127.0.0.1:0 takes a free one.")
	}
	return listener, nil
}
