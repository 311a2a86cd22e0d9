package machine_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

var update = flag.Bool("update", false, "rewrite the expected output of scripts")

// TestScripts runs every file of testdata: a definition in JSON or YAML up to a line "====", then commands, each
// followed by "----" and its whole output, up to a blank line. The commands:
//
//	start [host] [sequential] [queued] INPUT  begin the run; queued: each attempt waits for its turn
//	ok KEY OUTPUT                       an executor's success; KEY as in "effect"
//	fail KEY [code=C] [final] [after=D] [repair] TEXT  an executor's failure; with repair it asks for one with TEXT in hand
//	submit NODE [branch=B] OUTPUT       a host's success (OUTPUT may hold delegateCorrelationId)
//	reject NODE [branch=B] [code=C] [repair] TEXT  a host's failure
//	resume [key=K] PAYLOAD              an answer to an interrupt
//	signal NAME PAYLOAD                 a signal
//	child KEY completed STATE | failed TEXT | cancelled | refused TEXT
//	fire KEY                            time passes until the timer KEY is due, and it fires
//	early KEY                           the timer fires before its time
//	task KEY ID [asks] [PROMPT]         a remote agent has accepted a task or an answer; it is polled after a second
//	polled KEY [asks|failed] [PROMPT]   the status of a remote task when it is polled
//	step KEY KEY KIND [after=N] [BODY]  an executor has recorded a step; N counts those before it
//	ask KEY KEY [expires=D] [SCHEMA]    it asks a person, with the prompt "May I?"
//	rest KEY D                          it rests
//	turn KEY                            the turn of an attempt has come
//	cancel [REASON]                     end the run
//	mode host|in_process                change the mode
//	pending                             list the waits
//
// After every command the run is rebuilt twice, from its history and from its position, and compared. The script then runs twice
// more, each time continuing with one of the rebuilt machines.
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
			got := runScript(t, string(src), "")
			for _, rebuilt := range []string{"replay", "restore"} {
				if again := runScript(t, string(src), rebuilt); again != got {
					t.Errorf("%s after every command: output differs\n%s", rebuilt, firstDifference(got, again))
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(src) {
				t.Errorf("output differs; go test ./graph/machine -update rewrites it: read the diff\n%s", firstDifference(string(src), got))
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

// bench is one run under test.
type bench struct {
	t    testing.TB
	prog *definition.Program
	m    *machine.Machine
	now  time.Time
	rows []history.Record
	open map[string]time.Time
	// goOn is the way of rebuilding whose machine replaces m after every command, "" for none.
	goOn string
	// positions are the positions after each command, until the run has ended.
	positions [][]byte
}

// epoch has more precision than records have.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC)

func compile(t testing.TB, src string) *definition.Program {
	t.Helper()
	prog, findings := definition.Compile(enginetest.Define(t, src), definition.Options{AllowInterruptInBranch: true})
	if prog == nil {
		t.Fatalf("definition: %+v", findings)
	}
	return prog
}

func runScript(t testing.TB, src, goOn string) string {
	out, _ := runBench(t, src, goOn)
	return out
}

func runBench(t testing.TB, src, goOn string) (string, *bench) {
	head, rest, ok := strings.Cut(src, "\n====\n")
	if !ok {
		t.Fatal("no line ==== in script")
	}
	b := &bench{t: t, prog: compile(t, stripComments(head)), now: epoch, open: map[string]time.Time{}, goOn: goOn}
	var out strings.Builder
	out.WriteString(head + "\n====\n")
	for block := range strings.SplitSeq(strings.TrimRight(rest, "\n"), "\n\n") {
		command, _, _ := strings.Cut(strings.Trim(block, "\n"), "\n----")
		out.WriteString(command + "\n----\n")
		line := command[strings.LastIndex(command, "\n")+1:]
		out.WriteString(b.do(line))
		b.check()
		out.WriteString("\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n", b
}

func stripComments(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "# ") }), "\n")
}

// do runs one command and describes its output.
func (b *bench) do(line string) string {
	name, rest, _ := strings.Cut(line, " ")
	var args []string
	for {
		rest = strings.TrimSpace(rest)
		word, more, found := strings.Cut(rest, " ")
		if rest == "" || strings.ContainsAny(word[:1], `{["`) || name == "cancel" {
			break
		}
		args = append(args, word)
		rest = more
		if !found {
			break
		}
	}
	opt := func(key string) string {
		for _, a := range args {
			if v, ok := strings.CutPrefix(a, key+"="); ok {
				return v
			}
		}
		return ""
	}
	text := func() string { return strings.Trim(rest, `"`) }
	var in machine.Input
	switch name {
	case "start":
		cfg := machine.Config{ExecutionID: "x"}
		if slices.Contains(args, "host") {
			cfg.Mode = machine.HostMediated
		}
		if slices.Contains(args, "queued") {
			cfg.Limits.Queued = func(*definition.Node) bool { return true }
		}
		if slices.Contains(args, "sequential") {
			cfg.Branches = machine.Sequential
		}
		if v := opt("visits"); v != "" {
			fmt.Sscan(v, &cfg.MaxVisits)
		}
		b.m = machine.Start(b.prog, cfg, b.object(rest), b.now)
		return b.drain()
	case "pending":
		return b.pending()
	case "mode":
		b.m.SetMode(machine.Mode(strings.Replace(args[0], "host", "host_mediated", 1)))
		return ""
	case "ok":
		in = machine.Outcome{Key: args[0], OK: true, Output: b.value(rest)}
	case "fail":
		o := machine.Outcome{Key: args[0], Error: text(), Code: opt("code"), Final: slices.Contains(args, "final")}
		o.RetryAfter, _ = time.ParseDuration(cmp.Or(opt("after"), "0s"))
		if slices.Contains(args, "repair") {
			o.Repair = map[string]any{"wrong": text()}
		}
		in = o
	case "submit":
		in = machine.Outcome{Host: true, NodeID: args[0], Span: b.span(opt("branch")), OK: true, Output: b.value(rest)}
	case "reject":
		in = machine.Outcome{Host: true, NodeID: args[0], Span: b.span(opt("branch")), Error: text(), Code: opt("code")}
		if o := in.(machine.Outcome); slices.Contains(args, "repair") {
			o.Repair = map[string]any{"wrong": text()}
			in = o
		}
	case "resume":
		in = machine.Resume{Key: opt("key"), Payload: b.object(rest)}
	case "task":
		in = machine.TaskUpdate{Key: args[0], TaskID: args[1], ContextID: "c", Asks: slices.Contains(args, "asks"), Prompt: text(), PollAt: b.now.Add(time.Second)}
	case "polled":
		u := machine.TaskUpdate{
			Key: args[0], Polled: true, Asks: slices.Contains(args, "asks"), Failed: slices.Contains(args, "failed"), Prompt: text(),
			PollAt: b.now.Add(time.Second),
		}
		if e := b.m.Poll("poll:" + args[0]); e != nil {
			u.Round = e.Task.Round
		}
		in = u
	case "step":
		s := machine.StepsRecorded{Key: args[0], Index: b.steps(args[0]), Steps: []machine.Step{{Key: args[1], Kind: args[2], Body: b.object(rest), Totals: map[string]any{"turns": 1.0}}}}
		if v := opt("after"); v != "" {
			fmt.Sscan(v, &s.Index)
		}
		in = s
	case "ask":
		q := &machine.Question{Key: args[1], Prompt: "May I?", Schema: b.object(rest), Body: map[string]any{"tool": "refund"}}
		if v := opt("expires"); v != "" {
			d, _ := time.ParseDuration(v)
			q.Expires, q.Otherwise = b.now.Add(d), map[string]any{"decision": "deny"}
		}
		in = machine.StepsRecorded{Key: args[0], Index: b.steps(args[0]), Question: q}
	case "rest":
		d, _ := time.ParseDuration(args[1])
		in = machine.StepsRecorded{Key: args[0], Index: b.steps(args[0]), Until: b.now.Add(d)}
	case "turn":
		in = machine.Turn{Key: args[0]}
	case "signal":
		in = machine.Signal{Name: args[0], Payload: b.object(rest)}
	case "child":
		if args[1] == "refused" {
			in = machine.ChildRefused{Key: args[0], Error: text(), Code: string(problem.WorkflowNotFound)}
			break
		}
		e := machine.ChildEnded{Key: args[0], Status: machine.Status(args[1])}
		if e.Status == machine.Completed {
			e.FinalState = b.object(rest)
		} else {
			e.Error, e.Code = text(), opt("code")
		}
		in = e
	case "fire":
		if due := b.open[args[0]]; due.After(b.now) {
			b.now = due
		}
		in = machine.TimerFired{Key: args[0]}
	case "early":
		in = machine.TimerFired{Key: args[0]}
	case "cancel":
		in = machine.Cancel{Reason: rest}
	default:
		b.t.Fatalf("unknown command %q", line)
	}
	if err := handle(b.t, b.m, in, b.now); err != nil {
		code := "?"
		if p, ok := problem.As(err); ok {
			code = string(p.Code)
		}
		if batch := b.m.Ready(); len(batch.Records)+len(batch.Effects)+len(batch.Abandoned) > 0 {
			b.t.Errorf("%s: refused, but has output: %+v", line, batch)
		}
		return fmt.Sprintf("refused %s: %v\n", code, err)
	}
	return b.drain()
}

// steps counts the recorded steps of an attempt.
func (b *bench) steps(key string) int {
	for _, w := range b.m.Pending() {
		if w.Key == key && w.Journal != nil {
			return w.Journal.Count
		}
	}
	return 0
}

func (b *bench) value(s string) any {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		b.t.Fatalf("%q: %v", s, err)
	}
	return v
}

func (b *bench) object(s string) map[string]any {
	v, _ := b.value(s).(map[string]any)
	return v
}

// span finds the pending span of a branch by its name.
func (b *bench) span(branch string) *history.ParallelSpan {
	for _, w := range b.m.Pending() {
		if w.Span != nil && w.Span.BranchName == branch {
			return w.Span
		}
	}
	return nil
}

// drain describes a batch: records, effects, timers and the status of the run.
func (b *bench) drain() string {
	batch := b.m.Ready()
	var out strings.Builder
	for _, r := range batch.Records {
		if want := int64(len(b.rows) + 1); r.Seq != want {
			b.t.Errorf("record %s has seq %d, want %d", r.Name, r.Seq, want)
		}
		b.rows = append(b.rows, r)
		out.WriteString(describe(r) + "\n")
	}
	for _, e := range batch.Effects {
		fmt.Fprintf(&out, "effect %s%s\n", e.Key(), inHand(e))
	}
	for _, k := range batch.Abandoned {
		fmt.Fprintf(&out, "abandon %s\n", k)
	}
	for _, e := range batch.Dropped {
		fmt.Fprintf(&out, "drop %s %s\n", e.EffectKey, e.Task.ID)
	}
	if batch.TimersChanged {
		b.open = map[string]time.Time{}
		for _, tm := range batch.Timers {
			b.open[tm.Key] = tm.Due
			fmt.Fprintf(&out, "timer %s in %s\n", tm.Key, tm.Due.Sub(b.now.Truncate(time.Millisecond)))
		}
	}
	fmt.Fprintf(&out, "status %s", b.m.Status())
	if r, ok := b.m.Result(); ok {
		fmt.Fprintf(&out, " result=%s", text(r))
	}
	if msg, code, node := b.m.Failure(); msg != "" {
		fmt.Fprintf(&out, " error=%q code=%q node=%q", msg, code, node)
	}
	out.WriteString("\n")
	return out.String()
}

func describe(r history.Record) string {
	kind := "E"
	if r.Kind == history.Command {
		kind = "C"
	}
	raw := r.AppendPayload(nil, "x")
	var p map[string]any
	_ = json.Unmarshal(raw, &p)
	node := ""
	if id, ok := p["nodeId"].(string); ok {
		node = "(" + id + ")"
	}
	delete(p, "executionId")
	delete(p, "nodeId")
	if r.Name == history.CheckpointWritten {
		for _, k := range []string{"policy", "definitionHash", "stateRef", "workflowVersion"} {
			delete(p, k)
		}
	}
	if r.Name == history.ExecutionStarted {
		for _, k := range []string{"definitionHash", "inputHash"} {
			delete(p, k)
		}
	}
	line := kind + " " + string(r.Name) + node
	if len(p) > 0 {
		line += " " + text(p)
	}
	return line
}

func text(v any) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(buf.String())
}

func (b *bench) pending() string {
	var out strings.Builder
	for _, w := range b.m.Pending() {
		fmt.Fprintf(&out, "%s %s", w.Kind, w.Key)
		if w.Span != nil {
			fmt.Fprintf(&out, " branch=%s", w.Span.BranchName)
		}
		if w.LastError != "" {
			fmt.Fprintf(&out, " last=%q/%s", w.LastError, w.LastCode)
		}
		fmt.Fprintf(&out, " state=%s", text(w.State))
		if w.Filled != nil {
			fmt.Fprintf(&out, " filled=%s", text(w.Filled))
		}
		if w.Question != "" || w.Show != nil {
			fmt.Fprintf(&out, " asks=%q shows=%s", w.Question, text(w.Show))
		}
		if j := w.Journal; j != nil {
			fmt.Fprintf(&out, " steps=%d from %d to %d totals=%s idle=%v", j.Count, j.First, j.Last, text(j.Totals), j.Idle)
		}
		if w.Items > 0 {
			fmt.Fprintf(&out, " item %d of %d", w.Item, w.Items)
		}
		if !w.Deadline.IsZero() && (w.Kind == machine.WaitInterrupt || w.Kind == machine.WaitSignal) {
			fmt.Fprintf(&out, " deadline in %s", w.Deadline.Sub(b.now.Truncate(time.Millisecond)))
		}
		if !w.BlockDeadline.IsZero() {
			fmt.Fprintf(&out, " block ends in %s", w.BlockDeadline.Sub(b.now.Truncate(time.Millisecond)))
		}
		out.WriteString("\n")
	}
	return cmp.Or(out.String(), "nothing\n")
}

// check rebuilds the run from its history and from its position: both machines must equal the running one and add nothing.
func (b *bench) check() {
	b.t.Helper()
	rebuilt, err := machine.Replay(b.prog, b.m.Config(), roundTrip(b.t, b.rows), nil, b.now)
	if err != nil {
		b.t.Fatalf("replay: %v", err)
	}
	b.same("replay", rebuilt)
	position := b.m.Position()
	if position == nil {
		return
	}
	b.positions = append(b.positions, position)
	var state map[string]any
	if seq := machine.PositionStateSeq(position); seq > 0 {
		state = b.rows[seq-1].Payload.State
	}
	restored, err := machine.Restore(b.prog, position, state)
	if err != nil {
		b.t.Fatalf("restore: %v", err)
	}
	restored.SetLimits(0, b.m.Config().Limits)
	if err := restored.Catchup(nil, b.now); err != nil {
		b.t.Fatalf("catch up: %v", err)
	}
	b.same("restore", restored)
	if !b.m.Status().Terminal() {
		mode := b.m.Config().Mode
		switch b.goOn {
		case "replay":
			b.m = rebuilt
		case "restore":
			b.m = restored
		}
		b.m.SetMode(mode) // the history knows it only of what was requested
	}
}

func (b *bench) same(how string, o *machine.Machine) {
	b.t.Helper()
	if batch := o.Ready(); len(batch.Records)+len(batch.Effects) > 0 {
		var lines []string
		for _, r := range batch.Records {
			lines = append(lines, describe(r))
		}
		for _, e := range batch.Effects {
			lines = append(lines, "effect "+e.Key())
		}
		b.t.Errorf("%s adds to the history:\n%s", how, strings.Join(lines, "\n"))
	}
	if got, want := summary(o), summary(b.m); got != want {
		b.t.Errorf("%s differs:\nwant %s\ngot  %s", how, want, got)
	}
}

// summary is everything of a machine that a driver can see.
func summary(m *machine.Machine) string {
	var parts []string
	for _, w := range m.Pending() {
		parts = append(parts, fmt.Sprintf("%s %s host=%t attempt=%d last=%q/%s due=%s deadline=%s state=%s input=%s filled=%s", w.Kind, w.Key, w.Host, w.Attempt, w.LastError, w.LastCode,
			w.Due.UTC(), w.Deadline.UTC(), text(w.State), text(w.DelegateInput), text(w.Filled)))
	}
	for _, tm := range m.Timers() {
		parts = append(parts, tm.Key+" "+tm.Due.UTC().String())
	}
	for _, e := range m.InFlight() {
		parts = append(parts, "in flight "+e.Key()+inHand(e))
		if d, ok := e.(*machine.DelegateEffect); ok && d.Task != nil {
			parts = append(parts, "answer "+text(d.Task.Answer))
		}
	}
	for _, tm := range m.Timers() {
		if e := m.Poll(tm.Key); e != nil {
			k := e.Task
			parts = append(parts, fmt.Sprintf("task %s/%s since %s asks=%t %q questions=%d round=%d", k.ID, k.Context, k.Since.UTC(), k.Asks, k.Prompt, k.Questions, k.Round))
		}
	}
	for _, k := range m.KeptSignals() {
		parts = append(parts, fmt.Sprintf("kept %s %d", k.Name, k.Count))
	}
	result, _ := m.Result()
	msg, code, _ := m.Failure()
	return fmt.Sprintf("%s seq=%d state=%s result=%s failure=%s/%s reason=%s rollbacks=%+v %s", m.Status(), m.Seq(), text(m.State()), text(result), msg, code, m.Reason(), m.Rollbacks(),
		strings.Join(parts, "; "))
}

// inHand describes what an attempt receives to repair the one before.
func inHand(e machine.Effect) string {
	if a, ok := e.(*machine.ActivityEffect); ok && a.Repair != nil {
		return " with " + text(a.Repair)
	}
	return ""
}

// roundTrip stores and reads records, as a history does.
func roundTrip(t testing.TB, rows []history.Record) []history.Record {
	out := make([]history.Record, len(rows))
	for i, r := range rows {
		raw := r.AppendPayload(nil, "x")
		p, err := history.DecodePayload(r.Name, raw)
		if err != nil {
			t.Fatalf("decode %s: %v", r.Name, err)
		}
		out[i] = history.Record{Seq: r.Seq, Kind: r.Kind, Name: r.Name, Payload: p, CreatedAt: r.CreatedAt}
	}
	return out
}
