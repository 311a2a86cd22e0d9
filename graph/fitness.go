package graph

import (
	"fmt"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Processes of different configuration may share a store. One that lacks what a run can still come to does not drive it:
// the run would fail for good where another process could have gone on. It takes in what its callers bring, an answer or
// a signal, and leaves what follows to others (see claim). A run that is started is driven by the process that was asked
// to, after an answer too, and fails there if it comes to what is missing, so that the caller hears of it: a process that
// works alone, and lacks only what the run does not come to, has nobody to leave it to.

// Lack is what a process lacks to go on with a run.
type Lack struct {
	// ExecutionID and NodeID say where it is needed: in the run or a subworkflow of it.
	ExecutionID string
	NodeID      string
	// Missing names it, such as `step handler "urn:crm:lookup"`.
	Missing string
	// Setting says how a process gets it; "" if nobody can say.
	Setting string
	// Host is true if a host could go on instead, in host-mediated mode.
	Host bool
}

// lacks gives the first thing that this process lacks of what the run can still come to if it goes on in a mode, nil if
// it can perform all of it. The run must be open.
func (x *run) lacks(mode machine.Mode) *Lack {
	if x.r.lackOf(x.prog.Nodes) == nil {
		return nil
	}
	waits := x.m.Pending()
	var nodes []*definition.Node
	if mode == machine.HostMediated {
		nodes = inProcess(x.prog, waits)
	} else {
		nodes = ahead(x.prog, waits)
	}
	lack := x.r.lackOf(nodes)
	if lack != nil {
		lack.ExecutionID = x.id
	}
	return lack
}

// equipped reports whether this process can perform whatever the run may come to.
func (r *Runner) equipped(x *run) bool { return x.lacks(x.m.Config().Mode) == nil }

// lacksFor is lacks for a run that does not exist yet.
func (r *Runner) lacksFor(mode machine.Mode, prog *definition.Program) *Lack {
	if mode == machine.HostMediated {
		return nil
	}
	return r.lackOf(prog.Nodes)
}

// inProcess gives the nodes that a run awaits in process all the same although a host performs what follows.
func inProcess(prog *definition.Program, waits []machine.Wait) (nodes []*definition.Node) {
	for i := range waits {
		w := &waits[i]
		isAttempt := w.Kind == machine.WaitActivity || w.Kind == machine.WaitDelegate
		if n := prog.Node(w.NodeID); n != nil && (isAttempt && !w.Host || w.Task != nil) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// ahead gives the nodes that a run can still come to, those at which it waits included; all if it waits nowhere.
func ahead(prog *definition.Program, waits []machine.Wait) []*definition.Node {
	reached := reach{}
	for i := range waits {
		n := prog.Node(waits[i].NodeID)
		reached.from(prog, n)
		if waits[i].Span == nil {
			continue
		}
		// The blocks around it have other branches, which may not have begun, and go on behind them.
		for _, p := range prog.Nodes {
			if p.Parallel == nil || reached[p] {
				continue
			}
			inside := reach{}
			if inside.from(prog, p); inside[n] {
				reached.from(prog, p)
			}
		}
	}
	if len(reached) == 0 {
		return prog.Nodes
	}
	var nodes []*definition.Node
	for _, n := range prog.Nodes {
		if reached[n] {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// reach is a set of nodes.
type reach map[*definition.Node]bool

// from adds a node and all that can follow it.
func (r reach) from(prog *definition.Program, n *definition.Node) {
	if n == nil || r[n] {
		return
	}
	r[n] = true
	for open := []*definition.Node{n}; len(open) > 0; {
		n, open = open[len(open)-1], open[:len(open)-1]
		add := func(next *definition.Node) {
			if next != nil && !r[next] {
				r[next] = true
				open = append(open, next)
			}
		}
		add(n.Next)
		if n.Switch != nil {
			for _, c := range n.Switch.Cases {
				add(prog.Node(c.Target))
			}
			add(prog.Node(n.Switch.Default))
		}
		if n.Parallel != nil {
			for _, b := range n.Parallel.Branches {
				add(b.Entry)
			}
		}
	}
}

// lackOf gives the first thing that this process lacks to perform nodes. Executors say themselves if they perform some
// nodes only.
func (r *Runner) lackOf(nodes []*definition.Node) *Lack {
	for _, n := range nodes {
		switch {
		case n.Type.IsActivity():
			if missing := r.lacksActivity(n); missing != "" {
				return &Lack{NodeID: n.ID, Missing: missing, Setting: activities.Setting(string(n.Type)), Host: true}
			}
		case n.Delegate != nil:
			if missing := r.lacksDelegate(n); missing != "" {
				return &Lack{NodeID: n.ID, Missing: missing, Setting: delegate.Setting(n.Delegate.Protocol), Host: true}
			}
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

// maxUnborn bounds how many subworkflows are remembered that this process could not begin.
const maxUnborn = 1024

// unborn remembers why this process did not begin subworkflows, so that it can be told. Whoever looks for runs without a
// driver tries them again, and finds the reason again.
type unborn struct {
	mu  sync.Mutex
	why map[string]string // by execution id
}

func (u *unborn) note(child string, cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.why == nil || len(u.why) >= maxUnborn {
		u.why = map[string]string{}
	}
	u.why[child] = cause.Error()
}

func (u *unborn) forget(child string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.why, child)
}

// lack is what this process lacks to begin the subworkflow that a run waits for, nil if it has not tried to.
func (u *unborn) lack(w *Pending) *Lack {
	u.mu.Lock()
	defer u.mu.Unlock()
	why := u.why[w.ChildExecutionID]
	if why == "" {
		return nil
	}
	return &Lack{
		ExecutionID: w.ExecutionID, NodeID: w.NodeID,
		Missing: fmt.Sprintf("what the subworkflow %q needs: %s", w.WorkflowRef, why), Setting: "--workflow-dir and the executors of its nodes",
	}
}
