package work

import (
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// An executor declares the nodes that it performs (activities.Capabilities.Missing), or reports a missing handler only when it is
// called, as a wrapper of a registry does. Such a report is remembered for a while: a run that was not started here does not fail because
// of it, and is left to other processes.
// lackCodes are the codes of outcomes that report a missing executor or handler.
var lackCodes = map[problem.Code]bool{
	problem.ExecutorNotConfigured: true, problem.ExecutorUnsupportedNode: true, problem.HandlerNotFound: true,
	problem.MCPServerNotConfigured: true, problem.DelegateProtocolUnsupported: true, problem.DelegateAgentNotFound: true,
}

// The pauses before the executor is called again for a missing handler, the first and the longest. Handlers may be registered at any
// time.
const (
	lackPause    = 10 * time.Second
	maxLackPause = 10 * time.Minute
	// maxLacks bounds the remembered reports.
	maxLacks = 4096
)

// capability is the need of a node: its type or protocol, and the handler, server or agent that it names.
type capability struct{ kind, name string }

// foundLacks are the capabilities that executors were found to lack.
type foundLacks struct {
	mu  sync.Mutex
	all map[capability]foundLack
}

type foundLack struct {
	until time.Time
	times int
}

// LeftToOthers reports whether an outcome is not recorded, because it only reports a missing executor and the run was not started here.
func (p *Performer) LeftToOthers(executionID string, a *Attempt, in machine.Input) bool {
	c, ok := effectTakes(a.Effect)
	if !ok || a.StartedHere {
		return false
	}
	l := &p.shown
	l.mu.Lock()
	defer l.mu.Unlock()
	out, _ := in.(machine.Outcome)
	if !lackCodes[problem.Code(out.Code)] {
		delete(l.all, c)
		return false
	}
	if l.all == nil || len(l.all) >= maxLacks {
		l.all = map[capability]foundLack{}
	}
	times := l.all[c].times
	l.all[c] = foundLack{p.Now().Add(backOff(lackPause, times, maxLackPause)), times + 1}
	p.Log.Warn("attempt released", logRun, executionID, logKey, a.Key, logCode, out.Code)
	return true
}

// shows reports whether this process was lately found to lack the executor of a node.
func (p *Performer) shows(n *definition.Node) bool {
	p.shown.mu.Lock()
	defer p.shown.mu.Unlock()
	l, ok := p.shown.all[nodeTakes(n)]
	return ok && p.Now().Before(l.until)
}

func nodeTakes(n *definition.Node) capability {
	if d := n.Delegate; d != nil {
		return capability{d.Protocol, d.AgentID}
	}
	return activityTakes(string(n.Type), n.Config)
}

func effectTakes(e machine.Effect) (c capability, ok bool) {
	switch e := e.(type) {
	case *machine.ActivityEffect:
		return activityTakes(e.NodeType, e.Config), true
	case *machine.DelegateEffect:
		return capability{e.Protocol, e.AgentID}, true
	case *machine.PollEffect:
		return capability{e.Protocol, e.AgentID}, true
	}
	return c, false
}

func activityTakes(nodeType string, config map[string]any) capability {
	return capability{nodeType, named(definition.Type(nodeType), config).name}
}
