// Package agent runs agents inside the engine: they ask models, call tools and ask people, and survive the process that runs them. New makes
// agents of a configuration; graph.Options.Delegates takes them as activities.Composite{SDK: agents}, and a node of type agent_delegate with
// protocol sdk names one. Each reply, result and answer is recorded before it takes effect. docs/agents.md describes crashes
// and gates.
package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
)

// Toolset is a set of tools for agents. It is safe for concurrent use.
type Toolset interface {
	// Tools lists the tools. It is called once for each run of an agent: the list is recorded, and stays that agent's. Errors are
	// *activities.Failure.
	Tools(ctx context.Context) ([]Tool, error)
	// Call calls one of the listed tools and returns plain JSON. A failure is an *activities.Failure; the model reads its
	// code and its message. A tool that is repeated after a crash may get the same call, with the same key, again.
	Call(ctx context.Context, c Call) (any, error)
}

// Tool is a tool as a model sees it, and how calls of it are made; see agentloop.Tool.
type Tool = agentloop.Tool

// The treatments of a call that may have been made before its process died.
const (
	// Repeat makes the call again, with the same key.
	Repeat = "repeat"
	// Report has the model read that the call may or may not have been made (TOOL_OUTCOME_UNKNOWN). It is the default.
	Report = "report"
	// Ask has a person decide. As a gate it has a person decide before the call is made at all.
	Ask = "ask"
)

// The decisions of a gate, besides Ask.
const (
	// Allow makes the call.
	Allow = "allow"
	// Deny has the model read that the call is denied (TOOL_DENIED).
	Deny = "deny"
)

// Call is one call of a tool.
type Call struct {
	Name      string
	Arguments map[string]any
	// Key identifies the call among all calls of all runs: a repetition has the same.
	Key string
	// Heartbeat reports progress; never nil.
	Heartbeat func(details map[string]any)
	// Request is the delegation that the agent works on.
	Request activities.Request
}

// Option changes how the tools of a toolset are used.
type Option func(*Tool)

// WithOnCrash sets the treatment of calls that may have been made before their process died: Repeat, Report or Ask.
func WithOnCrash(what string) Option { return func(t *Tool) { t.OnCrash = what } }

// WithGate sets the gate of the tools: Allow, Ask or Deny. The agent's rules (agentloop.Config.Gates) take precedence.
func WithGate(g string) Option { return func(t *Tool) { t.Gate = g } }

// WithParallel sets whether calls may run beside other calls.
func WithParallel(parallel bool) Option { return func(t *Tool) { t.Parallel = parallel } }

// maxName is how long the name of a tool may be for providers of models.
const maxName = 64

// Name returns a name that providers of models accept: the server's and the tool's, joined by "__". Other characters than letters, digits, "_"
// and "-" become "_"; a name that is too long is cut and ends with the first digits of its SHA-256.
func Name(server, tool string) string {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
				return r
			}
			return '_'
		}, s)
	}
	name := plain(server) + "__" + plain(tool)
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(server + "__" + tool))
	end := "_" + hex.EncodeToString(sum[:4])
	return name[:maxName-len(end)] + end
}
