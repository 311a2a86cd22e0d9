package agentloop_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

var update = flag.Bool("update", false, "rewrite the expected output of scripts")

// TestScripts runs every file of testdata: {"config", "tools", "task"} up to a line "====", then commands, each followed by "----" and its
// whole output, up to a blank line. The commands:
//
//	start                               begin
//	tools [KEY]                         the tools are listed
//	unlisted KEY CODE TEXT              they cannot be
//	reply KEY REPLY                     the model replies: {"text", "calls": [{"id", "name", "arguments"}], "finish", "usage"}
//	fail KEY CODE [final] [overloaded] [class=C] [status=N] [after=D] [took=N] TEXT  it fails, and has taken N tokens
//	result KEY OUTPUT                   a tool returns
//	error KEY CODE TEXT                 a tool fails
//	fetch KEY                           the recorded result is read that fetch_result asks for
//	decide KEY WHAT [ARGUMENTS]         a hook decides
//	answer KEY PAYLOAD                  a person answers; check KEY PAYLOAD only asks whether it would do
//	unanswered KEY                      nobody does
//	wake KEY, early KEY                 the time of a rest has come, or not yet
//	expired D                           the work budget ends
//	cancel                              end it
//	die                                 the process dies; another goes on
//
// After every command the agent is rebuilt from every prefix of its journal that the command has added. The script then runs once more,
// each time going on with the rebuilt machine.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(src), false)
			if again := runScript(t, string(src), true); again != got {
				t.Errorf("going on with the replay after every command: output differs\n%s", firstDifference(got, again))
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(src) {
				t.Errorf("output differs; go test ./delegate/agentloop -update rewrites it: read the diff\n%s", firstDifference(string(src), got))
			}
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		var a, b string
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, a, b)
		}
	}
	return ""
}

type script struct {
	*bench
	head struct {
		Config agentloop.Config `json:"config"`
		Tools  []agentloop.Tool `json:"tools"`
		Task   string           `json:"task"`
	}
	// shown is how many messages of each agent's conversation have been printed.
	shown map[string]int
}

func runScript(t testing.TB, src string, rebuilt bool) string {
	t.Helper()
	head, rest, ok := strings.Cut(src, "\n====\n")
	if !ok {
		t.Fatal("no line ==== in script")
	}
	s := &script{shown: map[string]int{}}
	lines := slices.DeleteFunc(strings.Split(head, "\n"), func(l string) bool { return strings.HasPrefix(l, "#") })
	if err := json.Unmarshal([]byte(strings.Join(lines, "\n")), &s.head); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.WriteString(head + "\n====\n")
	for block := range strings.SplitSeq(strings.TrimRight(rest, "\n"), "\n\n") {
		command, _, _ := strings.Cut(strings.Trim(block, "\n"), "\n----")
		out.WriteString(command + "\n----\n")
		out.WriteString(s.do(t, command))
		out.WriteString("\n")
		if s.last.Done == nil || s.last.Done.Failure == nil || s.last.Done.Failure.Code != problem.ActivityCancelled {
			s.check()
			s.checkCuts(s.last.Steps)
			s.checkOtherWording()
			if rebuilt && len(s.journal) > 0 {
				s.m = s.rebuild(false)
				s.m.Ready()
			}
		}
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

func (s *script) do(t testing.TB, line string) string {
	name, rest, _ := strings.Cut(line, " ")
	key, rest, _ := strings.Cut(rest, " ")
	value := func() any {
		v, err := jsonvalue.Decode([]byte(rest))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return v
	}
	object := func() map[string]any { m, _ := value().(map[string]any); return m }
	word := func() string {
		w, more, _ := strings.Cut(rest, " ")
		rest = more
		return w
	}
	var in agentloop.Input
	switch name {
	case "start":
		s.bench = newBench(t, s.head.Config, s.head.Task)
		return s.text()
	case "die":
		s.m = s.rebuild(true)
		s.drain()
		return s.text()
	case "check":
		if err := s.m.Check(object()); err != nil {
			return "refused " + err.Error() + "\n"
		}
		return "fits\n"
	case "tools":
		if key == "" {
			key = "0"
		}
		in = agentloop.ToolsListed{Key: key, Tools: s.head.Tools}
	case "unlisted":
		in = agentloop.ToolsListed{Key: key, Failure: &agentloop.Failure{Code: problem.Code(word()), Message: rest}}
	case "reply":
		var r struct {
			Text, Finish string
			Calls        []struct {
				ID, Name  string
				Arguments json.RawMessage
			}
			Usage chat.Usage
		}
		if err := json.Unmarshal([]byte(rest), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		reply := chat.Reply{Model: "m-1", Text: r.Text, Finish: chat.Finish(r.Finish), Usage: r.Usage}
		for _, c := range r.Calls {
			args := string(c.Arguments)
			var text string
			if json.Unmarshal(c.Arguments, &text) == nil {
				args = text
			}
			reply.Calls = append(reply.Calls, chat.Call{ID: c.ID, Name: c.Name, Arguments: args})
		}
		in = agentloop.ModelReplied{Key: key, Try: s.try1(key), Reply: reply, Worked: time.Second}
	case "fail":
		f := agentloop.ModelFailed{Key: key, Try: s.try1(key), Code: problem.Code(word()), Worked: time.Second}
		for {
			w, more, _ := strings.Cut(rest, " ")
			if d, ok := strings.CutPrefix(w, "after="); ok {
				f.After, _ = time.ParseDuration(d)
			} else if n, ok := strings.CutPrefix(w, "took="); ok {
				f.Usage.Prompt, _ = strconv.Atoi(n)
			} else if class, ok := strings.CutPrefix(w, "class="); ok {
				f.Class = chat.Class(class)
			} else if n, ok := strings.CutPrefix(w, "status="); ok {
				f.Status, _ = strconv.Atoi(n)
			} else if w == "final" {
				f.Final = true
			} else if w == "overloaded" {
				f.Overloaded = true
			} else {
				break
			}
			rest = more
		}
		f.Message = rest
		in = f
	case "result":
		in = agentloop.ToolReturned{Key: key, Output: value(), Worked: 10 * time.Millisecond}
	case "fetch":
		for _, e := range s.m.Outstanding() {
			if f, ok := e.(agentloop.FetchResult); ok && f.Key == key {
				in = s.fetch(f)
			}
		}
		if in == nil {
			t.Fatalf("%s: nothing is fetched there", line)
		}
	case "error":
		in = agentloop.ToolReturned{Key: key, Failure: &agentloop.Failure{Code: problem.Code(word()), Message: rest}, Worked: 10 * time.Millisecond}
	case "decide":
		d := agentloop.Decided{Key: key, Decision: word()}
		if rest != "" {
			d.Arguments = object()
		}
		in = d
	case "answer":
		in = agentloop.Answered{Key: key, Payload: object()}
	case "unanswered":
		in = agentloop.Answered{Key: key, Payload: s.last.Question.Otherwise, Expired: true}
	case "wake":
		for _, e := range s.m.Outstanding() {
			if r, ok := e.(agentloop.Rest); ok && r.Key == key {
				s.now = r.Until
			}
		}
		in = agentloop.Woken{Key: key}
	case "early":
		in = agentloop.Woken{Key: key}
	case "expired":
		d, _ := time.ParseDuration(key)
		in = agentloop.Expired{Worked: d}
	case "cancel":
		in = agentloop.Cancelled{}
	default:
		t.Fatalf("no command %q", name)
	}
	if err := s.try(in); err != nil {
		s.last = agentloop.Batch{Done: s.last.Done, Question: s.last.Question}
		return "refused " + err.Error() + "\n"
	}
	return s.text()
}

// try1 is the try that is outstanding under a key.
func (s *script) try1(key string) int {
	for _, e := range s.m.Outstanding() {
		if a, ok := e.(agentloop.AskModel); ok && a.Key == key {
			return a.Try
		}
	}
	return 1
}

// text describes the last batch.
func (s *script) text() string {
	var out bytes.Buffer
	for _, st := range s.last.Steps {
		b := st.Body
		if st.Kind == agentloop.StepBegun {
			b = map[string]any{"agent": b["agent"], "system": b["system"], "task": b["task"]}
		}
		if st.Kind == agentloop.StepReply {
			b = map[string]any{"text": b["text"], "calls": b["calls"], "dropped": b["dropped"]}
		}
		if st.Kind == agentloop.StepCompacted {
			b = maps.Clone(b)
			delete(b, "requestHash")
			s.shown[st.Key[:strings.LastIndex(st.Key, "/")+1]] = 0 // the whole conversation is shown again
		}
		fmt.Fprintf(&out, "%s %s %s\n", st.Kind, st.Key, jsonvalue.Canonical(b))
	}
	for _, e := range s.last.Abandoned {
		fmt.Fprintf(&out, "abandoned %s\n", e.ID())
	}
	for _, e := range s.last.Effects {
		fmt.Fprintf(&out, "effect %s", e.ID())
		switch e := e.(type) {
		case agentloop.CallTool:
			fmt.Fprintf(&out, " %s %s", e.Tool, jsonvalue.Canonical(e.Arguments))
		case agentloop.Decide:
			fmt.Fprintf(&out, " %s %s", e.Tool, jsonvalue.Canonical(e.Arguments))
		case agentloop.Rest:
			fmt.Fprintf(&out, " in %s", e.Until.Sub(s.now))
		case agentloop.AskModel:
			fmt.Fprintf(&out, " %s max_tokens=%d tools=%d schema=%t", e.Request.Model, e.Request.MaxTokens, len(e.Request.Tools), e.Request.Schema != nil)
			path := e.Key[:strings.LastIndex(e.Key, "/")+1]
			from := s.shown[path]
			if e.Compacts {
				from = 0
			}
			for _, m := range e.Request.Messages[from:] {
				text, _ := json.Marshal(m)
				fmt.Fprintf(&out, "\n  %s", text)
			}
			if !e.Compacts {
				s.shown[path] = len(e.Request.Messages)
			}
		case agentloop.FetchResult:
			fmt.Fprintf(&out, " %s %+v", e.Ref, e.View)
		}
		out.WriteString("\n")
	}
	if q := s.last.Question; q != nil {
		fmt.Fprintf(&out, "question %s %q %s", q.Key, q.Prompt, jsonvalue.Canonical(q.Body))
		if !q.Expires.IsZero() {
			fmt.Fprintf(&out, " for %s, otherwise %s", q.Expires.Sub(s.now), jsonvalue.Canonical(q.Otherwise))
		}
		out.WriteString("\n")
	}
	if d := s.last.Done; d != nil {
		fmt.Fprintf(&out, "done %s partial=%t %s", d.Stop, d.Partial, jsonvalue.Canonical(d.Totals.Map()))
		if d.Failure != nil {
			fmt.Fprintf(&out, " failed %s final=%t: %s\n", d.Failure.Code, d.Failure.Final, d.Failure.Message)
		} else {
			fmt.Fprintf(&out, " %s\n", jsonvalue.Canonical(d.Output))
		}
	}
	return out.String()
}
