package httpworkflow_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// waiting is a definition with one step, whose handler tells two versions apart.
func waiting(handler string) string {
	return enginetest.Linear("child", `{"id":"a","type":"start"}`, `{"id":"work","type":"step","config":{"handler":"`+handler+`"}}`, `{"id":"z","type":"end"}`)
}

func parent(t *testing.T, ref, more string) *definition.Document {
	t.Helper()
	sub := `{"id":"sub","type":"subworkflow","config":{"input_mapping":{},"workflow_ref":"` + ref + `"` + more + `}}`
	return enginetest.Define(t, enginetest.Linear("parent", `{"id":"a","type":"start"}`, sub, `{"id":"z","type":"end"}`))
}

// A subworkflow that has begun is stored with its definition: it goes on with what it began with, in another process,
// when the document at the address is another one and when there is no network at all.
func TestABegunSubworkflowNeedsNoNetwork(t *testing.T) {
	t.Parallel()
	var handler atomic.Value
	handler.Store("urn:old")
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, waiting(handler.Load().(string))) })
	store := historymem.New()
	begin := func(o graph.Options) *graph.Runner {
		o.DefaultMode = machine.HostMediated
		return enginetest.Must(graph.New(store, o))
	}
	first := begin(graph.Options{Workflows: trusting(t, s)})
	run, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: "p", Definition: parent(t, s.URL+"/child", "")})
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != machine.AwaitingActivity || len(run.Pending) != 1 || run.Pending[0].ExecutionID != "p:sub:sub" || run.Pending[0].Config["handler"] != "urn:old" {
		t.Fatalf("run %+v", run)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	handler.Store("urn:new")
	second := begin(graph.Options{Workflows: trusting(t, s)})
	if run, err = second.Status(t.Context(), graph.StatusRequest{ExecutionID: "p"}); err != nil || run.Pending[0].Config["handler"] != "urn:old" {
		t.Errorf("run %+v, %v", run, err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}

	s.Close()
	third := begin(graph.Options{})
	defer third.Close()
	run, err = third.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "p", NodeID: "work", OK: true, Result: map[string]any{"done": true}})
	if err != nil || run.Status != machine.Completed || run.FinalState["done"] != true {
		t.Errorf("run %+v, %v", run, err)
	}
	if n := s.count(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
}

// What is fetched passes the same gates as every definition from outside, before anything of it runs.
func TestWhatIsFetchedIsChecked(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/list" {
			fmt.Fprint(w, "[]")
			return
		}
		fmt.Fprint(w, waiting("urn:x"))
	})
	hash := enginetest.Define(t, waiting("urn:x")).Hash()
	unsigned := func(d *definition.Document) error {
		if d.Hash() == hash {
			return problem.New(problem.ValidationError, "it is not signed")
		}
		return nil
	}
	for _, tt := range []struct {
		name, path, more string
		verify           func(*definition.Document) error
		code             problem.Code // "" for a subworkflow that begins
	}{
		{"pinned", "/child", `,"version_pin":"` + hash + `"`, nil, ""},
		{"wrong pin", "/child", `,"version_pin":"` + strings.Repeat("0", 64) + `"`, nil, problem.VersionPinMismatch},
		{"not signed", "/child", "", unsigned, problem.ValidationError},
		{"no definition", "/list", "", nil, problem.ValidationError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{
				Workflows: trusting(t, s), DefaultMode: machine.HostMediated, VerifyDefinition: tt.verify,
			})))
			run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "p", Definition: parent(t, s.URL+tt.path, tt.more)})
			if err != nil {
				t.Fatal(err)
			}
			if tt.code == "" && run.Status != machine.AwaitingActivity || tt.code != "" && (run.Status != machine.Failed || run.ErrorCode != string(tt.code)) {
				t.Errorf("%s %s: %s, want %q", run.Status, run.ErrorCode, run.Error, tt.code)
			}
			_, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: "p:sub:sub"})
			if begun := err == nil; begun != (tt.code == "") {
				t.Errorf("the subworkflow's run: %v", err)
			}
		})
	}
}
