package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// TestAPersonIsAskedByTheHost: every call that drives a run to an interrupt, or looks at it with a wait, has the host ask the person, goes
// on with their answer and says how that ended. The record says who answered and how.
func TestAPersonIsAskedByTheHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool  string
		nodes []object
		// before are calls of another host, which asks nobody.
		before, args object
	}{
		{"workflow_start", []object{approval}, nil, object{"execution_id": "r", "definition": walk(approval), "title": "Ticket 7"}},
		{"workflow_status", []object{approval}, object{}, object{"execution_id": "r", "wait_ms": 20000}},
		{"workflow_status", []object{approval}, object{}, object{"execution_id": "r", "wait_ms": 20000, "since_seq": 1000}},
		{"workflow_resume", []object{approval}, object{}, object{"execution_id": "r"}},
		{"workflow_submit_activity", []object{work, approval}, object{}, object{"execution_id": "r", "node_id": "work", "outcome": object{"ok": true}}},
		{"workflow_signal", []object{goes, approval}, object{}, object{"execution_id": "r", "signal_name": "go"}},
		{"workflow_resume", []object{formNode("first", "?", object{"a": object{"type": "object"}}), approval}, object{}, object{"execution_id": "r", "resume_payload": object{}}},
		{"workflow_fork", []object{approval}, object{}, object{"execution_id": "r", "node_id": "ask", "new_execution_id": "f"}},
	} {
		t.Run(fmt.Sprintf("%s %d", c.tool, len(c.nodes)), func(t *testing.T) {
			eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
				p := says(accepts(object{"approve": true, "unasked": 1}))
				o := newOffice(t, graph.Options{}, mcpserver.Options{})
				if c.before != nil {
					o.host(revision, nil).ok("workflow_start", object{"execution_id": "r", "definition": walk(c.nodes...), "title": "Ticket 7"})
				}
				h := o.host(revision, p)
				r := h.raw(c.tool, c.args)
				id, _ := r.content["execution_id"].(string)
				phase := r.content["status"]
				if c.tool == "workflow_status" {
					phase = r.content["phase"]
				}
				if phase != "completed" || at(t, r.content, "result", "approve") != true || r.content["repeated"] != nil || at(t, r.content, "result").(object)["unasked"] != nil {
					t.Errorf("answered %s", r.text)
				}
				if got := p.questions(); len(got) != 1 || got[0] != "Refund 10 €?\n\nWorkflow refunds, run "+id+": Ticket 7" {
					t.Fatalf("asked %q", got)
				}
				form, _ := json.Marshal(p.asked[0].RequestedSchema)
				if string(form) != `{"properties":{"approve":{"type":"boolean"}},"required":["approve"],"type":"object"}` {
					t.Errorf("the form is %s", form)
				}
				by := resumed(t, h, id)
				if want := "desk 3 (elicitation)"; by[len(by)-1] != want || slices.Contains(by[:len(by)-1], want) {
					t.Errorf("recorded %q", by)
				}
			})
		})
	}
}

// TestAPersonIsNotAsked: by calls that only look, where the operator or the host wants it so, and where there is no form for the answer.
func TestAPersonIsNotAsked(t *testing.T) {
	free := object{"id": "ask", "type": "interrupt", "config": object{"prompt": "?", "resume_schema": object{"type": "object"}}}
	eachRevision(t, append([]string{"2025-03-26"}, askingRevisions...), func(t *testing.T, revision string) {
		p := says(accepts(object{"approve": true}))
		for _, c := range []struct {
			name string
			mode elicit.Mode
			p    *person
			node object
		}{{"never", elicit.Never, p, approval}, {"no elicitation", elicit.Auto, nil, approval}, {"no form", elicit.Auto, p, free}} {
			h := oneHost(t, revision, c.mode, c.p)
			answer := h.ok("workflow_start", object{"execution_id": "r", "definition": walk(c.node)})
			if answer["status"] != "interrupted" || at(t, answer, "next", "tool") != "workflow_resume" || at(t, answer, "next", "arguments", "resume_payload") == nil ||
				!contains(at(t, answer, "next", "note").(string), "Ask the person what prompt says") {
				t.Errorf("%s: %v", c.name, answer["next"])
			}
			if r := h.refused("VALIDATION_ERROR", "workflow_resume", object{"execution_id": "r"}); !contains(r.text, "resume_payload") {
				t.Errorf("%s: %s", c.name, r.text)
			}
			if answer := h.ok("workflow_resume", object{"execution_id": "r", "resume_payload": object{"approve": true}}); answer["status"] != "completed" {
				t.Errorf("%s: %v", c.name, answer)
			}
		}
		if revision == "2025-03-26" { // which knows no elicitation, whatever its client says
			return
		}
		h := oneHost(t, revision, elicit.Auto, p)
		start := object{"execution_id": "r", "definition": walk(work, approval)}
		h.ok("workflow_start", start)
		enginetest.Must(h.runner.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "work", OK: true}))
		for _, args := range []object{{}, {"node_id": "ask", "wait_ms": 100}, {"read": []any{"/x"}, "wait_ms": 100}} {
			args["execution_id"] = "r"
			h.ok("workflow_status", args)
		}
		if next := at(t, h.ok("workflow_status", object{"execution_id": "r"}), "next").(object); next["tool"] != "workflow_resume" ||
			at(t, next, "arguments").(object)["resume_payload"] != nil || !contains(next["note"].(string), "has the host ask the person") {
			t.Errorf("next is %v", next)
		}
		if got := p.questions(); len(got) > 0 {
			t.Errorf("asked %q", got)
		}
	})
}

// TestAPersonWhoDoesNotAnswer: the answer says so, nobody is asked again by the way, and a model is told not to answer for them. Asked for
// explicitly, they are asked again, a few times at most.
func TestAPersonWhoDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for want, said := range map[string]*mcp.ElicitResult{"declined to answer": declines, "closed the question": closes} {
		t.Run(said.Action, func(t *testing.T) {
			eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
				p := says(said)
				h := oneHost(t, revision, elicit.Auto, p)
				r := h.raw("workflow_start", object{"execution_id": "r", "definition": walk(approval)})
				for _, again := range []func() reply{
					func() reply { return r },
					func() reply { return h.raw("workflow_status", object{"execution_id": "r", "wait_ms": 1000}) },
					func() reply {
						return h.raw("workflow_start", object{"execution_id": "r", "definition": walk(approval), "allow_existing_execution_id": true})
					},
				} {
					r := again()
					next := at(t, r.content, "next").(object)
					if !contains(r.text, want) || next["tool"] != "workflow_resume" || !contains(next["note"].(string), want) ||
						!contains(next["note"].(string), "Do not answer for them") || at(t, next, "arguments").(object)["resume_payload"] != nil {
						t.Errorf("%s\n%v", r.text, next)
					}
				}
				if got := p.questions(); len(got) != 1 {
					t.Errorf("asked %d times", len(got))
				}
				for range elicit.MaxTimes - 1 {
					if r := h.raw("workflow_resume", object{"execution_id": "r"}); r.content["status"] != "interrupted" || !contains(r.text, want) {
						t.Errorf("again: %s", r.text)
					}
				}
				if r := h.refused("VALIDATION_ERROR", "workflow_resume", object{"execution_id": "r"}); !contains(r.text, "was asked 5 times") {
					t.Errorf("once more: %s", r.text)
				}
				if got := p.questions(); len(got) != elicit.MaxTimes {
					t.Errorf("asked %d times", len(got))
				}
				// The person has told the model in words.
				if answer := h.ok("workflow_resume", object{"execution_id": "r", "resume_payload": object{"approve": false}}); answer["status"] != "completed" {
					t.Errorf("%v", answer)
				}
				if by := resumed(t, h, "r"); len(by) != 1 || by[0] != "desk 3 (mcp)" {
					t.Errorf("recorded %q", by)
				}
			})
		})
	}
}

// TestAnAnswerThatDoesNotFit: what a form cannot demand is checked as for any answer. The person is asked once more, with what was wrong,
// and then no more.
func TestAnAnswerThatDoesNotFit(t *testing.T) {
	code := formNode("ask", "Which account?", object{"account": object{"type": "string", "pattern": "^[A-Z]{3}$"}}, "account")
	eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
		p := says(accepts(object{"account": "abc"}), accepts(object{"account": "ABC"}))
		h := oneHost(t, revision, elicit.Auto, p)
		if answer := h.ok("workflow_start", object{"execution_id": "r", "definition": walk(code)}); answer["status"] != "completed" || at(t, answer, "result", "account") != "ABC" {
			t.Errorf("%v", answer)
		}
		got := p.questions()
		if len(got) != 2 || !strings.HasPrefix(got[1], "Your answer is invalid: /account must ") || !contains(got[1], "\n\nWhich account?\n\n") {
			t.Errorf("asked %q", got)
		}
		// So it is if they are asked again after they have declined.
		p = says(declines, accepts(object{"account": "abc"}), accepts(object{"account": "ABC"}))
		h = oneHost(t, revision, elicit.Required, p)
		h.ok("workflow_start", object{"execution_id": "r", "definition": walk(code)})
		if answer := h.ok("workflow_resume", object{"execution_id": "r"}); answer["status"] != "completed" || len(p.questions()) != 3 {
			t.Errorf("asked %d times: %v", len(p.questions()), answer)
		}
		p = says(accepts(object{"account": "abc"}))
		h = oneHost(t, revision, elicit.Auto, p)
		r := h.raw("workflow_start", object{"execution_id": "r", "definition": walk(code)})
		if r.content["status"] != "interrupted" || !contains(r.text, "whose answers were invalid: ") || len(p.questions()) != 2 ||
			at(t, r.content, "next", "arguments", "resume_payload") == nil {
			t.Errorf("asked %d times: %s", len(p.questions()), r.text)
		}
	})
}

// TestAHostThatCannotShowTheForm: it is not asked again, and the model asks instead.
func TestAHostThatCannotShowTheForm(t *testing.T) {
	eachRevision(t, []string{firstAsking, lastAsking}, func(t *testing.T, revision string) {
		for _, mode := range []elicit.Mode{elicit.Auto, elicit.Required} {
			p := &person{reply: func(context.Context, int) (*mcp.ElicitResult, error) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "no screen"}
			}}
			h := oneHost(t, revision, mode, p)
			r := h.raw("workflow_start", object{"execution_id": "r", "definition": walk(approval)})
			note := at(t, r.content, "next", "note").(string)
			if !contains(r.text, "could not ask the person") || !contains(r.text, "no screen") || len(p.questions()) != 1 {
				t.Errorf("%s: %s", mode, r.text)
			}
			if mode == elicit.Auto && at(t, r.content, "next", "arguments", "resume_payload") == nil || mode == elicit.Required && !contains(note, "workflows-engine resume r --interrupt r:ask#1") {
				t.Errorf("%s: %v", mode, r.content["next"])
			}
		}
	})
}

// TestSeveralQuestions are asked one after the other within a call, up to a number that all hosts follow.
func TestSeveralQuestions(t *testing.T) {
	eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
		p := says(accepts(object{"approve": true}))
		h := oneHost(t, revision, elicit.Auto, p)
		var nodes []object
		for i := range 10 {
			nodes = append(nodes, formNode(fmt.Sprint("ask", i), fmt.Sprintf("Question %d?", i), object{"approve": object{"type": "boolean"}}, "approve"))
		}
		answer := h.ok("workflow_start", object{"execution_id": "r", "definition": walk(nodes...)})
		if answer["status"] != "interrupted" || answer["node_id"] != "ask8" || len(p.questions()) != 8 || !strings.HasPrefix(p.questions()[7], "Question 7?") {
			t.Errorf("after %d questions %v", len(p.questions()), answer)
		}
		if answer := h.ok("workflow_status", object{"execution_id": "r", "wait_ms": 20000}); answer["phase"] != "completed" || len(p.questions()) != 10 {
			t.Errorf("after %d questions %v", len(p.questions()), answer)
		}
	})
}

// oneWorkflow is a resolver that knows one definition, by every name.
type oneWorkflow []byte

func (text oneWorkflow) ResolveWorkflow(context.Context, string, string) (*definition.Document, error) {
	return definition.Parse(text)
}

// branches is a definition with a subworkflow "asks" in two branches, and what else stands in a third.
func branches(third object) object {
	node := func(name string) object {
		return object{"id": name, "type": "subworkflow", "config": object{"workflow_ref": "asks", "input_mapping": object{}}}
	}
	return object{
		"document": object{"schema": "s", "name": "branches", "version": "1"}, "state_schema": object{"type": "object"},
		"nodes": []any{
			object{"id": "begin", "type": "start"},
			object{"id": "fan", "type": "parallel", "config": object{"join": "all", "branches": []any{
				object{"name": "a", "entry": "one"}, object{"name": "b", "entry": "two"}, object{"name": "c", "entry": third["id"]},
			}}},
			node("one"), node("two"), third, object{"id": "finish", "type": "end"},
		},
		"edges": []any{
			object{"source": "__start__", "target": "begin"}, object{"source": "begin", "target": "fan"}, object{"source": "fan", "target": "finish"},
			object{"source": "one", "target": "finish"}, object{"source": "two", "target": "finish"}, object{"source": third["id"], "target": "finish"},
		},
	}
}

// TestQuestionsOfBranches: several interrupts at once are asked one after the other. A person does not keep the host's model from what it is
// to do itself meanwhile: where the question is an answer of the call, that is done first.
func TestQuestionsOfBranches(t *testing.T) {
	eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
		child := walk(approval)
		child["document"].(object)["name"] = "asks"
		text, _ := json.Marshal(child)
		p := &person{reply: func(context.Context, int) (*mcp.ElicitResult, error) {
			time.Sleep(5 * time.Second)
			return accepts(object{"approve": true}), nil
		}}
		o := newOffice(t, graph.Options{Workflows: oneWorkflow(text)}, mcpserver.Options{})
		h := o.host(revision, p)
		begun := time.Now()
		answer := h.ok("workflow_start", object{"execution_id": "r", "definition": branches(work)})
		if took := time.Since(begun); took != 0 || at(t, answer, "next", "tool") != "workflow_submit_activity" {
			t.Errorf("after %v %v", took, answer)
		}
		synctest.Wait()
		if revision != askingTicket && len(p.questions()) != 1 {
			t.Errorf("asked %d times meanwhile", len(p.questions()))
		}
		begun = time.Now()
		answer = h.ok("workflow_submit_activity", object{"execution_id": "r", "node_id": "work", "idempotency_key": "r:work#1.1", "outcome": object{"ok": true}})
		if took := time.Since(begun); took != 10*time.Second || answer["status"] != "completed" || len(p.questions()) != 2 {
			t.Errorf("after %v and %d questions %v", took, len(p.questions()), answer)
		}
		// A signal is nothing that the model has to do first.
		answer = h.ok("workflow_start", object{"execution_id": "s", "definition": branches(goes)})
		if answer["status"] != "awaiting_signal" || len(p.questions()) != 4 {
			t.Errorf("after %d questions %v", len(p.questions()), answer)
		}
	})
}

// TestSecretsAreNotShownToPeople: a question hides what answers hide, and a choice that would be hidden is none.
func TestSecretsAreNotShownToPeople(t *testing.T) {
	eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
		p := says(accepts(object{"approve": true}))
		o := newOffice(t, graph.Options{}, mcpserver.Options{Redaction: history.Redaction{}.WithMask(func(s string) string { return strings.ReplaceAll(s, "sesame", "***") })})
		h := o.host(revision, p)
		h.ok("workflow_start", object{"definition": walk(formNode("ask", "Is it sesame?", object{"approve": object{"type": "boolean"}}))})
		if got := p.questions(); len(got) != 1 || !strings.HasPrefix(got[0], "Is it ***?") {
			t.Errorf("asked %q", got)
		}
		answer := h.ok("workflow_start", object{"definition": walk(formNode("ask", "Which?", object{"word": object{"enum": []any{"sesame", "poppy"}}}))})
		if answer["status"] != "interrupted" || len(p.questions()) != 1 {
			t.Errorf("%v", answer)
		}
	})
}

// TestAHostThatChecksNothing: an answer that is not what the form asks for is told to the person, whoever notices it, and is no fault of the
// connection.
func TestAHostThatChecksNothing(t *testing.T) {
	t.Parallel()
	form := formNode("ask", "How many?", object{"n": object{"type": "integer", "default": 3}}, "n")
	for _, c := range []struct{ reply, complaint string }{
		{`"result":{"action":"accept","content":{"n":"seven"}}`, "/n must be integer"},
		{`"result":{"action":"accept"}`, `must have the member \"n\"`}, // the default is for the form to show, and for nobody to answer
		{`"result":{"action":"accept","content":{"n":9007199254740993}}`, "too large to be exact"},
		{`"error":{"code":-32602,"message":"n is no integer"}`, "n is no integer"},
	} {
		t.Run(c.complaint, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWire(t)
				w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"0"}}}`)
				def, _ := json.Marshal(walk(form))
				question := decode(t, w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"workflow_start","arguments":{"execution_id":"r","definition":%s}}}`, def)))
				answer := func(reply string) string {
					id, _ := json.Marshal(question["id"])
					return strings.Join(w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, reply)), "\n")
				}
				again := answer(c.reply)
				if !contains(again, `"elicitation/create"`) || !contains(again, "Your answer is invalid: ") || !contains(again, c.complaint) {
					t.Fatalf("%s", again)
				}
				question = decode(t, []string{again})
				if last := answer(`"result":{"action":"accept","content":{"n":7}}`); !contains(last, `"status":"completed"`) || !contains(last, `"result":{"n":7}`) {
					t.Errorf("%s", last)
				}
			})
		})
	}
}

// TestAServerThatTakesNoAnswers: where the operator has left workflow_resume out, nobody is asked.
func TestAServerThatTakesNoAnswers(t *testing.T) {
	eachRevision(t, askingRevisions, func(t *testing.T, revision string) {
		p := says(accepts(object{"approve": true}))
		o := newOffice(t, graph.Options{}, mcpserver.Options{Tools: enginetest.Must(mcpserver.ParseTools("workflow_start,workflow_status"))})
		answer := o.host(revision, p).ok("workflow_start", object{"definition": walk(approval)})
		if answer["status"] != "interrupted" || at(t, answer, "next", "tool") != "workflow_status" || len(p.questions()) != 0 {
			t.Errorf("asked %q: %v", p.questions(), answer["next"])
		}
	})
}

// TestTheToolOfAWorkflowAsks: a registered workflow that is a tool has the person asked as workflow_start does, and runs once.
func TestTheToolOfAWorkflowAsks(t *testing.T) {
	t.Parallel()
	for _, revision := range askingRevisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			text, _ := json.Marshal(walk(approval))
			if err := os.WriteFile(filepath.Join(folder, "one.workflow.json"), text, 0o600); err != nil {
				t.Fatal(err)
			}
			p := says(accepts(object{"approve": true}))
			o := newOffice(t, graph.Options{}, mcpserver.Options{Catalog: catalog.New(folder, catalog.Options{}), ExposeWorkflows: true})
			res := enginetest.Must(o.host(revision, p).session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_refunds", Arguments: object{"n": 1}}))
			if answer := res.StructuredContent.(object); answer["status"] != "completed" || len(p.questions()) != 1 {
				t.Errorf("asked %q: %v", p.questions(), answer)
			}
			if runs := enginetest.Must(o.runner.List(t.Context(), history.ListQuery{})).Executions; len(runs) != 1 {
				t.Errorf("%d runs", len(runs))
			}
		})
	}
}
