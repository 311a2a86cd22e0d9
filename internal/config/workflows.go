package config

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/dialguard"
	"github.com/workflows-engine/workflows-engine/internal/httpworkflow"
)

// Catalog returns the definitions of a directory that the settings allow; nil for "". log receives its errors; nil discards them.
func (c *Config) Catalog(folder string, log *slog.Logger) *catalog.Catalog {
	if folder == "" {
		return nil
	}
	return catalog.New(folder, catalog.Options{Verify: c.VerifySignature, Log: log})
}

// Workflows finds definitions: by http or https address where WORKFLOW_ENGINE_WORKFLOW_SOURCES allows it, and by name
// in a folder, which may be nil.
func (c *Config) Workflows(folder *catalog.Catalog) graph.Resolver {
	return workflows{folder: folder, web: c.WorkflowSources}
}

type workflows struct {
	folder *catalog.Catalog
	web    *httpworkflow.Resolver
}

// isAddress reports whether a workflow_ref is fetched.
func isAddress(ref string) bool {
	scheme, _, found := strings.Cut(ref, "://")
	return found && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// ResolveNow implements graph.ImmediateResolver: definitions at an address must be fetched first.
func (w workflows) ResolveNow(ref, pin string) (*definition.Document, error) {
	if isAddress(ref) && w.web != nil {
		return nil, errFetched
	}
	return w.ResolveWorkflow(context.Background(), ref, pin)
}

var errFetched = errors.New("the definition is fetched when the run reaches it")

// ResolveWorkflow implements graph.Resolver.
func (w workflows) ResolveWorkflow(ctx context.Context, ref, pin string) (*definition.Document, error) {
	switch address := isAddress(ref); {
	case address && w.web != nil:
		return w.web.ResolveWorkflow(ctx, ref, pin)
	case address:
		return nil, problem.New(problem.WorkflowNotFound, "workflow %q: addresses are not allowed (%s)", ref, envname.WorkflowSources).
			WithHint("Allow it, as in {\"allow\": [\"https://definitions.example/flows/\"]}.")
	case w.folder != nil:
		return w.folder.ResolveWorkflow(ctx, ref, pin)
	}
	return nil, problem.New(problem.WorkflowNotFound, "workflow %q not found", ref).
		WithHint("Name the directory with definitions: Options.Workflows.")
}

// Lacking names in one line the executors that the definitions of a directory need and an engine lacks; "" without any, without a directory, or
// if the engine cannot report them.
func Lacking(ctx context.Context, e graph.Engine, folder *catalog.Catalog) string {
	l, ok := e.(interface {
		Lacking(context.Context, ...*definition.Document) string
	})
	if !ok || folder == nil {
		return ""
	}
	lacking := l.Lacking(ctx, folder.Documents()...)
	if lacking == "" {
		return ""
	}
	return "definitions in " + folder.Folder() + " need missing executors: " + lacking
}

// loadWorkflowDir reads the folder of definitions. Commands have a flag for it; the server has it in its set.
func loadWorkflowDir(c *Config, s setting, env Environment) error {
	if s.value == "" {
		return nil
	}
	c.WorkflowDir = env.absolute(s.value)
	if info, err := os.Stat(c.WorkflowDir); err == nil {
		env.notePermissions(c.WorkflowDir, info, false)
	}
	return nil
}

// loadWorkflowSources reads the addresses that subworkflows may be fetched from; without it no address is allowed.
func loadWorkflowSources(c *Config, _ setting, env Environment) error {
	m, err := env.members(envname.WorkflowSources)
	if err != nil || m.Object == nil {
		return err
	}
	allow, networks := m.Get("allow"), m.Get("privateNetworks")
	settings := httpworkflow.Config{
		Allow: texts(allow), Timeout: milliseconds(m.Get("timeoutMs")), MaxBytes: bytes(m.Get("maxBytes")),
	}
	if len(settings.Allow) == 0 {
		allow.Fail("minItems", "must name an address").Hint = "Write prefixes of addresses, as in [\"https://definitions.example/flows/\"]."
	}
	for _, text := range texts(networks) {
		network, err := dialguard.Network(text)
		if err != nil {
			networks.Fail("format", "invalid network %q", text).Hint = "Write networks as in 10.0.0.0/8 or 127.0.0.1."
		}
		settings.PrivateNetworks = append(settings.PrivateNetworks, network)
	}
	if err := m.err(); err != nil {
		return err
	}
	if c.WorkflowSources, err = httpworkflow.New(settings); err != nil {
		return problem.New(problem.UsageError, "%s", envname.WorkflowSources).WithCause(err)
	}
	return nil
}
