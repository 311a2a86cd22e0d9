package definition

import (
	"fmt"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Extension names members that this engine adds to the protocol's definitions. A document that uses some names their extensions in
// the root member x-workflows-engine, which the protocol does not know: another engine rejects the document instead of running
// something else.
type Extension string

// The extensions.
const (
	// ExtensionCatch adds the member catch to activities, delegates, subworkflows and parallel nodes.
	ExtensionCatch Extension = "catch"
	// ExtensionCompensate adds the member compensate to activities, delegates and subworkflows, and rollback to catches and to the
	// root member x-workflows-engine.
	ExtensionCompensate Extension = "compensate"
	// ExtensionDeadline adds the member deadline to activities, delegates and subworkflows, and to the root member x-workflows-engine.
	ExtensionDeadline Extension = "deadline"
	// ExtensionEarlySignals adds the member keep to waits for signals.
	ExtensionEarlySignals Extension = "early_signals"
	// ExtensionHeartbeat adds the member heartbeat to activities and delegates.
	ExtensionHeartbeat Extension = "heartbeat"
	// ExtensionInterruptInBranch allows interrupts in branches of parallel nodes.
	ExtensionInterruptInBranch Extension = "interrupt_in_branch"
	// ExtensionLoop adds the member loop to switches, which then need no cases.
	ExtensionLoop Extension = "loop"
	// ExtensionMap adds the member map to activities and subworkflows.
	ExtensionMap Extension = "map"
	// ExtensionOnTimeout adds the member on_timeout to interrupts, waits and parallel nodes, and a timeout to waits for signals.
	ExtensionOnTimeout Extension = "on_timeout"
	// ExtensionQueue adds the members queue and queue_timeout to activities and delegates, and queue to the root member x-workflows-engine.
	ExtensionQueue Extension = "queue"
	// ExtensionTemplates adds the members prompt_templates and show to interrupts, and wait_templates to waits for time.
	ExtensionTemplates Extension = "templates"
)

// Extensions returns the names of all extensions, sorted.
func Extensions() []string {
	return []string{
		string(ExtensionCatch), string(ExtensionCompensate), string(ExtensionDeadline), string(ExtensionEarlySignals), string(ExtensionHeartbeat),
		string(ExtensionInterruptInBranch), string(ExtensionLoop), string(ExtensionMap), string(ExtensionOnTimeout), string(ExtensionQueue),
		string(ExtensionTemplates),
	}
}

// extensionsMember is the root member that names the extensions of a document.
const extensionsMember = "x-workflows-engine"

// extended are members of an object that belong to an extension.
type extended struct {
	member
	extension Extension
}

var extensionsShape = objectOf("x-workflows-engine",
	member{"uses", listOf("uses", oneOf("an extension", Extensions()...)).
		about("catch: after a failure the run continues at another node. compensate: completed nodes are undone in rollbacks. " +
			"map: a node is repeated for each item of an array. on_timeout: after a timeout the run continues at another node. " +
			"interrupt_in_branch: branches may ask people. early_signals: signals are kept until a wait takes them. " +
			"loop: a switch repeats nodes, and counts. templates: questions and waits take values from the state. " +
			"heartbeat: attempts that do not report fail. queue: the workers of attempts, and the longest wait for them. " +
			"deadline: runs, and nodes with all their attempts, fail after a time."), true},
).with(rollbackOfRun, queueOfRun, deadlineOfRun).called("extensions").
	about("Names the extensions of workflows-engine that the document uses. Other engines of the protocol reject a document with this property.")

// Uses returns the extensions that the document names, sorted; nil for a document that is plain AWP. Names that are not
// extensions are left out: Compile rejects them.
func (d *Document) Uses() []Extension {
	var uses []Extension
	for _, name := range Extensions() {
		if slices.ContainsFunc(usesOf(d.root), func(n *jsonvalue.Node) bool { return isText(n, name) }) {
			uses = append(uses, Extension(name))
		}
	}
	return uses
}

func usesOf(root *jsonvalue.Node) []*jsonvalue.Node {
	if root.Kind != jsonvalue.Object {
		return nil
	}
	block := root.Get(extensionsMember)
	if block == nil || block.Kind != jsonvalue.Object {
		return nil
	}
	if uses := block.Get("uses"); uses != nil && uses.Kind == jsonvalue.Array {
		return uses.Elements
	}
	return nil
}

// extendedMember checks a member that belongs to an extension, at its name and its value.
func (c *shapeCheck) extendedMember(e extended, m jsonvalue.Member, at *path) {
	if slices.Contains(c.uses, e.extension) {
		c.check(e.shape, m.Value, at.member(m.Name))
		return
	}
	if c.unnamed[e.extension] {
		c.faults++
		return
	}
	hint := fmt.Sprintf(`add "%s": {"uses": [%q]} to the root of the document, or remove the field`, extensionsMember, e.extension)
	if len(c.uses)+len(c.unnamed) > 0 {
		hint = fmt.Sprintf(`add %q to "uses" of "%s" in the root of the document, or remove the field`, e.extension, extensionsMember)
	}
	c.unnamed[e.extension] = true
	name := &jsonvalue.Node{Line: m.Line, Column: m.Column}
	before := len(c.findings)
	c.report(name, at, "additionalProperties", map[string]any{"additionalProperty": m.Name},
		fmt.Sprintf("the field %q belongs to the extension %q, which the document does not name", m.Name, e.extension), hint)
	if len(c.findings) > before {
		c.findings[len(c.findings)-1].Code = problem.ExtensionNotNamed
	}
}

// checkExtensions warns of extensions that are named and not used, and rejects a document that uses any where it is to be plain AWP.
func (c *compiler) checkExtensions() {
	block, at := c.document.root.Get(extensionsMember), (*path)(nil).member(extensionsMember)
	if block != nil && c.options.Protocol {
		c.fail(problem.ExtensionUsed, block, at, nil, "the document is not plain AWP: it names extensions of this engine",
			"other engines refuse it; remove the extensions to run it there")
	}
	if c.findings.HasErrors() {
		return // what is wrong may be what would use them
	}
	at = at.member("uses")
	for i, n := range usesOf(c.document.root) {
		if e := Extension(n.Str); slices.Contains(c.uses, e) && !c.used[e] {
			c.warn(problem.ExtensionUnused, n, at.element(i), nil,
				fmt.Sprintf("the document names the extension %q and uses none of its fields", e),
				"remove the name: without extensions the document runs in other engines too")
		}
	}
}
