package delegate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
)

// changing is an agent that changes between calls: "card" speaks the A2A protocol, "form" the task form, "gone" is a
// gateway without an agent behind it, "busy" one that says so, "no tasks" a task form that has lost its tasks.
func changing(t *testing.T) (url string, be func(state string)) {
	var now atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		state := now.Load()
		switch {
		case state == "busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case state == "card" && r.Method == http.MethodGet:
			fmt.Fprint(w, `{"url":"/rpc"}`)
		case state == "card":
			var call struct{ ID string }
			if err := json.NewDecoder(r.Body).Decode(&call); err != nil || r.URL.Path != "/rpc" {
				http.NotFound(w, r)
				return
			}
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%q,"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"working"}}}`, call.ID)
		case strings.HasPrefix(r.URL.Path, "/tasks") && (state == "form" || state == "no tasks" && r.Method == http.MethodPost):
			fmt.Fprint(w, `{"id":"t","status":"working"}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func(state string) { now.Store(state) }
}

// TestDetectionOfAChangingAgent: an agent that is away for a moment is not taken for one of the other form, and one that
// has changed is found again.
func TestDetectionOfAChangingAgent(t *testing.T) {
	t.Parallel()
	const (
		rpc, form = "rpc", "form"
		again     = "may pass"
		final     = "final"
	)
	inContext := delegate.TaskRef{ID: "t", ContextID: "c"}
	plain := delegate.TaskRef{ID: "t"}
	type move struct {
		state, call string
		ref         delegate.TaskRef
		want        string
	}
	send := func(state, want string) move { return move{state: state, call: "send", want: want} }
	poll := func(state string, ref delegate.TaskRef, want string) move { return move{state, "poll", ref, want} }
	for name, moves := range map[string][]move{
		"a card from the second look on":   {send("gone", again), send("card", rpc), send("gone", again), send("card", rpc)},
		"busy at first":                    {send("busy", again), send("card", rpc), send("busy", again), send("card", rpc)},
		"a task form from the second on":   {send("gone", again), send("busy", again), send("form", form), poll("form", plain, form)},
		"a task form that comes back":      {send("form", form), send("gone", again), send("form", form)},
		"a task form that became a card":   {send("form", form), send("card", again), send("card", rpc)},
		"a card that became a task form":   {send("card", rpc), send("form", again), send("form", form)},
		"a task taken up without a card":   {poll("gone", inContext, again), poll("busy", inContext, again), poll("card", inContext, rpc)},
		"a task form beside a task of A2A": {send("form", form), poll("form", inContext, again), poll("card", inContext, rpc)},
		"a task of the form is lost":       {send("form", form), poll("no tasks", plain, final)},
		"a task taken up, agent away":      {poll("gone", plain, again), poll("form", plain, form)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, be := changing(t)
			d, err := delegate.NewA2ADetect(delegate.A2AConfig{BaseURL: url, NoAuth: true})
			if err != nil {
				t.Fatal(err)
			}
			for i, m := range moves {
				be(m.state)
				var task delegate.Task
				if m.call == "send" {
					task, err = d.Send(t.Context(), taskFor("coder"))
				} else {
					task, err = d.Poll(t.Context(), taskFor("coder"), m.ref)
				}
				got := form
				failure, failed := errors.AsType[*activities.Failure](err)
				switch {
				case failed && failure.Retryable == activities.RetrySensible:
					got = again
				case err != nil:
					got = final
				case task.ContextID != "":
					got = rpc
				}
				if got != m.want {
					t.Errorf("%d: %s from an agent that is %s: %s (%+v, %v), want %s", i, m.call, m.state, got, task, err, m.want)
				}
			}
		})
	}
}

// TestDetectionAnswersInA2A: only agents of the A2A protocol ask, so that no answer is refused because the card is away.
func TestDetectionAnswersInA2A(t *testing.T) {
	t.Parallel()
	url, be := changing(t)
	d, err := delegate.NewA2ADetect(delegate.A2AConfig{BaseURL: url, NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	answer := map[string]any{"text": "yes"}
	be("gone")
	_, err = d.Answer(t.Context(), taskFor("coder"), delegate.TaskRef{ID: "t"}, answer)
	if failure, ok := errors.AsType[*activities.Failure](err); !ok || failure.Retryable != activities.RetrySensible {
		t.Errorf("while the agent is away: %v", err)
	}
	be("card")
	if task, err := d.Answer(t.Context(), taskFor("coder"), delegate.TaskRef{ID: "t"}, answer); err != nil || task.ID != "t" {
		t.Errorf("%+v, %v", task, err)
	}
}
