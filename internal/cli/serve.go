package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/buildstamp"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/httpapi"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

type serveOptions struct {
	address, tokenFile, folder string
	work                       bool
	origins, hosts             []string
}

func newServe(a *app) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the HTTP API",
		Long: `Serve the HTTP API for programs until stopped: start, answer, follow and read runs. GET /openapi.json describes it, and
docs/http-api.md shows how it is used. GET /healthz answers without a token.

Each request has a bearer token. --token-file names a file with one token, or a list of tokens in JSON
(schemas/tokens.schema.json) with a name each, which is recorded as the author of changes, and readOnly for a token that
permits reading alone. Without a file every program of this machine may connect, and the address must be of this machine.

Like resume, the command performs the runs that it starts or continues, as far as their executors are configured, and leaves the
others to a worker. With --work it is a worker, too. The API is plain HTTP: put a proxy with TLS in front of it for other machines.`,
		Example: `  workflows-engine serve --token-file tokens.json
  workflows-engine serve --listen 127.0.0.1:8772 --token-file tokens.json --work
  workflows-engine serve --token-file tokens.json --allow-origin https://app.example.com`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.address, "listen", "127.0.0.1:8772", "listen on this `address`; port 0 takes a free one")
	f.StringVar(&o.tokenFile, "token-file", "", "read the bearer tokens from this `file`; needed beyond this machine")
	f.BoolVar(&o.work, "work", false, "also drive all runs of the database, like worker")
	f.StringSliceVar(&o.origins, "allow-origin", nil, "`origins` of web pages that may connect, as in https://app.example.com")
	f.StringSliceVar(&o.hosts, "allow-host", nil, "host `names` by which clients may address the server, besides localhost and addresses")
	config.RegisterWorkflowDir(f, &o.folder, "none")
	return cmd
}

// serve serves the API until ctx ends.
func (a *app) serve(ctx context.Context, o serveOptions) (err error) {
	for _, origin := range o.origins {
		if _, err := httpguard.ParseOrigin(origin); err != nil {
			return usage("invalid origin %q for --allow-origin", origin).WithHint("Write scheme and host, as in https://app.example.com.")
		}
	}
	if i := slices.IndexFunc(o.hosts, func(name string) bool { return name == "" || strings.ContainsAny(name, "/*@ ") }); i >= 0 {
		return usage("invalid host name %q for --allow-host", o.hosts[i]).WithHint("Write the name, as in flows.example.com.")
	}
	tokens, err := a.tokens(o.tokenFile)
	if err != nil {
		return err
	}
	addr, err := net.ResolveTCPAddr("tcp", o.address)
	if err != nil {
		return usage("invalid address %q for --listen", o.address).WithCause(err).WithHint("Write host and port, as in 127.0.0.1:8772.")
	}
	if tokens.None() && !httpguard.Loopback(addr) {
		return usage("--listen: %s can be reached from other machines, and there is no token", o.address).
			WithHint("Name a file with one: --token-file FILE, or listen on 127.0.0.1.")
	}
	s, err := a.open(ctx, sessionOptions{store: createStore, executors: optionalExecutors, folder: o.folder, background: o.work, stays: true})
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, s.close()) }()
	if s.without != nil {
		a.note("this process performs no activities: "+s.without.Error(), nil)
	}
	listener, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return usage("cannot listen on %s", o.address).WithCause(err).WithHint("Use --listen 127.0.0.1:0 for a free port.")
	}
	if _, err := io.WriteString(a.human, "serves the HTTP API at http://"+listener.Addr().String()+"/v1\n"); err != nil {
		return firstError(err, listener.Close())
	}
	switch {
	case !httpguard.Loopback(listener.Addr()):
		a.note("plain HTTP is read on the way: put a proxy with TLS in front of it, and listen on 127.0.0.1", nil)
	case tokens.None():
		a.note("every program and every user of this machine can connect: --token-file FILE asks for a token", nil)
	}
	var api http.Handler = httpapi.New(httpapi.Options{
		Engine: s.engine, Catalog: s.workflows, Redaction: s.config.AnswerRedaction(),
		Access:  httpguard.Access{Hosts: o.hosts, Origins: o.origins, Tokens: tokens},
		Healthy: healthOf(s.store), Stop: ctx.Done(), Log: s.config.Log, Version: buildstamp.Read().String(),
	})
	return httpguard.Serve(ctx, listener, api, s.config.Log)
}

// tokens reads the file with the tokens of clients; without a file it returns no tokens.
func (a *app) tokens(file string) (tokens httpguard.Tokens, err error) {
	if file == "" {
		return tokens, nil
	}
	text, err := regularfile.Read(a.path(file), httpguard.MaxTokensBytes)
	if err != nil {
		return tokens, usage("--token-file: the file cannot be read").WithCause(err)
	}
	tokens, findings := httpguard.ParseTokens(text)
	if len(findings) > 0 {
		e := problem.New(problem.UsageError, "--token-file: %s", findings[0].Message).WithHint("Write one token, or a list as in schemas/tokens.schema.json.")
		e.Findings = findings
		return tokens, e
	}
	return tokens, nil
}
