package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/mcphost"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

// defaultName is the name of the server in a host.
const defaultName = "workflows"

type installOptions struct {
	hosts       []string
	scope, name string
	server      string
	env         []string
	npx         bool
	url         string
	tokenEnv    string
	print       string
	dryRun, yes bool
}

// register adds the flags that install and uninstall share.
func (o *installOptions) register(set *pflag.FlagSet) {
	set.StringSliceVar(&o.hosts, "host", nil, "`host` to configure: "+strings.Join(mcphost.Names(), ", ")+", or all installed ones")
	set.StringVar(&o.scope, "scope", string(mcphost.User), "user: for all your projects; project: for all users of the current directory")
	set.StringVar(&o.name, "name", defaultName, "`name` of the server in the host")
	set.BoolVar(&o.dryRun, "dry-run", false, "change nothing; print the changes")
	set.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
}

func newInstall(a *app) *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "install [flags] [-- SERVER-FLAG…]",
		Short: "Register the MCP server with hosts",
		Long: `Register the MCP server, workflows-engine-mcp, in the configuration files of MCP hosts, with its full path. Flags of the server
follow --, and --env sets its variables. The rest of a file is kept, comments included, and a changed file is backed up beside
itself. An existing entry gets the new path; its arguments are replaced only by new ones, and its variables are kept unless --env
names them. The file of Codex is TOML and is not edited: the entry is printed, with the file to paste it into.

--npx writes the npm package instead of a path. The package is not published yet: use a registry of your own that has it.
--url writes the address of a listening server (workflows-engine-mcp --transport http), for hosts that connect to one; --token-env
names the variable with the bearer token, which itself is never written.

Without --host you choose among the installed hosts. --print changes nothing: it prints the entry to paste; --print deeplink prints
an address that installs the server when it is opened (Cursor, VS Code).`,
		Example: `  workflows-engine install --host claude-code
  workflows-engine install --host all --dry-run
  workflows-engine install --host vscode --scope project -- --db /srv/team/runs.db
  workflows-engine install --host cursor --print deeplink
  workflows-engine install --host claude-code --url http://127.0.0.1:8770/mcp --token-env TOKEN`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.install(cmd, o, args) },
	}
	set := cmd.Flags()
	o.register(set)
	set.StringArrayVar(&o.env, "env", nil, "set a variable of the server: `NAME=VALUE`; may be repeated")
	set.StringVar(&o.server, "server", "", "start the server from this `file` (default: beside this program, else in PATH)")
	set.BoolVar(&o.npx, "npx", false, "start the server from the npm package, with npx")
	set.StringVar(&o.url, "url", "", "connect the host to the server at this `address`")
	set.StringVar(&o.tokenEnv, "token-env", "", "with --url: read the bearer token from this `variable`")
	set.StringVar(&o.print, "print", "", "print the entry to paste, or with deeplink a `form` to open in the host")
	set.Lookup("print").NoOptDefVal = "file"
	return cmd
}

func newUninstall(a *app) *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Unregister the MCP server from hosts",
		Long: `Remove the entry that install wrote from the configuration files of MCP hosts. A file without other changes is restored byte for
byte; a file that install created is removed. The file of Codex is not edited: the lines to delete are printed. The database is
kept.`,
		Example: `  workflows-engine uninstall --host cursor
  workflows-engine uninstall --host all --dry-run`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.edit(cmd.Context(), o, "Restart the host.", func(h mcphost.Host, c mcphost.Content) (hostEdit, error) {
				if err := a.foreign(h, c, o); err != nil {
					return hostEdit{}, err
				}
				unchanged := hostEdit{text: c.Text, note: "has no server " + o.name}
				if !h.Edited() {
					var err error
					unchanged.byHand, err = h.RemoveByHand(c.Path, c.Text, o.name)
					return unchanged, err
				}
				text, had, err := h.Undone(c.Path, c.Text, o.name, c.Earlier())
				if had {
					return hostEdit{text: text, note: "without " + o.name}, err
				}
				return unchanged, err
			})
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().StringVar(&o.url, "url", "", "remove the entry with this `address`")
	return cmd
}

func (a *app) install(cmd *cobra.Command, o installOptions, args []string) error {
	var after []string
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		args, after = args[:at], args[at:]
	}
	if len(args) == 1 && args[0] == "deeplink" && o.print == "file" {
		args, o.print = nil, "deeplink"
	}
	if err := exactly()(cmd, args); err != nil {
		return err
	}
	var misplaced error
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && misplaced == nil {
			misplaced = usage("--%s would not reach the server", f.Name).WithHint("Write flags of the server after --, as in: install -- --%s %s", f.Name, shellword.Quote(f.Value.String()))
		}
	})
	if misplaced != nil {
		return misplaced
	}
	entry, err := a.entry(o, after)
	if err != nil {
		return err
	}
	if o.print != "" {
		return a.printEntry(o, entry)
	}
	if o.url == "" {
		if err := a.prepareHosts(o); err != nil {
			return err
		}
	}
	const next = "Restart the host. workflows-engine doctor checks that it finds the server."
	asking := map[string]mcphost.Host{}
	err = a.edit(cmd.Context(), o, next, func(h mcphost.Host, c mcphost.Content) (hostEdit, error) {
		if err := a.foreign(h, c, o); err != nil {
			return hostEdit{}, err
		}
		if h.NeedsApproval(c.Text, o.name) {
			asking[h.Name] = h
		}
		unchanged := hostEdit{text: c.Text, note: "is up to date"}
		if !h.Edited() {
			var err error
			unchanged.byHand, unchanged.paste, err = h.AddByHand(c.Path, c.Text, o.name, entry)
			return unchanged, err
		}
		text, err := h.Add(c.Path, c.Text, o.name, entry)
		if doubts := h.Doubts(c.Text); doubts != "" && err == nil {
			a.say("%s %s: %s\n", a.paint.wait("warning:"), c.Path, doubts)
		}
		if err == nil && c.Exists && string(text) == string(c.Text) {
			return unchanged, nil
		}
		return hostEdit{text: text, note: fmt.Sprintf("with %s: %s", o.name, cmp.Or(entry.URL, shellword.Line(append([]string{entry.Command}, entry.Args...)...)))}, err
	})
	for _, name := range slices.Sorted(maps.Keys(asking)) {
		a.noteApproval(asking[name], o.name)
	}
	return err
}

// noteApproval prints how to configure a host that asks before calls, and cancels them without a person.
func (a *app) noteApproval(h mcphost.Host, name string) {
	fmt.Fprintf(a.stderr, "note: %s asks before calls that change something, and cancels them where it cannot ask (codex exec).\n"+
		"To allow all calls except answers to questions, add to the table of %s in its file:\n%s", h.Title, name, mcphost.Approval)
}

// foreign rejects a change of an entry that starts another program or has another address.
func (a *app) foreign(h mcphost.Host, c mcphost.Content, o installOptions) error {
	entries, err := h.Entries(c.Path, c.Text)
	e, ok := entries[o.name]
	if err != nil || !ok || e.Starts() || e.URL != "" && e.URL == o.url {
		return err
	}
	if e.URL != "" {
		return problem.New(problem.HostFileInvalid, "%s has a server %s at %s", c.Path, o.name, e.URL).
			WithHint("If it is this server, remove it with uninstall --host %s --name %s --url %s; otherwise choose another name with --name. The file was not changed.",
				h.Name, shellword.Quote(o.name), shellword.Quote(e.URL))
	}
	return problem.New(problem.HostFileInvalid, "%s has another server %s", c.Path, o.name).
		WithHint("Choose another name with --name, or remove that entry in an editor. The file was not changed.")
}

// prepareHosts writes the settings of this shell where hosts find them, and warns about settings that they do not find.
func (a *app) prepareHosts(o installOptions) error {
	c, err := a.flags.LoadStore(a.env)
	if err != nil {
		return nil // the server and doctor report it
	}
	for _, entry := range a.env.Variables {
		name, value, _ := strings.Cut(entry, "=")
		given := slices.ContainsFunc(o.env, func(setting string) bool { return strings.HasPrefix(setting, name+"=") })
		if strings.HasPrefix(name, envname.Prefix) && value != "" && !given {
			a.say("%s %s is set in this shell only; for hosts, add --env %s=…\n", a.paint.wait("warning:"), name, name)
		}
	}
	if o.dryRun {
		return nil
	}
	if err := c.LeaveNote(); err != nil {
		return fmt.Errorf("write the location of the database for hosts: %w", err)
	}
	return nil
}

// entry returns how hosts start or reach the server.
func (a *app) entry(o installOptions, args []string) (mcphost.Entry, error) {
	if o.url != "" {
		return addressEntry(o, args)
	}
	e := mcphost.Entry{Args: slices.Clone(args)}
	var err error
	switch {
	case o.tokenEnv != "":
		return e, usage("--token-env requires --url").WithHint("Write the address with --url, or leave out --token-env: a server that the host starts needs no token.")
	case o.npx && o.server != "":
		return e, usage("--npx and --server cannot be given together")
	case o.npx:
		e = mcphost.NPX(a.env.GOOS, args)
	default:
		e.Command, err = a.serverFile(o.server)
	}
	if err != nil {
		return e, err
	}
	if path := filepath.ToSlash(e.Command); strings.Contains(path, "/_npx/") || strings.Contains(path, "/go-build") {
		a.say("%s %s is in a cache and may vanish; install the programs, then run this again\n", a.paint.wait("warning:"), e.Command)
	}
	for i, arg := range e.Args {
		// The host chooses the working directory of the server.
		flag, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(e.Args) {
			value = e.Args[i+1]
		}
		if flag == "--store-url" && config.HasPassword(value) {
			return e, usage("--store-url must not contain a password: every user of this machine can read command lines").
				WithHint("Write the address to a file that only you can read, and name it with --store-url-file.")
		}
		if !slices.Contains([]string{"--db", "--store-path", "--store-url-file", "--mcp-config", "--agents", "--workflow-dir"}, flag) {
			continue
		}
		if flag == "--agents" && strings.HasPrefix(value, "{") {
			continue // the list itself
		}
		if joined {
			value = a.path(value)
			e.Args[i] = flag + "=" + value
		} else if i+1 < len(e.Args) {
			value = a.path(value)
			e.Args[i+1] = value
		}
		if _, err := os.Stat(value); errors.Is(err, fs.ErrNotExist) && flag != "--db" && flag != "--store-path" {
			a.say("%s %s does not exist (%s); create it before the host starts the server\n", a.paint.wait("warning:"), value, flag)
		}
	}
	for _, setting := range o.env {
		name, value, ok := strings.Cut(setting, "=")
		if !ok || name == "" {
			return e, usage("--env: %q is not NAME=VALUE", setting)
		}
		if e.Env == nil {
			e.Env = map[string]string{}
		}
		e.Env[name] = value
	}
	return e, nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// addressEntry is the entry of a server that listens.
func addressEntry(o installOptions, args []string) (e mcphost.Entry, err error) {
	e.URL, e.TokenEnv = o.url, o.tokenEnv
	u, err := url.Parse(o.url)
	switch {
	case o.npx || o.server != "" || len(o.env) > 0 || len(args) > 0:
		return e, usage("--npx, --server, --env and flags after -- cannot be given with --url: the host does not start the server").
			WithHint("Pass them when you start the server: %s --transport http.", server)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return e, usage("invalid value %q for --url", o.url).WithHint("Write an address such as http://127.0.0.1:8770/mcp.")
	case u.User != nil:
		return e, usage("--url must not contain a user name or password").WithHint("Name the variable with the token: --token-env NAME.")
	case o.tokenEnv != "" && !variableName.MatchString(o.tokenEnv):
		return e, usage("--token-env must be the name of a variable").WithHint("Set a variable to the token where the host starts, and write its name: --token-env WORKFLOWS_TOKEN.")
	case strings.Trim(u.Path, "/") == "":
		return e, usage("--url: %s must have a path", o.url).WithHint("Write %s/mcp, or the address that the server prints when it starts.", strings.TrimRight(o.url, "/"))
	}
	return e, nil
}

func (a *app) printEntry(o installOptions, e mcphost.Entry) error {
	chosen, err := a.chosenHosts(o)
	switch {
	case err != nil:
		return err
	case len(chosen) != 1:
		return usage("--print requires one host").WithHint("Name it with --host: %s.", problem.OrList(mcphost.Names()))
	case chosen[0].Accepts(e) != nil:
		return chosen[0].Accepts(e)
	case o.print == "deeplink" && chosen[0].Link(o.name, e) == "":
		return usage("%s does not support deeplinks", chosen[0].Title).WithHint("Print the entry for its file with --print.")
	case o.print == "deeplink":
		fmt.Fprintln(a.stdout, chosen[0].Link(o.name, e))
	case o.print == "file":
		fmt.Fprint(a.stdout, chosen[0].Print(o.name, e))
		if chosen[0].NeedsApproval(nil, o.name) {
			a.noteApproval(chosen[0], o.name)
		}
	default:
		return usage("invalid value %q for --print", o.print).WithHint("Write --print, or --print deeplink.")
	}
	return nil
}

// machine describes where host files are located.
func (a *app) machine() mcphost.Machine {
	return mcphost.Machine{GOOS: a.env.GOOS, Home: a.env.Home, Directory: a.env.Directory, Variable: a.env.Variable}
}

// chosenHosts returns the hosts that the flags name; all means the installed ones.
func (a *app) chosenHosts(o installOptions) (chosen []mcphost.Host, err error) {
	add := func(h mcphost.Host) {
		if !slices.ContainsFunc(chosen, func(c mcphost.Host) bool { return c.Name == h.Name }) {
			chosen = append(chosen, h)
		}
	}
	for _, name := range o.hosts {
		if name == "all" {
			for _, h := range mcphost.Known() {
				if h.Installed(a.machine()) {
					add(h)
				}
			}
			continue
		}
		h, err := mcphost.Find(name)
		if err != nil {
			return nil, err
		}
		add(h)
	}
	return chosen, nil
}

// hostEdit is the change of a host's file.
type hostEdit struct {
	text []byte // of the file afterwards, nil for no file
	note string // describes the change
	// byHand tells the user to make the change, with the text to paste; it is empty if the file is edited or unchanged.
	byHand, paste string
}

// edit changes the files of the hosts, then prints next. For files that are not edited it prints the change to make by hand.
func (a *app) edit(ctx context.Context, o installOptions, next string, change func(mcphost.Host, mcphost.Content) (hostEdit, error)) error {
	if o.scope != string(mcphost.User) && o.scope != string(mcphost.Project) {
		return usage("invalid value %q for --scope", o.scope).WithHint("Write user or project.")
	}
	asked := len(o.hosts) == 0
	if asked {
		o.hosts = []string{"all"}
	}
	chosen, err := a.chosenHosts(o)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		return usage("no MCP host was found").WithHint("Name one with --host: %s. For another host, print the entry to paste with --print.", problem.OrList(mcphost.Names()))
	}
	type step struct {
		host mcphost.Host
		path string
	}
	var steps []step
	var failed error
	byHand := false
	for _, h := range chosen {
		path, err := h.File(a.machine(), mcphost.Scope(o.scope))
		if err == nil {
			err = h.Accepts(mcphost.Entry{URL: o.url, TokenEnv: o.tokenEnv})
		}
		if err != nil && (asked || slices.Contains(o.hosts, "all")) {
			continue // the host has no such file
		}
		var content mcphost.Content
		var edit hostEdit
		if err == nil {
			content, err = mcphost.Read(path)
		}
		if err == nil {
			edit, err = change(h, content)
		}
		if err != nil { // the files of the other hosts are still written
			a.printError(err)
			failed = silent{status(err)}
			continue
		}
		if edit.byHand != "" {
			byHand = true
			fmt.Fprintf(a.human, "%s: not changed; %s\n", h.Title, edit.byHand)
			if edit.paste != "" {
				fmt.Fprintf(a.human, "\n%s\n", edit.paste)
			}
			continue
		}
		if string(edit.text) == string(content.Text) {
			fmt.Fprintf(a.human, "%s: %s %s; nothing to change\n", h.Title, path, edit.note)
			continue
		}
		verb := "changes"
		switch {
		case !content.Exists:
			verb = "creates"
		case edit.text == nil:
			verb = "removes"
		}
		fmt.Fprintf(a.human, "%s: %s %s, %s\n", h.Title, verb, path, edit.note)
		steps = append(steps, step{h, path})
	}
	if o.dryRun && len(steps) > 0 {
		fmt.Fprintln(a.human, "Dry run: nothing was changed.")
	}
	if len(steps) == 0 || o.dryRun {
		if byHand && !o.dryRun && failed == nil {
			fmt.Fprintln(a.human, next)
		}
		return failed
	}
	if asked && !o.yes {
		if err := a.confirm(ctx); err != nil {
			return err
		}
	}
	for _, s := range steps {
		// The change is computed again from the current text: another process may have written the file.
		saved, err := mcphost.Edit(s.path, a.now(), func(c mcphost.Content) ([]byte, error) {
			edit, err := change(s.host, c)
			return edit.text, err
		})
		if err != nil {
			a.printError(err)
			failed = silent{status(err)}
			continue
		}
		fmt.Fprintf(a.human, "%s: done", s.host.Title)
		if saved != "" {
			fmt.Fprintf(a.human, "; backup: %s", saved)
		}
		fmt.Fprintln(a.human)
	}
	if failed == nil {
		fmt.Fprintln(a.human, next)
	}
	return failed
}

// confirm asks whether to continue. Without a terminal it returns an error.
func (a *app) confirm(ctx context.Context) error {
	if !a.interactive {
		return usage("cannot ask for confirmation without a terminal; nothing was changed").WithHint("Name hosts with --host, or all of these with --host all.")
	}
	fmt.Fprint(a.stderr, "Continue? [y/n] ")
	line, err := a.readLine(ctx)
	if answer := strings.ToLower(strings.TrimSpace(line)); err != nil || answer != "y" && answer != "yes" {
		fmt.Fprintln(a.stderr, "nothing was changed")
		return silent{exitFailed}
	}
	return nil
}

// server is the name of the program that hosts start.
const server = mcphost.Program

// serverFile returns the full path of the server: as given, beside this program, or in PATH. Links are kept: the links of package managers outlive
// a version, unlike their targets.
func (a *app) serverFile(given string) (string, error) {
	name := server
	if a.env.GOOS == "windows" {
		name += ".exe"
	}
	if given != "" {
		path := a.path(given)
		if !executable(path) {
			return "", usage("--server: %s must be a program", path)
		}
		return path, nil
	}
	var beside []string
	for _, self := range []func() (string, error){calledBy, os.Executable} {
		if path, err := self(); err == nil {
			beside = append(beside, filepath.Join(filepath.Dir(path), name))
		}
	}
	candidates := beside[:min(1, len(beside))]
	for _, folder := range filepath.SplitList(a.env.Variable("PATH")) {
		if filepath.IsAbs(folder) {
			candidates = append(candidates, filepath.Join(folder, name))
		}
	}
	for _, path := range append(slices.Clone(candidates), beside...) {
		if executable(path) {
			return path, nil
		}
	}
	return "", usage("%s not found beside this program or in PATH", name).
		WithHint("Install both programs into one directory, or name the file of the server with --server.")
}

// calledBy returns the path that this program was called by, with links kept.
func calledBy() (string, error) {
	path := os.Args[0]
	var err error
	if !strings.ContainsRune(path, filepath.Separator) {
		if path, err = exec.LookPath(path); err != nil {
			return "", err
		}
	}
	return filepath.Abs(path)
}

// executable reports whether a path is an executable file.
func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0)
}

// program is the name that commands shown to people begin with. MainOver sets another one before anything else.
var program = engineProgram

const engineProgram = "workflows-engine"
