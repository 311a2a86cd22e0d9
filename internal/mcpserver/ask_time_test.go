package mcpserver_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// TestAnswersTakeTime: a call waits for the person no longer than for a run. The question stays open, nobody is asked twice, other calls
// are answered, and the answer is recorded when it comes, whether a call waits for it or not.
func TestAnswersTakeTime(t *testing.T) {
	eachRevision(t, []string{firstAsking, lastAsking}, func(t *testing.T, revision string) {
		answered := make(chan *mcp.ElicitResult)
		p := &person{reply: func(context.Context, int) (*mcp.ElicitResult, error) { return <-answered, nil }}
		h := oneHost(t, revision, elicit.Auto, p)
		begun := time.Now()
		r := h.raw("workflow_start", object{"execution_id": "r", "definition": walk(approval, work)})
		if took := time.Since(begun); took != 20*time.Second || r.content["status"] != "interrupted" || !contains(r.text, "has not answered yet") {
			t.Errorf("after %v: %s", took, r.text)
		}
		if next := at(t, r.content, "next").(object); next["tool"] != "workflow_status" || at(t, next, "arguments", "wait_ms") != 50000.0 || !contains(next["note"].(string), "do not answer for them") {
			t.Errorf("next is %v", next)
		}
		// A waiting call holds up neither others about the run, nor others.
		waits := make(chan reply)
		go func() { waits <- h.raw("workflow_status", object{"execution_id": "r", "wait_ms": 300_000}) }()
		synctest.Wait()
		begun = time.Now()
		h.ok("workflow_status", object{"execution_id": "r"})
		h.ok("workflow_start", object{"execution_id": "other", "definition": walk(work)})
		h.ok("workflow_submit_activity", object{"execution_id": "other", "node_id": "work", "outcome": object{"ok": true}})
		h.ok("workflow_start", object{"execution_id": "r", "definition": walk(approval, work), "allow_existing_execution_id": true, "wait_ms": 0})
		if took := time.Since(begun); took != 0 {
			t.Errorf("other calls waited %v", took)
		}
		time.Sleep(4 * time.Minute)
		answered <- accepts(object{"approve": true})
		if r := <-waits; r.content["phase"] != "awaiting_activity" || r.content["current_node_id"] != "work" {
			t.Errorf("the waiting call: %s", r.text)
		}
		if n := len(p.questions()); n != 1 {
			t.Errorf("asked %d times", n)
		}
		// With nobody waiting.
		h.ok("workflow_start", object{"execution_id": "late", "definition": walk(approval, work), "wait_ms": 0})
		time.Sleep(3 * time.Hour)
		answered <- accepts(object{"approve": true})
		synctest.Wait()
		if run := enginetest.Must(h.runner.Status(t.Context(), graph.StatusRequest{ExecutionID: "late"})); run.Status != machine.AwaitingActivity {
			t.Errorf("the run is %s", run.Status)
		}
		for _, id := range []string{"r", "late"} {
			if by := resumed(t, h, id); !slices.Equal(by, []string{"desk 3 (elicitation)"}) {
				t.Errorf("%s: recorded %q", id, by)
			}
		}
	})
}

// TestACancelledCallLosesNoAnswer: a host that gives up the call while the person thinks, as hosts do after a minute, still brings the
// answer to the run.
func TestACancelledCallLosesNoAnswer(t *testing.T) {
	eachRevision(t, []string{firstAsking, lastAsking}, func(t *testing.T, revision string) {
		answered := make(chan *mcp.ElicitResult)
		p := &person{reply: func(context.Context, int) (*mcp.ElicitResult, error) { return <-answered, nil }}
		h := oneHost(t, revision, elicit.Auto, p)
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan error)
		go func() {
			_, err := h.session.CallTool(ctx, &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"execution_id": "r", "definition": walk(approval)}})
			called <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-called; err == nil {
			t.Error("the call was answered")
		}
		synctest.Wait()
		if r := h.raw("workflow_status", object{"execution_id": "r"}); !contains(r.text, "has not answered yet") {
			t.Errorf("%s", r.text)
		}
		answered <- accepts(object{"approve": true})
		synctest.Wait()
		if answer := h.ok("workflow_status", object{"execution_id": "r"}); answer["phase"] != "completed" || len(p.questions()) != 1 {
			t.Errorf("%v", answer)
		}
	})
}

// TestAQuestionThatNobodyNeedsAnswered: the form is withdrawn once somebody else has answered, or the run has ended.
func TestAQuestionThatNobodyNeedsAnswered(t *testing.T) {
	eachRevision(t, []string{firstAsking, lastAsking}, func(t *testing.T, revision string) {
		for _, end := range []string{"answered", "cancelled"} {
			withdrawn := make(chan struct{})
			p := &person{reply: func(ctx context.Context, _ int) (*mcp.ElicitResult, error) {
				<-ctx.Done()
				close(withdrawn)
				return nil, ctx.Err()
			}}
			h := oneHost(t, revision, elicit.Auto, p)
			called := make(chan reply)
			go func() {
				called <- h.raw("workflow_start", object{"execution_id": "r", "definition": walk(approval), "wait_ms": 300_000})
			}()
			synctest.Wait()
			time.Sleep(time.Minute)
			want := "completed"
			if end == "answered" {
				enginetest.Must(h.runner.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"approve": false}}))
			} else {
				h.ok("workflow_cancel", object{"execution_id": "r"})
				want = "cancelled"
			}
			<-withdrawn
			if r := <-called; r.content["status"] != want {
				t.Errorf("%s: %s", end, r.text)
			}
		}
	})
}

// TestProgressWhileAPersonIsAsked says for what the call waits.
func TestProgressWhileAPersonIsAsked(t *testing.T) {
	eachRevision(t, []string{lastAsking}, func(t *testing.T, revision string) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		here, there := mcp.NewInMemoryTransports()
		go func() { _ = mcpserver.Serve(context.Background(), mcpserver.New(o.runner, o.options), there) }()
		var mu sync.Mutex
		var told []string
		session := enginetest.Must(mcp.NewClient(&mcp.Implementation{Name: "t"}, &mcp.ClientOptions{
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				time.Sleep(30 * time.Second)
				return declines, nil
			},
			ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, req.Params.Message)
			},
		}).Connect(context.Background(), here, &mcp.ClientSessionOptions{ProtocolVersion: revision}))
		params := &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"definition": walk(approval), "wait_ms": 60_000}}
		params.SetProgressToken("p")
		enginetest.Must(session.CallTool(context.Background(), params))
		session.Close()
		mu.Lock()
		defer mu.Unlock()
		if len(told) < 3 || told[len(told)-1] != "waits for the person (24 s)" {
			t.Errorf("told %q", told)
		}
	})
}

// troubled is an engine whose store is in trouble for some answers.
type troubled struct {
	graph.Engine
	left *int
	code problem.Code
}

func (e troubled) Resume(ctx context.Context, req graph.ResumeRequest) (*view.Run, error) {
	if *e.left > 0 {
		*e.left--
		return nil, problem.New(e.code, "not now")
	}
	return e.Engine.Resume(ctx, req)
}

// TestAnAnswerThatCannotBeRecorded is tried again for a while; nobody has to answer twice because a database was busy. If it is in vain,
// the call says so.
func TestAnAnswerThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		times int
		code  problem.Code
		want  string
	}{
		{3, problem.StoreLocked, ""}, {1, problem.RunComputing, ""}, {1000, problem.StoreLocked, "INTERNAL_ERROR"}, {1, problem.ByteLimitExceeded, "INVALID_RESUME_PAYLOAD"},
	} {
		t.Run(fmt.Sprint(c.times, c.code), func(t *testing.T) {
			eachRevision(t, []string{lastAsking}, func(t *testing.T, revision string) {
				p := says(accepts(object{"approve": true}))
				o := newOffice(t, graph.Options{}, mcpserver.Options{})
				h := o.hostOver(troubled{o.runner, &c.times, c.code}, revision, p)
				o.host(revision, nil).ok("workflow_start", object{"execution_id": "r", "definition": walk(approval)})
				r := h.raw("workflow_resume", object{"execution_id": "r", "wait_ms": 300_000})
				if r.code != c.want || c.want == "" && r.content["status"] != "completed" || len(p.questions()) != 1 {
					t.Errorf("asked %d times: %s", len(p.questions()), r.text)
				}
			})
		})
	}
}

// TestTheEndOfASession ends its open questions, and asking goes on in another.
func TestTheEndOfASession(t *testing.T) {
	eachRevision(t, []string{firstAsking, lastAsking}, func(t *testing.T, revision string) {
		gone := make(chan struct{})
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		one := o.host(revision, &person{reply: func(context.Context, int) (*mcp.ElicitResult, error) { <-gone; return closes, nil }})
		one.ok("workflow_start", object{"execution_id": "r", "definition": walk(approval), "wait_ms": 0})
		synctest.Wait()
		close(gone)
		one.session.Close()
		p := says(accepts(object{"approve": true}))
		if answer := o.host(revision, p).ok("workflow_status", object{"execution_id": "r", "wait_ms": 1000}); answer["phase"] != "completed" || len(p.questions()) != 1 {
			t.Errorf("%v", answer)
		}
	})
}

// TestNobodyTriesForASessionThatIsOver: what could not be recorded is not tried for ever.
func TestNobodyTriesForASessionThatIsOver(t *testing.T) {
	eachRevision(t, []string{lastAsking}, func(t *testing.T, revision string) {
		left := 1000
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		h := o.hostOver(troubled{o.runner, &left, problem.StoreLocked}, revision, says(accepts(object{"approve": true})))
		h.ok("workflow_start", object{"execution_id": "r", "definition": walk(approval), "wait_ms": 0})
		time.Sleep(5 * time.Second)
		h.session.Close()
		synctest.Wait()
		tried := left
		time.Sleep(time.Hour)
		if left != tried || tried > 999 {
			t.Errorf("tried %d times, then %d times more", 1000-tried, tried-left)
		}
	})
}
