package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/buildstamp"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/httpapi"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
	"github.com/workflows-engine/workflows-engine/internal/page"
)

type serveOptions struct {
	address, tokenFile, folder string
	work                       string
	page                       bool
	origins, hosts             []string
}

func newServe(a *app) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the HTTP API and the page",
		Long: `Serve the HTTP API for programs until stopped: start, answer, follow and read runs. GET /openapi.json describes it, and
docs/http-api.md shows how it is used. GET /healthz answers without a token.

Each request has a bearer token. --token-file names a file with one token, or a list of tokens in JSON
(schemas/tokens.schema.json) with a name each, which is recorded as the author of changes, and readOnly for a token that
permits reading alone; WORKFLOW_ENGINE_HTTP_TOKEN is one token itself. Without a token every program of this machine may connect,
and the address must be of this machine.

Like resume, the command performs the runs that it starts or continues, as far as their executors are configured, and leaves the
others to a worker (--work=own). With --work or --work=all it is a worker, too. With --work=none it performs nothing and needs no
executors: workers perform the runs, and a start names what no worker serves. With --page the same address has the web page of ui: a person opens it with a
token, whose name is the author of answers, or without tokens with the printed link. The API is plain HTTP: put a proxy with TLS in front of it for other machines.

Exit status: 0 stopped by a signal; 1 the database cannot be opened, or was deleted, moved, restored or migrated by a newer release
meanwhile; 2 wrong usage or settings.`,
		Example: `  workflows-engine serve --token-file tokens.json
  workflows-engine serve --listen 127.0.0.1:8772 --token-file tokens.json --work
  workflows-engine serve --listen 127.0.0.1:8772 --token-file tokens.json --work=none
  workflows-engine serve --page --token-file tokens.json --allow-host flows.example.com
  workflows-engine serve --token-file tokens.json --allow-origin https://app.example.com`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && o.work == string(graph.WorkAll) { // "--work none"
				if _, err := config.ParseWork(args[0]); err == nil {
					o.work = args[0]
					return nil
				}
			}
			return exactly()(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.address, "listen", "127.0.0.1:8772", "listen on this `address`; port 0 takes a free one")
	f.StringVar(&o.tokenFile, "token-file", "", "read the bearer tokens from this `file` (or one from $WORKFLOW_ENGINE_HTTP_TOKEN); required beyond this machine")
	f.StringVar(&o.work, "work", string(graph.WorkOwn), "runs that this process performs: own, all (like worker; --work alone) or none")
	f.Lookup("work").NoOptDefVal = string(graph.WorkAll)
	_ = cmd.RegisterFlagCompletionFunc("work", cobra.FixedCompletions([]string{"own", "all", "none"}, cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&o.page, "page", false, "also serve the web page, for people with a token")
	f.StringSliceVar(&o.origins, "allow-origin", nil, "`origins` of web pages that may connect, as in https://app.example.com")
	f.StringSliceVar(&o.hosts, "allow-host", nil, "further host `names` that clients may use for the server, besides localhost and addresses")
	config.RegisterWorkflowDir(f, &o.folder, "none")
	return cmd
}

// serve serves the API until ctx ends.
func (a *app) serve(ctx context.Context, o serveOptions) (err error) {
	if err := httpguard.CheckNames(o.hosts, o.origins); err != nil {
		return err
	}
	work, err := config.ParseWork(o.work)
	if err != nil {
		return err
	}
	if a.backend != nil && work == graph.WorkAll {
		return problem.New(problem.Unsupported, "%s serve performs no runs", program).WithHint("Leave --work out, and start a worker beside it.")
	}
	var tokens httpguard.Tokens
	var listener net.Listener
	s, err := a.open(ctx, sessionOptions{
		store: createStore, executors: optionalExecutors, folder: o.folder, work: work, stays: true,
		configured: func(c *config.Config) (err error) {
			if work == graph.WorkNone && c.Store == config.Memory {
				return usage("--work=none requires a database, but --store is memory").WithHint("Name a file with --db: workers perform the runs in it.")
			}
			if tokens, err = c.HTTPTokens(o.tokenFile); err == nil {
				listener, err = httpguard.Listen("listen", o.address, !tokens.None())
			}
			return err
		},
	})
	if err != nil {
		if listener != nil {
			err = firstError(err, listener.Close())
		}
		return err
	}
	defer func() { err = firstError(err, s.close()) }()
	ctx, end := config.WhileUsable(ctx, s.store)
	defer func() { err = firstError(end(), err) }()
	if s.without != nil && work != graph.WorkNone {
		a.note("this process performs no activities: "+s.without.Error(), nil)
	}
	if _, err := io.WriteString(a.human, "serves the HTTP API at http://"+listener.Addr().String()+"/v1\n"); err != nil {
		return firstError(err, listener.Close())
	}
	if _, remedy := httpguard.Warning(listener, !tokens.None()); remedy != "" {
		a.note(remedy, nil)
	}
	access := httpguard.Access{Hosts: o.hosts, Origins: o.origins, Tokens: tokens}
	var handler http.Handler = httpapi.New(httpapi.Options{
		Engine: s.engine, Catalog: s.workflows, Redaction: s.config.AnswerRedaction(), Access: access,
		Healthy: healthOf(s.store), Stop: ctx.Done(), Log: s.config.Log, Version: buildstamp.Read().String(),
	})
	if o.page {
		server, at, withdraw, err := s.page(ctx, listener, access)
		defer withdraw()
		if err != nil {
			return firstError(err, listener.Close())
		}
		if _, err := io.WriteString(a.human, "serves the page at "+at+"\n"); err != nil {
			return firstError(err, listener.Close())
		}
		handler = server.Beside(handler, "/v1", "/openapi.json", httpguard.HealthPath)
	}
	return httpguard.Serve(ctx, listener, handler, s.config.Log)
}

// page returns the page of a session for a server that listens, and the address at which a person gets in. Its event streams end with ctx.
// Other processes find it until withdraw is called.
func (s *session) page(ctx context.Context, l net.Listener, access httpguard.Access) (server *page.Server, at string, withdraw func(), err error) {
	o := pageOf(s)
	o.Access, o.Key = &access, page.NewKey()
	if server, err = page.New(o); err != nil {
		return nil, "", func() {}, err
	}
	context.AfterFunc(ctx, server.Close)
	withdraw = s.announce(o.Address(l.Addr()), nil)
	return server, page.Entrance(l.Addr(), !access.Tokens.None(), o.Key, time.Now()), withdraw, nil
}
