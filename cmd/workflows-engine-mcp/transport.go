package main

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/stdio"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/streamable"
	"github.com/workflows-engine/workflows-engine/internal/page"
)

// The transports.
const (
	transportStdio = "stdio"
	transportHTTP  = "http"
)

const (
	flagTransport, flagListen, flagTokenFile = "transport", "listen", "token-file"
	flagAllowOrigin, flagAllowHost           = "allow-origin", "allow-host"
	flagPage                                 = "page"

	// defaultListen is a loopback address.
	defaultListen = "127.0.0.1:8770"
)

// listenOptions configure the transport.
type listenOptions struct {
	transport, address, tokenFile string
	allowOrigins, allowHosts      []string
	page                          bool
}

func (d *listenOptions) register(set *pflag.FlagSet) {
	set.StringVar(&d.transport, flagTransport, transportStdio, "`transport`: stdio for the host that starts the server, or http for clients of --listen")
	set.StringVar(&d.address, flagListen, defaultListen, "`address` for http clients; port 0 selects a free port")
	set.StringVar(&d.tokenFile, flagTokenFile, "", "`file` with the bearer token of http clients (or $WORKFLOW_ENGINE_HTTP_TOKEN); required beyond this machine")
	set.StringSliceVar(&d.allowOrigins, flagAllowOrigin, nil, "allowed `origins` of web pages, as in https://app.example.com, besides pages of this machine")
	set.StringSliceVar(&d.allowHosts, flagAllowHost, nil, "allowed host `names` in http requests, besides localhost and addresses")
	set.BoolVar(&d.page, flagPage, false, "also serve http clients the web page, for people with the token")
}

// check returns the first error in the settings.
func (d *listenOptions) check(set *pflag.FlagSet) error {
	if d.transport != transportStdio && d.transport != transportHTTP {
		return problem.New(problem.UsageError, "invalid value %q for --transport", d.transport).WithHint("Write stdio or http.")
	}
	for _, name := range []string{flagListen, flagTokenFile, flagAllowOrigin, flagAllowHost, flagPage} {
		if d.transport == transportStdio && set.Changed(name) {
			return problem.New(problem.UsageError, "--%s has no effect without --transport http", name).
				WithHint("Add --transport http, or leave it out.")
		}
	}
	return httpguard.CheckNames(d.allowHosts, d.allowOrigins)
}

// transport serves clients until ctx or their input ends. shown returns the page's options once healthy returns nil.
type transport func(ctx context.Context, server *mcp.Server, log *slog.Logger, healthy func(context.Context) error, shown func() page.Options) error

// open opens the transport and reports it to the operator.
func (c *settings) open(stdin io.Reader, stdout io.Writer, notes notices) (transport, error) {
	if c.clients.transport == transportStdio {
		if c.Config != nil {
			c.pageOrigin = func(ctx context.Context) string { return page.RunningOrigin(ctx, c.PageFile()) }
		}
		return func(ctx context.Context, server *mcp.Server, log *slog.Logger, _ func(context.Context) error, _ func() page.Options) error {
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
	listener, err := httpguard.Listen(flagListen, c.clients.address, token != "")
	if err != nil {
		return nil, err
	}
	shownBy := page.Options{Key: page.NewKey(), Access: &httpguard.Access{Hosts: c.clients.allowHosts, Tokens: httpguard.OneToken(token, "token")}}
	var address page.Address
	if c.clients.page {
		address = shownBy.Address(listener.Addr())
		elsewhere := func(host string) bool { return !page.IsLocalHost(host) }
		if httpguard.Loopback(listener.Addr()) && !slices.ContainsFunc(c.clients.allowHosts, elsewhere) { // else clients may be on other machines
			c.pageOrigin = func(context.Context) string { return address.Origin() }
		}
		notes.say("serves the page at " + page.Entrance(listener.Addr(), token != "", shownBy.Key, time.Now()))
	}
	notes.say("serves MCP at http://" + listener.Addr().String() + streamable.Path)
	if risk, remedy := httpguard.Warning(listener, token != ""); risk != "" {
		notes.warn(risk, remedy)
	}
	return func(ctx context.Context, server *mcp.Server, log *slog.Logger, healthy func(context.Context) error, shown func() page.Options) error {
		o := mcpserver.HTTPOptions{
			Token: token, Origins: c.clients.allowOrigins, Hosts: c.clients.allowHosts, MaxMessageBytes: c.maxMessageBytes, Healthy: healthy, Logger: log,
		}
		if c.clients.page {
			withdraw, err := page.Announce(c.PageFile(), address, nil)
			if err != nil {
				log.Warn("address of the page not kept", "error", err)
			}
			defer withdraw()
			o.Others = &latePage{works: healthy, start: func() (*page.Server, error) {
				p := shown()
				p.Key, p.Access = shownBy.Key, shownBy.Access
				s, err := page.New(p)
				if err == nil {
					context.AfterFunc(ctx, s.Close)
				}
				return s, err
			}}
		}
		return mcpserver.ServeHTTP(ctx, server, listener, o)
	}, nil
}
