package conformance

import (
	"context"
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// replayExpectation describes the expected history at the end of a replay vector.
type replayExpectation struct {
	status string
	// tail holds the commands after the prefix. It is compared if checkTail is set.
	tail        []tailCommand
	checkTail   bool
	cardinality []cardinality
	mismatch    *mismatch
}

type tailCommand struct{ name, nodeID string }

// cardinality is the expected count of an event in the history, in total or by node.
type cardinality struct {
	event  string
	total  int
	byNode map[string]int // nil: total applies
}

// mismatch describes the expected last ExecutionFailed. Empty fields are not compared.
type mismatch struct {
	messageIncludes  string
	expected, actual map[string]any
}

func readReplayExpectation(o *jsonobject.Object) replayExpectation {
	e := replayExpectation{status: o.Require("status").NonBlank()}
	tail := o.Get("tailCommands")
	e.checkTail = tail.Present()
	for _, v := range tail.Elements() {
		t := v.Object()
		e.tail = append(e.tail, tailCommand{t.Require("name").NonBlank(), t.Get("nodeId").Text()})
		t.Close()
	}
	e.cardinality = readCardinality(o)
	if m := o.Get("mismatch").Object(); m != nil {
		e.mismatch = &mismatch{m.Get("messageIncludes").Text(), readIdentity(m, "expected"), readIdentity(m, "actual")}
		m.Close()
	}
	o.Close()
	return e
}

func readIdentity(o *jsonobject.Object, name string) map[string]any {
	i := o.Get(name).Object()
	if i == nil {
		return nil
	}
	i.Get("name").Text()
	i.Get("nodeId").Text()
	i.Get("seq").Whole(0, maxCount)
	i.Close()
	return o.Get(name).Map()
}

// maxCount is the largest count allowed in a vector.
const maxCount = 1 << 30

func readCardinality(o *jsonobject.Object) []cardinality {
	var list []cardinality
	for event, v := range o.Get("eventCardinality").Members() {
		c := cardinality{event: event}
		if _, byNode := v.Plain.(map[string]any); byNode {
			c.byNode = map[string]int{}
			for id, count := range v.Members() {
				n, _ := count.Whole(0, maxCount)
				c.byNode[id] = int(n)
			}
		} else {
			n, _ := v.Whole(0, maxCount)
			c.total = int(n)
		}
		list = append(list, c)
	}
	return list
}

// judge compares the run's end and its history with the expectation.
func (r *replayRun) judge(ctx context.Context, g graph.Engine, last attempt) error {
	if last.status != r.expect.status {
		message := "differs"
		if last.err != nil {
			message = "differs: " + last.err.Error()
		}
		r.problems.differ("/expect/status", message, r.expect.status, last.status)
	}
	records, err := g.History(ctx, graph.HistoryRequest{ExecutionID: r.id, Reveal: true})
	if err != nil {
		return err
	}
	if r.expect.checkTail {
		r.compareTail(records)
	}
	for _, c := range r.expect.cardinality {
		c.compare(records, r.problems)
	}
	if r.expect.mismatch != nil {
		r.expect.mismatch.compare(records, r.problems)
	}
	return nil
}

func (r *replayRun) compareTail(records []history.Record) {
	got := commands(records)
	got = got[min(len(commands(r.prefix)), len(got)):]
	want := r.expect.tail
	same := len(got) == len(want)
	for i := 0; same && i < len(want); i++ {
		same = want[i].name == got[i].name && (want[i].nodeID == "" || want[i].nodeID == got[i].nodeID)
	}
	if !same {
		r.problems.differ("/expect/tailCommands", "the commands after the prefix differ", tailValue(want), tailValue(got))
	}
}

func commands(records []history.Record) []tailCommand {
	var list []tailCommand
	for _, r := range records {
		if r.Kind == history.Command {
			list = append(list, tailCommand{string(r.Name), r.Payload.NodeID})
		}
	}
	return list
}

// maxTailShown limits the commands in a report: a run that has looped has thousands.
const maxTailShown = 100

// tailValue returns commands as texts for a report.
func tailValue(commands []tailCommand) []any {
	list := make([]any, 0, min(len(commands), maxTailShown+1))
	for i, c := range commands {
		if i == maxTailShown {
			return append(list, fmt.Sprintf("and %d more", len(commands)-i))
		}
		text := c.name
		if c.nodeID != "" {
			text += "(" + c.nodeID + ")"
		}
		list = append(list, text)
	}
	return list
}

func (c cardinality) compare(records []history.Record, ps *problems) {
	total, byNode := 0, map[string]int{}
	for _, r := range records {
		if r.Kind == history.Event && string(r.Name) == c.event {
			total++
			byNode[r.Payload.NodeID]++
		}
	}
	at := "/expect/eventCardinality/" + jsonvalue.EscapePointer(c.event)
	if c.byNode == nil && total != c.total {
		ps.differ(at, "the number of these events differs", c.total, total)
	}
	for _, node := range sortedKeys(c.byNode) {
		if byNode[node] != c.byNode[node] {
			ps.differ(at+"/"+jsonvalue.EscapePointer(node), "the number of these events differs", c.byNode[node], byNode[node])
		}
	}
}

func (m *mismatch) compare(records []history.Record, ps *problems) {
	var failed *history.Record
	for i := range records {
		if records[i].Name == history.ExecutionFailed {
			failed = &records[i]
		}
	}
	if failed == nil {
		ps.add("/expect/mismatch", "there is no ExecutionFailed")
		return
	}
	if !includesFold(failed.Payload.Error, m.messageIncludes) {
		ps.differ("/expect/mismatch/messageIncludes", "is not in the error", m.messageIncludes, failed.Payload.Error)
	}
	var identities history.MismatchContext
	if failed.Payload.Context != nil {
		identities = *failed.Payload.Context
	}
	compareGiven("/expect/mismatch/expected", m.expected, identities.Expected, ps)
	compareGiven("/expect/mismatch/actual", m.actual, identities.Actual, ps)
}

// compareGiven compares the fields of a command's identity that the vector sets.
func compareGiven(at string, want map[string]any, got history.CommandIdentity, ps *problems) {
	have := map[string]any{"name": string(got.Name), "nodeId": got.NodeID, "seq": float64(got.Seq)}
	for _, name := range jsonvalue.Keys(want) {
		ps.compare(at+"/"+name, want[name], have[name])
	}
}
