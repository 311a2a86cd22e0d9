package historytest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// Begin is the time of the first record of every Trace.
var Begin = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)

// ParseRecord reads a record in the notation of traces,
//
//	C ScheduleNode <node> {payload}
//
// with C for commands and E for events. Node and payload may be missing. The record has no seq and no time.
func ParseRecord(line string) (history.Record, error) {
	head, payload, found := strings.Cut(line, "{")
	words := strings.Fields(head)
	if len(words) < 2 || len(words) > 3 || words[0] != "C" && words[0] != "E" {
		return history.Record{}, fmt.Errorf("invalid record %q", line)
	}
	members := map[string]any{}
	if found {
		if err := json.Unmarshal([]byte("{"+payload), &members); err != nil {
			return history.Record{}, fmt.Errorf("%q: %w", line, err)
		}
	}
	if len(words) == 3 {
		members["nodeId"] = words[2]
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return history.Record{}, err
	}
	r := history.Record{Kind: history.Event, Name: history.Name(words[1])}
	if words[0] == "C" {
		r.Kind = history.Command
	}
	r.Payload, err = history.DecodePayload(r.Name, raw)
	return r, err
}

// Trace makes the batches of one run.
type Trace struct {
	t testing.TB
	// Execution is the projection after the last batch.
	Execution history.Execution
	// Now is the time of the records of the next batch. A batch moves it forward by a millisecond.
	Now time.Time
}

// NewTrace begins a run.
func NewTrace(t testing.TB, executionID string) *Trace {
	return &Trace{t: t, Execution: history.Execution{ID: executionID}, Now: Begin}
}

// Batch makes the next batch of records in the notation of traces, and treats it as appended.
func (x *Trace) Batch(lines ...string) history.Batch {
	x.t.Helper()
	b := history.Batch{ExecutionID: x.Execution.ID, ExpectedSeq: x.Execution.Seq}
	for _, line := range lines {
		r, err := ParseRecord(line)
		if err != nil {
			x.t.Fatal(err)
		}
		r.CreatedAt = x.Now
		b.Records = append(b.Records, r)
		x.Execution.Apply(r)
	}
	x.Now = x.Now.Add(time.Millisecond)
	b.Execution, b.Bytes = x.Execution, &x.Execution.Bytes
	return b
}

// Append makes the next batch and appends it.
func (x *Trace) Append(s history.Store, lines ...string) {
	x.t.Helper()
	b := x.Batch(lines...)
	if err := s.Append(x.t.Context(), b); err != nil {
		x.t.Fatalf("append to %s: %v", x.Execution.ID, err)
	}
	clear(b.Records) // a store must not have kept them
}

// Start returns the lines that begin a run of this engine in the named mode.
func Start(definition, mode string) []string {
	return []string{
		fmt.Sprintf(`E ExecutionStarted {"workflowName":%q,"workflowVersion":"1","inputKeys":[],"definitionHash":"h","activityExecutionMode":%q}`,
			definition, mode),
		"C ScheduleNode begin",
		"E NodeScheduled begin",
		`C CompleteNode begin {"output":{}}`,
		`E StateUpdated begin {"state":{}}`,
	}
}

// Node returns the lines for one activity performed by a host, and the request of the next one.
func Node(done, next string) []string {
	return []string{
		fmt.Sprintf(`E ActivityCompleted %s {"nodeType":"step","result":{"r":1}}`, done),
		fmt.Sprintf(`C CompleteNode %s {"output":{"r":1}}`, done),
		fmt.Sprintf(`E StateUpdated %s {"state":{"a":1,"r":1}}`, done),
		"C ScheduleNode " + next,
		"E NodeScheduled " + next,
		fmt.Sprintf(`E ActivityRequested %s {"nodeType":"step","attempt":1,"activityExecutionMode":"host_mediated"}`, next),
	}
}

// End returns the lines that complete a run.
func End() []string {
	return []string{"C ScheduleNode end", "E NodeScheduled end", `C CompleteNode end {"output":{}}`, `E ExecutionCompleted {"result":null}`}
}

// lines joins lists of lines.
func lines(lists ...[]string) []string { return slices.Concat(lists...) }
