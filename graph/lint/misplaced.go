package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Hints for fields that are written where nothing reads them, and where any field is allowed: an open config, and metadata. They are not
// errors there, because a handler, a host or a person may read them.
const (
	besideConfig = "%s is a field of the node: write it beside config, not in it"
	inRetry      = `%s belongs to retry, a field of the node: write "retry" beside config`
	inMetadata   = "%s belongs to metadata, a field of the node: write it there"
	retryHint    = `to retry, write "retry": {"max_attempts": 3} beside config`
	timeoutHint  = `to bound an attempt, write "timeout": "30s" beside config`
	outputHint   = "the whole output of the node becomes part of the state; choose from it in a set_state node, or in output_mapping of an end node"
	catchHint    = `to continue at another node after a failure, write "catch" beside config, an extension; ` + retryHint
)

// misplacedFields are fields that authors write into an open config by mistake, whatever the node's type, with hints. A %s stands for the
// field.
var misplacedFields = map[string]string{
	"timeout": besideConfig, "retry": besideConfig, "metadata": besideConfig, "catch": besideConfig, "compensate": besideConfig, "deadline": besideConfig,
	"timeout_ms": timeoutHint, "timeoutMs": timeoutHint, "timeout_seconds": timeoutHint,
	"retries": retryHint, "max_retries": retryHint, "retry_policy": retryHint,
	"on_error": catchHint, "onError": catchHint, "fallback": catchHint,
	demoOutput: inMetadata, definition.PromptTemplates: inMetadata, definition.ArgumentTemplates: inMetadata,
	"output": outputHint, "output_mapping": outputHint,
	"input_schema": "the input of a run is checked: write input_schema into the config of the start node",
	"next":         "nodes are connected by edges",
}

// misplaced warns of misplaced and misspelt fields of open configs, and of an activity's metadata.
func (l *linter) misplaced() {
	retry := definition.RetryFields()
	for _, n := range l.program.Nodes {
		t := n.Type.Info()
		if t.Misplaced.Message != "" {
			l.misplacedConfig(n, t, retry)
		}
		if n.Activity != nil {
			l.misplacedMetadata(n, t)
		}
	}
}

func (l *linter) misplacedConfig(n *definition.Node, t *definition.NodeType, retry []string) {
	known := t.Fields()
	for _, name := range jsonvalue.Keys(n.Config) {
		hint := cmp.Or(t.Misplaced.Hints[name], misplacedFields[name])
		if slices.Contains(retry, name) {
			hint = inRetry
		}
		if hint == "" && !slices.Contains(known, name) && l.compared.take(len(known)) {
			hint = suggest.DidYouMean(name, known)
		}
		if hint != "" {
			l.ignored(nodePointer(n)+"/config/"+jsonvalue.EscapePointer(name), n, fmt.Sprintf(t.Misplaced.Message, name), strings.ReplaceAll(hint, "%s", name))
		}
	}
}

func (l *linter) misplacedMetadata(n *definition.Node, t *definition.NodeType) {
	for _, name := range jsonvalue.Keys(n.Metadata) {
		owner, hint := templatesOwner(name), ""
		switch {
		case name == "timeout", name == "retry":
			hint = name + " is a field of the node: write it beside metadata, not in it"
		case owner != "" && owner != n.Type:
			hint = "only " + string(owner) + " nodes have " + name
		case owner == "" && name != demoOutput && l.compared.take(2):
			hint = suggest.DidYouMean(name, []string{demoOutput, t.Fill.Switch})
		}
		if hint != "" {
			l.ignored(nodePointer(n)+"/metadata/"+jsonvalue.EscapePointer(name), n, fmt.Sprintf("nothing reads %s in the metadata of %s node", name, t.Noun()), hint)
		}
	}
}

// ignored warns of a field that nothing reads, at its name.
func (l *linter) ignored(pointer string, n *definition.Node, message, hint string) {
	before := len(l.findings)
	l.warn(problem.FieldIgnored, pointer, n, message, hint)
	if len(l.findings) > before {
		at, name := &l.findings[before].At, l.program.Document.NamePlace(pointer)
		at.Line, at.Column = name.Line, name.Column
	}
}

// templatesOwner returns the only type whose nodes have a switch of this name in metadata, "" if it is not one.
func templatesOwner(name string) definition.Type {
	for _, t := range definition.NodeTypes() {
		if t.Fill.Switch == name && name != "" {
			return t.Name
		}
	}
	return ""
}
