package graph_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// signedBy returns a policy that accepts what a key has "signed".
func signedBy(key string) func(*definition.Document) error {
	return func(d *definition.Document) error {
		if d.Signature()["value"] == key {
			return nil
		}
		return problem.New(problem.ValidationError, "the definition is not signed by %s", key).WithHint("Sign the definition.")
	}
}

func signed(d *definition.Document, key string) *definition.Document {
	return d.Signed(map[string]any{"value": key})
}

// asks is a definition that asks a person and then does a step.
func asks(t *testing.T, name string) *definition.Document {
	return workflow(t, name, []string{startNode(), interrupt("i"), step("a", "one"), endNode()}, "s i", "i a", "a e")
}

// trusting returns a runner that performs steps of definitions that a key has signed.
func trusting(t *testing.T, store history.Store, key string) *graph.Runner {
	o := equip(t, &script{}, "one")
	o.VerifyDefinition = signedBy(key)
	return newRunner(t, store, o)
}

// TestADefinitionStoredUnsignedIsNotRun: a reference to it, a subworkflow of a signed parent and a fork are refused like the
// definition itself.
func TestADefinitionStoredUnsignedIsNotRun(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := historymem.New()
	d := asks(t, "unsigned")
	start(t, newRunner(t, store, equip(t, &script{}, "one")), "r", d, nil)
	r := trusting(t, store, "A")
	for _, ref := range []string{d.Hash(), "unsigned", "unsigned@1"} {
		if _, err := r.Start(ctx, graph.StartRequest{ExecutionID: "n", DefinitionRef: ref}); !strings.Contains(wantCode(t, err, problem.ValidationError).Error(), "not signed by A") {
			t.Errorf("%s: %v", ref, err)
		}
	}
	for _, pin := range []string{"", d.Hash()} {
		members := []string{}
		if pin != "" {
			members = append(members, `"version_pin":"`+pin+`"`)
		}
		parent := signed(workflow(t, "parent", []string{startNode(), subworkflow("v", "unsigned", members...), endNode()}, "s v", "v e"), "A")
		run, err := r.Start(ctx, graph.StartRequest{ExecutionID: "p" + pin, Definition: parent})
		if err != nil || run.Status != machine.Failed || !strings.Contains(run.Error, "not signed by A") {
			t.Errorf("pin %q: %+v, %v", pin, run, err)
		}
	}
	_, err := r.Fork(ctx, graph.ForkRequest{ExecutionID: "r", Seq: 3, NewExecutionID: "f"})
	wantCode(t, err, problem.DefinitionNotFound)
	for _, id := range []string{"n", "f"} {
		if _, err := store.Execution(ctx, id); err == nil {
			t.Errorf("run %s was begun", id)
		}
	}
	run, err := r.Fork(ctx, graph.ForkRequest{ExecutionID: "r", Seq: 3, NewExecutionID: "f", Definition: signed(d, "A")})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.Interrupted)
}

// TestARunOfAnUnsignedDefinitionIsNotContinued: nothing is recorded for it until the definition comes with a signature. Where it
// stands is told, and it can be cancelled.
func TestARunOfAnUnsignedDefinitionIsNotContinued(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := historymem.New()
	d := asks(t, "w")
	open := newRunner(t, store, equip(t, &script{}, "one"))
	start(t, open, "r", d, nil)
	start(t, open, "c", d, nil)
	seq := len(records(t, store, "r"))

	r := trusting(t, store, "A")
	answer := graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}}
	_, err := r.Resume(ctx, answer)
	if e := wantCode(t, err, problem.DefinitionNotFound); !strings.Contains(e.Error(), "not signed by A") || !strings.Contains(e.Hint, "Sign the definition.") {
		t.Errorf("got %v, %q", e, e.Hint)
	}
	_, err = r.Signal(ctx, graph.SignalRequest{ExecutionID: "r", Name: "s"})
	wantCode(t, err, problem.DefinitionNotFound)
	_, err = r.Drive(ctx, graph.DriveRequest{ExecutionID: "r"})
	wantCode(t, err, problem.DefinitionNotFound)
	run := status(t, r, "r")
	if wantStatus(t, run, machine.Interrupted); run.Lacks == nil || !strings.Contains(run.Lacks.Missing, "not signed by A") {
		t.Errorf("lacks %+v", run.Lacks)
	}
	if run, err := r.Start(ctx, graph.StartRequest{ExecutionID: "r", AllowExisting: true}); err != nil || run.Status != machine.Interrupted {
		t.Errorf("start again: %+v, %v", run, err)
	}
	if now := len(records(t, store, "r")); now != seq {
		t.Errorf("%d records, had %d", now, seq)
	}
	if run, err := r.Cancel(ctx, graph.CancelRequest{ExecutionID: "c"}); err != nil || run.Status != machine.Cancelled {
		t.Errorf("cancel: %+v, %v", run, err)
	}

	answer.Definition = signed(d, "A")
	run, err = r.Resume(ctx, answer)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.Completed)
}

// TestASignatureIsStoredWithItsDefinition: another process judges a stored definition by its own keys, of a run that was moved to
// another store too, and a newer signature is stored beside an older one.
func TestASignatureIsStoredWithItsDefinition(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := historymem.New()
	d := asks(t, "w")
	open := newRunner(t, store, equip(t, &script{}, "one"))
	start(t, open, "old", d, nil) // unsigned, in the same process
	start(t, open, "r", signed(d, "A"), nil)

	var file bytes.Buffer
	if err := graph.Export(ctx, store, "r", graph.ExportOptions{Now: time.Now()}, &file); err != nil {
		t.Fatal(err)
	}
	elsewhere := historymem.New()
	if _, err := graph.Import(ctx, elsewhere, &file); err != nil {
		t.Fatal(err)
	}
	answer := graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}}
	for _, s := range []history.Store{store, elsewhere} {
		_, err := trusting(t, s, "B").Resume(ctx, answer)
		wantCode(t, err, problem.DefinitionNotFound)
		run, err := trusting(t, s, "A").Resume(ctx, answer)
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, run, machine.Completed)
	}

	start(t, open, "n", signed(d, "B"), nil)
	if run, err := trusting(t, store, "B").Start(ctx, graph.StartRequest{DefinitionRef: "w"}); err != nil || run.Status != machine.Interrupted {
		t.Errorf("%+v, %v", run, err)
	}
	redacted := &bytes.Buffer{}
	if err := graph.Export(ctx, store, "n", graph.ExportOptions{Redact: true, Now: time.Now()}, redacted); err != nil || strings.Contains(redacted.String(), `"signature"`) {
		t.Errorf("a redacted file holds a signature, which holds the definition: %v", err)
	}
}

// TestAnotherKeyTakesNothingAway: a process with another key, such as one of the same id, starts the same definition. Each goes on to trust it
// by its own key, a third one that accepts unsigned definitions too, and who trusts neither is told so.
func TestAnotherKeyTakesNothingAway(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, start := range map[string]func(*graph.Runner, graph.StartRequest) error{
		"start": func(r *graph.Runner, req graph.StartRequest) error { _, err := r.Start(ctx, req); return err },
		"fork": func(r *graph.Runner, req graph.StartRequest) error {
			_, err := r.Fork(ctx, graph.ForkRequest{ExecutionID: "unsigned", Seq: 3, NewExecutionID: req.ExecutionID, Definition: req.Definition})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := historymem.New()
			d := asks(t, "w")
			either := equip(t, &script{}, "one")
			either.VerifyDefinition = func(d *definition.Document) error {
				if d.Signature() == nil {
					return nil
				}
				return signedBy("C")(d)
			}
			if _, err := newRunner(t, store, either).Start(ctx, graph.StartRequest{ExecutionID: "unsigned", Definition: d}); err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"A", "B"} {
				if err := start(trusting(t, store, key), graph.StartRequest{ExecutionID: key, Definition: signed(d, key)}); err != nil {
					t.Fatal(err)
				}
			}
			for _, run := range []string{"A", "B", "unsigned"} {
				r := newRunner(t, store, either)
				if run != "unsigned" {
					r = trusting(t, store, run)
				}
				_, err := trusting(t, store, "D").Resume(ctx, graph.ResumeRequest{ExecutionID: run, Payload: object{"ok": true}})
				if wantCode(t, err, problem.DefinitionNotFound); !strings.Contains(err.Error(), "not signed by D") {
					t.Errorf("%s: %v", run, err)
				}
				if got, err := r.Resume(ctx, graph.ResumeRequest{ExecutionID: run, Payload: object{"ok": true}}); err != nil || got.Status != machine.Completed {
					t.Errorf("%s: %+v, %v", run, got, err)
				}
				if _, err := newRunner(t, store, graph.Options{VerifyDefinition: signedBy(run)}).Start(ctx, graph.StartRequest{DefinitionRef: "w"}); run != "unsigned" && err != nil {
					t.Errorf("%s, by name: %v", run, err)
				}
			}
		})
	}
}

// TestAnImportedSignatureDoesNotReplaceAStoredOne: a file with a worthless signature does not stop the runs that are here.
func TestAnImportedSignatureDoesNotReplaceAStoredOne(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, other := historymem.New(), historymem.New()
	d := asks(t, "w")
	start(t, newRunner(t, store, equip(t, &script{}, "one")), "r", signed(d, "A"), nil)
	start(t, newRunner(t, other, equip(t, &script{}, "one")), "o", signed(d, "mallory"), nil)
	var file bytes.Buffer
	if err := graph.Export(ctx, other, "o", graph.ExportOptions{Now: time.Now()}, &file); err != nil {
		t.Fatal(err)
	}
	if _, err := graph.Import(ctx, store, &file); err != nil {
		t.Fatal(err)
	}
	if _, err := trusting(t, store, "A").Resume(ctx, graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}}); err != nil {
		t.Error(err)
	}
}

// TestAnOrphanOfAnUnsignedDefinitionIsLeft: a worker performs nothing for it, and says why.
func TestAnOrphanOfAnUnsignedDefinitionIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		bereft(t, store, workflow(t, "w", []string{startNode(), step("a", "one"), endNode()}, "s a", "a e"))
		time.Sleep(time.Minute)
		seq := len(records(t, store, "r"))
		work := &script{}
		o := equip(t, work, "one")
		o.VerifyDefinition, o.Work = signedBy("A"), graph.WorkAll
		r := newRunner(t, store, o)
		time.Sleep(time.Minute)
		found, err := r.Recover(t.Context(), graph.RecoverRequest{DryRun: true})
		if err != nil || len(found.ExecutionIDs) > 0 || len(found.Left) != 1 || !strings.Contains(found.Left[0].Err.Error(), "not signed by A") {
			t.Errorf("%+v, %v", found, err)
		}
		if now := len(records(t, store, "r")); now != seq {
			t.Errorf("%d records, had %d", now, seq)
		}
		wantStatus(t, status(t, r, "r"), machine.Running)
	})
}
