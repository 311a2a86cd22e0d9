package mcpserver

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const (
	// maxTaskText is how many bytes of what is to be done the text has, maxResultText of a result.
	maxTaskText, maxResultText = 2 << 10, 1 << 10
	// maxWaitLines is how many of the things that a run waits for the text names.
	maxWaitLines = 8
)

// inShort is what follows the headline in the text: what is to be done, the call that follows, and what came of the run. The state
// is in the structured content.
func (s *server) inShort(run runView) (lines []string) {
	if run.Status == machine.Completed {
		text, _ := s.runDocument(run.ExecutionID, resultSuffix).Show(run.Result, maxResultText, "")
		return []string{"Result: " + string(text)}
	}
	if run.Status.Terminal() {
		return nil
	}
	subject := run.actionable()
	shown := run.shown()
	for i, p := range shown {
		if i == maxWaitLines {
			lines = append(lines, fmt.Sprintf("… and %d more.", len(shown)-i))
			break
		}
		line := fmt.Sprintf("Waits: %s at node %q", p.Kind, p.NodeID)
		if p.NodeType != "" {
			line = fmt.Sprintf("Waits: %s at node %q (%s)", p.Kind, p.NodeID, p.NodeType)
		}
		if p == subject {
			line += s.task(p)
		}
		lines = append(lines, line)
	}
	next := nextCall(run)
	var tool, note string
	var args []byte
	for _, m := range next {
		switch m.Name {
		case "tool":
			tool = m.Value.(string)
		case "arguments":
			args = m.Value.(members).Append(nil)
		case "note":
			note = m.Value.(string)
		}
	}
	return append(lines, fmt.Sprintf("Next: %s %s", tool, args), note)
}

// task is what a host is asked to do, as text.
func (s *server) task(p *graph.Pending) string {
	var task any
	switch {
	case p.Kind == machine.WaitInterrupt:
		return ": " + jsonvalue.FirstUnits(p.Prompt, maxTaskText)
	case p.DelegateInput != nil:
		task = p.DelegateInput
	case p.Config != nil:
		task = p.Config
	default:
		return ""
	}
	text, _ := s.waitDocument(p).Show(task, maxTaskText, "/config")
	return ": " + string(text)
}
