package temporal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	common "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/proto"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func fileStore(t testing.TB) *FileSideStore {
	t.Helper()
	s, err := OpenFileSideStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFilesKeepJournalsUnderAFence(t *testing.T) {
	t.Parallel()
	s, ctx := fileStore(t), t.Context()
	for _, err := range []error{
		s.AppendJournal(ctx, "a", 0, [][]byte{[]byte(`"1"`), []byte(`"2"`)}), s.AppendJournal(ctx, "a", 2, [][]byte{[]byte(`"3"`)}),
		s.AppendJournal(ctx, "b", 0, [][]byte{[]byte(`"x"`)}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AppendJournal(ctx, "a", 2, [][]byte{[]byte(`"4"`)}); !errors.Is(err, problem.HistoryConflict) {
		t.Errorf("a second writer: %v", err)
	}
	entries, err := s.Journal(ctx, "a")
	if err != nil || string(bytes.Join(entries, []byte(","))) != `"1","2","3"` {
		t.Errorf("%q %v", entries, err)
	}
}

func TestPayloadsAreKeptElsewhere(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("large ", largePayload)
	for _, key := range []string{"", "0123456789abcdef"} {
		side := fileStore(t)
		c, err := NewDataConverter(side, []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"small", large} {
			p, err := c.ToPayload(text)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := c.ToPayload(text); err != nil || !bytes.Equal(again.Data, p.Data) {
				t.Errorf("equal values have different forms (%v)", err)
			}
			if len(p.Data) > largePayload {
				t.Errorf("%d bytes remain", len(p.Data))
			}
			if key != "" && bytes.Contains(p.Data, []byte("small")) {
				t.Error("the text is not encrypted")
			}
			var got string
			if err := c.FromPayload(p, &got); err != nil || got != text {
				t.Errorf("got %d bytes, want %d (%v)", len(got), len(text), err)
			}
		}
		p, _ := c.ToPayload(large)
		other, err := NewDataConverter(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := other.FromPayload(p, &got); err == nil {
			t.Error("a client without the store reads a large value")
		}
	}
	if _, err := NewDataConverter(nil, []byte("short")); err == nil {
		t.Error("a short key is accepted")
	}
	if _, err := (&codec{}).decode(&common.Payload{Metadata: map[string][]byte{encodingKey: []byte(encodingSealed)}}); err == nil {
		t.Error("an encrypted payload is read without a key")
	}
}

// TestTextsOfFailuresAreEncrypted: a rejection may quote an answer. Whoever has the key reads it.
func TestTextsOfFailuresAreEncrypted(t *testing.T) {
	t.Parallel()
	c, err := NewDataConverter(nil, []byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	f := NewFailureConverter(c)
	failure := f.ErrorToFailure(rejection(problem.New(problem.InvalidResumePayload, "the answer %q is too long", "secret").WithHint("Not secret.")))
	text, err := proto.Marshal(failure)
	if err != nil || bytes.Contains(text, []byte("secret")) {
		t.Errorf("%q %v", text, err)
	}
	if p := carried(f.FailureToError(failure)); p == nil || p.Code != problem.InvalidResumePayload || !strings.Contains(p.Message, "secret") || p.Hint == "" {
		t.Errorf("%+v", p)
	}
}

// lister is an executor that keeps a journal: it records three entries, asks, and returns how many there are.
type lister struct{}

func (l *lister) Execute(context.Context, activities.Request) (activities.Result, error) {
	return activities.Result{}, errors.New("not called")
}

func (l *lister) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{Work: l.work}
}

func (l *lister) work(ctx context.Context, _ activities.Request, j activities.Journal) (activities.End, error) {
	known, err := j.Steps(ctx)
	if err != nil {
		return activities.End{}, err
	}
	for n := len(known); n < 3; n++ {
		if err := j.Record(ctx, activities.Step{Key: fmt.Sprint(n), Kind: "note", Body: map[string]any{"number": float64(n)}}); err != nil {
			return activities.End{}, err
		}
	}
	for _, s := range known {
		if s.Kind == machine.StepAnswer {
			return activities.End{Result: &activities.Result{Output: map[string]any{"entries": float64(len(known))}}}, nil
		}
	}
	return activities.End{Question: &activities.Question{Key: "q", Prompt: "Go on?", Body: map[string]any{"shown": "all"}}}, nil
}

func TestJournalsAreKeptInTheSideStore(t *testing.T) {
	t.Parallel()
	l := &lister{}
	e, _ := newTestEngine(t, Options{Activities: l, SideStore: fileStore(t)})
	run, err := e.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: journaled(t)})
	if err != nil || run.Status != machine.Interrupted || run.Pending[0].Prompt != "Go on?" || run.Pending[0].Steps != 4 || run.Pending[0].Show == nil {
		t.Fatalf("%+v %v", run, err)
	}
	run, err = e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"text": "yes"}})
	if err != nil || run.Status != machine.Completed || run.FinalState["entries"] != 6.0 {
		t.Fatalf("%+v %v", run, err)
	}
}

// TestALostWorkerLeavesItsJournal: another worker continues after the entries of the lost one.
func TestALostWorkerLeavesItsJournal(t *testing.T) {
	t.Parallel()
	side := fileStore(t)
	p := &performer{side: side}
	effect := func() *machine.ActivityEffect {
		return &machine.ActivityEffect{EffectBase: machine.EffectBase{EffectKey: "a#1.1", NodeID: "a", Visit: 1, Attempt: 1}}
	}
	first := &attemptRuns{performer: p, attempt: &attempt{ExecutionID: "r"}}
	if err := first.load(t.Context(), effect()); err != nil {
		t.Fatal(err)
	}
	note := machine.StepsRecorded{Steps: []machine.Step{{Key: "0", Kind: "note"}}}
	if err := first.Record("r", nil, note); err != nil {
		t.Fatal(err)
	}
	second, again := &attemptRuns{performer: p, attempt: &attempt{ExecutionID: "r"}}, effect()
	if err := second.load(t.Context(), again); err != nil || !second.begun || again.Journal == nil || again.Journal.Count != 1 {
		t.Fatalf("%+v %v", again.Journal, err)
	}
	if err := second.Record("r", nil, note); err != nil {
		t.Fatal(err)
	}
	if err := first.Record("r", nil, note); !errors.Is(err, problem.HistoryConflict) {
		t.Errorf("the lost worker writes: %v", err)
	}
	out, _ := second.complete(machine.Outcome{OK: true, Index: 2}).(machine.Outcome)
	if out.Index != 0 || len(out.Steps) != 2 {
		t.Errorf("%+v", out)
	}
}
