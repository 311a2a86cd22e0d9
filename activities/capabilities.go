package activities

import (
	"context"
	"net/url"
)

// Node is a node that an executor may perform.
type Node struct {
	ID string
	// Type is "step", "llm_call", "tool_call" or "agent_delegate".
	Type string
	// Config is the node's config as written in the definition. It must not be changed.
	Config map[string]any
	// Protocol and AgentID are set for an agent_delegate node.
	Protocol, AgentID string
}

// Capable is implemented by executors that perform some nodes only, or that can do more than Execute.
type Capable interface {
	Executor
	// Capabilities returns the executor's capabilities for a node. It only computes: a run may be locked meanwhile.
	Capabilities(Node) Capabilities
}

// Capabilities describes the abilities of an executor for a node. The zero value fits an executor with only Execute.
type Capabilities struct {
	// Missing reports whether the executor can perform the node at all. A process claims a run, fires its timers, or
	// continues it after an answer or a signal only if it performs every node that the run may reach.
	Missing Missing
	// Setting names the option that configures the missing executor, for errors; "" if it is unknown.
	Setting string
	// Immediate reports that Execute returns at once, without waiting for anything. The engine then calls it in its own
	// goroutine and, in parallel branches, in branch order.
	Immediate bool
	// Targets lists the handlers, servers or agents that the executor has for nodes of this type or protocol, for displays and to assign runs to
	// processes; nil if it performs all, or if they are unknown. The name "" stands for nodes that name none. They are sorted, and the result
	// must not be changed.
	Targets func() []string
	// Classes lists classes of attempts in addition to the node's own, such as "llm:<address>". Limits apply to classes
	// (graph.Options.Limits).
	Classes []string
	// Describe returns the content that Execute sends for a request, to be recorded first: a model's messages and settings, a
	// tool's arguments, the address without credentials. It returns nil if Execute is going to fail. It only computes: the run is
	// locked meanwhile, and nothing is committed yet. Values that depend on the time use Request.RequestedAt.
	Describe func(Request) map[string]any
	// Work performs an attempt in steps that the engine records; nil if the executor records no steps.
	Work Work
	// Tasks serves the node as a long-running task at its agent; nil if Execute does. For agent_delegate nodes only.
	Tasks Tasks
}

// Missing is the reason why an executor cannot perform a node.
type Missing int

const (
	// MissingNothing means that the node is performed.
	MissingNothing Missing = iota
	// MissingTarget means that nodes of the type or protocol are performed, but the handler, server or agent of this one is unknown.
	MissingTarget
	// MissingType means that no node of the type or protocol is performed.
	MissingType
)

// CapabilitiesOf returns an executor's capabilities for a node. A nil executor performs nothing.
func CapabilitiesOf(x Executor, n Node) Capabilities {
	switch x := x.(type) {
	case nil:
		return Capabilities{Missing: MissingType, Immediate: true}
	case Capable:
		return x.Capabilities(n)
	}
	return Capabilities{}
}

// Wrap puts a middleware around Execute: logging, metrics. The result has the executor's capabilities, so that a process claims
// the same runs with the middleware as without it. Work and Tasks are called without the middleware.
//
// The engine calls an executor that answers at once in its own goroutine: a middleware that waits holds up the run.
func Wrap(executor Executor, middleware func(next ExecutorFunc) ExecutorFunc) Executor {
	return wrapped{middleware(executor.Execute), executor}
}

type wrapped struct {
	ExecutorFunc
	executor Executor
}

// Capabilities returns the capabilities of the wrapped executor.
func (w wrapped) Capabilities(n Node) Capabilities { return CapabilitiesOf(w.executor, n) }

// Refuse returns an executor that fails every attempt at once with err, and performs nothing.
func Refuse(err error) Executor { return refusal{err} }

type refusal struct{ err error }

func (r refusal) Execute(context.Context, Request) (Result, error) { return Result{}, r.err }
func (r refusal) Capabilities(Node) Capabilities {
	return Capabilities{Missing: MissingType, Immediate: true}
}

// Endpoint returns the scheme and host of an address, for Capabilities.Describe: user information, path and query may hold
// credentials. It is "" for an invalid address.
func Endpoint(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}
