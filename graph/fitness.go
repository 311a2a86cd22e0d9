package graph

import (
	"context"
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Processes of different configuration may share a store. What a process lacks is decided effect by effect. Whoever gives
// a run an input records it and walks on, which takes nothing but the definition; of the effects that come it performs
// those that it can, and leaves the others pending as they are recorded: requested, not begun. It holds the run's lease
// while it performs something, and no longer; a process that can perform something of what is left takes the run over
// then. Nobody takes over a run of which it can perform nothing, so that such a run stands still without a write.
//
// A run that is started is driven by the process that was asked to, after an answer too, and fails there if it comes to
// what is missing, so that the caller hears of it; once another process has written to the run it is left like any other.

// Lack is what a process lacks to go on with a run.
type Lack struct {
	// ExecutionID and NodeID say where it is needed: in the run or a subworkflow of it.
	ExecutionID string
	NodeID      string
	// Missing names it, such as `step handler "urn:crm:lookup"`.
	Missing string
	// Setting says how a process gets it; "" if nobody can say.
	Setting string
	// Host is true if it is not awaited yet, but may come after what somebody is asked for now: whoever answers can have a
	// host perform it instead, by going on in host-mediated mode.
	Host bool
}

// flies reports whether this process performs an effect of the run when it drives it.
func (x *run) flies(e machine.Effect) bool { return x.started || x.fit(e) }

// fit reports whether this process can perform an effect of the run. Whether it can begin a subworkflow shows when it
// tries to.
func (x *run) fit(e machine.Effect) bool {
	return x.lackOf(x.prog.Node(effectBase(e).NodeID)) == nil
}

// lack is what this process lacks to go on with what the run waits for, nil if that is nothing: somebody else ends the
// wait, or this process could.
func (x *run) lack(w *machine.Wait) *Lack {
	if w.Host || w.Kind == machine.WaitBackoff && x.m.Config().Mode == machine.HostMediated {
		return nil
	}
	return x.lackOf(x.prog.Node(w.NodeID))
}

// lacks is what this process lacks to go on with the run where it stands, or else to go on behind what somebody is asked
// for; nil if it lacks nothing.
func (x *run) lacks() *Lack {
	waits := x.m.Pending()
	for i := range waits {
		if l := x.lack(&waits[i]); l != nil {
			return l
		}
	}
	if x.started || x.m.Config().Mode == machine.HostMediated {
		return nil
	}
	var asked []*definition.Node
	for i := range waits {
		if w := &waits[i]; w.Host || w.Kind == machine.WaitInterrupt || w.Kind == machine.WaitSignal {
			asked = append(asked, x.prog.Node(w.NodeID))
		}
	}
	return x.lacksBehind(asked)
}

// unlessDriven gives what this process lacks, nil while another one drives the run: that may perform the very node. What it
// leaves, and for how long, cannot be told from outside; it lets go of the run once it performs nothing more.
func (x *run) unlessDriven(ctx context.Context, l *Lack) (*Lack, error) {
	if l == nil {
		return nil, nil
	}
	lease, err := x.r.store.Lease(ctx, x.id)
	if err != nil || lease.Owner != "" && lease.Owner != x.r.opts.Owner && lease.Expires.After(x.r.now()) {
		return nil, err
	}
	return l, nil
}

// lacksBehind is what this process lacks to perform the nodes that can follow some others, the nearest first.
func (x *run) lacksBehind(nodes []*definition.Node) *Lack {
	begun, seen := len(nodes), map[*definition.Node]bool{nil: true}
	add := func(n *definition.Node) {
		if !seen[n] {
			seen[n] = true
			nodes = append(nodes, n)
		}
	}
	for i := 0; i < len(nodes); i++ {
		n := nodes[i]
		if n == nil {
			continue
		}
		if i >= begun {
			if l := x.lackOf(n); l != nil {
				l.Host = true
				return l
			}
		}
		add(n.Next)
		if n.Switch != nil {
			for _, c := range n.Switch.Cases {
				add(x.prog.Node(c.Target))
			}
			add(x.prog.Node(n.Switch.Default))
		}
		if n.Parallel != nil {
			for _, b := range n.Parallel.Branches {
				add(b.Entry)
			}
		}
	}
	return nil
}

// lackOf is what this process lacks to perform a node. Executors say themselves if they perform some nodes only.
func (x *run) lackOf(n *definition.Node) *Lack {
	switch {
	case n == nil:
	case n.Type.IsActivity():
		if missing := x.r.lacksActivity(n); missing != "" {
			return &Lack{ExecutionID: x.id, NodeID: n.ID, Missing: missing, Setting: activities.Setting(string(n.Type))}
		}
	case n.Delegate != nil:
		if missing := x.r.lacksDelegate(n); missing != "" {
			return &Lack{ExecutionID: x.id, NodeID: n.ID, Missing: missing, Setting: delegate.Setting(n.Delegate.Protocol)}
		}
	}
	return nil
}

func (r *Runner) lacksActivity(n *definition.Node) string {
	kind := string(n.Type)
	types, _ := r.opts.Activities.(activities.Selective)
	nodes, _ := r.opts.Activities.(activities.NodeSelective)
	switch {
	case r.opts.Activities == nil || types != nil && !types.Performs(kind):
		return "an executor for " + kind + " nodes"
	case nodes == nil || nodes.PerformsNode(kind, n.Config):
		return ""
	}
	for _, named := range []struct{ member, noun string }{{"handler", "step handler"}, {"server", "MCP server"}} {
		if name, _ := n.Config[named.member].(string); name != "" {
			return fmt.Sprintf("%s %q", named.noun, name)
		}
	}
	return "an executor for this " + kind + " node"
}

func (r *Runner) lacksDelegate(n *definition.Node) string {
	protocol, agent := n.Delegate.Protocol, n.Delegate.AgentID
	protocols, _ := r.opts.Delegates.(delegate.Selective)
	agents, _ := r.opts.Delegates.(delegate.AgentSelective)
	switch {
	case r.opts.Delegates == nil || protocols != nil && !protocols.Performs(protocol):
		return "an executor for delegates of protocol " + protocol
	case agents == nil || agents.PerformsAgent(protocol, agent):
		return ""
	}
	return fmt.Sprintf("%s agent %q", strings.ToUpper(protocol), agent)
}

// unequipped is why a run is left to others.
func unequipped(lack *Lack) error {
	return problem.New(problem.ExecutorNotConfigured, "%s is not configured here", lack.Missing).
		WithPlace(problem.Place{ExecutionID: lack.ExecutionID, NodeID: lack.NodeID})
}
