package format

import (
	"slices"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// role is the role of an object in a definition. It orders the fields, and gives them roles. Fields without a place in the order follow as
// they are written; so do those of objects without a role, such as a config or a schema.
type role struct {
	order []string
	// members holds the roles of fields, or of their elements if they are arrays.
	members map[string]*role
}

var rootRole = &role{
	order: []string{"document", "x-workflows-engine", "state_schema", "input_schema", "output_schema", "checkpointing", "nodes", "edges"},
	members: map[string]*role{
		"document": {order: []string{"schema", "name", "version", "title", "description", "signature"}},
		"nodes":    nodeRole,
		"edges":    {order: []string{"source", "target"}},
	},
}

var nodeRole = &role{
	order: []string{"id", "type", "description", "metadata", "prompt_templates", "wait_templates", "show", "timeout", "heartbeat", "queue", "queue_timeout", "deadline", "retry", "config", "map", "catch", "compensate", "on_timeout"},
	members: map[string]*role{
		"retry": {order: []string{"max_attempts", "initial_interval", "backoff_coefficient", "max_interval", "jitter", "non_retryable_errors"}},
		"map":   {order: []string{"items", "as", "concurrency", "tolerate", "collect"}},
		"catch": {order: []string{"codes", "rollback", "target", "as"}},
		"config": {members: map[string]*role{
			"cases":    {order: []string{"when", "target"}},
			"branches": {order: []string{"name", "entry"}},
		}},
	},
}

// member returns the role of a field; nil without one.
func (r *role) member(name string) *role {
	if r == nil {
		return nil
	}
	return r.members[name]
}

// rank returns the position of a field in its object.
func (r *role) rank(name string) int {
	if r == nil {
		return 0
	}
	if i := slices.Index(r.order, name); i >= 0 {
		return i
	}
	return len(r.order)
}

// inOrder sorts the fields of a value.
func inOrder(n *jsonvalue.Node, r *role) *jsonvalue.Node {
	slices.SortStableFunc(n.Members, func(a, b jsonvalue.Member) int { return r.rank(a.Name) - r.rank(b.Name) })
	for _, m := range n.Members {
		inOrder(m.Value, r.member(m.Name))
	}
	for _, e := range n.Elements {
		inOrder(e, r)
	}
	return n
}
