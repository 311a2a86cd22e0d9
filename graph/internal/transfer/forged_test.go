package transfer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// forge changes an exported run, whose lines it gives to change, and makes its trailer fit again.
func forge(t *testing.T, file string, change func(lines []string) []string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(file, "\n"), "\n")
	before := strings.Join(lines, "\n")
	lines = change(lines[:len(lines)-1])
	definitions, runs, records := 0, 0, 0
	counted := []int{}
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, `{"type":"definition"`):
			definitions++
		case strings.HasPrefix(line, `{"type":"run"`):
			runs++
			counted = append(counted, i)
		case strings.HasPrefix(line, `{"type":"record"`):
			records++
		}
	}
	for j, i := range counted {
		end := len(lines)
		if j+1 < len(counted) {
			end = counted[j+1]
		}
		at := strings.Index(lines[i], `,"records":`)
		lines[i] = fmt.Sprintf(`%s,"records":%d}`, lines[i][:at], end-i-1)
	}
	text := strings.Join(lines, "\n") + "\n"
	sum := sha256.Sum256([]byte(text))
	text += fmt.Sprintf(`{"type":"trailer","definitions":%d,"runs":%d,"records":%d,"sha256":%q}`, definitions, runs, records, hex.EncodeToString(sum[:])) + "\n"
	if strings.HasPrefix(text, before) {
		t.Fatal("nothing was changed")
	}
	return text
}

// TestForgedRunsAreNotImported: a file whose checksum fits and whose history cannot have been is refused, and leaves nothing.
func TestForgedRunsAreNotImported(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{})
	start(t, r, "open", workflow(t, "w", []string{startNode(), interrupt("ask"), endNode()}, "s ask", "ask e"), object{"n": 1})
	start(t, r, "done", workflow(t, "w", []string{startNode(), interrupt("ask"), endNode()}, "s ask", "ask e"), object{"n": 1})
	done, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "done", Payload: object{"ok": true}})
	if err != nil || done.Status != machine.Completed {
		t.Fatal(done, err)
	}
	start(t, r, "failed", workflow(t, "f", []string{startNode(), `{"id":"x","type":"set_state","config":{"assignments":{"x":{"jq":"error(\"no\")"}}}}`, endNode()}, "s x", "x e"), nil)
	export := func(id string) string {
		var file bytes.Buffer
		if err := transfer.Export(t.Context(), store, id, transfer.ExportOptions{}, &file); err != nil {
			t.Fatal(err)
		}
		return file.String()
	}
	replaced := func(old, with string) func([]string) []string {
		return func(lines []string) []string {
			for i := range lines {
				lines[i] = strings.ReplaceAll(lines[i], old, with)
			}
			return lines
		}
	}
	appended := func(names ...string) func([]string) []string {
		return func(lines []string) []string {
			last := lines[len(lines)-1]
			seq := strings.Count(strings.Join(lines, "\n"), `{"type":"record"`)
			stamp := last[strings.Index(last, `"created_at":"`)+len(`"created_at":"`):][:24]
			for _, name := range names {
				kind, name, _ := strings.Cut(name, " ")
				name, payload, _ := strings.Cut(name, " ")
				seq++
				lines = append(lines, fmt.Sprintf(`{"type":"record","seq":%d,"kind":%q,"name":%q,"created_at":%q,"payload":{"executionId":"open"%s}}`, seq, kind, name, stamp, payload))
			}
			return lines
		}
	}
	first := `"activityExecutionMode":"in_process"`
	for name, c := range map[string]struct {
		run    string
		change func([]string) []string
		code   problem.Code
	}{
		"a changed result":                   {"done", replaced(`"result":{"n":1,"ok":true}`, `"result":{"n":1,"ok":false}`), problem.Nondeterminism},
		"a changed answer":                   {"done", replaced(`"payload":{"ok":true}`, `"payload":{"ok":false}`), problem.Nondeterminism},
		"another end":                        {"failed", replaced(`"name":"ExecutionFailed"`, `"name":"ExecutionCompleted"`), problem.Nondeterminism},
		"an end at a question":               {"open", appended(`event ExecutionCompleted ,"result":{}`), problem.Nondeterminism},
		"a failure at a question":            {"open", appended(`event ExecutionFailed ,"error":"x","code":"TOOL_FAILED"`), problem.Nondeterminism},
		"a failed node at a question":        {"open", appended(`command FailNode ,"nodeId":"ask","reason":"activity_failed","message":"x"`, `event ExecutionFailed ,"error":"x","code":"X"`), problem.Nondeterminism},
		"a cancelled run nobody cancelled":   {"open", appended(`event ExecutionCancelled ,"reason":"x"`), problem.Nondeterminism},
		"a negative depth":                   {"open", replaced(first, first+`,"depth":-3`), problem.ImportInvalid},
		"a great depth":                      {"open", replaced(first, first+`,"depth":200000000`), problem.ImportInvalid},
		"an unknown mode":                    {"open", replaced(first, `"activityExecutionMode":"evil"`), problem.ImportInvalid},
		"a parent that the id does not name": {"open", replaced(first, first+`,"parentExecutionId":"p"`), problem.ImportInvalid},
		"the year 0":                         {"open", stamped("0000"), problem.ImportInvalid},
		"the year 9999":                      {"open", stamped("9999"), problem.ImportInvalid},
		"the day after tomorrow":             {"open", stamped("2999"), problem.ImportInvalid},
	} {
		into := historymem.New()
		_, err := transfer.Import(t.Context(), into, strings.NewReader(forge(t, export(c.run), c.change)), nil)
		if err == nil {
			t.Errorf("%s was imported", name)
			continue
		}
		if e, ok := problem.As(err); !ok || e.Code != c.code || e.Hint == "" && c.code == problem.ImportInvalid {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := into.Execution(t.Context(), c.run); err == nil {
			t.Errorf("%s: the run is there", name)
		}
	}
	for _, id := range []string{"open", "done", "failed"} {
		if _, err := transfer.Import(t.Context(), historymem.New(), strings.NewReader(export(id)), nil); err != nil {
			t.Errorf("%s as it is: %v", id, err)
		}
	}
}

// stamped gives all records of a run another year.
func stamped(year string) func([]string) []string {
	return func(lines []string) []string {
		for i := range lines {
			before, after, found := strings.Cut(lines[i], `"created_at":"`)
			if found {
				lines[i] = before + `"created_at":"` + year + after[4:]
			}
		}
		return lines
	}
}

// TestASubworkflowIsImportedWithItsParent: alone it is refused, as nothing would take its result.
func TestASubworkflowIsImportedWithItsParent(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	child := workflow(t, "child", []string{startNode(), interrupt("ask"), endNode()}, "s ask", "ask e")
	r := newRunner(t, store, graph.Options{Workflows: resolver(func(string, string) (*definition.Document, error) { return child, nil })})
	start(t, r, "p", workflow(t, "parent", []string{startNode(), subworkflow("sub", "child"), endNode()}, "s sub", "sub e"), nil)
	var file bytes.Buffer
	if err := transfer.Export(t.Context(), store, "p:sub:sub", transfer.ExportOptions{}, &file); err != nil {
		t.Fatal(err)
	}
	alone := file.String()
	_, err := transfer.Import(t.Context(), historymem.New(), strings.NewReader(alone), nil)
	wantCode(t, err, problem.ImportInvalid)
	orphan := forge(t, alone, func(lines []string) []string {
		for i := range lines {
			lines[i] = strings.ReplaceAll(strings.ReplaceAll(lines[i], `,"parentExecutionId":"p"`, ""), `,"depth":1`, "")
		}
		return lines
	})
	_, err = transfer.Import(t.Context(), historymem.New(), strings.NewReader(orphan), nil)
	wantCode(t, err, problem.ImportInvalid)
}

// TestARunBeginsWithItsStart: without its first record a history would pass for another engine's, which is not replayed.
func TestARunBeginsWithItsStart(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{})
	start(t, r, "r", workflow(t, "w", []string{startNode(), interrupt("ask"), endNode()}, "s ask", "ask e"), nil)
	var file bytes.Buffer
	if err := transfer.Export(t.Context(), store, "r", transfer.ExportOptions{}, &file); err != nil {
		t.Fatal(err)
	}
	headless := forge(t, file.String(), func(lines []string) []string {
		i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, `"name":"ExecutionStarted"`) })
		lines = slices.Delete(lines, i, i+1)
		for seq := 1; i < len(lines); i, seq = i+1, seq+1 {
			lines[i] = strings.Replace(lines[i], fmt.Sprintf(`"seq":%d,`, seq+1), fmt.Sprintf(`"seq":%d,`, seq), 1)
		}
		return lines
	})
	_, err := transfer.Import(t.Context(), historymem.New(), strings.NewReader(headless), nil)
	if wantCode(t, err, problem.ImportInvalid); !strings.Contains(err.Error(), "must begin with ExecutionStarted") {
		t.Error(err)
	}
}

// TestVerifyFindsAnEndThatTheDefinitionCannotReach.
func TestVerifyFindsAnEndThatTheDefinitionCannotReach(t *testing.T) {
	t.Parallel()
	for _, end := range []history.Record{
		{Name: history.ExecutionCompleted, Payload: history.Payload{Result: history.Some(object{})}},
		{Name: history.ExecutionFailed, Payload: history.Payload{Error: "x", Code: "TOOL_FAILED"}},
		{Name: history.ExecutionCancelled, Payload: history.Payload{Reason: "x"}},
	} {
		store := historymem.New()
		r := newRunner(t, store, graph.Options{})
		run := start(t, r, "r", workflow(t, "w", []string{startNode(), interrupt("ask"), endNode()}, "s ask", "ask e"), nil)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		e, err := store.Execution(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		end.Seq, end.Kind, end.CreatedAt = run.Seq+1, history.Event, e.UpdatedAt
		e.Apply(end)
		if err := store.Append(t.Context(), history.Batch{ExecutionID: "r", ExpectedSeq: run.Seq, Records: []history.Record{end}, Execution: e, SetTimers: true}); err != nil {
			t.Fatal(err)
		}
		findings, err := transfer.Inspect(t.Context(), store, "r", nil)
		if err != nil || len(findings) != 1 || findings[0].Code != problem.Nondeterminism || !strings.Contains(findings[0].Message, string(end.Name)) {
			t.Errorf("%s: %+v, %v", end.Name, findings, err)
		}
	}
}
