package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	packages = flag.String("packages", "", "`folder` in which npm installed package.json; without it the checks of hosts are skipped")
	programs = flag.String("programs", "", "`folder` with workflows-engine and workflows-engine-mcp")
	patience = flag.Duration("patience", 3*time.Minute, "how long a host may take")
	update   = flag.Bool("update", false, "rewrite the transcripts of the page")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *packages != "" {
		fmt.Printf("| %-11s | %-48s | %s\n", "host", "check", "result")
	}
	os.Exit(m.Run())
}

// desk is a computer of its own for one check: a home directory, a project, a database and a scripted model.
type desk struct {
	t             *testing.T
	home, project string
	db            string
	model         *model
	url           string // of the endpoint, without a path
}

// The outcomes of the scripted model. The first one for classify does not fit the node's output_schema.
var (
	misfit = object{"intent": "refund", "confidence": "high"}
	sure   = object{"intent": "billing", "confidence": 0.94, "summary": "Customer was charged twice for one invoice"}
	unsure = object{"intent": "billing", "confidence": 0.62, "summary": "Customer was charged twice for one invoice"}
	ticket = object{"ticket": object{"id": "SUP-4211", "queue": "billing"}}
)

func newDesk(t *testing.T, classify ...object) *desk {
	t.Helper()
	if *packages == "" {
		t.Skip("needs installed hosts: make hosts")
	}
	root, err := os.MkdirTemp("", "desk") // a short path: tmux limits the length of its socket's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) }) // a host that still writes leaves a file in the temporary directory
	d := &desk{t: t, home: filepath.Join(root, "home"), project: filepath.Join(root, "project"), db: filepath.Join(root, "runs.db")}
	d.model = &model{start: object{"definition_ref": "lighthouse", "input": object{"ticket_text": "I was charged twice for my invoice"}},
		outcomes: map[string][]object{"classify": classify, "open_ticket": {ticket}}}
	for _, folder := range []string{d.home, d.project} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(&endpoint{model: d.model})
	t.Cleanup(server.Close)
	d.url = server.URL
	return d
}

// command prepares a program with the desk's environment and nothing of the caller's but PATH.
func (d *desk) command(name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), *patience)
	d.t.Cleanup(cancel)
	if name == "workflows-engine" {
		name = filepath.Join(*programs, name)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = d.project
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = []string{"PATH=" + *programs + ":" + os.Getenv("PATH"), "HOME=" + d.home, "TERM=xterm-256color", "LANG=C.UTF-8", "NO_COLOR=1",
		// Claude Code
		"ANTHROPIC_BASE_URL=" + d.url, "ANTHROPIC_AUTH_TOKEN=scripted", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
		// opencode
		"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"}
	return cmd
}

// run runs a program and returns its standard output and standard error; it must end with status 0.
func (d *desk) run(name string, args ...string) (stdout, stderr string) {
	d.t.Helper()
	cmd := d.command(name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		d.t.Fatalf("%s: %v\n%s\n%s\n%s", filepath.Base(name), err, out.String(), errs.String(), d.model.seen())
	}
	return out.String(), errs.String()
}

// engine runs a command of workflows-engine on the desk's database.
func (d *desk) engine(args ...string) string {
	d.t.Helper()
	out, _ := d.run("workflows-engine", append([]string{"--db", d.db}, args...)...)
	return out
}

// serverFlags are the flags of the server for install.
func (d *desk) serverFlags(more ...string) []string {
	example, err := filepath.Abs(filepath.Join("..", "..", "examples", "lighthouse"))
	if err != nil {
		d.t.Fatal(err)
	}
	return append([]string{"--", "--db", d.db, "--workflow-dir", example}, more...)
}

// write writes a file below the home directory.
func (d *desk) write(text string, path ...string) {
	d.t.Helper()
	file := filepath.Join(append([]string{d.home}, path...)...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		d.t.Fatal(err)
	}
}

// A host is one of the tried hosts.
type host struct {
	name, program string
	// register makes the server known to the host.
	register func(d *desk, flags ...string)
	// args makes the arguments that let the host work on a task without a person.
	args func(task string) []string
}

// task is what the person says. The scripted model does the same for any text.
const task = "Sort the ticket with the workflow lighthouse."

var claude = host{
	name: "claude-code", program: "@anthropic-ai/claude-code-linux-*/claude",
	register: func(d *desk, flags ...string) {
		// The file of somebody who has used Claude Code before. install keeps what is in it.
		d.write(compact(object{"hasCompletedOnboarding": true, "theme": "dark", "numStartups": 3,
			"projects": object{d.project: object{"hasTrustDialogAccepted": true}}}), ".claude.json")
		d.run("workflows-engine", append([]string{"install", "--host", "claude-code", "--yes"}, d.serverFlags(flags...)...)...)
	},
	args: func(task string) []string { return []string{"-p", task, "--allowedTools", "mcp__workflows"} },
}

var codex = host{
	name: "codex", program: "@openai/codex-linux-*/vendor/*/bin/codex",
	register: func(d *desk, flags ...string) {
		// install prints the entry, which a person pastes, and a note with the lines that permit calls.
		entry, note := d.run("workflows-engine", append([]string{"install", "--host", "codex", "--print"}, d.serverFlags(flags...)...)...)
		_, approval, ok := strings.Cut(note, "in its file:\n")
		if !ok {
			d.t.Fatalf("install says nothing of approvals: %s", note)
		}
		d.write("model = \"scripted\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = \""+d.url+"/v1\"\n"+
			"wire_api = \"responses\"\n\n"+entry+approval, ".codex", "config.toml")
	},
	args: func(task string) []string { return []string{"exec", "--skip-git-repo-check", task} },
}

var opencode = host{
	name: "opencode", program: "opencode-linux-x64/bin/opencode",
	register: func(d *desk, flags ...string) {
		d.write(compact(object{
			"provider": object{"scripted": object{"npm": "@ai-sdk/openai-compatible", "name": "scripted",
				"options": object{"baseURL": d.url + "/v1", "apiKey": "scripted"}, "models": object{"scripted": object{"name": "scripted"}}}},
			"model": "scripted/scripted", "autoupdate": false, "share": "disabled",
		}), ".config", "opencode", "opencode.json")
		d.run("workflows-engine", append([]string{"install", "--host", "opencode", "--yes"}, d.serverFlags(flags...)...)...)
	},
	args: func(task string) []string { return []string{"run", task} },
}

// path returns the host's program.
func (h host) path(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(*packages, "node_modules", filepath.FromSlash(h.program)))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s is not in %s (%v)", h.program, *packages, err)
	}
	return found[0]
}

// work lets a host work on the task without a person. A host that has started before it has connected to the server, as on a busy machine, gives
// its model no tools: it is started again.
func (d *desk) work(h host) {
	d.t.Helper()
	for range 5 {
		d.run(h.path(d.t), h.args(task)...)
		if d.model.seen() != "" {
			return
		}
	}
	d.t.Fatalf("%s gave its model no tools of the server", h.name)
}

// record is a line of history --json, as far as the checks read it.
type record struct {
	Kind, Name string
	Payload    struct {
		NodeID string `json:"nodeId"`
		Result object
		Actor  struct{ Via, Name, Version string }
	}
	line string
}

// history returns the records of the only run, and its id.
func (d *desk) history() (id string, records []record) {
	d.t.Helper()
	var list struct {
		Executions []struct {
			ID string `json:"execution_id"`
		}
	}
	if err := json.Unmarshal([]byte(d.engine("list", "--json")), &list); err != nil || len(list.Executions) != 1 {
		d.t.Fatalf("%d runs, not 1 (%v)\n%s", len(list.Executions), err, d.model.seen())
	}
	id = list.Executions[0].ID
	for line := range strings.Lines(d.engine("history", id, "--json")) {
		r := record{line: line}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			d.t.Fatalf("%v: %s", err, line)
		}
		records = append(records, r)
	}
	return id, records
}

// called returns the records with a name.
func called(records []record, name string) (list []record) {
	for _, r := range records {
		if r.Name == name {
			list = append(list, r)
		}
	}
	return list
}

// row prints a row of the table that make hosts shows.
func (d *desk) row(h host, what, result string) {
	d.t.Helper()
	fmt.Printf("| %-11s | %-48s | %s\n", h.name, what, result)
}

// keep writes the transcript of a check, shortened, for the page; without -update it writes nothing.
func (d *desk) keep(name string) {
	d.t.Helper()
	if err := writeTranscript(name, d.model.short()); err != nil {
		d.t.Fatal(err)
	}
}

// TestWithoutPerson: each host finds the registered server; its model starts the example, sends a result that does not fit, is refused, sends
// another one, and brings the run to its end. Nothing of the refused result is recorded.
func TestWithoutPerson(t *testing.T) {
	for _, h := range []host{claude, codex, opencode} {
		t.Run(h.name, func(t *testing.T) {
			d := newDesk(t, misfit, sure)
			h.register(d)
			d.work(h)
			_, records := d.history()
			if strings.Count(d.model.seen(), "SUBMIT_VALIDATION_ERROR") != 1 {
				t.Errorf("the model has not seen one refusal:\n%s", d.model.seen())
			}
			for _, r := range records {
				if strings.Contains(r.line, `"refund"`) || r.Name == "ActivityFailed" {
					t.Errorf("the refused result is recorded: %s", r.line)
				}
			}
			end := called(records, "ExecutionCompleted")
			if len(end) != 1 || end[0].Payload.Result["ticket_id"] != "SUP-4211" || end[0].Payload.Result["decided_in"] != "classify" {
				t.Fatalf("the run has not completed: %v\n%s", end, d.model.seen())
			}
			if h.name != codex.name { // its model sees what that of Claude Code sees
				d.keep(h.name)
			}
			d.row(h, "start, wrong result, right result, end", "refused once, then completed")
		})
	}
}

// answers returns who answered questions, as history shows it, and what they answered.
func answers(records []record) (list []string) {
	for _, r := range called(records, "ResumeInterrupt") {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s (%s)", r.Payload.Actor.Name, r.Payload.Actor.Version, r.Payload.Actor.Via)))
	}
	return list
}

// waits checks that the run waits for a person, without an answer.
func waits(t *testing.T, d *desk) (id string) {
	t.Helper()
	id, records := d.history()
	if list := answers(records); len(list) > 0 || len(called(records, "InterruptRaised")) != 1 || len(called(records, "ExecutionCompleted")) > 0 {
		t.Errorf("the run does not wait for its first answer: answered by %q\n%s", list, d.model.seen())
	}
	return id
}

// TestModelAnswers: with the default, --elicit auto, and no person there, the answer of the model is taken. The history says that it came over MCP,
// and the state does not say that a person decided.
func TestModelAnswers(t *testing.T) {
	for _, h := range []host{claude, codex, opencode} {
		t.Run(h.name, func(t *testing.T) {
			d := newDesk(t, unsure)
			d.model.answer = object{"intent": "billing"}
			h.register(d)
			d.permitAnswers(h)
			d.work(h)
			_, records := d.history()
			by := answers(records)
			if len(by) != 1 || !strings.HasSuffix(by[0], "(mcp)") {
				t.Errorf("answered by %q\n%s", by, d.model.seen())
			}
			end := called(records, "ExecutionCompleted")
			if len(end) != 1 || strings.Contains(end[0].line, `"person"`) || end[0].Payload.Result["decided_in"] != "ask_person" {
				t.Fatalf("the run ended with %v\n%s", end, d.model.seen())
			}
			d.row(h, "--elicit auto, nobody there", "the model answered; history: by "+by[0])
		})
	}
}

// permitAnswers takes out the line of install with which Codex asks before it passes on an answer.
func (d *desk) permitAnswers(h host) {
	d.t.Helper()
	if h.name != codex.name {
		return
	}
	text, err := os.ReadFile(filepath.Join(d.home, ".codex", "config.toml"))
	if err != nil {
		d.t.Fatal(err)
	}
	permitted := strings.Replace(string(text), `tools.workflow_resume.approval_mode = "prompt"`, "", 1)
	if permitted == string(text) {
		d.t.Fatalf("install does not print the mode of workflow_resume:\n%s", text)
	}
	d.write(permitted, ".codex", "config.toml")
}

// TestNobodyAnswers: with --elicit required and no person, the model's answer is not recorded, and the run waits. Codex as install has it
// configured cancels the call; if it is permitted there, and in the other hosts, the server rejects it. The question is then on the page.
func TestNobodyAnswers(t *testing.T) {
	t.Run("codex, not permitted", func(t *testing.T) {
		d := newDesk(t, unsure)
		d.model.answer = object{"intent": "billing"}
		codex.register(d, "--elicit", "required")
		d.work(codex)
		waits(t, d)
		if seen := d.model.seen(); strings.Contains(seen, "PERSON_REQUIRED") || !strings.Contains(seen, "requires approval") {
			t.Errorf("Codex passed on an answer without asking:\n%s", seen)
		}
		d.row(codex, "--elicit required, nobody there", "Codex cancelled the model's answer; the run waits")
	})
	for _, h := range []host{claude, codex, opencode} {
		t.Run(h.name, func(t *testing.T) {
			d := newDesk(t, unsure)
			d.model.answer = object{"intent": "billing"}
			h.register(d, "--elicit", "required")
			d.permitAnswers(h)
			d.work(h)
			id := waits(t, d)
			if !strings.Contains(d.model.seen(), "PERSON_REQUIRED") {
				t.Errorf("the server has not rejected the model's answer:\n%s", d.model.seen())
			}
			d.row(h, "--elicit required, nobody there", "PERSON_REQUIRED; the run waits")
			if h.name == codex.name {
				d.keep("codex-required")
				d.page(id)
				d.row(h, "the page over that database, by HTTP", "shows the run and the form of its question")
			}
		})
	}
}

// page serves the page over the desk's database, and checks that it shows the waiting run and its question.
func (d *desk) page(id string) {
	d.t.Helper()
	ui := d.command(filepath.Join(*programs, "workflows-engine"), "ui", "--no-open", "--json", "--host", "127.0.0.1", "--db", d.db)
	out, err := ui.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := ui.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _, _ = ui.Process.Kill(), ui.Wait() }) // a page that is killed ends with an error
	var at struct{ Link, Origin string }
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		d.t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	client := http.Client{Jar: jar, Timeout: *patience}
	read := func(method, path string, form url.Values) string {
		d.t.Helper()
		r, err := http.NewRequestWithContext(context.Background(), method, at.Origin+path, strings.NewReader(form.Encode()))
		if err != nil {
			d.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", at.Origin)
		res, err := client.Do(r)
		if err != nil {
			d.t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			d.t.Fatalf("%s %s: %s, %v: %s", method, path, res.Status, err, body)
		}
		return string(body)
	}
	list := read("POST", "/in", url.Values{"t": {at.Link}})
	question := read("GET", "/runs/"+id+"/questions/ask_person%231", nil)
	for _, text := range []string{"The model is not sure what this ticket is about.", "technical", "<form"} {
		if !strings.Contains(question, text) {
			d.t.Errorf("the page of the question does not show %q", text)
		}
	}
	if !strings.Contains(list, id) {
		d.t.Errorf("the start page does not list the run %s", id)
	}
}

// terminal is a terminal of tmux.
type terminal struct {
	d      *desk
	socket string
}

// open starts a program in a terminal.
func (d *desk) open(name string, args ...string) *terminal {
	d.t.Helper()
	term := &terminal{d: d, socket: filepath.Join(filepath.Dir(d.home), "tmux")}
	cmd := d.command("tmux", append([]string{"-S", term.socket, "-f", os.DevNull, "new-session", "-d", "-x", "110", "-y", "200", name}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("tmux: %v: %s", err, out)
	}
	d.t.Cleanup(term.close)
	return term
}

// close ends the terminal, and waits until its program has written its last file.
func (term *terminal) close() {
	out, err := term.tmux("display-message", "-p", "#{pane_pid}").Output()
	if err != nil {
		return // it has ended with its program
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		term.d.t.Error(err)
		return
	}
	if err := term.tmux("kill-server").Run(); err != nil {
		term.d.t.Error(err)
	}
	program, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(*patience); program.Signal(syscall.Signal(0)) == nil; {
		select {
		case <-end:
			term.d.t.Errorf("process %d of the terminal has not ended", pid)
			return
		case <-tick.C:
		}
	}
}

func (term *terminal) tmux(args ...string) *exec.Cmd {
	return exec.Command("tmux", append([]string{"-S", term.socket}, args...)...)
}

// screen returns the text on the screen.
func (term *terminal) screen() string {
	out, err := term.tmux("capture-pane", "-p").CombinedOutput()
	if err != nil {
		return err.Error() + ": " + string(out)
	}
	return string(out)
}

// until waits until the screen is as wanted, and returns it.
func (term *terminal) until(what string, wanted func(screen string) bool) string {
	term.d.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(*patience); ; {
		screen := term.screen()
		if wanted(screen) {
			return screen
		}
		select {
		case <-end:
			term.d.t.Fatalf("the screen does not show %s:\n%s\n%s", what, screen, term.d.model.seen())
		case <-tick.C:
		}
	}
}

// await waits until the screen shows all texts, and returns it.
func (term *terminal) await(texts ...string) string {
	term.d.t.Helper()
	return term.until(strings.Join(texts, ", "), func(screen string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(screen, text) })
	})
}

// press presses keys, by their tmux names.
func (term *terminal) press(keys ...string) {
	term.d.t.Helper()
	if out, err := term.tmux(append([]string{"send-keys"}, keys...)...).CombinedOutput(); err != nil {
		term.d.t.Fatalf("tmux: %v: %s", err, out)
	}
}

// question opens Claude Code in a terminal, types the task, and waits for the form of the question.
func (d *desk) question() *terminal {
	d.t.Helper()
	claude.register(d, "--elicit", "required")
	term := d.open(claude.path(d.t), "--allowedTools", "mcp__workflows")
	term.await("for shortcuts")
	// Claude Code takes tasks before it has connected to its servers. Its model then has no tools, and the person says it again.
	for refused := 0; ; refused++ {
		term.press(task)
		term.until(task, func(screen string) bool { return strings.Count(screen, task) > refused })
		term.press("Enter")
		screen := term.until("a form, or that there are no tools", func(screen string) bool {
			return strings.Contains(screen, "requests your input") || strings.Count(screen, noTools) > refused
		})
		if strings.Contains(screen, "requests your input") {
			break
		}
	}
	term.await("The model is not sure what this ticket is about.", "ticket_text: I was charged twice for my invoice", "confidence: 0.62", "Decline")
	return term
}

// TestPersonAnswers: Claude Code shows the question as a form with the values to choose from. The person's choice, which is not the model's, is
// recorded as the answer to a form of that client, and the run ends with it.
func TestPersonAnswers(t *testing.T) {
	d := newDesk(t, unsure)
	d.model.outcomes["search_articles"] = []object{{"articles": []string{"Why an invoice is charged twice"}}}
	term := d.question()
	term.press("Right")
	form := term.await("◯ billing", "◯ technical", "◯ other")
	term.press("Down")
	term.await("❯ ◯ technical")
	term.press("Enter")
	term.await("✔ intent: technical", "❯ Accept")
	term.press("Enter")
	term.await("The run is completed.")
	_, records := d.history()
	by := answers(records)
	if len(by) != 1 || !strings.HasPrefix(by[0], "claude-code ") || !strings.HasSuffix(by[0], "(elicitation)") {
		t.Errorf("answered by %q\n%s", by, d.model.seen())
	}
	end := called(records, "ExecutionCompleted")
	if len(end) != 1 || end[0].Payload.Result["intent"] != "technical" || end[0].Payload.Result["decided_in"] != "ask_person" {
		t.Fatalf("the run ended with %v\n%s", end, d.model.seen())
	}
	_, form, _ = strings.Cut(form, "MCP server")
	form, _, _ = strings.Cut(form, "  Esc to cancel")
	if err := writeTranscript("claude-code-form", "  MCP server"+form); err != nil {
		t.Fatal(err)
	}
	d.row(claude, "--elicit required, the person fills in the form", "completed; history: by "+by[0])
}

// TestPersonDeclines: after Decline the run waits, and the server rejects the answer of the model.
func TestPersonDeclines(t *testing.T) {
	d := newDesk(t, unsure)
	d.model.answer = object{"intent": "billing"}
	term := d.question()
	term.press("Down")
	term.await("❯ Accept")
	term.press("Right")
	term.await("❯ Decline")
	term.press("Enter")
	term.await("I stop here.")
	waits(t, d)
	if seen := d.model.seen(); !strings.Contains(seen, "declined") || !strings.Contains(seen, "PERSON_REQUIRED") {
		t.Errorf("the model has not been told that the person declined, and that it must not answer:\n%s", seen)
	}
	d.row(claude, "--elicit required, the person declines the form", "PERSON_REQUIRED for the model; the run waits")
}
