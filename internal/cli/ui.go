package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/buildstamp"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/page"
)

type uiOptions struct {
	noOpen, readOnly, link, json bool
	as, host, folder             string
	port                         int
}

func newUI(a *app) *cobra.Command {
	var o uiOptions
	cmd := &cobra.Command{
		Use:   "ui [ID]",
		Short: "Show runs in a web browser",
		Long: `Serve a web page with the runs of a database, and open it in the browser: questions with their forms, the graph and the visits of
each run, and the workflows that can be started. With an ID the page of that run opens. Ctrl-C stops it.

The page is served on this machine alone. The printed link lets one browser in, once, within ten minutes. While a page of the
database runs, a second ui opens another link to it and ends; --link only prints the link. --port, --host, --read-only and --as start
another page. The name of the page, like w7f3….localhost, is made once for a database; a browser that does not know such names needs
--host 127.0.0.1. docs/page.md describes what protects the page.

Like resume, the command performs the runs that are answered, started or retried here, as far as their executors are configured, and
leaves the others to a worker. With WORKFLOW_ENGINE_DRAIN (as in 20s) executors have this time to end when it stops.`,
		Example: `  workflows-engine ui
  workflows-engine ui order-17 --as "Kim Berg"
  workflows-engine ui --read-only --no-open
  workflows-engine ui --link`,
		Args:              atMostOneID,
		ValidArgsFunction: a.completeIDs(""),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) == 1 {
				id = args[0]
			}
			if o.link {
				return a.uiLink(cmd.Context(), id, o)
			}
			changed := cmd.Flags().Changed
			if !changed("port") && !changed("host") && !changed("read-only") && !changed("as") {
				if done, err := a.uiAgain(cmd.Context(), id, o); done || err != nil {
					return err
				}
			}
			return a.ui(cmd.Context(), id, changed("port"), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.noOpen, "no-open", false, "print the link without opening a browser")
	f.BoolVar(&o.readOnly, "read-only", false, "show runs without changing any")
	f.StringVar(&o.as, "as", "", "record changes as made by this `name` (default the user of the operating system)")
	f.StringVar(&o.host, "host", "", "use this `name` for the page: 127.0.0.1, localhost or a name below localhost")
	f.IntVar(&o.port, "port", 0, "listen on this `port` (default the last one, if it is free)")
	f.BoolVar(&o.link, "link", false, "print another link to the page that runs")
	f.BoolVar(&o.json, "json", false, "print the link as JSON")
	config.RegisterWorkflowDir(f, &o.folder, "none")
	return cmd
}

// ui serves the page until ctx ends.
func (a *app) ui(ctx context.Context, id string, portGiven bool, o uiOptions) (err error) {
	if o.host != "" && !page.IsLocalHost(o.host) {
		return usage("invalid value %q for --host", o.host).WithHint("Use 127.0.0.1, localhost, or a name below localhost such as runs.localhost.")
	}
	if o.port < 0 || o.port > 65535 {
		return usage("invalid value %d for --port", o.port).WithHint("Use 1 to 65535, or 0 for a free port.")
	}
	use := sessionOptions{store: createStore, executors: optionalExecutors, folder: o.folder, stays: true}
	if o.readOnly {
		use.store, use.executors = readOnlyStore, noExecutors
	}
	s, err := a.open(ctx, use)
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, s.close()) }()
	ctx, end := config.WhileUsable(ctx, s.store)
	defer func() { err = firstError(end(), err) }()
	if s.without != nil && !o.readOnly {
		a.note("this process performs no activities: "+s.without.Error(), nil)
	}
	to := "/"
	if id != "" {
		if _, err := s.engine.Status(ctx, graph.StatusRequest{ExecutionID: id}); err != nil {
			return err
		}
		to = fragment.RunPath(id)
	}

	file := s.config.PageFile()
	home := page.ReadHome(file)
	host := home.Name
	if o.host != "" {
		host = o.host
	}
	listener, err := listenLocally(host, o.port, portGiven, home.Port)
	if err != nil {
		return err
	}
	home.Port = listener.Addr().(*net.TCPAddr).Port
	origin := page.Address{Host: host, Port: home.Port}.Origin()
	actor := person()
	actor.Via = "page"
	if o.as != "" {
		actor.Name = o.as
	}
	shown := pageOf(s)
	shown.ReadOnly, shown.Actor, shown.Origin, shown.Key = o.readOnly, actor, origin, page.NewKey()
	server, err := page.New(shown)
	if err != nil {
		return firstError(err, listener.Close())
	}
	defer s.announce(shown.Address(listener.Addr()), &home)()
	if err := a.openLink(shown.Address(listener.Addr()), to, o); err != nil {
		return firstError(err, listener.Close())
	}
	stop := context.AfterFunc(ctx, server.Close)
	defer stop()
	return httpguard.Serve(ctx, listener, server, s.config.Log)
}

// listenLocally listens at an address of this machine alone: at the given port, otherwise at the last one if it is free.
func listenLocally(host string, port int, given bool, last int) (net.Listener, error) {
	at := "127.0.0.1"
	if host == "::1" {
		at = host
	}
	listen := func(port int) (net.Listener, error) {
		return net.Listen("tcp", net.JoinHostPort(at, strconv.Itoa(port)))
	}
	if !given && last > 0 && last <= 65535 {
		if listener, err := listen(last); err == nil {
			return listener, nil
		}
	}
	listener, err := listen(port)
	if err != nil {
		return nil, problem.New(problem.UsageError, "cannot listen on port %d", port).WithCause(err).
			WithHint("Leave out --port to use a free one.")
	}
	return listener, nil
}

// uiLink prints another link to the page that runs.
func (a *app) uiLink(ctx context.Context, id string, o uiOptions) error {
	c, err := a.flags.LoadStore(a.env)
	if err != nil {
		return err
	}
	file := c.PageFile()
	if file == "" {
		return usage("--link needs a database").WithHint("Name the database of the page that runs, with --db or --store-url.")
	}
	to, closed := "/", ""
	if id != "" {
		to = fragment.RunPath(id)
	}
	for address := range page.Running(ctx, file) {
		if address.Key != (page.Key{}) {
			_, err := a.printLink(address, to, o)
			return err
		}
		closed = cmp.Or(closed, address.Origin())
	}
	if closed != "" {
		return problem.New(problem.UsageError, "the page of %s at %s requires a token", c.Location(), closed).
			WithHint("Open the address with a token of its server, or start another page: workflows-engine ui.")
	}
	return problem.New(problem.UsageError, "no page is running for %s", c.Location()).WithHint("Start one: workflows-engine ui.")
}

// announce lets other processes find a page of the session that listens, until withdraw is called.
func (s *session) announce(address page.Address, home *page.Home) (withdraw func()) {
	withdraw, err := page.Announce(s.config.PageFile(), address, home)
	if err != nil { // of a folder that cannot be written to: nothing links to the page, and the next name of ui is another
		s.config.Log.Warn("address of the page not kept", logError, err)
	}
	return withdraw
}

// uiAgain opens another link to the page of ui that runs already. It reports false if none runs on which runs can be changed.
func (a *app) uiAgain(ctx context.Context, id string, o uiOptions) (done bool, err error) {
	c, err := a.flags.LoadStore(a.env)
	if err != nil {
		return false, err
	}
	var found *page.Address
	home := page.ReadHome(c.PageFile())
	for address := range page.Running(ctx, c.PageFile()) {
		at := address.Host == home.Name && address.Port == home.Port // to which saved links lead
		if address.UI && !address.ReadOnly && (found == nil || at) {
			found = &address
		}
	}
	if found == nil {
		return false, nil
	}
	to := "/"
	if id != "" {
		if to, err = a.runPath(ctx, id); err != nil {
			return false, err
		}
	}
	a.note("the page of "+c.Location()+" runs already, with the settings of its start", nil)
	return true, a.openLink(*found, to, o)
}

// runPath returns the path of the page of a run, which must exist.
func (a *app) runPath(ctx context.Context, id string) (path string, err error) {
	s, err := a.open(ctx, sessionOptions{store: readOnlyStore, executors: noExecutors})
	if err != nil {
		return "", err
	}
	defer func() { err = firstError(err, s.close()) }()
	_, err = s.engine.Status(ctx, graph.StatusRequest{ExecutionID: id})
	return fragment.RunPath(id), err
}

// openLink prints a link to a page and opens it in the browser.
func (a *app) openLink(address page.Address, to string, o uiOptions) error {
	link, err := a.printLink(address, to, o)
	if err != nil || o.noOpen || o.json || a.browse == nil {
		return err
	}
	if err := a.browse(link); err != nil {
		a.note("no browser was opened: "+err.Error(), nil)
	}
	return nil
}

// printLink prints a link to a page in one line.
func (a *app) printLink(address page.Address, to string, o uiOptions) (link string, err error) {
	link = page.Link(address.Origin(), address.Key, time.Now(), to)
	if o.json {
		return link, writeEncoded(a.stdout, jsonvalue.Ordered{{"link", link}, {"origin", address.Origin()}, {"read_only", address.ReadOnly}})
	}
	_, err = fmt.Fprintf(a.human, "%s (works once, for ten minutes)\n", link)
	return link, err
}

// pageOf returns the options of the page of a session, without those about access.
func pageOf(s *session) page.Options {
	o := page.Options{
		Engine: s.engine, Redaction: *s.config.Redaction(), Glossary: calls.CommandWords("", s.sameStore...), Log: s.config.Log,
		Version: buildstamp.Read().String(),
	}
	folder := ""
	if s.workflows != nil {
		o.Catalog, folder = s.workflows, s.workflows.Folder()
	}
	o.Located = s.config.Located
	o.Settings = page.SettingsOf(s.config.StoreLine(), folder, s.executors.Routes(), s.config.AgentIDs(), s.config.AttemptLimits)
	if s.without != nil {
		o.Settings = append(o.Settings, page.Setting{Name: "Executors", Value: s.without.Error()})
	}
	return o
}

// openBrowser opens an address in the browser of the user.
func openBrowser(address string) error {
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return errors.New(name + " not found; open the link yourself")
	}
	cmd := exec.Command(path, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait() //nolint:errcheck // the browser says what is wrong
	return nil
}
