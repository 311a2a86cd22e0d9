package config

import (
	"context"
	"net/netip"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/httpworkflow"
)

// Workflows finds subworkflows: by http or https address where WORKFLOW_ENGINE_WORKFLOW_SOURCES allows it, and by name
// in a folder, "" for none.
func (c *Config) Workflows(folder string) graph.Resolver {
	return workflows{folder: Folder(folder), web: c.WorkflowSources}
}

type workflows struct {
	folder Folder
	web    *httpworkflow.Resolver
}

// ResolveWorkflow implements graph.Resolver.
func (w workflows) ResolveWorkflow(ctx context.Context, ref, pin string) (*definition.Document, error) {
	scheme, _, _ := strings.Cut(ref, "://")
	switch isAddress := strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"); {
	case isAddress && w.web != nil:
		return w.web.ResolveWorkflow(ctx, ref, pin)
	case isAddress:
		return nil, problem.New(problem.WorkflowNotFound, "workflow %q: the operator allows no addresses (%s)", ref, envname.WorkflowSources).
			WithHint("Set it as in {\"allow\": [\"https://definitions.example/flows/\"]}.")
	case w.folder != "":
		return w.folder.ResolveWorkflow(ctx, ref, pin)
	}
	return nil, problem.New(problem.WorkflowNotFound, "no workflow is known under the workflow_ref %q", ref).
		WithHint("Name the folder with its definition with --workflow-dir.")
}

// loadWorkflowSources reads where subworkflows may be fetched from. Without it nothing is.
func loadWorkflowSources(c *Config, env Environment) error {
	m, err := env.members(envname.WorkflowSources)
	if err != nil || m.Object == nil {
		return err
	}
	allow, networks := m.Get("allow"), m.Get("privateNetworks")
	settings := httpworkflow.Config{
		Allow: texts(allow), Timeout: milliseconds(m.Get("timeoutMs")), MaxBytes: bytes(m.Get("maxBytes")),
	}
	if len(settings.Allow) == 0 {
		allow.Fail("minItems", "names no address").Hint = "Write what addresses may begin with, as in [\"https://definitions.example/flows/\"]."
	}
	for _, text := range texts(networks) {
		network, err := netip.ParsePrefix(text)
		if ip, failed := netip.ParseAddr(text); failed == nil {
			network, err = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
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
