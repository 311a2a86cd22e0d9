package transfer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/runfile"
)

// exported is a file of runs that can be changed.
type exported struct {
	t     testing.TB
	lines []object
}

func export(t testing.TB, store history.Store, id string) *exported {
	t.Helper()
	var file bytes.Buffer
	if err := transfer.Export(t.Context(), store, id, transfer.ExportOptions{}, &file); err != nil {
		t.Fatal(err)
	}
	x := &exported{t: t}
	for line := range bytes.Lines(file.Bytes()) {
		var l object
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		x.lines = append(x.lines, l)
	}
	return x
}

// record returns the n-th record of a name, from 1.
func (x *exported) record(name string, n int) object {
	x.t.Helper()
	for _, l := range x.lines {
		if l["name"] == name && l["type"] == "record" {
			if n--; n == 0 {
				return l
			}
		}
	}
	x.t.Fatalf("there is no %s", name)
	return nil
}

// payload returns the payload of the n-th record of a name.
func (x *exported) payload(name string, n int) object {
	x.t.Helper()
	return x.record(name, n)["payload"].(object)
}

// end appends a record to the first run.
func (x *exported) end(kind, name string, payload object) {
	last := len(x.lines) - 1
	for i := range x.lines {
		if i > 0 && x.lines[i]["type"] != "record" && x.lines[i-1]["type"] == "record" {
			last = i
			break
		}
	}
	before := x.lines[last-1]
	payload["executionId"] = x.lines[0]["execution_id"]
	x.lines = slices.Insert(x.lines, last, object{
		"type": "record", "seq": before["seq"].(float64) + 1, "kind": kind, "name": name, "created_at": before["created_at"], "payload": payload,
	})
}

// drop drops the lines of a type.
func (x *exported) drop(kind string) {
	x.lines = slices.DeleteFunc(x.lines, func(l object) bool { return l["type"] == kind })
}

// sealed is the file with counts and a hash that fit it.
func (x *exported) sealed() string {
	counts := map[string]int{}
	var run object
	for _, l := range x.lines {
		kind := l["type"].(string)
		counts[kind]++
		switch kind {
		case "run":
			run, l["records"] = l, 0
		case "record":
			run["records"] = run["records"].(int) + 1
		}
	}
	var out bytes.Buffer
	for _, l := range x.lines {
		if l["type"] == "trailer" {
			sum := sha256.Sum256(out.Bytes())
			l["definitions"], l["runs"], l["records"], l["sha256"] = counts["definition"], counts["run"], counts["record"], hex.EncodeToString(sum[:])
		}
		text, err := json.Marshal(l)
		if err != nil {
			x.t.Fatal(err)
		}
		out.Write(append(text, '\n'))
	}
	return out.String()
}

// TestWhatDoesNotFollowIsNotImported: a file whose hash was made anew is refused where its records do not follow from its definition and from the
// recorded outcomes, or have values that no engine writes. Nothing is written then.
func TestWhatDoesNotFollowIsNotImported(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
	if err := r.RegisterWorkflow("child", linear(t, "child", "c")); err != nil {
		t.Fatal(err)
	}
	start(t, r, "asks", workflow(t, "asks", []string{startNode(), tool("a"), interrupt("i"), endNode()}, "s a", "a i", "i e"), nil)
	submit(t, r, "asks", "a", object{"a": 1})
	start(t, r, "done", linear(t, "done", "a"), nil)
	submit(t, r, "done", "a", object{"a": 1})
	start(t, r, "stopped", linear(t, "stopped", "a"), nil)
	if _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "stopped", Reason: "no need"}); err != nil {
		t.Fatal(err)
	}
	start(t, r, "failed", linear(t, "failed", "a"), nil)
	if _, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "failed", NodeID: "a", Error: "no luck", Code: "NO_LUCK"}); err != nil {
		t.Fatal(err)
	}
	start(t, r, "calls", workflow(t, "calls", []string{startNode(), subworkflow("v", "child"), interrupt("i"), endNode()}, "s v", "v i", "i e"), nil)
	submit(t, r, "calls:sub:v", "c", object{"c": 1})
	for _, id := range []string{"asks", "done", "stopped", "failed", "calls"} {
		into := historymem.New()
		if _, err := transfer.Import(t.Context(), into, strings.NewReader(export(t, store, id).sealed()), nil); err != nil {
			t.Errorf("%s as it is: %v", id, err)
		}
		if findings, err := transfer.Inspect(t.Context(), into, id, nil); err != nil || len(findings) > 0 {
			t.Errorf("%s as it is: %v, %v", id, findings, err)
		}
	}
	started := func(member string, value any) func(*exported) {
		return func(x *exported) { x.payload("ExecutionStarted", 1)[member] = value }
	}
	for name, c := range map[string]struct {
		run    string
		change func(*exported)
		code   problem.Code
		want   string
		// found is set where verify finds the same in a store that holds the run.
		found bool
	}{
		"the outcome of an open run": {"asks", func(x *exported) { x.payload("ActivityCompleted", 1)["result"] = object{"a": 2} },
			problem.Nondeterminism, "/output/a 1, but the definition leads to 2", true},
		"the outcome of a run that has ended": {"done", func(x *exported) { x.payload("ActivityCompleted", 1)["result"] = object{"a": 2} },
			problem.Nondeterminism, "/output/a 1, but the definition leads to 2", true},
		"the state": {"done", func(x *exported) { x.payload("StateUpdated", 2)["state"] = object{"a": 2} },
			problem.Nondeterminism, "/state/a 2, but the definition leads to 1", true},
		"the result of a run": {"done", func(x *exported) { x.payload("ExecutionCompleted", 1)["result"] = object{"a": 2} },
			problem.Nondeterminism, "/result/a 2, but the definition leads to 1", true},
		"a failure for a result": {"done", func(x *exported) {
			x.record("ExecutionCompleted", 1)["payload"] = object{"executionId": "done", "error": "no", "code": "NO"}
			x.record("ExecutionCompleted", 1)["name"] = "ExecutionFailed"
		}, problem.Nondeterminism, "is ExecutionFailed, which the definition does not lead to", true},
		"a result for a failure": {"failed", func(x *exported) {
			x.record("ExecutionFailed", 1)["payload"] = object{"executionId": "failed", "result": object{}}
			x.record("ExecutionFailed", 1)["name"] = "ExecutionCompleted"
		}, problem.Nondeterminism, "is ExecutionCompleted, which the definition does not lead to", true},
		"an end at a question": {"asks", func(x *exported) { x.end("event", "ExecutionCompleted", object{"result": object{"ok": true}}) },
			problem.Nondeterminism, "is ExecutionCompleted, which the definition does not lead to", true},
		"a failure at a question": {"asks", func(x *exported) { x.end("event", "ExecutionFailed", object{"error": "no", "code": "NO"}) },
			problem.Nondeterminism, "is ExecutionFailed, which the definition does not lead to", true},
		"a limit at a question": {"asks", func(x *exported) {
			x.end("event", "ExecutionFailed", object{"error": "full", "code": "RECORD_LIMIT_EXCEEDED"})
		},
			problem.Nondeterminism, "is ExecutionFailed, which the definition does not lead to", true},
		"an end by a cancel that nobody asked for": {"asks", func(x *exported) { x.end("event", "ExecutionCancelled", object{"reason": "no"}) },
			problem.Nondeterminism, "is ExecutionCancelled, which the definition does not lead to", true},
		"a run without its definition": {"done", func(x *exported) { x.drop("definition") }, problem.DefinitionNotFound, "neither in the file nor stored", false},
		"a depth below the root":       {"done", started("depth", -3), problem.ImportInvalid, "-3 as its depth", true},
		"a depth without end":          {"done", started("depth", 200_000_000), problem.ImportInvalid, "at depth 200000000", true},
		"a mode":                       {"done", started("activityExecutionMode", "evil"), problem.ImportInvalid, `"evil" as its activityExecutionMode`, true},
		"a parent":                     {"done", started("parentExecutionId", "nobody"), problem.ImportInvalid, "is a subworkflow of", true},
		"the year 0":                   {"done", func(x *exported) { x.record("ExecutionStarted", 1)["created_at"] = "0000-01-01T00:00:00.000Z" }, problem.ImportInvalid, "of the year 0", true},
		"the year 9999":                {"done", func(x *exported) { x.record("ExecutionCompleted", 1)["created_at"] = "9999-12-31T23:59:59.999Z" }, problem.ImportInvalid, "of the year 9999", true},
		"a number of an attempt":       {"done", func(x *exported) { x.payload("ActivityRequested", 1)["attempt"] = -1 }, problem.ImportInvalid, "-1 as its attempt", true},
		"a subworkflow's result": {"calls", func(x *exported) {
			x.payload("SubworkflowCompleted", 1)["childResult"] = object{"c": 2}
		}, problem.ImportInvalid, "has a different stored result", true},
		"a subworkflow's name": {"calls", func(x *exported) { x.payload("StartSubworkflow", 1)["childExecutionId"] = "done" },
			problem.Nondeterminism, "/childExecutionId \"done\", but the definition leads to \"calls:sub:v\"", true},
		"a subworkflow that nobody started": {"calls", func(x *exported) {
			for _, l := range x.lines {
				if p, _ := l["payload"].(object); l["execution_id"] == "calls:sub:v" || p["executionId"] == "calls:sub:v" {
					if l["execution_id"] = "calls:sub:w"; p != nil {
						delete(l, "execution_id")
						p["executionId"] = "calls:sub:w"
					}
				}
			}
		}, problem.ImportInvalid, "which has no record of it", false},
		"a subworkflow without its run": {"calls:sub:v", func(*exported) {}, problem.ImportInvalid, "neither in the file nor stored", false},
	} {
		x := export(t, store, c.run)
		c.change(x)
		text := x.sealed()
		into := historymem.New()
		_, err := transfer.Import(t.Context(), into, strings.NewReader(text), nil)
		if e, ok := problem.As(err); !ok || e.Code != c.code || !strings.Contains(err.Error(), c.want) || e.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
		if page, err := into.List(t.Context(), history.ListQuery{}); err != nil || len(page.Executions) > 0 {
			t.Errorf("%s: %d runs were written, %v", name, len(page.Executions), err)
		}
		run, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: c.run})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := into.Definition(t.Context(), run.DefinitionHash); err == nil {
			t.Errorf("%s: a definition was written", name)
		}
		if c.found && c.code == problem.Nondeterminism {
			held(t, into, text)
			if findings, err := transfer.Inspect(t.Context(), into, c.run, nil); err != nil || len(findings) != 1 || findings[0].Code != c.code || !strings.Contains(findings[0].Message, c.want) {
				t.Errorf("%s: verify finds %v, %v", name, findings, err)
			}
		}
	}
}

// held puts the runs of a file into a store as they are.
func held(t *testing.T, into *historymem.Store, text string) {
	t.Helper()
	file, err := runfile.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	in := history.Import{Definitions: file.Definitions}
	for _, run := range file.Runs {
		in.Runs = append(in.Runs, history.ImportedRun{ExecutionID: run.ExecutionID, Records: run.Records, Execution: history.Project(run.ExecutionID, run.Records)})
	}
	if err := into.Import(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}
