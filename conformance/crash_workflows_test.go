package conformance_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// crashCase is a workflow with everything it needs from outside: the outcomes of its activities and the payloads of people
// and signals.
type crashCase struct {
	name string
	// example means that the workflow is one of the folder examples, result what it returns in process.
	example bool
	result  any
	doc     *definition.Document
	input   object
	// outputs are the outcomes of activities by node. The first attempts of each visit, as many as failures, fail with code.
	outputs  object
	failures int
	code     string
	// team are the agents of the workflow, if it has any. Such a case runs in process.
	team *team
	// repairs makes each activity in process fail first and succeed only in the repair that it asks for.
	repairs bool
	// answers are the payloads of people, signals those of signals by name; both are tried in order.
	answers []object
	signals map[string][]object
	resolve graph.Resolver
	// pace is how long an activity takes, by node. In joins that do not wait for all branches, each branch is much slower
	// than the one before it, so that the same one wins however often the process restarts.
	pace map[string]time.Duration
}

type object = map[string]any

// resolver returns the definition of a workflow_ref.
type resolver func(ref string) (*definition.Document, error)

func (r resolver) ResolveWorkflow(_ context.Context, ref, _ string) (*definition.Document, error) {
	return r(ref)
}

// repaired are the vectors of which there is a second case, with repairs. TestCrashOnSQLite runs these.
var repaired = []string{"subworkflow.child_asks", "parallel.nested_state", "retries.backoff"}

// crashCases returns every example, workflows with agents, every workflow of this repository's conformance vectors and, if they are there, those of
// the protocol's vectors. Under the race detector, of the vectors there is one in four, and those with a second case.
func crashCases(t *testing.T) []*crashCase {
	t.Helper()
	cases := exampleCases(t)
	seen := map[string]bool{}
	for _, root := range []string{".", protocolVectors} {
		if _, err := os.Stat(filepath.Join(root, "vectors")); err != nil {
			continue
		}
		for i, c := range vectorCases(t, root, seen) {
			if i%soak.Size(1, 4, 1) == 0 || slices.Contains(repaired, c.name) {
				cases = append(cases, c)
			}
		}
	}
	cases = append(cases, agentCases(t)...)
	for _, c := range cases {
		if slices.Contains(repaired, c.name) {
			again := *c
			again.name, again.repairs = c.name+"/repairs", true
			cases = append(cases, &again)
		}
	}
	for _, c := range cases {
		c.measure()
	}
	return cases
}

func exampleCases(t *testing.T) (cases []*crashCase) {
	t.Helper()
	files, err := filepath.Glob("../examples/*/expect.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		mains, _ := filepath.Glob(filepath.Join(dir, filepath.Base(dir)+".workflow.*"))
		if len(mains) != 1 {
			t.Fatalf("%s: %q", dir, mains)
		}
		for _, run := range list(parse(t, file)["runs"]) {
			c := &crashCase{
				name: "examples/" + filepath.Base(dir) + "/" + fmt.Sprint(run["name"]), doc: readDocument(t, mains[0]),
				resolve: catalog.New(dir, catalog.Options{}), signals: map[string][]object{}, example: true,
				result: run["result"],
			}
			c.input, _ = run["input"].(object)
			for _, a := range list(run["answers"]) {
				payload, _ := a["payload"].(object)
				if answer, ok := a["resume"].(object); ok {
					c.answers = append(c.answers, answer)
				} else if name, ok := a["signal"].(string); ok {
					c.signals[name] = append(c.signals[name], payload)
				}
			}
			cases = append(cases, c)
		}
	}
	return cases
}

// vectorCases returns the workflows of the vectors that run something, each combination of definition, input and outcomes
// once. Other tests check what the vectors expect; here each workflow is compared with itself.
func vectorCases(t *testing.T, root string, seen map[string]bool) (cases []*crashCase) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, "vectors"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".vector.json") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		v, _ := jsonvalue.Decode(text)
		vector, _ := v.(object)
		if kind := vector["kind"]; kind != "parity" && kind != "replay" {
			return nil
		}
		c := vectorCase(t, root, vector)
		key := string(jsonvalue.Canonical([]any{c.doc.Value(), c.input, c.outputs, c.failures, c.code, fmt.Sprint(c.answers, c.signals)}))
		if _, findings := definition.Compile(c.doc, definition.Options{}); !findings.HasErrors() && !seen[key] {
			seen[key] = true
			cases = append(cases, c)
		}
		return nil
	})
	if err != nil || len(cases) == 0 {
		t.Fatalf("%s: %d cases, %v", root, len(cases), err)
	}
	return cases
}

func vectorCase(t *testing.T, root string, vector object) *crashCase {
	t.Helper()
	c := &crashCase{
		name: fmt.Sprint(vector["id"]), doc: readDocument(t, filepath.Join(root, fmt.Sprint(vector["definition"]))),
		resolve: rootResolver(root), signals: map[string][]object{},
	}
	c.input, _ = vector["input"].(object)
	c.outputs, _ = vector["stubActivityOutputs"].(object)
	if handlers, ok := vector["stepHandlers"].(object); ok {
		c.outputs = object{}
		doc, _ := c.doc.Value().(object)
		for _, n := range list(doc["nodes"]) {
			config, _ := n["config"].(object)
			if out, ok := handlers[fmt.Sprint(config["handler"])]; ok {
				c.outputs[fmt.Sprint(n["id"])] = out
			}
		}
	}
	if flaky, ok := vector["retryCountingExecutor"].(object); ok {
		c.failures, c.code = 2, "TRANSIENT"
		if n, ok := flaky["failCount"].(float64); ok {
			c.failures = int(n)
		}
		if code, ok := flaky["errorCode"].(string); ok {
			c.code = code
		}
	}
	if answer, ok := vector["resumePayload"].(object); ok {
		c.answers = append(c.answers, answer)
	}
	for _, step := range list(vector["steps"]) {
		if in, ok := step["input"].(object); ok && c.input == nil {
			c.input = in
		}
		payload, _ := step["payload"].(object)
		switch step["op"] {
		case "resume":
			answer, _ := step["resumePayload"].(object)
			c.answers = append(c.answers, answer)
		case "signal":
			name := fmt.Sprint(step["signalName"])
			c.signals[name] = append(c.signals[name], payload)
		case "submit_activity":
			outcome, _ := step["outcome"].(object)
			if result, ok := outcome["result"].(object); ok {
				if c.outputs == nil {
					c.outputs = object{}
				}
				if _, taken := c.outputs[fmt.Sprint(step["nodeId"])]; !taken {
					c.outputs[fmt.Sprint(step["nodeId"])] = result
				}
			}
		}
	}
	return c
}

// measure sets the pace of the activities in branches where it matters.
func (c *crashCase) measure() {
	c.pace = map[string]time.Duration{}
	prog, _ := definition.Compile(c.doc, definition.Options{})
	if prog == nil {
		return
	}
	for _, n := range prog.Nodes {
		if n.Type != definition.Parallel || n.Parallel.Join == definition.JoinAll {
			continue
		}
		pace := 10 * time.Millisecond
		for _, b := range n.Parallel.Branches {
			for at := b.Entry; at != nil && at != n.Next; at = at.Next {
				c.pace[at.ID] = pace
			}
			pace = max(10*pace, 30*time.Second)
		}
	}
}

// performed returns the outcome of an attempt in process. A repair must receive what the same visit asked to repair.
func (c *crashCase) performed(req activities.Request) (activities.Result, error) {
	res, err := c.outcome(req.NodeID, req.Metadata, req.Attempt)
	switch visit := fmt.Sprintf("%s#%d", req.NodeID, req.Visit); {
	case !c.repairs || err != nil:
	case req.Repair == nil:
		return activities.Result{}, &activities.Failure{Code: "WRONG", Message: "wrong", Repair: object{"of": visit}}
	case req.Repair["of"] != visit:
		return activities.Result{}, &activities.Failure{Code: "MIXED_UP", Message: fmt.Sprintf("%s is to repair %v", visit, req.Repair)}
	}
	return res, err
}

// outcome returns the outcome of an attempt, whoever performs it.
func (c *crashCase) outcome(nodeID string, metadata map[string]any, attempt int) (activities.Result, error) {
	if attempt <= c.failures {
		return activities.Result{}, &activities.Failure{Code: c.code, Message: fmt.Sprintf("attempt %d of %s", attempt, nodeID)}
	}
	return activities.Stub{Outputs: c.outputs}.Execute(context.Background(), activities.Request{NodeID: nodeID, Metadata: metadata})
}

func list(v any) (objects []object) {
	elements, _ := v.([]any)
	for _, e := range elements {
		if o, ok := e.(object); ok {
			objects = append(objects, o)
		}
	}
	return objects
}

func parse(t *testing.T, file string) object {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonvalue.Decode(text)
	o, ok := v.(object)
	if err != nil || !ok {
		t.Fatalf("%s: %v", file, err)
	}
	return o
}

func readDocument(t *testing.T, file string) *definition.Document {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parser := definition.Parse
	if strings.HasSuffix(file, ".yaml") {
		parser = definition.ParseYAML
	}
	doc, err := parser(text)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return doc
}

// rootResolver resolves the references of vectors: the protocol's one, and paths below the root.
func rootResolver(root string) resolver {
	return func(ref string) (*definition.Document, error) {
		name := path.Clean(ref)
		if ref == "urn:awp:wf:unit-tests" {
			name = "examples/r3-unit-tests-child.workflow.json"
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil || !fs.ValidPath(name) {
			return nil, problem.New(problem.WorkflowNotFound, "unknown workflow %q", ref)
		}
		return definition.Parse(text)
	}
}

// fill returns a value that satisfies a schema, if it is as simple as those of answers are.
func fill(schema any) any {
	s, _ := schema.(object)
	if choices, ok := s["enum"].([]any); ok && len(choices) > 0 {
		return choices[0]
	}
	if c, ok := s["const"]; ok {
		return c
	}
	switch s["type"] {
	case "string":
		return "x"
	case "number", "integer":
		return max(1.0, number(s["minimum"]))
	case "boolean":
		return true
	case "array":
		return []any{}
	case "null":
		return nil
	}
	out := object{}
	properties, _ := s["properties"].(object)
	required, _ := s["required"].([]any)
	for _, name := range required {
		key := fmt.Sprint(name)
		out[key] = fill(properties[key])
	}
	return out
}

func number(v any) float64 {
	n, _ := v.(float64)
	return n
}

// payloads returns possible answers, the best first.
func payloads(scripted []object, schema any) []object {
	generated, _ := fill(schema).(object)
	return append(slices.Clone(scripted), generated, object{})
}
