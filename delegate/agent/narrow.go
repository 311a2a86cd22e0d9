package agent

import (
	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Prompter is a toolset with something to say to the model before it is asked.
type Prompter interface {
	Toolset
	// Prompt returns an addition to the system text; it may be "". The texts of an agent stand behind its instructions, in the order of its
	// toolsets. Prompt is called with Tools, and its text is recorded with the tools. Errors are *activities.Failure.
	Prompt() (string, error)
}

// Narrower is a toolset that a node of a workflow may narrow, by names in its metadata.
type Narrower interface {
	Toolset
	// NarrowedBy returns the field of the metadata, such as "skills", and the available names.
	NarrowedBy() (member string, known []string)
	// Narrow returns the toolset with the given names alone, and the unknown names.
	Narrow(names []string) (set Toolset, missing []string)
}

// narrowed returns the toolset as narrowed by a node. Names that the toolset of the node's own agent does not have are refused: they are
// probably typing errors. For the agents that this one calls they mean nothing.
func narrowed(set Toolset, agent string, req *activities.Request) (Toolset, error) {
	n, ok := set.(Narrower)
	if !ok {
		return set, nil
	}
	member, known := n.NarrowedBy()
	value, given := req.Metadata[member]
	if !given {
		return set, nil
	}
	list, ok := value.([]any)
	names := make([]string, len(list))
	for i := range list {
		var text bool
		names[i], text = list[i].(string)
		ok = ok && text
	}
	if !ok {
		return nil, badMetadata("metadata.%s of node %q is not a list of names", member, req.NodeID)
	}
	less, missing := n.Narrow(names)
	if len(missing) > 0 && agent == req.AgentID {
		hint := suggest.DidYouMean(missing[0], known)
		if hint == "" {
			hint = "it has " + problem.AndList(known)
		}
		return nil, badMetadata("metadata.%s of node %q names %q, which agent %q does not have; %s", member, req.NodeID, missing[0], agent, hint)
	}
	return less, nil
}

func badMetadata(format string, args ...any) error {
	f := activities.Fail(problem.AgentConfigInvalid, format, args...)
	f.Retryable = activities.RetryPointless
	return f
}
