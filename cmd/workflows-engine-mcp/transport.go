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

	// defaultListen is a loopback address.
	defaultListen = "127.0.0.1:8770"
)

// listenOptions configure the transport.
type listenOptions struct {
	transport, address, tokenFile string
	allowOrigins, allowHosts      []string
}

func (d *listenOptions) register(set *pflag.FlagSet) {
	set.StringVar(&d.transport, flagTransport, transportStdio, "`transport`: stdio for the host that starts the server, or http for clients of --listen")
	set.StringVar(&d.address, flagListen, defaultListen, "`address` for http clients; port 0 selects a free port")
	set.StringVar(&d.tokenFile, flagTokenFile, "", "`file` with the bearer token of http clients (or $WORKFLOW_ENGINE_HTTP_TOKEN); required beyond this machine")
	set.StringSliceVar(&d.allowOrigins, flagAllowOrigin, nil, "allowed `origins` of web pages, as in https://app.example.com, besides pages of this machine")
	set.StringSliceVar(&d.allowHosts, flagAllowHost, nil, "allowed host `names` in http requests, besides localhost and addresses")
}

// check returns the first error in the settings.
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

// open opens the transport and reports it to the operator.
func (c *settings) open(stdin io.Reader, stdout io.Writer, notes notices) (transport, error) {
	if c.clients.transport == transportStdio {
		return func(ctx context.Context, server *mcp.Server, log *slog.Logger, _ func(context.Context) error) error {
			return mcpserver.Serve(ctx, server, &stdio.Transport{In: stdin, Out: stdout, MaxMessageBytes: c.maxMessageBytes, Logger: log})
		}, nil
	}
	if c.Config == nil { // the token cannot be read either
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
		notes.warn("connection not encrypted", "token and runs are sent in plain text: put a proxy with TLS in front of the server, and listen on 127.0.0.1")
	case token == "":
		notes.warn("token not configured", "every program and user of this machine can connect: require a token with --token-file FILE")
	}
	return func(ctx context.Context, server *mcp.Server, log *slog.Logger, healthy func(context.Context) error) error {
		return mcpserver.ServeHTTP(ctx, server, listener, mcpserver.HTTPOptions{
			Token: token, Origins: c.clients.allowOrigins, Hosts: c.clients.allowHosts, MaxMessageBytes: c.maxMessageBytes, Healthy: healthy, Logger: log,
		})
	}, nil
}

// listen listens on an address. Without a token it must be a loopback address.
func listen(address, token string) (net.Listener, error) {
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, problem.New(problem.UsageError, "invalid address %q for --listen", address).WithCause(err).
			WithHint("Write host and port, as in 127.0.0.1:8770.")
	}
	if token == "" && !httpguard.Loopback(addr) {
		return nil, problem.New(problem.UsageError, "--listen: %s is reachable from other machines and requires a token", address).
			WithHint("Name a file with the token: --token-file FILE, or listen on 127.0.0.1.")
	}
	listener, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, problem.New(problem.UsageError, "cannot listen on %s", address).WithCause(err).
			WithHint("If another program uses the port, select a free one: --listen 127.0.0.1:0.")
	}
	return listener, nil
}
