package definition

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Options change the verdicts of Compile. The zero value is the protocol's verdict.
type Options struct {
	// AllowInterruptInBranch lifts the rule against interrupts on parallel branches.
	AllowInterruptInBranch bool
	// Protocol rejects documents that use extensions: they are not plain AWP.
	Protocol bool
	// Runnable makes an error of each fault that the protocol accepts and that fails a run that meets it, or has no
	// effect although the author asked for one: an edge to a node that does not exist, a program of an unlikely case that does not compile, a retry
	// policy that nothing reads. Without it such a fault is a warning as long as some run avoids it.
	Runnable bool
	// Stored accepts a definition whose input_schema or output_schema of an end does not compile: a run that began under it continues.
	Stored bool
}

// Source is a jq program at its place in a document.
type Source struct {
	Node    *Node
	Pointer string
	Program *expr.Program
}

// MaxFindings bounds the list that Compile returns; of more, errors are kept before warnings.
const MaxFindings = 1000

// Compile checks a document in one pass and compiles it. It returns all findings, one for each mistake, sorted by place;
// the program is nil if one of them is an error. A Document is compiled once for each Options; later calls return the same program.
func Compile(d *Document, o Options) (*Program, problem.Findings) {
	prog, findings := d.programs.of(o, func() (*Program, problem.Findings) { return withoutErrors(compile(d, o)) })
	if prog == nil {
		return nil, slices.Clone(findings)
	}
	return prog.For(d), slices.Clone(findings) // d may have another signature; see Document.Signed
}

func withoutErrors(draft *Program, findings problem.Findings) (*Program, problem.Findings) {
	if findings.HasErrors() {
		return nil, findings
	}
	return draft, findings
}

// Draft is Compile for tools that check parts of a definition: it returns a program also if there are errors. Such a program cannot be
// run, and is not kept. It holds the nodes that have the shape of their type, its Warnings include the errors, Hash is empty, and
// Entry or State may be nil.
func Draft(d *Document, o Options) (*Program, problem.Findings) {
	var draft *Program
	prog, findings := d.programs.of(o, func() (*Program, problem.Findings) {
		var found problem.Findings
		draft, found = compile(d, o)
		return withoutErrors(draft, found)
	})
	if prog == nil && draft == nil { // d was compiled before
		draft, findings = compile(d, o)
	}
	return cmp.Or(prog, draft).For(d), slices.Clone(findings)
}

// programs holds the results of Compile for one document.
type programs struct {
	mu        sync.Mutex
	byOptions map[Options]func() (*Program, problem.Findings)
}

func (p *programs) of(o Options, compile func() (*Program, problem.Findings)) (*Program, problem.Findings) {
	p.mu.Lock()
	result, found := p.byOptions[o]
	if !found {
		result = sync.OnceValues(compile)
		if p.byOptions == nil {
			p.byOptions = map[Options]func() (*Program, problem.Findings){}
		}
		p.byOptions[o] = result
	}
	p.mu.Unlock()
	return result()
}

func compile(d *Document, o Options) (*Program, problem.Findings) {
	c := &compiler{
		document: d, options: o, byID: map[string]*vertex{}, ids: map[string]bool{}, duplicate: map[string]bool{},
		suggestions: 50, steps: maxSteps, uses: d.Uses(), used: map[Extension]bool{}, unnamed: map[Extension]bool{},
	}
	if c.structure() {
		c.collect()
		c.connect()
		c.compileState()
		c.compileCheckpointing()
		for _, v := range c.vertices {
			c.compileNode(v)
		}
		c.checkCompensations()
		c.checkLoopBodies()
		c.checkBranches()
		c.checkFlow()
		c.checkNumbers(c.document.root, nil)
		c.queue, c.deadline = c.queueOf(), c.deadlineOf()
		c.checkExtensions()
	}
	findings := c.settle()
	p := c.program()
	p.Warnings, p.Sources = findings, c.sources
	if !findings.HasErrors() {
		p.Hash = c.document.Hash() // which keeps the canonical text
	}
	return p, findings
}

// compiler holds the state of one Compile. Its checks continue as far as a broken document allows: every check asks only
// for the parts it needs.
type compiler struct {
	document *Document
	options  Options
	// uses are the extensions that the document names, used those whose members it has, unnamed those that are used and not named.
	uses     []Extension
	used     map[Extension]bool
	unnamed  map[Extension]bool
	findings problem.Findings
	// sources are the jq programs of the document.
	sources []Source
	// faults are findings whose severity depends on whether a run can avoid them.
	faults []fault

	vertices []*vertex
	// byID finds vertices; of several with one id the last counts.
	byID map[string]*vertex
	// ids holds every readable id and names lists them, also those of nodes that are too broken to be vertices.
	ids   map[string]bool
	names []string
	edges []edge
	// duplicate holds the ids that several nodes have.
	duplicate map[string]bool
	// hasStart is set if there is a start node; danglingEdge is set if something names a node that does not exist, so that
	// nodes may be unreachable by that mistake alone.
	hasStart, danglingEdge bool
	// entry is where the single __start__ edge leads, nil if that is not clear.
	entry *vertex
	// end is the single end node, nil if there is not exactly one.
	end  *vertex
	lost lost
	// broken is set when the graph breaks an invariant, so that following it proves nothing.
	broken bool
	// steps is how much following of branches is left; see maxSteps.
	steps int

	rules      *StateRules
	literals   *LiteralCheck
	checkpoint CheckpointPolicy
	// queue and deadline are those of the runs.
	queue    string
	deadline time.Duration
	// suggestions is how many names may still be looked for: comparing with all ids is the one costly thing.
	suggestions int
	// programs and programBytes count the jq programs and their text; see MaxPrograms.
	programs, programBytes int
	refusedPrograms        bool
	// schemas are bounded together.
	schemas jsonschema.Together
}

// lost records which parts a broken document hides, so that absence proves nothing.
type lost struct {
	// ids: some node has no readable id; nodes: some node has no known type either; edges: some edge cannot be read;
	// ways: some switch or parallel node cannot be followed.
	ids, nodes, edges, ways bool
}

func (l lost) any() bool { return l != lost{} }

// vertex is one node while it is compiled.
type vertex struct {
	node *Node
	json *jsonvalue.Node
	at   *path
	// sound is set when the node has the shape of its type, but for unknown fields; only then is its config compiled. strangers is set if it
	// has unknown fields: any of them may be a misspelt field, so that findings about absent fields prove nothing.
	sound, strangers bool
	// edgeMisspelt is set when the edge that should leave this node names another source.
	edgeMisspelt bool
	// out are the edges that leave the node.
	out []edge
	// next is the target of the node's single outgoing edge; nil for no edge, several edges, or an unknown target.
	next *vertex
	// targets are the nodes that a switch names, followed instead of next; ways are those that it can choose, before the first
	// case that always fails.
	targets, ways []*vertex
	// catches are the nodes where a run may continue when this one has failed.
	catches []*vertex
	// compensation is the node that undoes this one, or nil; compensates is set if this node undoes others.
	compensation *vertex
	compensates  bool
	// entries are the first nodes of a parallel node's branches, nil for unknown ones.
	entries []*vertex

	// astray is set when the node's edge, or a target of a switch, names no node.
	astray bool
	// blocked is set when a run that reaches the node always fails there.
	blocked bool
	// passes reports for a parallel node whether enough branches can complete.
	passes verdict
	// completable says for each branch whether it can reach the join target.
	completable []bool
	// inBranch is set for nodes on a branch of a parallel node.
	inBranch bool
	// forced is set for nodes on the part of a branch that must be whole even if no run gets there (spec: definition,
	// 7.1); faults there are errors.
	forced bool
	// loops is set for nodes on or before an endless loop that has been reported.
	loops bool
}

type verdict uint8

const (
	unknown verdict = iota
	deciding
	yes
	no
)

// edge is one edge of the document.
type edge struct {
	source, target string
	json           *jsonvalue.Node
	at             *path
}

// fault is a finding about one vertex, or about one of its branches, that matters only to runs that get there. It
// becomes an error if no run can complete without getting there.
type fault struct {
	finding problem.Finding
	vertex  *vertex
	branch  int // -1: the node itself
}

// structure checks the shape of the document and reports whether there is anything more to check.
func (c *compiler) structure() bool {
	check := shapeCheck{uses: c.uses, unnamed: c.unnamed}
	root := c.document.root
	check.check(rootShape, root, nil)
	c.findings = append(c.findings, check.findings...)
	return root.Kind == jsonvalue.Object
}

// finding makes a finding at a value. Line and column are those of n, which may be nil.
func finding(
	code problem.Code, severity problem.Severity, n *jsonvalue.Node, pointer string, v *vertex, message, hint string,
) problem.Finding {
	slug := strings.ReplaceAll(strings.ToLower(string(code)), "_", "-") // as the protocol's schema paths have it
	f := problem.Finding{
		Code: code, Severity: severity, At: problem.Place{Pointer: pointer}, Message: message, Hint: hint,
		Keyword: "profile", SchemaPath: "#/profile/" + slug, Params: map[string]any{"code": string(code)},
	}
	if n != nil {
		f.At.Line, f.At.Column = n.Line, n.Column
	}
	if v != nil {
		f.At.NodeID = v.node.ID
	}
	return f
}

func (c *compiler) fail(code problem.Code, n *jsonvalue.Node, at *path, v *vertex, message, hint string) {
	c.findings = append(c.findings, finding(code, problem.SeverityError, n, at.pointer(), v, message, hint))
}

func (c *compiler) warn(code problem.Code, n *jsonvalue.Node, at *path, v *vertex, message, hint string) {
	c.findings = append(c.findings, finding(code, problem.SeverityWarning, n, at.pointer(), v, message, hint))
}

// refuse reports a fault that is an error with Options.Runnable, else a warning.
func (c *compiler) refuse(code problem.Code, n *jsonvalue.Node, at *path, v *vertex, message, hint string) {
	if c.options.Runnable {
		c.fail(code, n, at, v, message, hint)
	} else {
		c.warn(code, n, at, v, message, hint)
	}
}

// fatal reports a fault that fails every run that reaches the node.
func (c *compiler) fatal(code problem.Code, n *jsonvalue.Node, at *path, v *vertex, message, hint string) {
	v.blocked = true
	c.fault(finding(code, problem.SeverityWarning, n, at.pointer(), v, message, hint), v)
}

// fault keeps a finding about a node until it is known whether a run can avoid the node.
func (c *compiler) fault(f problem.Finding, v *vertex) {
	c.faults = append(c.faults, fault{finding: f, vertex: v, branch: -1})
}

// nearest returns the id that is most like a wrong one, or "".
func (c *compiler) nearest(wrong string) string {
	if c.suggestions == 0 {
		return ""
	}
	c.suggestions--
	return suggest.Nearest(wrong, c.names)
}

func (c *compiler) suggest(wrong string) string { return suggest.Hint(c.nearest(wrong)) }

// settle returns the findings with their severities, sorted and bounded.
func (c *compiler) settle() problem.Findings {
	for _, f := range c.faults {
		c.findings = append(c.findings, f.finding)
	}
	c.faults = nil
	fs := c.findings
	nodes := c.document.root.Get("nodes")
	for i := range fs {
		if at := &fs[i].At; at.NodeID == "" {
			at.NodeID = nodeAt(nodes, at.Pointer)
		}
	}
	if len(fs) > MaxFindings {
		// "error" comes before "warning".
		slices.SortStableFunc(fs, func(a, b problem.Finding) int { return cmp.Compare(a.Severity, b.Severity) })
		fs = fs[:MaxFindings]
	}
	fs.Sort()
	return fs
}

// nodeAt returns the id of the node that a pointer leads into, or "".
func nodeAt(nodes *jsonvalue.Node, pointer string) string {
	rest, inside := strings.CutPrefix(pointer, "/nodes/")
	number, _, _ := strings.Cut(rest, "/")
	i, err := strconv.Atoi(number)
	if !inside || err != nil || nodes == nil || i < 0 || i >= len(nodes.Elements) {
		return ""
	}
	if id := nodes.Elements[i].Get("id"); id != nil {
		return id.Str
	}
	return ""
}

// program puts the parts together: all of them if the document has no errors.
func (c *compiler) program() *Program {
	root, _ := c.document.value.(map[string]any)
	about, _ := root["document"].(map[string]any)
	p := &Program{
		Document: c.document, State: c.rules, Checkpoint: c.checkpoint, Rollback: c.rollback(), Queue: c.queue, Deadline: c.deadline, Incomplete: c.lost.any(),
		Nodes: make([]*Node, 0, len(c.vertices)), byID: make(map[string]*Node, len(c.vertices)), keeps: c.keptSignals(),
	}
	p.Name, _ = about["name"].(string)
	p.Version, _ = about["version"].(string)
	for _, v := range c.vertices {
		if v.sound {
			p.Nodes = append(p.Nodes, v.node)
			p.routes = p.routes || v.node.Queue != ""
			p.byID[v.node.ID] = v.node
		}
	}
	if c.entry != nil {
		p.Entry = c.entry.node
	}
	return p
}
