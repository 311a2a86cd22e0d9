package history_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestProjection runs the traces in testdata/projection. A trace has one record a line, in the notation of
// historytest.ParseRecord. A line that starts with "=" tells the projection as it is there. The run's id is "x".
func TestProjection(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/projection/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces found: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkTrace(t, name)
		})
	}
}

func TestW09_ResumedInterrupt(t *testing.T)  { checkTrace(t, "resumed_interrupt") }
func TestW11_ToleratedFailure(t *testing.T)  { checkTrace(t, "tolerated_failure") }
func TestW20_DelegateIsRetried(t *testing.T) { checkTrace(t, "delegate_retry") }

func checkTrace(t *testing.T, name string) {
	file := filepath.Join("testdata", "projection", name+".txt")
	given, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := runTrace(t, string(given))
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != string(given) {
		t.Errorf("the projection differs; go test ./history -update rewrites it:\n%s", firstDifference(string(given), got))
	}
}

func runTrace(t *testing.T, trace string) string {
	e := history.Execution{ID: "x"}
	var out strings.Builder
	for line := range strings.Lines(trace) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "="):
			line = "= " + describe(&e)
		case line != "" && !strings.HasPrefix(line, "#"):
			before := e
			was := describe(&before)
			e.Apply(parseRecord(t, line, e.Seq+1))
			if describe(&before) != was {
				t.Errorf("%s: Apply changed an earlier copy", line)
			}
			stored, err := history.ParseExecution("x", e.AppendText(nil))
			if err != nil || !reflect.DeepEqual(stored, e) {
				t.Errorf("%s: stored and read again:\n got %+v, %v\nwant %+v", line, stored, err, e)
			}
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

func parseRecord(t testing.TB, line string, seq int64) history.Record {
	t.Helper()
	r, err := historytest.ParseRecord(line)
	if err != nil {
		t.Fatal(err)
	}
	r.Seq, r.CreatedAt = seq, historytest.Begin.Add(time.Duration(seq)*time.Millisecond)
	return r
}

// describe tells a projection in one line, leaving out what is empty.
func describe(e *history.Execution) string {
	var parts []string
	add := func(name string, v any) {
		if text := fmt.Sprint(v); text != "" && text != "0" && text != "map[]" {
			parts = append(parts, name+"="+text)
		}
	}
	add("phase", e.Phase)
	add("node", e.CurrentNodeID)
	add("error", e.LastError)
	add("signal", e.SignalName)
	add("agent", e.AgentID)
	add("protocol", e.Protocol)
	add("input", e.DelegateInput)
	add("correlation", e.DelegateCorrelationID)
	add("child", e.ChildExecutionID)
	add("parent", e.ChildParentID)
	add("name", e.DefinitionName)
	add("hash", e.DefinitionHash)
	add("mode", e.Mode)
	add("visits", e.NodeVisits)
	add("state", e.StateSeq)
	if e.NeedsDriver() {
		add("driver", "needed")
	}
	for _, w := range e.Waits {
		text := string(w.Kind) + ":" + w.NodeID
		if w.Attempt > 0 {
			text += fmt.Sprintf(".%d", w.Attempt)
		}
		if !w.Due.IsZero() {
			text += "@" + history.FormatTimestamp(w.Due)
		}
		add("wait", text)
	}
	return strings.Join(parts, " ")
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range w {
		if i >= len(g) || w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\n got %s", i+1, w[i], g[min(i, len(g)-1)])
		}
	}
	return ""
}

// A request of another engine does not say who performs it: the mode in which this engine began the run decides.
func TestForeignRequestHasTheModeOfTheRun(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"host_mediated", "in_process"} {
		e := history.Execution{ID: "x"}
		e.Apply(history.Record{Kind: history.Event, Name: history.ExecutionStarted, Payload: history.Payload{Mode: mode}})
		e.Apply(history.Record{Kind: history.Command, Name: history.ScheduleNode, Payload: history.Payload{NodeID: "t"}})
		e.Apply(history.Record{
			Kind: history.Event, Name: history.ActivityRequested, Foreign: true, Payload: history.Payload{NodeID: "t", NodeType: "step", Attempt: 1},
		})
		if len(e.Waits) != 1 || e.Waits[0].Mode != mode {
			t.Errorf("%s: waits %+v", mode, e.Waits)
		}
	}
}

// TestPromptsInProjections: a projection has the beginning of what an interrupt asks, and one that an earlier version wrote, without it,
// counts as the same.
func TestPromptsInProjections(t *testing.T) {
	t.Parallel()
	var e history.Execution
	e.Apply(history.Record{Kind: history.Event, Name: history.ExecutionStarted, CreatedAt: time.UnixMilli(1)})
	e.Apply(history.Record{Kind: history.Command, Name: history.RaiseInterrupt, Payload: history.Payload{NodeID: "ask"}})
	e.Apply(history.Record{Kind: history.Event, Name: history.InterruptRaised, Payload: history.Payload{NodeID: "ask", Prompt: strings.Repeat("é", 100)}})
	prompt := strings.Repeat("é", 60) + "…"
	if len(e.Waits) != 1 || e.Waits[0].Prompt != prompt {
		t.Fatalf("waits %+v", e.Waits)
	}
	now := string(e.AppendText(nil))
	earlier := strings.Replace(now, `,"prompt":"`+prompt+`"`, "", 1)
	if earlier == now || !e.WrittenAs(now) || !e.WrittenAs(earlier) || e.WrittenAs(strings.Replace(earlier, "ask", "other", 1)) {
		t.Errorf("%s\nearlier %s", now, earlier)
	}
}
