package graph_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// answerUnnamed answers a run without saying which question.
func answerUnnamed(t *testing.T, r *graph.Runner, id string, payload object) (*view.Run, error) {
	t.Helper()
	return r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, Payload: payload})
}

// asked are the ids of the questions that a run asks.
func asked(run *view.Run) string {
	var ids []string
	for _, p := range run.Pending {
		if p.Kind == machine.WaitInterrupt {
			ids = append(ids, p.ID)
		}
	}
	return strings.Join(ids, " ")
}

// lapsing is an interrupt with a deadline, after which the run goes on at a node.
func lapsing(id, timeout, next string) string {
	return `{"id":"` + id + `","type":"interrupt","on_timeout":"` + next + `","config":{"prompt":"well?","timeout":"` + timeout +
		`","resume_schema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}}`
}

// TestAnAnswerThatComesTwiceAnswersOneQuestion: whoever sends an answer again, at once or later, from any process, is told so, and the
// next question stays open. With its id an answer is taken, whatever its content.
func TestAnAnswerThatComesTwiceAnswersOneQuestion(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflow(t, "two", []string{startNode(), interrupt("clerk"), interrupt("boss"), tool("pay"), endNode()}, "s clerk", "clerk boss", "boss pay", "pay e")
	start(t, r, "r", d, nil)
	run, err := answerUnnamed(t, r, "r", object{"ok": true})
	if err != nil || run.Repeated || asked(run) != "r:boss#1" {
		t.Fatalf("the first answer: %+v, %v", run, err)
	}
	for _, again := range []*graph.Runner{r, newRunner(t, store, graph.Options{})} {
		unchanged(t, store, func() {
			if run, err := answerUnnamed(t, again, "r", object{"ok": true}); err != nil || !run.Repeated || asked(run) != "r:boss#1" {
				t.Errorf("again: %+v, %v", run, err)
			}
		})
	}
	run, err = answerUnnamed(t, r, "r", object{"ok": false})
	if err != nil || run.Repeated || run.Status != machine.AwaitingActivity {
		t.Errorf("another answer, to the one question that is open: %+v, %v", run, err)
	}
	unchanged(t, store, func() {
		_, err := answerUnnamed(t, r, "r", object{"ok": false}) // nobody asks: refused by the protocol
		if p := wantCode(t, err, problem.InvalidResumePayload); p.Reason != problem.NotAwaiting || !strings.Contains(p.Hint, "was recorded before") {
			t.Errorf("%+v", p)
		}
	})
	start(t, r, "named", d, nil)
	for _, id := range []string{"named:clerk#1", "named:boss#1"} {
		if run, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "named", InterruptID: id, Payload: object{"ok": true}}); err != nil || run.Repeated {
			t.Errorf("%s: %+v, %v", id, run, err)
		}
	}
}

// TestADoubleClickAnswersOneQuestion sends the same answer many times at once.
func TestADoubleClickAnswersOneQuestion(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	d := workflow(t, "two", []string{startNode(), interrupt("clerk"), interrupt("boss"), endNode()}, "s clerk", "clerk boss", "boss e")
	start(t, r, "r", d, nil)
	var all sync.WaitGroup
	taken := make(chan bool, 8)
	for range cap(taken) {
		all.Go(func() {
			run, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}})
			if err != nil {
				t.Error(err)
				return
			}
			taken <- !run.Repeated
		})
	}
	all.Wait()
	close(taken)
	n := 0
	for first := range taken {
		if first {
			n++
		}
	}
	if run := status(t, r, "r"); n != 1 || asked(run) != "r:boss#1" {
		t.Errorf("%d answers taken, open %q", n, asked(run))
	}
}

// TestAnAnswerWithoutAnIDMustMeanOneQuestion: with several open, wherever they are asked, or one that ended unanswered since the last
// answer, it is refused with the list of what is open, and nothing changes.
func TestAnAnswerWithoutAnIDMustMeanOneQuestion(t *testing.T) {
	t.Parallel()
	child := `{"id":"each","type":"subworkflow","config":{"workflow_ref":"urn:child","input_mapping":{}},"map":{"items":".xs","collect":"got"}}`
	for name, c := range map[string]struct {
		nodes []string
		edges []string
		wait  time.Duration
		named string // answered first, by its id
		open  string
	}{
		"branches":     {[]string{fork("p", "all", "a", "b"), interrupt("a"), interrupt("b"), endNode()}, []string{"s p", "p e", "a e", "b e"}, 0, "", "r:a#1 r:b#1"},
		"map":          {[]string{child, endNode()}, []string{"s each", "each e"}, 0, "", "r:sub:each#2:i#1 r:sub:each#3:i#1"},
		"subworkflows": {[]string{fork("p", "all", "v", "a"), subworkflow("v", "urn:child"), interrupt("a"), endNode()}, []string{"s p", "p e", "a e", "v e"}, 0, "", "r:sub:v:i#1 r:a#1"},
		"too late":     {[]string{lapsing("i", "1m", "j"), interrupt("j"), endNode()}, []string{"s i", "i e", "j e"}, time.Hour, "", "r:j#1"},
		"too late in a loop": {[]string{lapsing("i", "50m", "again"), `{"id":"again","type":"set_state","config":{"assignments":{"n":{"literal":1}}}}`, endNode()},
			[]string{"s i", "i e", "again i"}, time.Hour, "", "r:i#2"},
		"too late in a subworkflow": {[]string{subworkflow("v", "urn:late"), interrupt("j"), endNode()}, []string{"s v", "v j", "j e"}, time.Hour, "", "r:j#1"},
		"too late beside an answer": {[]string{fork("p", "all", "a", "b"), lapsing("a", "50m", "x"), `{"id":"x","type":"set_state","config":{"assignments":{"n":{"literal":1}}}}`,
			interrupt("b"), interrupt("j"), endNode()}, []string{"s p", "p j", "a j", "x j", "b j", "j e"}, time.Hour, "r:b#1", "r:j#1"},
		"lost a race": {[]string{fork("p", "any", "a", "b"), interrupt("a"), interrupt("b"), interrupt("j"), endNode()},
			[]string{"s p", "p j", "a j", "b j", "j e"}, 0, "r:b#1", "r:j#1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				r := newRunner(t, store, graph.Options{Work: graph.WorkAll})
				register(t, r, "urn:child", workflow(t, "child", []string{startNode(), interrupt("i"), endNode()}, "s i", "i e"))
				register(t, r, "urn:late", workflowWith(t, "late", `"x-workflows-engine":{"uses":["on_timeout","map","loop","interrupt_in_branch"]}`, []string{startNode(), lapsing("i", "1m", "e"), endNode()}, "s i", "i e"))
				d := workflowWith(t, "w", `"x-workflows-engine":{"uses":["on_timeout","map","loop","interrupt_in_branch"]}`, append([]string{startNode()}, c.nodes...), c.edges...)
				start(t, r, "r", d, object{"xs": []any{1, 2}})
				if c.named != "" {
					if _, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: c.named, Payload: object{"ok": false}}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(c.wait)
				if open := asked(settled(t, r, "r")); open != c.open {
					t.Fatalf("open are %q", open)
				}
				unchanged(t, store, func() {
					_, err := answerUnnamed(t, r, "r", object{"ok": true})
					p := wantCode(t, err, problem.InvalidResumePayload)
					var listed []string
					open, _ := p.Details["open"].([]any)
					for _, q := range open {
						listed = append(listed, q.(map[string]any)["interrupt_id"].(string))
					}
					if p.Reason != problem.AnswerAmbiguous || strings.Join(listed, " ") != c.open || !strings.Contains(p.Hint, listed[0]+" well?") {
						t.Errorf("%s, details %v, hint %q", p.Reason, p.Details, p.Hint)
					}
				})
				for _, id := range strings.Fields(c.open) {
					if _, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: id, Payload: object{"ok": true}}); err != nil {
						t.Errorf("with its id %s: %v", id, err)
					}
				}
			})
		})
	}
}

// TestALapsedQuestionCountsUntilTheNextAnswer: once another question has been answered by its id, an answer without one is taken again.
func TestALapsedQuestionCountsUntilTheNextAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, historymem.New(), graph.Options{Work: graph.WorkAll})
		d := workflowWith(t, "w", `"x-workflows-engine":{"uses":["on_timeout","map","loop","interrupt_in_branch"]}`, []string{startNode(), lapsing("i", "1m", "j"), interrupt("j"), interrupt("k"), endNode()}, "s i", "i j", "j k", "k e")
		start(t, r, "r", d, nil)
		time.Sleep(time.Hour)
		if _, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: "r:j#1", Payload: object{"ok": true}}); err != nil {
			t.Fatal(err)
		}
		if run, err := answerUnnamed(t, r, "r", object{"ok": false}); err != nil || run.Repeated || run.Status != machine.Completed {
			t.Errorf("%+v, %v", run, err)
		}
	})
}

// TestAnAnswerThatOthersAnsweredAfterAnswersNothingElse: the boss answers between the clerk's call and its repetition. Whoever has answered
// something else since, and so has seen that the first answer was taken, may give the same answer to another question.
func TestAnAnswerThatOthersAnsweredAfterAnswersNothingElse(t *testing.T) {
	t.Parallel()
	yes, other := object{"ok": true}, object{"ok": true, "note": "fine"}
	type answer struct {
		who     string
		named   bool
		payload object
	}
	for name, c := range map[string]struct {
		before   []answer
		again    answer
		repeated bool
	}{
		"another answered since":           {[]answer{{"clerk", false, yes}, {"boss", false, other}}, answer{"clerk", false, yes}, true},
		"by its id at first":               {[]answer{{"clerk", true, yes}, {"boss", true, other}}, answer{"clerk", false, yes}, true},
		"of nobody who is known":           {[]answer{{"", false, yes}, {"boss", false, other}}, answer{"", false, yes}, true},
		"by its id now":                    {[]answer{{"clerk", false, yes}, {"boss", false, other}}, answer{"clerk", true, yes}, false},
		"something else was said since":    {[]answer{{"clerk", false, yes}, {"clerk", false, other}}, answer{"clerk", false, yes}, false},
		"nobody said something else since": {[]answer{{"", false, yes}, {"", false, other}}, answer{"", false, yes}, false},
		"somebody else":                    {[]answer{{"clerk", false, yes}, {"boss", false, other}}, answer{"head", false, yes}, false},
		"another content":                  {[]answer{{"clerk", false, yes}, {"boss", false, other}}, answer{"clerk", false, object{"ok": false}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, store := host(t, graph.Options{})
				register(t, r, "urn:child", workflow(t, "child", []string{startNode(), interrupt("a"), endNode()}, "s a", "a e"))
				d := workflow(t, "three", []string{startNode(), subworkflow("v", "urn:child"), interrupt("b"), interrupt("c"), endNode()}, "s v", "v b", "b c", "c e")
				start(t, r, "r", d, nil)
				send := func(r *graph.Runner, a answer) (*view.Run, error) {
					req := graph.ResumeRequest{ExecutionID: "r", Payload: a.payload}
					if a.named {
						req.InterruptID = asked(status(t, r, "r"))
					}
					time.Sleep(time.Second)
					ctx := t.Context()
					if a.who != "" {
						ctx = as(t, a.who)
					}
					return r.Resume(ctx, req)
				}
				for _, a := range c.before {
					if run, err := send(r, a); err != nil || run.Repeated {
						t.Fatalf("%+v: %+v, %v", a, run, err)
					}
				}
				if c.repeated {
					for _, again := range []*graph.Runner{r, newRunner(t, store, graph.Options{})} {
						unchanged(t, store, func() {
							if run, err := send(again, c.again); err != nil || !run.Repeated || asked(run) != "r:c#1" {
								t.Errorf("%+v, %v", run, err)
							}
						})
					}
					return
				}
				if run, err := send(r, c.again); err != nil || run.Repeated || run.Status != machine.Completed {
					t.Errorf("%+v, %v", run, err)
				}
			})
		})
	}
}

// TestTheAnswerThatIsRepeatedIsNamed where nothing is asked any more, and another answer was the last one.
func TestTheAnswerThatIsRepeatedIsNamed(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	start(t, r, "r", workflow(t, "two", []string{startNode(), interrupt("a"), interrupt("b"), endNode()}, "s a", "a b", "b e"), nil)
	yes := graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}}
	if _, err := r.Resume(as(t, "clerk"), yes); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(as(t, "boss"), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": false}}); err != nil {
		t.Fatal(err)
	}
	_, err := r.Resume(as(t, "clerk"), yes)
	if e := wantCode(t, err, problem.InvalidResumePayload); e.Details["repeated"] != true || !strings.Contains(e.Hint, "was recorded before by clerk") {
		t.Errorf("%v, %s", e.Details, e.Hint)
	}
}

// TestTwoAnswersAtOnceAnswerOneQuestion: of two different answers without an id that are under way at once, one is taken; the other, which
// was made for the same question, is told what was recorded, and the question that is asked next stays open. Afterwards it can be answered
// without an id.
func TestTwoAnswersAtOnceAnswerOneQuestion(t *testing.T) {
	t.Parallel()
	child := []string{startNode(), interrupt("a"), interrupt("b"), endNode()}
	for name, next := range map[string]string{"of the run": "r:b#1", "of a subworkflow": "r:sub:v:b#1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRunner(t, slowStore{historymem.New()}, graph.Options{Work: graph.WorkAll})
				d := workflow(t, "child", child, "s a", "a b", "b e")
				if strings.Contains(next, ":sub:") {
					register(t, r, "urn:child", d)
					d = workflow(t, "above", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e")
				}
				start(t, r, "r", d, nil)
				first := make(chan error, 1)
				go func() {
					_, err := r.Resume(as(t, "kim"), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}})
					first <- err
				}()
				synctest.Wait() // the first answer is being stored
				_, err := r.Resume(as(t, "lee"), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": false}})
				if e := wantCode(t, err, problem.InvalidResumePayload); e.Reason != problem.AnsweredDifferently || !strings.Contains(e.Hint, "Recorded by kim") {
					t.Errorf("%v, %s: %s", e, e.Reason, e.Hint)
				}
				if err := <-first; err != nil {
					t.Errorf("the first answer: %v", err)
				}
				if open := asked(settled(t, r, "r")); open != next {
					t.Errorf("open is %q", open)
				}
				if run, err := answerUnnamed(t, r, "r", object{"ok": false}); err != nil || run.Repeated || settled(t, r, "r").Status != machine.Completed {
					t.Errorf("afterwards: %+v, %v", run, err)
				}
			})
		})
	}
}
